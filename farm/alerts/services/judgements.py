"""Advances the rounds of watches by one step each tick: measure, judge by the rule, confirm in a fresh block, alert.

Every judged round adds points to the long series of its watch. A point is the ratio of a cell to the pinned reference,
which was measured in the same block.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from farm.alerts.models import Point, WatchRound
from farm.alerts.selectors.releases import baselines
from farm.alerts.services import measurements, openings
from farm.alerts.services.measurements import CannotMeasure
from farm.alerts.states import RoundOutcome, RoundState
from farm.contract.document import Document
from farm.rules.changes.watch_rounds import Finding, Judgement
from farm.rules.findings import cell_pairs
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import replace_runtimes
from farm.rules.presenting import metric_changes
from farm.rules.searches.search import Experiment
from farm.rules.searches.watching import RoundAnswer, Watching
from farm.runs.states import RunReason, RunState

log = logging.getLogger(__name__)
# how many ticks may try to start the first run of a round
MAX_TRIES = 200


def store_points(watch_round: WatchRound, documents: Iterable[Document]) -> None:
    """Add a point to each long series for every release of the round that was compared with the reference.

    A round that compares versions of a model adds none, and neither does a cell without a ratio or one that is not
    comparable. `documents` begins with the newest run; if several of them have the same point, the first one counts, as
    for the figures of alerts.
    """
    if watch_round.base_id is not None:
        return
    for document in documents:
        Point.objects.bulk_create(_make_points(watch_round, document), ignore_conflicts=True)


def _make_points(watch_round: WatchRound, document: Document) -> Iterator[Point]:
    watch = watch_round.watch
    reference = watch.runtime(watch_round.pinned)
    runtimes = {cell.runtime for cell in document.cells} - {reference}
    for runtime in sorted(runtimes, key=str):
        for pair in cell_pairs.pair_cells(document, old=reference, new=runtime):
            comparison = pair.comparison
            if comparison is None or comparison.ratio is None or comparison.verdict == "not comparable":
                continue
            other_metrics = [change for change in metric_changes.list_secondary_changes(comparison) if change.ratio]
            yield Point(
                round=watch_round,
                watch=watch,
                series=pair.series,
                label=cell_pairs.series_label(pair.new)[:300],
                node=pair.new.node or "",
                runtime=str(runtime),
                ratio=comparison.ratio,
                low=comparison.ci_low,
                high=comparison.ci_high,
                p50_ms=pair.new.p50_ms,
                reference_ms=pair.old.p50_ms,
                metrics={change.name: list(metric_changes.ratio_with_interval(change)) for change in other_metrics}
                or None,
            )


class _Stage(NamedTuple):
    """What a tick does with a round in an open state.

    The tick reads the runs in the columns `runs`, starts a run for `reason`, stores it in the column `starts`, and
    moves the round to `next_state`.
    """

    runs: tuple[str, ...]
    reason: RunReason = RunReason.WATCH
    starts: str = ""
    next_state: RoundState = RoundState.JUDGED


_STAGES = {
    RoundState.WAITING: _Stage((), RunReason.WATCH, "run", RoundState.MEASURING),
    RoundState.MEASURING: _Stage(("run",), RunReason.CONFIRMATION, "confirming", RoundState.CONFIRMING),
    RoundState.CONFIRMING: _Stage(("run", "confirming")),
}


def advance_rounds() -> int:
    """Advance every open round by one step where that is possible, the oldest first; return how many were advanced.

    An error in a round is logged, and the next tick tries that round again.
    """
    related = ("watch__team", "watch__created_by", "version__model", "base__model", "run", "confirming")
    moved = 0
    for watch_round in WatchRound.objects.filter(state__in=_STAGES).select_related(*related).order_by("pk"):
        try:
            moved += _advance(watch_round)
        except Exception:
            # an error in one round must not stop the others
            log.exception("round %s broke in the state %s", watch_round.pk, watch_round.state)
    return moved


def _advance(watch_round: WatchRound) -> bool:
    stage = _STAGES[RoundState(watch_round.state)]
    runs = [run for name in stage.runs if (run := getattr(watch_round, name)) is not None]
    if len(runs) < len(stage.runs):
        problem = "A run of the round was removed." if len(stage.runs) > 1 else "The run was removed."
        return _end_round(watch_round, RoundAnswer(Judgement(infra=(problem,))))
    if runs and runs[-1].state != RunState.FINISHED:
        return False

    # judge what was measured; undecided comparisons get more rounds once
    search = _make_search(watch_round)
    for run in runs:
        search.record(measurements.read_measured(run))
    if runs and search.is_undecided(search.measured[-1]) and measurements.extend_round(watch_round, runs[-1]):
        return True

    # start the run that measures or confirms, or end the round
    try:
        experiment = search.next()
        if experiment is not None:
            return _start_run(watch_round, stage, experiment, findings=search.found or ())
    except CannotMeasure as error:
        if not runs:
            return _postpone(watch_round, error)
        return _end_round(watch_round, search.answer_unconfirmed(str(error)))
    return _end_round(watch_round, search.answer())


def _postpone(watch_round: WatchRound, problem: CannotMeasure) -> bool:
    """Leave the round to the next tick where that may help, at most MAX_TRIES times; otherwise end it."""
    tries = watch_round.tries + 1
    if problem.is_temporary and tries < MAX_TRIES:
        WatchRound.objects.filter(pk=watch_round.pk).update(tries=tries, sentence=str(problem)[:2000])
        return False
    return _end_round(watch_round, RoundAnswer(Judgement(infra=(str(problem),))))


def _make_search(watch_round: WatchRound) -> Watching:
    watch = watch_round.watch
    is_confirming = watch_round.state == RoundState.CONFIRMING
    return Watching(
        lambda: _make_matrix(watch_round),
        sides=watch_round.sides,
        rule=watch.rule,
        found=[Finding(**finding) for finding in watch_round.findings] if is_confirming else None,
    )


def _make_matrix(watch_round: WatchRound) -> Matrix:
    """Make the watch's matrix with the releases that the round measures.

    These are the pinned reference and, unless two versions of a model are compared, the old release, the new one, and
    the good releases of open alerts.
    """
    watch, base = watch_round.watch, watch_round.base
    matrix = matrices.parse(watch.matrix, allowed=settings.ALLOWED_PACKAGES)
    releases = [watch_round.pinned]
    if base is not None:
        matrix = replace(matrix, models=(f"{base.model.name}@{base.number}",))
    else:
        releases += [watch_round.old, watch_round.new, *baselines(watch, watch_round.version.model)]
    return replace_runtimes(matrix, [watch.runtime(release) for release in dict.fromkeys(releases)])


def _start_run(watch_round: WatchRound, stage: _Stage, experiment: Experiment, *, findings: Sequence[Finding]) -> bool:
    """Start the stage's run and move to its next state; return False where another worker was first.

    Raises CannotMeasure.
    """
    with transaction.atomic():
        run = measurements.start_watch_run(
            watch_round.watch, watch_round.version, experiment.matrix, reason=stage.reason
        )
        columns = {"findings": [asdict(finding) for finding in findings], "is_extended": False, stage.starts: run}
        if not watch_round.move(stage.next_state, was=RoundState(watch_round.state), **columns):
            transaction.set_rollback(True)
            return False
    return True


def _end_round(watch_round: WatchRound, answer: RoundAnswer) -> bool:
    """End a round, and write its points and alerts in the same transaction.

    Return False where another worker was first.
    """
    with transaction.atomic():
        is_moved = watch_round.move(
            RoundState.JUDGED,
            was=RoundState(watch_round.state),
            outcome=RoundOutcome(answer.outcome),
            sentence=answer.sentence[:2000],
            compared=answer.judgement.compared,
            judged_at=timezone.now(),
        )
        if not is_moved:
            return False
        if answer.document is not None:
            store_points(watch_round, [block for block in (answer.again, answer.document) if block is not None])
            openings.raise_alerts(watch_round, answer.document, answer)
            if watch_round.base_id is None:
                openings.resolve_alerts(watch_round, answer.document)
        openings.update_infra_alert(watch_round, answer.judgement)
    return True
