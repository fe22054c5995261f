"""The farm as the bench of searches: their experiments are runs on behalf of a watch."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from django.conf import settings
from django.db import transaction

from farm.accounts.models import User
from farm.accounts.selectors import can_write
from farm.alerts.models import Investigation, Watch, WatchRound
from farm.alerts.selectors.releases import known
from farm.base.refusals import Refusal
from farm.fleet.states import NodeHealth
from farm.registry.models import Version
from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix
from farm.rules.runtimes.releases import Known
from farm.rules.searches.search import Measured
from farm.runs import selectors as runs
from farm.runs.models import Arm, Run, named
from farm.runs.services import more_rounds, start_run
from farm.runs.states import RunOutcome, RunReason, RunState

log = logging.getLogger(__name__)

# refusals that pass by themselves
PASSING = ("too_many_runs", "not_inspected")
MORE_ROUNDS = 8


class CannotMeasure(Exception):
    """A run of the farm's own could not be started. The message is one sentence; `is_temporary`: try later."""

    def __init__(self, text: str, *, is_temporary: bool = False) -> None:
        super().__init__(text)
        self.is_temporary = is_temporary


def extend(watch_round: WatchRound, run: Run) -> bool:
    """Lets the run's undecided blocks go on, once; False when they cannot or did so before."""
    with transaction.atomic():
        is_first = WatchRound.objects.filter(pk=watch_round.pk, is_extended=False).update(is_extended=True)
        return bool(is_first) and _go_on(watch_round.watch, run, MORE_ROUNDS)


def start(watch: Watch, version: Version, matrix: Matrix, *, reason: RunReason) -> Run:
    """A run on behalf of whoever made the watch, and why. Raises CannotMeasure."""
    by = runner_of(watch)
    if by is None:
        raise CannotMeasure(
            f"The creator of watch “{watch.name}” can no longer start runs in team “{watch.team.name}”: change it."
        )
    try:
        offered = Known(releases=tuple(known(watch.distribution)))
        return start_run(version=version, matrix=matrix, requested_by=by, reason=reason, known=offered)
    except Refusal as refusal:
        raise CannotMeasure(str(refusal), is_temporary=refusal.code in PASSING) from refusal


def go_on(watch: Watch, run: Run) -> bool:
    """Lets what is undecided be measured up to the last look; False when it was, or when nothing of it can go on."""
    measured = max(run.blocks.values_list("rounds", flat=True), default=PLANNED_LOOKS[-1])
    return measured < PLANNED_LOOKS[-1] and _go_on(watch, run, PLANNED_LOOKS[-1] - measured)


def _go_on(watch: Watch, run: Run, rounds: int) -> bool:
    by = runner_of(watch)
    if by is None or run.outcome == RunOutcome.CANCELLED:
        return False
    try:
        more_rounds(run=run, by=by, rounds=rounds, asker=f"Watch “{watch.name}”")
    except Refusal:
        # another tick may have asked first
        run.refresh_from_db()
        return run.state != RunState.FINISHED
    return True


def runner_of(watch: Watch) -> User | None:
    by = watch.created_by
    return by if by is not None and by.is_active and can_write(by, team=watch.team) else None


def run_of(investigation: Investigation) -> Run:
    """The run that showed what is looked into. Raises CannotMeasure."""
    if investigation.symptom.run is None:
        raise CannotMeasure("The run that showed the change was deleted, so it cannot be measured again.")
    return investigation.symptom.run


def minutes_of(run: Run) -> float:
    """How long a run took from its start to its end."""
    if run.started_at is None or run.finished_at is None:
        return 0.0
    return (run.finished_at - run.started_at).total_seconds() / 60.0


def measured(run: Run) -> Measured:
    """A run as a search reads it."""
    document = runs.document(run)
    reviewed = run.blocks.filter(node__health=NodeHealth.QUARANTINED).values_list("node__name", flat=True)
    names = {cell.node for cell in document.cells}
    return Measured(parsed(run), document, lambda name: positions_of(run, [name])[0], frozenset(reviewed) & names)


def parsed(run: Run) -> Matrix:
    return matrices.parse(run.matrix, allowed=settings.ALLOWED_PACKAGES)


def matrix_to_search(run: Run) -> Matrix:
    """A run's matrix without verdicts on operators, which a fresh block gave and no step of a search reads."""
    return replace(parsed(run), operators=None)


def positions_of(run: Run, names: Sequence[str]) -> list[dict[str, int]]:
    """Where these arms' or refused cells' points stand in the run's matrix."""
    arms = Arm.objects.filter(named(run, *names)).select_related("cell")
    cells = {arm.cell_id: arm.cell for arm in arms}
    cells |= {cell.pk: cell for cell in run.cells.filter(name__in=names)}
    return [cell.positions for cell in cells.values()]
