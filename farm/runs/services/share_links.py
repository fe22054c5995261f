"""Makes public links to a run, a cell, a model, a model across hardware, or cells side by side."""

from collections.abc import Sequence

from farm.accounts.models import Share, Team, User
from farm.accounts.selectors import can_write
from farm.accounts.services import make_share
from farm.accounts.states import ShareKind
from farm.base.grouping import group_by
from farm.base.refusals import Invalid
from farm.contract.numbers import is_row_number
from farm.registry import selectors as registry
from farm.rules.wording.numbers import listed
from farm.runs import selectors

MAX_CELLS = 4


def share(*, kind: str, subject: str, by: User, days: int = 30) -> tuple[Share, str]:
    """Make a public link to a subject: an id, RUN:CELL, or 2 to MAX_CELLS different RUN:CELL separated by commas.

    Cells must have ended, and repeated ones count once. Return its row and its address, which cannot be shown again.
    Raises Missing for a subject that `by` may not see, Invalid for an unknown kind or a subject of another form, and
    what `make_share` raises.
    """
    if kind not in ShareKind.values:
        raise Invalid(f"“{kind[:40]}” cannot be shared: share a {', '.join(ShareKind.values)}.", code="kind")
    share_kind = ShareKind(kind)
    if share_kind in (ShareKind.MODEL, ShareKind.HARDWARE):
        model = registry.model(by, _parse_id(subject, ShareKind.MODEL))
        suffix = " across hardware" if share_kind == ShareKind.HARDWARE else ""
        team, subject, title = model.team, str(model.pk), f"model {model.name}{suffix}"
    elif share_kind == ShareKind.RUN:
        run = selectors.run(by, _parse_id(subject, share_kind))
        team, subject, title = run.team, str(run.pk), f"run {run.pk} of {run.version}"
    else:
        cells = _list_cell_names(subject, share_kind)
        team, subject = _find_team_of_cells(cells, by), ",".join(cells)
        title = _name_cells(subject)
    return make_share(team=team, by=by, kind=share_kind, subject=subject, title=title, days=days)


def parse_cells(subject: str) -> list[tuple[int, str]]:
    """Parse "RUN:CELL,RUN:CELL" into run ids and cell ids. Raises Invalid for another text."""
    cells = []
    for part in subject.split(","):
        run_id, _, cell = part.partition(":")
        if not cell or not is_row_number(run_id):
            raise Invalid(f"“{part[:60]}” names no cell: write RUN:CELL.", code="subject")
        cells.append((int(run_id), cell))
    return cells


def _name_cells(subject: str) -> str:
    """Name cells by their runs: `cells c1 and c5 of run 1`."""
    runs = group_by(parse_cells(subject), lambda cell: cell[0])
    parts = [f"{listed([name for _, name in cells], most=MAX_CELLS)} of run {run}" for run, cells in runs.items()]
    return f"{'cells' if ',' in subject else 'cell'} {listed(parts, most=MAX_CELLS)}"


def _list_cell_names(subject: str, kind: ShareKind) -> list[str]:
    """List the different names RUN:CELL in a subject. Raises Invalid if a link of this kind has another number."""
    low, high = (2, MAX_CELLS) if kind == ShareKind.COMPARE else (1, 1)
    names = list(dict.fromkeys(subject.split(",")))
    if not low <= len(names) <= high:
        form = "one cell, as RUN:CELL" if high == 1 else f"{low} to {high} cells, as RUN:CELL,RUN:CELL"
        raise Invalid(f"A share link of this kind names {form}; this has {len(names)}.", code="subject")
    return names


def _find_team_of_cells(names: Sequence[str], by: User) -> Team:
    """Find the team that has to share these cells. Raises Missing for a cell that `by` may not see."""
    teams = []
    for run_id, name in parse_cells(",".join(names)):
        run = selectors.run(by, run_id)
        selectors.cell_document(run, name)
        teams.append(run.team)
    # if `by` may not share the cells of one of the teams, choose that team, so that `make_share` refuses
    return next((team for team in teams if not can_write(by, team=team)), teams[0])


def _parse_id(subject: str, kind: ShareKind) -> int:
    if not is_row_number(subject):
        raise Invalid(f"“{subject[:60]}” is not the number of a {kind}.", code="subject")
    return int(subject)
