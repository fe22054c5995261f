"""Refused points of a matrix, grouped by reason, each group with a button that helps to run them."""

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

# reasons that no change of the matrix removes, with the label of the button and the page that it leads to
PAGES_THAT_HELP = {
    ReasonCode.NO_NODE: ("Add a node", "dashboard:fleet"),
    ReasonCode.PROVIDER_NOT_IN_BUILD: ("Add a node", "dashboard:fleet"),
    ReasonCode.CUSTOM_DOMAIN: ("Upload another export", "dashboard:upload"),
}


@dataclass(frozen=True)
class Button:
    """A button that helps refused points to run. Exactly one of three fields is set: `matrix` replaces the matrix,
    `trial` is requested from a node, or `href` is the page to open."""

    label: str
    matrix: str = ""
    trial: TrialAsked | None = None
    href: str = ""

    @property
    def htmx_values(self) -> str:
        """Write the changed matrix as JSON, which htmx sends in place of the editor's text."""
        return json.dumps({"matrix": self.matrix})


@dataclass(frozen=True)
class Group:
    """Refused points with the same reason. `code`: the code of the reason; `button`: None where no button helps."""

    reason: str
    code: str
    points: Sequence[Entry]
    button: Button | None = None


def group_refusals(
    refused: Iterable[Refused], entry: Callable[[Refused], Entry], *, matrix: str | Mapping[str, object] = ""
) -> list[Group]:
    """Group refused points by their reason, the largest group first and points without a reason left out, each group
    with the button that helps, if there is one.

    `entry`: makes the table entry that names a point; `matrix`: the matrix that was planned; where it is empty no group
    has a button. A change that would make the matrix invalid gets no button.
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
