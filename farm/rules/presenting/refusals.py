"""What will not run or did not finish, each reason once: with whom it is about, most of them first. Pure."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from farm.contract.reasons import Reason


class WithReason(Protocol):
    """A cell of a document, or a point of a plan."""

    @property
    def reason(self) -> Reason | None: ...


Refused = TypeVar("Refused", bound=WithReason)


def by_reason(refused: Iterable[Refused]) -> dict[str, list[Refused]]:
    """Those with a reason, by its text."""
    groups: dict[str, list[Refused]] = {}
    for refusal in refused:
        if refusal.reason is not None:
            groups.setdefault(refusal.reason.text, []).append(refusal)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))
