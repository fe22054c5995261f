"""The rates of a block whose cells look for the highest that keeps a bound: searched once, the same for all arms."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from farm.contract.base import digest_of
from farm.contract.reasons import Reason
from farm.rules.cells import scenarios
from worker.agent.passes.arms import PreparedArm
from worker.agent.passes.launches import Answer, garbled


class _Told(BaseModel):
    """The part of a runner's answer that is about the rates it found."""

    rates: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1, max_length=16)]


@dataclass
class LoadRates:
    """Rates, and why there are none, by everything of a cell but its runtime."""

    _found: dict[str, list[float]] = field(default_factory=dict)
    _reasons: dict[str, Reason] = field(default_factory=dict)

    def look(self, arm: PreparedArm, *, launch: Callable[[], Answer]) -> None:
        """Search by a launch that is no sample, where that is asked for and no arm before had an answer."""
        key = _without_runtime(arm)
        if not scenarios.of(arm.order.cell).looks_for_a_rate or key in self._found:
            return
        answer = launch()
        try:
            self._found[key] = _Told.model_validate(answer.reply).rates
        except ValidationError:
            self._reasons[key] = answer.reason or garbled("a search without rates")

    def of(self, arm: PreparedArm) -> list[float]:
        """Those to measure; none before a search."""
        return self._found.get(_without_runtime(arm), [])

    def why_none(self, arm: PreparedArm) -> Reason | None:
        """Why the arm cannot be measured: without an answer of any arm's search each launch would search anew."""
        key = _without_runtime(arm)
        return None if key in self._found else self._reasons.get(key)


def _without_runtime(arm: PreparedArm) -> str:
    return digest_of(arm.order.cell.model_dump(mode="json", exclude={"runtime"}))
