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

# where no change of the matrix helps: what the button says, and the page that it leads to
PAGES_THAT_HELP = {
    ReasonCode.NO_NODE: ("Add a node", "dashboard:fleet"),
    ReasonCode.PROVIDER_NOT_IN_BUILD: ("Add a node", "dashboard:fleet"),
    ReasonCode.CUSTOM_DOMAIN: ("Upload another export", "dashboard:upload"),
}


@dataclass(frozen=True)
class Button:
    """A button that makes refused points run. It does one of three things: it replaces the matrix with `matrix`, it
    requests `trial`, or it leads to the page `href`."""

    label: str
    matrix: str = ""
    trial: TrialAsked | None = None
    href: str = ""

    @property
    def htmx_values(self) -> str:
        """Write the changed matrix as JSON that htmx sends in place of the one in the editor."""
        return json.dumps({"matrix": self.matrix})


@dataclass(frozen=True)
class Group:
    """Refused points with the same reason. `button`: what helps; None where nothing does."""

    reason: str
    code: str
    points: Sequence[Entry]
    button: Button | None = None


def group_refusals(
    refused: Iterable[Refused], entry: Callable[[Refused], Entry], *, matrix: str | Mapping[str, object] = ""
) -> list[Group]:
    """Group refused points by their reason, each group with the button that helps, if anything does.

    `entry` makes the table entry that names a point. `matrix` is the one that was planned; where it is empty no group
    has a button. A change that makes no valid matrix is no button.
    """
    groups = []
    for reason, points in group_by_reason(refused).items():
        button = _make_button(reason, points[0].way_out, matrix) if matrix else None
        groups.append(Group(reason.text, str(reason.code), [entry(point) for point in points], button))
    return groups


def _make_button(reason: Reason, way_out: WayOut | None, matrix: str | Mapping[str, object]) -> Button | None:
    if way_out is None and reason.code in PAGES_THAT_HELP:
        label, page = PAGES_THAT_HELP[reason.code]
        return Button(label, href=reverse(page))
    if way_out is None:
        return None
    if way_out.ask is not None:
        return Button(way_out.label, trial=way_out.ask)
    try:
        changed = apply_way_out(matrices.parse(matrix, allowed=settings.ALLOWED_PACKAGES), way_out)
    except MatrixProblem:  # an older matrix, or one that the change makes too large
        return None
    return Button(way_out.label, matrix=write_text(changed.as_plain()))
