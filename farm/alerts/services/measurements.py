"""Starts and reads the runs in which the farm measures the experiments of a watch's searches."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from django.conf import settings
from django.db import transaction

from farm.accounts.models import User
from farm.accounts.selectors import can_write
from farm.alerts.models import Investigation, Watch, WatchRound
from farm.alerts.selectors.releases import list_ever_offered
from farm.base.refusals import Refusal
from farm.fleet.states import NodeHealth
from farm.registry.models import Version
from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix
from farm.rules.runtimes.releases import Known
from farm.rules.searches.search import Measured
from farm.runs import selectors as runs
from farm.runs.models import Arm, Run, match_arms
from farm.runs.services import measure_more_rounds, start_run
from farm.runs.states import RunOutcome, RunReason, RunState

log = logging.getLogger(__name__)

# codes of refusals after which a later tick tries again
TRANSIENT_REFUSALS = ("too_many_runs", "not_inspected")
# further rounds of a run whose comparisons are undecided
MORE_ROUNDS = 8


class CannotMeasure(Exception):
    """The reason, in one sentence, why the farm cannot start a run. `is_temporary`: a later try may succeed."""

    def __init__(self, text: str, *, is_temporary: bool = False) -> None:
        super().__init__(text)
        self.is_temporary = is_temporary


def extend_round(watch_round: WatchRound, run: Run) -> bool:
    """Order MORE_ROUNDS more rounds of the run's undecided blocks; return whether they are to be measured.

    Return False where they were ordered before for this run of the watch's round, where the run was cancelled, where
    the watch's creator may not start runs any more, or where no block can go on. The round counts as extended
    even then.
    """
    with transaction.atomic():
        is_first = WatchRound.objects.filter(pk=watch_round.pk, is_extended=False).update(is_extended=True)
        return bool(is_first) and _order_rounds(watch_round.watch, run, MORE_ROUNDS)


def start_watch_run(watch: Watch, version: Version, matrix: Matrix, *, reason: RunReason) -> Run:
    """Start a run in the name of the watch's creator.

    Raises CannotMeasure where the creator may not start runs any more, or where the run is refused; the error is
    temporary for TRANSIENT_REFUSALS.
    """
    runner = find_runner(watch)
    if runner is None:
        raise CannotMeasure(
            f"The creator of watch “{watch.name}” can no longer start runs in team “{watch.team.name}”: change it."
        )
    try:
        releases = Known(releases=tuple(list_ever_offered(watch.distribution)))
        return start_run(version=version, matrix=matrix, requested_by=runner, reason=reason, known=releases)
    except Refusal as refusal:
        raise CannotMeasure(str(refusal), is_temporary=refusal.code in TRANSIENT_REFUSALS) from refusal


def measure_to_last_look(watch: Watch, run: Run) -> bool:
    """Order the rounds that the run's undecided blocks lack until the last planned interim look.

    Return False where they lack none, or where more rounds are impossible, as in `extend_round`.
    """
    missing = PLANNED_LOOKS[-1] - max(run.blocks.values_list("rounds", flat=True), default=PLANNED_LOOKS[-1])
    return missing > 0 and _order_rounds(watch, run, missing)


def _order_rounds(watch: Watch, run: Run, rounds: int) -> bool:
    runner = find_runner(watch)
    if runner is None or run.outcome == RunOutcome.CANCELLED:
        return False
    try:
        measure_more_rounds(run=run, by=runner, rounds=rounds, asker=f"Watch “{watch.name}”")
    except Refusal:
        # another tick may have ordered the rounds already; then the run goes on
        run.refresh_from_db()
        return run.state != RunState.FINISHED
    return True


def find_runner(watch: Watch) -> User | None:
    """Return the watch's creator, if they may still start runs in its team.

    None where they may not, are switched off, or were removed.
    """
    creator = watch.created_by
    if creator is None or not creator.is_active or not can_write(creator, team=watch.team):
        return None
    return creator


def get_run(investigation: Investigation) -> Run:
    """Return the run that showed the change. Raises CannotMeasure where it was deleted."""
    if investigation.symptom.run is None:
        raise CannotMeasure("The run that showed the change was deleted, so it cannot be measured again.")
    return investigation.symptom.run


def count_minutes(run: Run) -> float:
    """Return how many minutes passed from a run's start to its end; 0 where the run has not ended."""
    if run.started_at is None or run.finished_at is None:
        return 0.0
    return (run.finished_at - run.started_at).total_seconds() / 60.0


def read_measured(run: Run) -> Measured:
    """Read the measurements of a run as a search takes them; cells of nodes that are in quarantine now are marked."""
    document = runs.document(run)
    quarantined = run.blocks.filter(node__health=NodeHealth.QUARANTINED).values_list("node__name", flat=True)
    reviewed = frozenset(quarantined) & {cell.node for cell in document.cells}
    return Measured(parse_matrix(run), document, lambda name: positions_of(run, [name])[0], reviewed)


def parse_matrix(run: Run) -> Matrix:
    return matrices.parse(run.matrix, allowed=settings.ALLOWED_PACKAGES)


def matrix_without_operators(run: Run) -> Matrix:
    # searches read no verdicts on operators, so their runs need none
    return replace(parse_matrix(run), operators=None)


def positions_of(run: Run, names: Sequence[str]) -> list[dict[str, int]]:
    """Return the positions in the run's matrix of the arms or refused cells with these names.

    Arms come first, in no order. Names that the run does not have are left out, and arms of the same cell count once.
    """
    arms = Arm.objects.filter(match_arms(run, *names)).select_related("cell")
    cells = {arm.cell_id: arm.cell for arm in arms}
    cells |= {cell.pk: cell for cell in run.cells.filter(name__in=names)}
    return [cell.positions for cell in cells.values()]
