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


def by_reason(refused: Iterable[Refused]) -> dict[str, list[Refused]]:
    """Those with a reason, by its text."""
    groups: dict[str, list[Refused]] = {}
    for refusal in refused:
        if refusal.reason is not None:
            groups.setdefault(refusal.reason.text, []).append(refusal)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def way_in_words(alike: Sequence[WithReason]) -> str:
    """What to change and the command that measures it, for those of one reason; empty where nothing is known."""
    way = alike[0].way_out
    return "" if way is None else ": ".join(filter(None, (way.label, way.command)))
