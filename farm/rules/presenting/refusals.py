"""Lists what will not run or did not finish, each reason once, the reason of most cells first. Pure."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from farm.contract.reasons import Reason, WayOut


class WithReason(Protocol):
    """A cell of a document, or a point of a plan."""

    @property
    def reason(self) -> Reason | None: ...
    @property
    def way_out(self) -> WayOut | None: ...


Refused = TypeVar("Refused", bound=WithReason)


def group_by_reason(refused: Iterable[Refused]) -> dict[Reason, list[Refused]]:
    """Group what has a reason by it, the largest group first."""
    groups: dict[Reason, list[Refused]] = {}
    for refusal in refused:
        if refusal.reason is not None:
            groups.setdefault(refusal.reason, []).append(refusal)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def list_ways_out(alike: Sequence[WithReason]) -> list[str]:
    """List the sentences for what has one reason: what to change with its command, where known, and where to read
    more."""
    way, reason = alike[0].way_out, alike[0].reason
    changed = [] if way is None else [": ".join(filter(None, (way.label, way.command)))]
    return changed + ([] if reason is None else [_more(reason)])


def describe(reason: Reason) -> str:
    return f"{reason.text} {_more(reason)}"


def _more(reason: Reason) -> str:
    return f"More: onnxfarm docs {reason.code}"
