"""Reads what only pages need of runs: open blocks and runs, the newest run of each model, a cell's log.

A run that was loaded earlier is unchanged while its revision is the same. Plans of unsettled blocks come with the state
of the block, in the order of the blocks.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import NamedTuple, TypeVar, cast

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, Value
from pydantic import TypeAdapter

from farm.accounts.selectors import Anyone
from farm.accounts.states import WRITING_ROLES, Role
from farm.base.refusals import Missing
from farm.contract import document_comparisons as doc_comparisons
from farm.contract.cells import CellSpec
from farm.contract.reasons import CellStatus
from farm.contract.reports import RoundReport, Sample
from farm.registry.models import Model, Version
from farm.rules.planning.plans import PlannedBlock
from farm.runs.models import Arm, Cell, Comparison, Report, Run, match_arms
from farm.runs.selectors.evidence import COUNTED
from farm.runs.selectors.runs import make_missing_run_error, runs_for_lists
from farm.runs.states import FOLLOW_UPS, UNSETTLED_BLOCKS, BlockState, RunState

# listed, since an index answers a list of states but not `all states but one`
OPEN_RUNS = (RunState.PLANNED, RunState.RUNNING)
# how many runs are shown
MAX_OPEN = 50
MAX_ENDED = 200
# runs that were cancelled before they measured anything
CANCELLED_EMPTY = Q(lead__verdict=CellStatus.CANCELLED)
Listed = TypeVar("Listed", bound=Model)
_CHANGES: TypeAdapter[list[doc_comparisons.OperatorChange]] = TypeAdapter(list[doc_comparisons.OperatorChange])


@dataclass(frozen=True, slots=True)
class Revision:
    """The state of a run now, and whether the reader may change it."""

    run_id: int
    team_id: int
    revision: int
    state: str
    created_at: datetime
    may_write: bool


def revision_of(user: Anyone, run_id: int) -> Revision:
    """Read a run's revision and state in one small query. Raises Missing if the user may not see the run."""
    rows = Run.objects.filter(pk=run_id).order_by()
    # one join instead of two subqueries, since every open page asks this every few seconds
    visible = rows if user.is_superuser else rows.filter(team__memberships__user=user.pk)
    role = Value(Role.ADMIN.value) if user.is_superuser else F("team__memberships__role")
    row = visible.annotate(role=role).values_list("team_id", "revision", "state", "created_at", "role").first()
    if row is None:
        raise make_missing_run_error(run_id)
    team_id, revision, state, created_at, held_role = row
    return Revision(run_id, team_id, revision, state, created_at, held_role in WRITING_ROLES)


def is_unchanged(run: Run) -> bool:
    return Run.objects.filter(pk=run.pk, revision=run.revision).exists()


def unsettled_plans(run: Run) -> list[tuple[str, PlannedBlock]]:
    rows = run.blocks.filter(state__in=UNSETTLED_BLOCKS).order_by("number").values_list("state", "plan_json")
    return [(state, PlannedBlock.model_validate(plan)) for state, plan in rows]


def open_cell_names(run: Run) -> set[str]:
    """Return the ids of the cells that have not ended, those with figures so far and A/A twins included."""
    return set(Arm.objects.filter(block__run=run, status="").values_list("name", flat=True))


def launches_so_far(run: Run) -> dict[str, list[Sample]]:
    """Collect the samples of leased and reported blocks by the arm's name, in the order of rounds.

    Rounds in which an arm was not measured are left out.
    """
    measured = run.blocks.filter(state__in=(BlockState.LEASED, BlockState.REPORTED))
    names = {(arm.block_id, arm.number): arm.name for arm in Arm.objects.filter(block__in=measured)}
    reports = Report.objects.filter(attempt__block__in=measured, attempt__state__in=COUNTED, kind="round")
    launches: dict[str, list[Sample]] = {}
    for report in reports.select_related("attempt").order_by("round"):
        for place in RoundReport.model_validate_json(report.body).samples:
            if place.sample is not None:
                name = names[report.attempt.block_id, place.arm]
                launches.setdefault(name, []).append(place.sample)
    return launches


class OpenRun(NamedTuple):
    """An unfinished run, how many of its cells have ended, and how many it has; refused cells are not counted."""

    run: Run
    ended: int
    planned: int


def open_runs(user: Anyone) -> list[OpenRun]:
    """List the unfinished runs that people and watches asked for, the newest first, MAX_OPEN at most."""
    runs = list(runs_for_lists(user).filter(state__in=OPEN_RUNS).exclude(reason__in=FOLLOW_UPS)[:MAX_OPEN])
    rows = Cell.objects.filter(run__in=runs).exclude(status=CellStatus.REFUSED).order_by()
    counted = rows.values_list("run").annotate(ended=Count("pk", filter=Q(status__gt="")), planned=Count("pk"))
    counts = {run: (ended, planned) for run, ended, planned in counted.values_list("run", "ended", "planned")}
    return [OpenRun(run, *counts.get(run.pk, (0, 0))) for run in runs]


class FinishedRun(NamedTuple):
    """A finished run: its model's id and name, its own id, the figures of its headline, and when it finished."""

    model: int
    name: str
    run: int
    lead: dict[str, object]
    at: datetime


def newest_finished_runs(user: Anyone) -> list[FinishedRun]:
    """List the finished runs that people and watches asked for, in descending order of their ids, MAX_ENDED at most.

    Runs that were cancelled before they measured anything, and runs whose headline has no figures yet, are left out.
    """
    rows = Run.objects.visible_to(user).filter(state=RunState.FINISHED, lead__isnull=False, finished_at__isnull=False)
    columns = ("version__model", "version__model__name", "pk", "lead", "finished_at")
    newest = rows.exclude(reason__in=FOLLOW_UPS).exclude(CANCELLED_EMPTY).order_by("-pk")
    return [FinishedRun(*row) for row in newest.values_list(*columns)[:MAX_ENDED]]


def open_run_counts(user: Anyone) -> tuple[int, int]:
    """Count the unfinished runs that the user may see: those that people and watches asked for, and follow-ups."""
    rows = Run.objects.visible_to(user).filter(state__in=OPEN_RUNS).order_by()
    counts = rows.aggregate(every=Count("pk"), searches=Count("pk", filter=Q(reason__in=FOLLOW_UPS)))
    return counts["every"] - counts["searches"], counts["searches"]


class NewestRuns(NamedTuple):
    """The newest run of a model, and its newest finished run, if it has one."""

    run: Run
    finished: Run | None


def last_runs(models: Iterable[Model]) -> dict[int, NewestRuns]:
    """Find the newest runs of each of these models that a person or a watch asked for, by the model's id.

    Versions of branches do not count, and neither do finished runs that were cancelled before they measured anything.
    Models without such a run are left out. Whether somebody may see the runs is not checked.
    """
    # one run for each version, from the end of an index, as a model may have tens of thousands of runs
    runs_of_version = (
        Run.objects.exclude(reason__in=FOLLOW_UPS).filter(version=OuterRef("pk")).order_by("-pk").values("pk")
    )
    main_line = Version.objects.on_main_line().filter(model__in=list(models))
    ended = runs_of_version.filter(state=RunState.FINISHED).exclude(CANCELLED_EMPTY)
    versions = main_line.annotate(last=Subquery(runs_of_version[:1]), ended=Subquery(ended[:1]))

    # by model: the newest run of any version, and the newest finished one
    newest: dict[int, int] = {}
    finished: dict[int, int] = {}
    for model, last, ended in versions.exclude(last=None).order_by("last").values_list("model", "last", "ended"):
        newest[model] = last
        finished[model] = max(ended or 0, finished.get(model, 0))
    runs = Run.objects.filter(pk__in={*newest.values(), *finished.values()}).defer("matrix").in_bulk()
    return {model: NewestRuns(runs[last], runs.get(finished[model])) for model, last in newest.items() if last in runs}


def add_last_run(models: QuerySet[Listed]) -> QuerySet[Listed]:
    """Annotate models with their newest run and newest finished run.

    `last_run` and `ended_run` are their ids, `last_lead` holds the figures of the finished run's headline. All are None
    if there is no such run. Runs of the farm's own searches and of branches do not count, and neither do finished
    ones that were cancelled before they measured anything.
    """
    runs_of_model = Run.objects.filter(version__model=OuterRef("pk"), version__branch="")
    newest = runs_of_model.exclude(reason__in=FOLLOW_UPS).order_by("-pk")
    ended = newest.filter(state=RunState.FINISHED).exclude(CANCELLED_EMPTY)
    columns = {
        "last_run": Subquery(newest.values("pk")[:1]),
        "ended_run": Subquery(ended.values("pk")[:1]),
        "last_lead": Subquery(ended.values("lead")[:1]),
    }
    return cast(QuerySet[Listed], models.annotate(**columns))


def judged_run(user: Anyone, model: Model) -> Run | None:
    """Find the newest finished run of a model with an accuracy on labelled data, preferably for several precisions.

    None if the user may see none. Versions of branches do not count.
    """
    judged = Arm.objects.filter(is_evaluated=True, block__run__version__model=model)
    runs = Run.objects.visible_to(user).filter(state=RunState.FINISHED, version__model=model, version__branch="")
    evaluated = runs.filter(pk__in=judged.values("block__run")).select_related("version__model", "version__artifact")
    several = judged.values("block__run").annotate(kinds=Count("cell__precision", distinct=True))
    with_several = evaluated.filter(pk__in=several.filter(kinds__gt=1).values("block__run"))
    return with_several.order_by("-pk").first() or evaluated.order_by("-pk").first()


def add_operators(run: Run, comparison: doc_comparisons.Comparison) -> doc_comparisons.Comparison:
    """Return a comparison of the run with its operators; unchanged if none are stored, as before its block settles."""
    rows = Comparison.objects.filter(run=run, baseline__name=comparison.baseline, candidate__name=comparison.candidate)
    stored = rows.values_list("operators", flat=True).first()
    operators = _CHANGES.validate_json(stored or "[]")
    return comparison.model_copy(update={"operators": operators}) if operators else comparison


def cell_specs(chosen: Sequence[tuple[int, str]]) -> list[tuple[CellSpec, str]]:
    """Read the specs of cells, given as run id and cell id, each with the name of its session set ("" without one).

    The answer has the order of `chosen`. Raises Missing for a cell that does not exist.
    """
    chosen_arms = reduce(or_, (match_arms(run_id, name) for run_id, name in chosen), Q(pk__in=[]))
    arms = Arm.objects.filter(chosen_arms).select_related("cell").order_by()
    cells_by_key = {(arm.cell.run_id, arm.name): arm.cell for arm in arms}

    # cells that the plan refused have no arm
    refused = [key for key in chosen if key not in cells_by_key]
    if refused:
        rows = Cell.objects.filter(reduce(or_, (Q(run=run_id, name=name) for run_id, name in refused)))
        cells_by_key |= {(row.run_id, row.name): row for row in rows}
    for run_id, name in refused:
        if (run_id, name) not in cells_by_key:
            raise Missing(f"There is no cell {name!r} of run {run_id}.")
    cells = [cells_by_key[key] for key in chosen]
    return [(cell.spec, str(cell.labels.get("session", ""))) for cell in cells]


def log_of_check_pass(run: Run, name: str) -> str:
    """Return the last log lines of a cell's newest check pass that counts; empty if there are none."""
    arm = Arm.objects.filter(match_arms(run, name)).first()
    if arm is None:
        return ""
    checks = Report.objects.filter(
        attempt__block=arm.block_id, attempt__state__in=COUNTED, kind="check", arm=arm.number
    ).order_by("-pk")
    body = json.loads(checks.values_list("body", flat=True).first() or "{}")
    return str(body.get("log_tail") or "")
