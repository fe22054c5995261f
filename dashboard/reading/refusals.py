"""What will not run, each reason once, with a button that changes the matrix so that it does."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse

from farm.contract.reasons import Reason, ReasonCode, TrialAsked, WayOut
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix_text import write_text
from farm.rules.planning.ways_out import apply_way_out
from farm.rules.presenting.refusals import Refused, group_by_reason
from farm.rules.presenting.tables import Entry

# what helps where no change of the matrix does: what the button says, and the page that it leads to
ELSEWHERE = {
    ReasonCode.NO_NODE: ("Add a node", "dashboard:fleet"),
    ReasonCode.PROVIDER_NOT_IN_BUILD: ("Add a node", "dashboard:fleet"),
    ReasonCode.CUSTOM_DOMAIN: ("Upload another export", "dashboard:upload"),
}
NOTHING = ("", "", None, "")


@dataclass(frozen=True)
class Group:
    """The points that one reason keeps. `way`: what the button says that takes `matrix`, asks for a trial, or leads to
    `href`; empty: there is none."""

    reason: str
    code: str
    points: Sequence[Entry]
    way: str = ""
    matrix: str = ""
    ask: TrialAsked | None = None
    href: str = ""

    @property
    def vals(self) -> str:
        """Write the changed matrix as JSON that htmx sends in place of the one in the editor."""
        return json.dumps({"matrix": self.matrix})


def group_refusals(
    refused: Iterable[Refused], entry: Callable[[Refused], Entry], *, matrix: str | Mapping[str, object] = ""
) -> list[Group]:
    """Group refused points by their reason, each group with the button that helps, if anything does.

    `entry` gives what a point is called. `matrix` is the one that was asked for; where it is empty no group has a
    button. Nothing is changed before the button is pressed; a way out that makes no valid matrix is no button.
    """
    return [
        Group(
            reason.text, str(reason.code), [entry(point) for point in alike], *_button(reason, alike[0].way_out, matrix)
        )
        for reason, alike in group_by_reason(refused).items()
    ]


def _button(
    reason: Reason, way: WayOut | None, matrix: str | Mapping[str, object]
) -> tuple[str, str, TrialAsked | None, str]:
    if way is None or not matrix:
        label, page = ELSEWHERE.get(reason.code, ("", "")) if way is None and matrix else ("", "")
        return (label, "", None, reverse(page)) if page else NOTHING
    if way.ask is not None:
        return way.label, "", way.ask, ""
    try:
        changed = apply_way_out(matrices.parse(matrix, allowed=settings.ALLOWED_PACKAGES), way)
    except MatrixProblem:  # an older matrix, or one that the change makes too large
        return NOTHING
    return way.label, write_text(changed.as_plain()), None, ""
