"""What will not run or did not finish, each reason once: with whom it is about, most of them first. Pure."""

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


def by_reason(refused: Iterable[Refused]) -> dict[Reason, list[Refused]]:
    """Those that have one."""
    groups: dict[Reason, list[Refused]] = {}
    for refusal in refused:
        if refusal.reason is not None:
            groups.setdefault(refusal.reason, []).append(refusal)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def ways_in_words(alike: Sequence[WithReason]) -> list[str]:
    """For those of one reason: what to change and the command that measures it, where it is known, and more words."""
    way, reason = alike[0].way_out, alike[0].reason
    changed = [] if way is None else [": ".join(filter(None, (way.label, way.command)))]
    return changed + ([] if reason is None else [_more(reason)])


def in_words(reason: Reason) -> str:
    return f"{reason.text} {_more(reason)}"


def _more(reason: Reason) -> str:
    return f"More: onnxfarm docs {reason.code}"
