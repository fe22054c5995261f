"""Starts searches about an alert and advances them at each tick. Each step of a search is one run.

since_when   finds the first bad one of the published releases between good and bad (farm.rules.searches.since_when)
work_around  finds session options that undo the change, in one block with both releases
             (farm.rules.searches.work_around)
"""

import functools
import logging
import mmap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.utils import timezone

from farm.accounts.models import User
from farm.accounts.selectors import can_write
from farm.alerts.models import Alert, AlertEvent, Investigation, Symptom
from farm.alerts.selectors.releases import list_between
from farm.alerts.services import measurements
from farm.alerts.services.announcements import announce
from farm.alerts.services.measurements import CannotMeasure
from farm.alerts.services.watches import check_release
from farm.alerts.states import OPEN_INVESTIGATIONS, AlertEventKind, InvestigationKind, InvestigationState
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.contract.document_comparisons import Comparison
from farm.rules.findings.kinds import kind_of
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import Point, narrow_matrix, point_at
from farm.rules.planning import blocks, estimates
from farm.rules.presenting.changed_operators import sort_operators
from farm.rules.runtimes.order import is_downgrade, release_order
from farm.rules.searches import optimizer_names, switches
from farm.rules.searches.bisection import Outcome
from farm.rules.searches.search import Answer, Experiment, Search, SearchProblem
from farm.rules.searches.since_when import SinceWhen, narrow
from farm.rules.searches.targets import FindingTarget
from farm.rules.searches.work_around import WorkAround
from farm.runs import selectors as runs
from farm.runs.states import RunReason, RunState

# how many arms of a block are no candidates: those of both releases, and an A/A twin
OTHER_ARMS = 3
# how many types of operators are used to rank the names of optimizers
MAX_WORDS = 12
log = logging.getLogger(__name__)

# events after which the results of searches are announced
RAISED = (AlertEventKind.OPENED, AlertEventKind.REOPENED, AlertEventKind.WIDENED)


def make_work_around_search(investigation: Investigation) -> WorkAround:
    """Make an investigation's search for session options that undo the change, without its steps so far.

    The run is read at the first step, which raises CannotMeasure where the run is gone.
    """
    watch = investigation.alert.watch
    old, new = watch.runtime(investigation.alert.good), watch.runtime(investigation.alert.bad)
    return WorkAround(
        lambda: _locate_symptom(investigation), old=old, new=new, names=lambda: _list_optimizers(investigation)
    )


def _locate_symptom(investigation: Investigation) -> tuple[Matrix, Point, int]:
    """Return the run's matrix, the point of the changed cell on its node, and how many candidates fit into a block.

    Raises CannotMeasure where the run or its cell is gone.
    """
    run = measurements.get_run(investigation)
    matrix = measurements.matrix_without_operators(run)
    try:
        point = point_at(matrix, measurements.positions_of(run, [investigation.symptom.cell])[0])
    except LookupError:
        raise CannotMeasure(f"The run {run.pk} has no cell {investigation.symptom.cell} any more.") from None
    arm_s = estimates.estimate_arm_s(matrix.budget, runs.cell_document(run, investigation.symptom.cell).p50_ms)
    max_candidates = max(1, min(switches.MAX_CANDIDATES, blocks.count_fitting_arms(arm_s, limit=16) - OTHER_ARMS))
    node = f"node:{investigation.symptom.node}"
    return matrix, replace(point, values={**point.values, "hardware": node}), max_candidates


def _list_optimizers(investigation: Investigation) -> list[str]:
    """List the optimizers that a person named, then those of the library, ranked by the operators that changed most."""
    comparison = investigation.symptom.comparison
    changes = sort_operators(Comparison.model_validate(comparison)) if comparison is not None else []
    words = list(dict.fromkeys(change.op_type for change in changes))[:MAX_WORDS]
    named = (investigation.asked or {}).get("given", [])
    return list(dict.fromkeys([*named, *optimizer_names.rank_names(read_optimizer_names(), words=words)]))


@functools.cache
def read_optimizer_names() -> tuple[str, ...]:
    """Read the names of optimizers from the library of the farm's own ONNX Runtime; () where none is installed."""
    spec = find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return ()
    path = min((Path(spec.origin).parent / "capi").glob("onnxruntime_pybind11_state*"), default=None)
    if path is None:
        return ()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
        names = optimizer_names.find_optimizer_names(library)
    log.info("%s holds %s names of optimizers", path.name, len(names))
    return tuple(names)


def make_bisection_search(investigation: Investigation) -> SinceWhen:
    """Make an investigation's search for the first bad release, without its steps so far.

    Unless other releases were asked for, the alert's bad release counts as measured. Raises SearchProblem where good is
    not older than bad.
    """
    alert, symptom, bounds = investigation.alert, investigation.symptom, investigation.asked or {}
    good, bad = str(bounds.get("good") or alert.good), str(bounds.get("bad") or alert.bad)
    search = SinceWhen(
        lambda: _narrow_to_symptom(investigation, good=good, bad=bad),
        list_between(alert.distribution, good=good, bad=bad),
        good=alert.watch.runtime(good),
        bad=alert.watch.runtime(bad),
        target=FindingTarget(alert.watch.rule, symptom.kind, symptom.series, symptom.size),
    )
    if (good, bad) == (alert.good, alert.bad):
        search.bisection.record(bad, Outcome.BAD)
    return search


def _narrow_to_symptom(investigation: Investigation, *, good: str, bad: str) -> Matrix:
    """Return the matrix of the changed cell alone, with both releases, on the node that showed the change."""
    run = measurements.get_run(investigation)
    runtimes = [investigation.alert.watch.runtime(version) for version in (good, bad)]
    positions = measurements.positions_of(run, [investigation.symptom.cell])
    hardware = [f"node:{investigation.symptom.node}"]
    return narrow_matrix(measurements.matrix_without_operators(run), positions, runtimes=runtimes, hardware=hardware)


def start_investigations(alert: Alert) -> list[Investigation]:
    """Start the searches that every alert gets and this one has not had yet, and return them.

    There is no bisection where the bad release is older than the good one, and no search for a work-around for kinds of
    change that have none. Nothing is started where the farm could not measure, where all symptoms are resolved, and
    for an alert about versions of a model.
    """
    symptom = _choose_symptom(alert)
    if symptom is None or not alert.node or alert.is_of_versions:
        return []
    kinds = []
    if not is_downgrade(alert.good, alert.bad):
        kinds.append(InvestigationKind.SINCE_WHEN)
    if kind_of(symptom.kind).has_work_around:
        kinds.append(InvestigationKind.WORK_AROUND)
    earlier = set(alert.investigations.values_list("kind", flat=True))
    started = (_start_if_none_open(alert, kind, symptom, order={}) for kind in kinds if kind not in earlier)
    return [investigation for investigation in started if investigation is not None]


def start_bisection(*, alert: Alert, by: User, good: str = "", bad: str = "") -> Investigation:
    """Start another bisection, from the alert's good release to its bad one unless others are named.

    It is about the weightiest unresolved symptom that can have a work-around, or else the weightiest unresolved one.
    Raises Invalid for unknown releases or a wrong order of them, Conflict while a bisection is open, where no run is
    left to repeat or where the alert compares versions of a model, and NotAllowed without the right to run in the team.
    """
    symptom = _check_can_start(alert, by)
    distribution = alert.distribution
    bounds = {
        "good": check_release(distribution, good) if good else alert.good,
        "bad": check_release(distribution, bad) if bad else alert.bad,
    }
    if release_order(bounds["good"]) >= release_order(bounds["bad"]):
        if bounds == {"good": alert.good, "bad": alert.bad}:
            raise Invalid(
                f"This alert cannot be bisected: {alert.bad} was compared with the later {alert.good}. Name a good "
                "release and a later bad one.",
                code="wrong_order",
            )
        raise Invalid(
            f"The good release {bounds['good']} must be older than the bad one {bounds['bad']}; swap them.",
            code="wrong_order",
        )
    return _start_or_refuse(alert, InvestigationKind.SINCE_WHEN, symptom, order=bounds)


def start_work_around_search(*, alert: Alert, by: User, optimizers: Iterable[str] = ()) -> Investigation:
    """Start another search for a work-around. `optimizers` are tried before the names in the runtime's library.

    Blank names are ignored. Raises Invalid for a wrong name or more than 200, Conflict while such a search is open, and
    else Conflict and NotAllowed as `start_bisection` does.
    """
    symptom = _check_can_start(alert, by)
    names = list(dict.fromkeys(name.strip() for name in optimizers if name.strip()))
    if any(len(name) > 64 or not name.replace("_", "").isalnum() for name in names) or len(names) > 200:
        raise Invalid("An optimizer's name has at most 64 letters and digits, and at most 200 are tried.", code="name")
    return _start_or_refuse(alert, InvestigationKind.WORK_AROUND, symptom, order={"given": names})


def _choose_symptom(alert: Alert) -> Symptom | None:
    # prefer the weightiest unresolved symptom that can have a work-around; else take the weightiest
    rows = [row for row in alert.symptoms_by_weight() if not row.resolved_in]
    return min(rows, key=lambda row: not kind_of(row.kind).has_work_around, default=None)


def advance_investigations() -> int:
    """Advance every open investigation by one step where that is possible; return how many were advanced.

    Those that end, answered or failed, count too. An unexpected error is logged, and ends its investigation as failed
    without being counted.
    """
    moved = 0
    related = ("alert__watch__created_by", "alert__watch__team", "alert__version__model", "alert__team", "symptom__run")
    rows = Investigation.objects.filter(state__in=OPEN_INVESTIGATIONS).select_related(*related, "run").order_by("pk")
    for investigation in rows:
        try:
            moved += _advance(investigation)
        except Exception:
            log.exception("%s broke", investigation)
            _end(
                investigation,
                InvestigationState.FAILED,
                sentence="Internal error during this search; see the farm's log.",
            )
    return moved


class _Kind(NamedTuple):
    """What depends on an investigation's kind: how its search is made, and the reason of its runs."""

    make_search: Callable[[Investigation], Search[Any, Answer]]
    reason: RunReason


_KINDS = {
    InvestigationKind.SINCE_WHEN: _Kind(make_bisection_search, RunReason.BISECTION),
    InvestigationKind.WORK_AROUND: _Kind(make_work_around_search, RunReason.WORK_AROUND),
}


def _advance(investigation: Investigation) -> bool:
    """Take one step of a search: read a finished run, or start the next one."""
    is_measuring = investigation.state == InvestigationState.MEASURING
    if is_measuring and investigation.run is not None and investigation.run.state != RunState.FINISHED:
        return False
    try:
        search = _KINDS[InvestigationKind(investigation.kind)].make_search(investigation)
        if is_measuring:
            return _record_run(investigation, search)
        for step in investigation.steps:
            search.record(step)
        experiment = search.next()
        if experiment is None:
            answer = search.answer()
            return _end(investigation, InvestigationState.ANSWERED, sentence=answer.sentence, answer=answer.plain)
        return _start_run(investigation, experiment)
    except CannotMeasure as problem:
        if problem.is_temporary:
            return False
        return _end(investigation, InvestigationState.FAILED, sentence=str(problem))
    except SearchProblem as problem:
        return _end(investigation, InvestigationState.FAILED, sentence=str(problem))


def _record_run(investigation: Investigation, search: Search[Any, Answer]) -> bool:
    """Store the finished run as a step: measuring → waiting. An undecided run first measures more rounds, if it can."""
    run, measured, cost = investigation.run, None, {"minutes": 0.0}
    if run is not None:
        measured = measurements.read_measured(run)
        cost = {"minutes": measurements.count_minutes(run), "run": run.pk}
    outcome = search.read(investigation.asked or {}, measured)
    if run is not None and search.is_undecided(outcome):
        is_extended = measurements.measure_to_last_look(investigation.alert.watch, run)
        if is_extended:
            return True
    steps = [*investigation.steps, {**outcome, **cost}]
    with transaction.atomic():
        moved = investigation.move(InvestigationState.WAITING, was=InvestigationState.MEASURING, steps=steps, run=None)
        if moved and investigation.kind == InvestigationKind.SINCE_WHEN:
            _narrow_bounds(investigation.alert)
    return moved


def _narrow_bounds(alert: Alert) -> None:
    """Store the nearest good and bad releases that the alert's bisections have measured so far."""
    rows = alert.investigations.filter(kind=InvestigationKind.SINCE_WHEN).order_by("pk")
    # a bisection from another good release, which a person chose, says nothing about the alert's own
    bisections = [row for row in rows if (row.asked or {}).get("good", alert.good) == alert.good]
    good, bad = narrow((step for row in bisections for step in row.steps), good=alert.good, bad=alert.bad)
    Alert.objects.filter(pk=alert.pk).update(last_good=good, earliest_bad=bad)


def _start_run(investigation: Investigation, experiment: Experiment) -> bool:
    """Start a run: waiting → measuring. Raises CannotMeasure."""
    order = {**(investigation.asked or {}), **experiment.asked}
    reason = _KINDS[InvestigationKind(investigation.kind)].reason
    with transaction.atomic():
        alert = investigation.alert
        run = measurements.start_watch_run(alert.watch, alert.version, experiment.matrix, reason=reason)
        if not investigation.move(InvestigationState.MEASURING, was=InvestigationState.WAITING, run=run, asked=order):
            transaction.set_rollback(True)
    return True


def _end(
    investigation: Investigation,
    state: InvestigationState,
    *,
    sentence: str,
    answer: Mapping[str, object] | None = None,
) -> bool:
    """End a search, and announce the alert's explanation once none of its searches is open."""
    with transaction.atomic():
        moved = investigation.move(
            state,
            was=InvestigationState(investigation.state),
            sentence=sentence[:2000],
            answer=answer,
            run=None,
            ended_at=timezone.now(),
        )
        if moved:
            if answer is not None and answer.get("is_exact"):
                Alert.objects.filter(pk=investigation.alert_id).update(first_bad=answer["first_bad"])
            _announce_explanation(investigation.alert_id)
    return moved


def _announce_explanation(alert_id: int) -> None:
    """Announce the results of the searches once all are over.

    They are announced once after each time that the alert was opened, reopened or widened.
    """
    alert = Alert.objects.select_for_update(of=("self",)).select_related("watch", "team", "model", "version")
    row = alert.get(pk=alert_id)
    rows = row.investigations.all()
    if any(investigation.state in OPEN_INVESTIGATIONS for investigation in rows):
        return
    last = AlertEvent.objects.filter(alert=row, kind__in=[*RAISED, AlertEventKind.EXPLAINED]).order_by("-pk").first()
    if last is not None and last.kind == AlertEventKind.EXPLAINED:
        return
    symptom = row.leading_symptom
    sentences = ["" if symptom is None else symptom.explanation, *(investigation.sentence for investigation in rows)]
    text = " ".join(f"{sentence.rstrip('.')}." for sentence in sentences if sentence)
    announce(row, row.log(AlertEventKind.EXPLAINED, text))


def _check_can_start(alert: Alert, user: User) -> Symptom:
    """Return the symptom that a search would repeat. Raises NotAllowed and Conflict as `start_bisection` does."""
    if not can_write(user, team=alert.team):
        raise NotAllowed(f"You can view alert {alert.pk} but not start runs for it.")
    if alert.is_of_versions:
        raise Conflict(f"Alert {alert.pk} compares versions of a model: no release is to be found.", code="versions")
    symptom = _choose_symptom(alert)
    if symptom is None or not alert.node or symptom.run_id is None:
        raise Conflict(f"Alert {alert.pk} has no runs left to measure again.", code="nothing_to_measure")
    return symptom


def _start_or_refuse(
    alert: Alert, kind: InvestigationKind, symptom: Symptom, *, order: Mapping[str, object]
) -> Investigation:
    investigation = _start_if_none_open(alert, kind, symptom, order=order)
    if investigation is None:
        raise Conflict(f"Alert {alert.pk} already has a search in progress; wait for its result.", code="being_asked")
    return investigation


def _start_if_none_open(
    alert: Alert, kind: InvestigationKind, symptom: Symptom, *, order: Mapping[str, object]
) -> Investigation | None:
    """Write the row of a search; None where the alert has an open one of the same kind."""
    try:
        with transaction.atomic():
            return Investigation.objects.create(alert=alert, kind=kind, symptom=symptom, asked=order)
    except IntegrityError:
        return None
