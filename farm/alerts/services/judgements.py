"""Rounds of watches, a step a tick: measured, judged by the rule, confirmed in a fresh block, turned into alerts."""

import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from farm.alerts.models import WatchRound
from farm.alerts.selectors.rounds import baselines
from farm.alerts.services import measurements, openings, resolutions, series
from farm.alerts.services.measurements import CannotMeasure
from farm.alerts.states import RoundOutcome, RoundState
from farm.rules.changes.watch_rounds import Finding, Judgement
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.subsets import with_runtimes
from farm.rules.searches.search import Experiment
from farm.rules.searches.watching import RoundAnswer, Watching
from farm.runs.states import RunReason, RunState

log = logging.getLogger(__name__)
MAX_TRIES = 200


class _Stage(NamedTuple):
    """An open state: whose runs are read in it, and the run that is started in it, with the state that follows."""

    runs: tuple[str, ...]
    reason: RunReason = RunReason.WATCH
    starts: str = ""
    then: RoundState = RoundState.JUDGED


_STAGES = {
    RoundState.WAITING: _Stage((), RunReason.WATCH, "run", RoundState.MEASURING),
    RoundState.MEASURING: _Stage(("run",), RunReason.CONFIRMATION, "confirming", RoundState.CONFIRMING),
    RoundState.CONFIRMING: _Stage(("run", "confirming")),
}


def advance_rounds() -> int:
    """Takes every open round one step further where it can; gives how many moved."""
    related = ("watch__team", "watch__created_by", "version__model", "run", "confirming")
    moved = 0
    for one in WatchRound.objects.filter(state__in=_STAGES).select_related(*related).order_by("pk"):
        try:
            moved += _advance(one)
        except Exception:
            # one round that breaks keeps no other from its step
            log.exception("round %s broke in the state %s", one.pk, one.state)
    return moved


def _advance(one: WatchRound) -> bool:
    stage = _STAGES[RoundState(one.state)]
    runs = [run for name in stage.runs if (run := getattr(one, name)) is not None]
    if len(runs) < len(stage.runs):
        lost = "A run of the round was removed." if stage.runs[1:] else "The run was removed."
        return _settle(one, RoundAnswer(Judgement(infra=(lost,))))
    if runs and runs[-1].state != RunState.FINISHED:
        return False
    search = _search_of(one)
    for run in runs:
        search.record(measurements.measured(run))
    if len(runs) == 1 and search.is_undecided(search.measured[0]) and measurements.extend(one, runs[0]):
        return True
    try:
        experiment = search.next()
        if experiment is not None:
            return _start(one, stage, experiment, found=search.found or ())
    except CannotMeasure as problem:
        return _settle(one, search.unconfirmable(str(problem))) if runs else _put_off(one, problem)
    return _settle(one, search.answer())


def _put_off(one: WatchRound, problem: CannotMeasure) -> bool:
    """The next tick tries again, where that may help."""
    tries = one.tries + 1
    if problem.passes and tries < MAX_TRIES:
        WatchRound.objects.filter(pk=one.pk).update(tries=tries, sentence=str(problem)[:2000])
        return False
    return _settle(one, RoundAnswer(Judgement(infra=(str(problem),))))


def _search_of(one: WatchRound) -> Watching:
    watch = one.watch
    is_confirming = one.state == RoundState.CONFIRMING
    return Watching(
        lambda: _matrix(one),
        sides=(watch.runtime(one.old), watch.runtime(one.new)),
        rule=watch.rule,
        found=[Finding(**kept) for kept in one.findings] if is_confirming else None,
    )


def _matrix(one: WatchRound) -> Matrix:
    """Old and new in the same blocks as the pinned reference."""
    releases = dict.fromkeys([one.pinned, one.old, one.new, *baselines(one.watch, one.version.model)])
    matrix = matrices.parse(one.watch.matrix, allowed=settings.ALLOWED_PACKAGES)
    return with_runtimes(matrix, [one.watch.runtime(version) for version in releases])


def _start(one: WatchRound, stage: _Stage, experiment: Experiment, *, found: Sequence[Finding]) -> bool:
    """To the state that follows. Raises CannotMeasure; False when somebody else was first."""
    with transaction.atomic():
        run = measurements.start(one.watch, one.version, experiment.matrix, reason=stage.reason)
        findings = [asdict(finding) for finding in found]
        if not one.move(stage.then, was=RoundState(one.state), findings=findings, **{stage.starts: run}):
            transaction.set_rollback(True)
            return False
    return True


def _settle(one: WatchRound, answer: RoundAnswer) -> bool:
    """The round's last step, with everything that follows from it, in one transaction. False: somebody was first."""
    with transaction.atomic():
        moved = one.move(
            RoundState.JUDGED,
            was=RoundState(one.state),
            outcome=RoundOutcome(answer.outcome),
            sentence=answer.sentence[:2000],
            compared=answer.judgement.compared,
            judged_at=timezone.now(),
        )
        if not moved:
            return False
        if answer.document is not None:
            series.keep_points(one, answer.document)
            openings.raise_alerts(one, answer.document, answer.findings)
            resolutions.resolve_alerts(one, answer.document)
        openings.note_pipeline(one, answer.judgement)
    return True
