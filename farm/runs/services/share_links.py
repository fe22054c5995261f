"""Makes public links to a run, a cell, a model, a model across hardware, or cells side by side."""

from collections.abc import Sequence

from farm.accounts.models import Share, Team, User
from farm.accounts.selectors import can_write
from farm.accounts.services import make_share
from farm.accounts.states import ShareKind
from farm.base.refusals import Invalid
from farm.contract.numbers import is_row_number
from farm.registry import selectors as registry
from farm.runs import selectors

MAX_CELLS = 4


def share(*, kind: str, subject: str, by: User, days: int = 30) -> tuple[Share, str]:
    """Make a public link to what `subject` names: an id, RUN:CELL, or several of those with commas between.

    Return its row and its address, which is shown this once. Raises Missing for what `by` may not see, Invalid for an
    unknown kind or a subject of another form, and what `make_share` raises.
    """
    if kind not in ShareKind.values:
        raise Invalid(f"“{kind[:40]}” cannot be shared: share a {', '.join(ShareKind.values)}.", code="kind")
    known = ShareKind(kind)
    if known in (ShareKind.MODEL, ShareKind.HARDWARE):
        model = registry.model(by, _number(subject, ShareKind.MODEL))
        where = " across hardware" if known == ShareKind.HARDWARE else ""
        team, named, title = model.team, str(model.pk), f"model {model.name}{where}"
    elif known == ShareKind.RUN:
        run = selectors.run(by, _number(subject, known))
        team, named, title = run.team, str(run.pk), f"run {run.pk} of {run.version}"
    else:
        team, named, title = _cells(subject.split(","), known, by)
    return make_share(team=team, by=by, kind=known, subject=named, title=title, days=days)


def split(subject: str) -> list[tuple[int, str]]:
    """Parse "RUN:CELL,RUN:CELL" into run ids and cell ids. Raises Invalid for another text."""
    found = []
    for part in subject.split(","):
        run_id, _, cell = part.partition(":")
        if not cell or not is_row_number(run_id):
            raise Invalid(f"“{part[:60]}” names no cell: write RUN:CELL.", code="subject")
        found.append((int(run_id), cell))
    return found


def _cells(keys: Sequence[str], kind: ShareKind, by: User) -> tuple[Team, str, str]:
    low, high = (2, MAX_CELLS) if kind == ShareKind.COMPARE else (1, 1)
    keys = list(dict.fromkeys(keys))
    if not low <= len(keys) <= high:
        wanted = "one cell, as RUN:CELL" if high == 1 else f"{low} to {high} cells, as RUN:CELL,RUN:CELL"
        raise Invalid(f"A share link of this kind names {wanted}; this has {len(keys)}.", code="subject")
    teams = []
    for run_id, name in split(",".join(keys)):
        run = selectors.run(by, run_id)
        selectors.cell_document(run, name)
        teams.append(run.team)
    # the link is the base's team's; every other team's members must be asked too
    first = next((team for team in teams if not can_write(by, team=team)), teams[0])
    title = f"cell {keys[0]}" if kind == ShareKind.CELL else f"{len(keys)} cells: {', '.join(keys)}"
    return first, ",".join(keys), title


def _number(subject: str, kind: ShareKind) -> int:
    if not is_row_number(subject):
        raise Invalid(f"“{subject[:60]}” is not the number of a {kind}.", code="subject")
    return int(subject)
