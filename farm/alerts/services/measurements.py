"""Measuring for watches: old and new in the same blocks as the pinned reference, and again where it has to be sure."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from farm.accounts.models import User
from farm.accounts.selectors import can_write
from farm.alerts.models import Watch, WatchRound
from farm.alerts.selectors.releases import known
from farm.alerts.selectors.rounds import baselines
from farm.alerts.states import RoundState
from farm.base.refusals import Refusal
from farm.registry.models import Version
from farm.rules.changes.watch_rounds import Finding
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.subsets import narrowed, with_runtimes
from farm.runs.models import Arm, Run, named
from farm.runs.services import more_rounds, start_run
from farm.runs.states import RunReason

log = logging.getLogger(__name__)

# refusals that pass by themselves
PASSING = ("too_many_runs", "not_inspected")
MORE_ROUNDS = 8


class Answer(NamedTuple):
    """What came out. `plain`: as it is kept, in the shape of its kind; `first_bad`: where exactly one release is."""

    sentence: str
    plain: dict[str, object]
    first_bad: str = ""


class CannotMeasure(Exception):
    """A run of the farm's own could not be started. The message is one sentence; `passes`: trying later may help."""

    def __init__(self, text: str, *, passes: bool = False) -> None:
        super().__init__(text)
        self.passes = passes


def start_round(one: WatchRound) -> bool:
    """waiting → measuring. Raises CannotMeasure; False when somebody else was first."""
    watch = one.watch
    releases = dict.fromkeys([one.pinned, one.old, one.new, *baselines(watch, one.version.model)])
    runtimes = [watch.runtime(version) for version in releases]
    matrix = with_runtimes(matrices.parse(watch.matrix, allowed=settings.ALLOWED_PACKAGES), runtimes)
    with transaction.atomic():
        run = start(watch, one.version, matrix, reason=RunReason.WATCH)
        if not one.move(RoundState.MEASURING, was=RoundState.WAITING, run=run):
            transaction.set_rollback(True)
            return False
    return True


def start_confirmation(one: WatchRound, findings: Sequence[Finding], *, kept: list[dict[str, object]]) -> bool:
    """measuring → confirming: a fresh block with what was found alone, on the node it was found on."""
    assert one.run is not None
    names = list(dict.fromkeys(finding.candidate for finding in findings))
    nodes = list(dict.fromkeys(f"node:{finding.node}" for finding in findings if finding.node))
    runtimes = [one.watch.runtime(version) for version in (one.old, one.new)]
    matrix = narrowed(parsed(one.run), positions_of(one.run, names), runtimes=runtimes, hardware=nodes)
    # somebody will ask which operator it was: a verdict on each of them
    matrix = replace(matrix, operators=True if matrix.operators is None else matrix.operators)
    with transaction.atomic():
        run = start(one.watch, one.version, matrix, reason=RunReason.CONFIRMATION)
        if not one.move(RoundState.CONFIRMING, was=RoundState.MEASURING, confirming=run, findings=kept):
            transaction.set_rollback(True)
            return False
    return True


def extend(one: WatchRound) -> bool:
    """Lets the run's undecided blocks go on, once; False when they cannot or did so before."""
    run = one.run
    by = runner_of(one.watch)
    if one.is_extended or run is None or by is None:
        return False
    try:
        with transaction.atomic():
            if not WatchRound.objects.filter(pk=one.pk, is_extended=False).update(is_extended=True):
                return False
            more_rounds(run=run, by=by, rounds=MORE_ROUNDS)
    except Refusal:
        # nothing of it can go on: it is judged with what it has
        WatchRound.objects.filter(pk=one.pk).update(is_extended=True)
        return False
    return True


def start(watch: Watch, version: Version, matrix: Matrix, *, reason: RunReason) -> Run:
    """A run on behalf of whoever made the watch, and why. Raises CannotMeasure."""
    by = runner_of(watch)
    if by is None:
        raise CannotMeasure(
            f"The creator of watch “{watch.name}” can no longer start runs in team “{watch.team.name}”: change it."
        )
    try:
        releases = known(watch.distribution)
        return start_run(version=version, matrix=matrix, requested_by=by, reason=reason, releases=releases)
    except Refusal as refusal:
        raise CannotMeasure(str(refusal), passes=refusal.code in PASSING) from refusal


def runner_of(watch: Watch) -> User | None:
    """Whose rights the watch's runs have."""
    by = watch.created_by
    return by if by is not None and by.is_active and can_write(by, team=watch.team) else None


def parsed(run: Run) -> Matrix:
    return matrices.parse(run.matrix, allowed=settings.ALLOWED_PACKAGES)


def positions_of(run: Run, names: Sequence[str]) -> list[dict[str, int]]:
    """Where these arms' or refused cells' points stand in the run's matrix."""
    arms = Arm.objects.filter(named(run, *names)).select_related("cell")
    cells = {arm.cell_id: arm.cell for arm in arms}
    cells |= {cell.pk: cell for cell in run.cells.filter(name__in=names)}
    return [cell.positions for cell in cells.values()]
