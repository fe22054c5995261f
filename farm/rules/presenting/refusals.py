"""Lists the reasons why cells will not run or did not finish, and the ways out."""

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
    """Group cells by their reason, the largest group first; those without a reason are left out."""
    groups: dict[Reason, list[Refused]] = {}
    for refusal in refused:
        if refusal.reason is not None:
            groups.setdefault(refusal.reason, []).append(refusal)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def list_ways_out(alike: Sequence[WithReason]) -> list[str]:
    """List the ways out for cells that share a reason: what to change, with its command, and where to read more.

    They are those of the first cell. Raises IndexError without cells.
    """
    way_out, reason = alike[0].way_out, alike[0].reason
    changes = [] if way_out is None else [": ".join(filter(None, (way_out.label, way_out.command)))]
    return changes + ([] if reason is None else [_refer_to_docs(reason)])


def describe_reason(reason: Reason) -> str:
    return f"{reason.text} {_refer_to_docs(reason)}"


def _refer_to_docs(reason: Reason) -> str:
    return f"More: onnxfarm docs {reason.code}"
