"""The scenarios `single`, one inference after another, and `sustained`, the same followed by minutes of work."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from farm.contract.cells import SINGLE, CellSpec, Workload
from farm.contract.sustained import MAX_SUSTAINED_S
from farm.rules.cells.fields import parse_finite
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.scenario import Scenario, ShapeProblem
from farm.rules.runtimes.models import ModelFacts

MIN_MINUTES: Final = 0.05
MAX_MINUTES: Final = MAX_SUSTAINED_S / 60.0


@dataclass(frozen=True)
class Single(Scenario):
    """One inference after another, in one stream or in several. `Scenario` documents the methods.

    It refuses no cell. Its only setting of the runner is the kind, `closed` for several streams.
    """

    kind: ClassVar[str] = SINGLE
    is_plain: ClassVar[bool] = True

    def runner_settings(self, work: Workload) -> dict[str, object]:
        return {"kind": "closed" if work.concurrency > 1 else SINGLE}

    def refusals(self, spec: CellSpec, model: ModelFacts, *, shape_problem: ShapeProblem) -> Iterator[str]:
        yield from ()


@dataclass(frozen=True)
class Sustained(Single):
    """The rounds of `single`, and after them inferences for some minutes in one process.

    The minutes are no setting of the runner: its rounds are those of `single`.
    """

    kind: ClassVar[str] = "sustained"
    schema: ClassVar[Mapping[str, Any]] = {"type": "number", "minimum": MIN_MINUTES, "maximum": MAX_MINUTES}
    takes_value: ClassVar[bool] = True
    minutes: float

    @classmethod
    def read(cls, options: object, /) -> Scenario:
        """Make the scenario from its minutes, a number or text. Raises MatrixProblem."""
        minutes = parse_finite(options)
        if minutes is None or not MIN_MINUTES <= minutes <= MAX_MINUTES:
            raise MatrixProblem(
                f"sustained is {options!r}: write minutes from {MIN_MINUTES:g} to {MAX_MINUTES:g}, such as 10."
            )
        return cls(minutes)

    @property
    def text(self) -> str:
        return f"{self.kind}:{self.minutes:g}"

    @property
    def label(self) -> str:
        return f"{self.kind} {self.minutes:g} min"

    @property
    def sustained_s(self) -> float:
        return 60.0 * self.minutes
