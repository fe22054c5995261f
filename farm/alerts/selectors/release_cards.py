"""Reads the report card of a release: how it compares with an older one, its alerts, and models to be measured."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.fields.json import KeyTransform

from farm.accounts.selectors import Anyone
from farm.alerts.models import Alert, Investigation, Release, Symptom, Watch, WatchRound
from farm.alerts.states import AlertState, InvestigationKind, InvestigationState, RoundState
from farm.base.refusals import Missing
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.reasons import CellStatus
from farm.registry.models import Model
from farm.rules.changes.release_card import (
    Card,
    ConfirmedChange,
    MeasuredPair,
    Place,
    Row,
    judge_place,
    lies_between,
    list_baselines,
)
from farm.rules.findings.cell_pairs import pair_cells
from farm.rules.runtimes import distributions
from farm.rules.runtimes.releases import ONNXRUNTIME
from farm.rules.searches.switches import CANDIDATES, describe_remedy
from farm.runs.models import Block, CellDocument, Run
from farm.runs.models import Cell as CellRow
from farm.runs.models import Comparison as ComparisonRow
from farm.runs.selectors.forecasts import Forecast
from farm.runs.selectors.pages import MAX_OPEN, OPEN_RUNS
from farm.runs.states import BlockState, RunReason, RunState

# how many of the newest finished runs and of the newest rounds are searched, and how many runs are read of each model
# and in all
MAX_RUNS, MAX_ROUNDS, MAX_READ_OF_MODEL, MAX_READ = 200, 200, 4, 100
# how many rows of cells (and as many comparisons), of symptoms and of watched models are read
MAX_CELLS, MAX_SYMPTOMS, MAX_MODELS = 3000, 500, 500
SEARCHES = (RunReason.BISECTION, RunReason.WORK_AROUND, RunReason.FIND)
NO_NODE = "no node"


class WorkAround(NamedTuple):
    """Session options that were measured to undo a change."""

    # ids of the alert and of the model
    alert: int
    model: int
    # the model's name
    name: str
    sentence: str
    code: str
    # what to do, in a few words
    words: str


class MissingModel(NamedTuple):
    """A model that was measured with other releases only: its name, and the id of the version measured last."""

    name: str
    version: int


class OpenRun(NamedTuple):
    """A model that is still to be measured with the release. `run` is None where none has started."""

    model: int
    name: str
    run: int | None


@dataclass(frozen=True)
class ReleaseCard:
    """The report card of a release, and further facts for its page.

    `others` are the older versions that the release can be compared with, those with the most models first. `missing`
    holds models without a row that the newest runs measured with other releases of the distribution only. `open`
    holds the models that are still to be measured. They are forecast to be done at `ends_at`, or else no earlier than
    `ends_at_least`; both are None where there is no forecast.
    """

    card: Card
    others: Sequence[str]
    work_arounds: Sequence[WorkAround]
    missing: Sequence[MissingModel]
    open: Sequence[OpenRun]
    ends_at: datetime | None
    ends_at_least: datetime | None = None


# a model's id, and a node's name
ModelAndNode = tuple[int, str]


class _Run(NamedTuple):
    pk: int
    model: int
    name: str
    reason: str

    @property
    def is_of_search(self) -> bool:
        return self.reason in SEARCHES


def read_card(user: Anyone, distribution: str, version: str, *, against: str = "") -> ReleaseCard:
    """Read the report card of a release as far as the user may see it.

    The release is compared with the version `against` if both were measured together. Otherwise it is compared with
    the version of an alert about the release, or else with the version that most models were measured with. Without
    any, `card.old` is None. The number of queries does not depend on the number of models. Raises Missing for a release
    that this farm neither knows nor measured, or whose name cannot be read.
    """
    try:
        new = distributions.parse_runtime(f"{distribution}=={version}", allowed=settings.ALLOWED_PACKAGES)
    except distributions.RuntimeProblem as problem:
        raise Missing(str(problem), hint="See the page of runtimes.") from problem

    # choose the older version that it is compared with
    rounds = list(_list_rounds(user, new)[:MAX_ROUNDS])
    by_older = _find_runs_by_older(user, new, rounds)
    others = list_baselines({older: {run.model for run in runs} for older, runs in by_older.items()}, new.version)
    if not others and not rounds:
        _check_is_known(new)
    raised_since = _read_raised_changes(user, new=new, since=others)
    with_changes = [version for version in others if raised_since[version]]
    before = next((version for version in (against, *with_changes, *others) if version in others), None)
    old = None if before is None else new.model_copy(update={"version": before})

    # read what was measured, what alerts confirmed, and what is still to be measured
    open_runs = _list_open_runs(user, new, rounds)
    measured = {} if old is None else _read_measurements(by_older[old.version], old=old, new=new)
    raised = {} if old is None else raised_since[old.version]
    work_arounds = _find_work_arounds({change.alert for changes in raised.values() for change in changes})

    # make a row for each model
    names = dict(_list_watched_models(user, new))
    names |= Model.objects.filter(pk__in={model for model, _ in raised}).values_list("pk", "name")
    names |= {run.model: run.name for runs in by_older.values() for run in runs}
    names |= {run.model: run.name for run in open_runs}
    places: dict[int, dict[str, Place]] = defaultdict(dict)
    for model, node in {**measured, **raised}:
        places[model][node] = judge_place(measured.get((model, node), ()), raised.get((model, node), ()))
    forecast = Forecast()
    states, node_counts = _group_by_node(open_runs, forecast)
    rows = [Row(pk, name, places[pk], states.get(pk, {}), node_counts.get(pk, 1)) for pk, name in names.items()]
    remedies = {work_around.alert: work_around.words for work_around in work_arounds}
    card, missing = Card(new, old, rows, remedies), _list_missing_models(user, new, known=names)
    return ReleaseCard(card, others, work_arounds, missing, open_runs, *_forecast_end(open_runs, forecast))


def filter_alerts_about(runtime: Runtime) -> Q:
    return Q(Q(bad=runtime.version) | Q(first_bad=runtime.version), distribution=runtime.distribution)


def _check_is_known(runtime: Runtime) -> None:
    is_in_table = runtime.distribution == distributions.DEFAULT_DISTRIBUTION and runtime.version in ONNXRUNTIME
    rows = Release.objects.filter(distribution=runtime.distribution, version=runtime.version)
    if not is_in_table and not rows.exists():
        text = f"{runtime} is no release that this farm knows or has measured."
        raise Missing(text, hint="See the page of runtimes.")


def _list_rounds(user: Anyone, new: Runtime) -> QuerySet[WatchRound]:
    """List the rounds of watches that measured the release or will measure it, the newest first."""
    watches = Watch.objects.visible_to(user).filter(distribution=new.distribution)
    rows = WatchRound.objects.filter(watch__in=watches, new=new.version, base=None, version__model__removed_at=None)
    columns = ("run", "confirming", "state", "version__model__name")
    return rows.select_related("version__model").only(*columns).order_by("-pk")


def _list_runs(user: Anyone) -> QuerySet[Run]:
    return Run.objects.visible_to(user).filter(version__model__removed_at=None, version__branch="")


def _find_runs_by_older(user: Anyone, new: Runtime, rounds: Iterable[WatchRound]) -> dict[str, list[_Run]]:
    """Map each other version to the newest finished runs that measured it together with the release, newest first.

    A run that was resumed to measure further rounds counts with its earlier result until they are done.
    """
    finished = _list_runs(user).filter(Q(state=RunState.FINISHED) | ~Q(resumed_at=None))
    groups = (finished.exclude(reason__in=SEARCHES), finished.filter(reason__in=SEARCHES))
    newest = [pk for runs in groups for pk in runs.order_by("-pk").values_list("pk", flat=True)[:MAX_RUNS]]
    chosen = {*newest, *(pk for watched in rounds for pk in (watched.run_id, watched.confirming_id) if pk is not None)}
    cells = CellRow.objects.filter(run__in=finished.filter(pk__in=chosen), beside=None).order_by()
    cells = cells.exclude(status=CellStatus.CANCELLED)
    with_release = cells.filter(runtime=str(new)).values("run")
    beside = cells.filter(run__in=with_release, runtime__startswith=f"{new.distribution}==").exclude(runtime=str(new))
    columns = ("runtime", "run", "run__version__model", "run__version__model__name", "run__reason")
    by_older: dict[str, list[_Run]] = defaultdict(list)
    for runtime, *run in sorted(beside.values_list(*columns).distinct(), key=lambda row: -row[1]):
        by_older[Runtime.of(runtime).version].append(_Run(*run))
    return by_older


def _read_measurements(runs: Sequence[_Run], *, old: Runtime, new: Runtime) -> dict[ModelAndNode, list[MeasuredPair]]:
    """Read pairs of the newest runs by model and node; runs of searches count only where no others measured them."""
    runs_by_model: dict[int, list[_Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.is_of_search):
        runs_by_model[run.model].append(run)
    read = {run.pk: run for model_runs in runs_by_model.values() for run in model_runs[:MAX_READ_OF_MODEL]}
    chosen = sorted(read, reverse=True)[:MAX_READ]
    # sorted by run, so that no database scans the newest rows of all runs
    cells: dict[int, list[Cell]] = defaultdict(list)
    documents = CellDocument.objects.filter(
        arm__cell__run__in=chosen,
        arm__cell__runtime__in=(str(old), str(new)),
        arm__cell__beside=None,
        arm__twin_of=None,
    )
    for number, body in documents.order_by("-arm__cell__run").values_list("arm__cell__run", "body")[:MAX_CELLS]:
        cells[number].append(Cell.model_validate_json(body))
    comparisons: dict[int, list[Comparison]] = defaultdict(list)
    both = ComparisonRow.objects.filter(
        run__in=chosen, axis="runtime", baseline__cell__runtime=str(old), candidate__cell__runtime=str(new)
    )
    for number, verdict, body in both.order_by("-run").values_list("run", "verdict", "body")[:MAX_CELLS]:
        # the row has the verdict across the whole run, which takes the place of the document's
        comparison = Comparison.model_validate_json(body).model_copy(update={"verdict": verdict})
        comparisons[number].append(comparison)
    measured: dict[ModelAndNode, list[MeasuredPair]] = defaultdict(list)
    for number, shown in cells.items():
        document = Document(machine={}, seed=0, cells=shown, comparisons=comparisons[number])
        for pair in pair_cells(document, old=old, new=new):
            run = read[number]
            node = pair.new.node or pair.old.node or NO_NODE
            measured[run.model, node].append(MeasuredPair(number, pair, run.is_of_search))
    return measured


def _read_raised_changes(
    user: Anyone, *, new: Runtime, since: Iterable[str]
) -> dict[str, dict[ModelAndNode, list[ConfirmedChange]]]:
    """Read the unresolved changes of alerts up to the release by older version, model and node, in one query."""
    alerts = Alert.objects.visible_to(user).filter(filter_alerts_about(new), model__removed_at=None)
    alerts = alerts.exclude(state__in=(AlertState.INVALID, AlertState.INFRA))
    ends = {name: KeyTransform(key, "comparison") for name, key in (("low", "ci_low"), ("high", "ci_high"))}
    rows = Symptom.objects.filter(alert__in=alerts, resolved_in="").annotate(**ends).order_by("-pk")
    names = ("good", "last_good", "bad", "earliest_bad", "first_bad")
    between = [f"alert__{name}" for name in names]
    columns = ("alert__model", "node", "alert__node", *between, "alert", "kind", "text", "size", *ends)
    raised: dict[str, dict[ModelAndNode, list[ConfirmedChange]]] = {version: defaultdict(list) for version in since}
    for row in rows.values_list(*columns)[:MAX_SYMPTOMS]:
        model, node, first, good, last_good, bad, earliest_bad, first_bad, *details = row
        range_of_alert = {"good": last_good or good, "bad": earliest_bad or bad, "first_bad": first_bad}
        for version, places in raised.items():
            if lies_between(**range_of_alert, old=version, new=new.version):
                places[model, node or first or NO_NODE].append(ConfirmedChange(*details))
    return raised


def _find_work_arounds(alerts: Collection[int]) -> list[WorkAround]:
    """Find the newest work-around of each of these alerts, in one query."""
    rows = Investigation.objects.filter(
        alert__in=alerts, kind=InvestigationKind.WORK_AROUND, state=InvestigationState.ANSWERED
    )
    work_arounds = {}
    for row in rows.select_related("alert__model").order_by("pk"):
        answer = row.answer or {}
        if answer.get("is_found"):
            (candidate,) = CANDIDATES.validate_python([answer["candidate"]])
            model, code = row.alert.model, str(answer.get("code", ""))
            words = describe_remedy(candidate)
            work_arounds[row.alert_id] = WorkAround(row.alert_id, model.pk, model.name, row.sentence, code, words)
    return list(work_arounds.values())


def _list_watched_models(user: Anyone, new: Runtime) -> Iterator[tuple[int, str]]:
    """Yield the ids and names of models that watches of the distribution name."""
    watches = Watch.objects.visible_to(user).filter(distribution=new.distribution, is_active=True)
    rows = Model.objects.not_removed().filter(watches__in=watches).distinct().order_by("pk")
    yield from rows.values_list("pk", "name")[:MAX_MODELS]


def _list_missing_models(user: Anyone, new: Runtime, *, known: Collection[int]) -> list[MissingModel]:
    """List the models of the newest finished runs that measured other releases and not this one, by name."""
    finished = _list_runs(user).filter(state=RunState.FINISHED).exclude(reason__in=SEARCHES)
    newest = list(finished.order_by("-pk").values_list("pk", flat=True)[:MAX_RUNS])
    cells = CellRow.objects.filter(run__in=newest, beside=None, status=CellStatus.DONE)
    of_distribution = cells.filter(runtime__startswith=f"{new.distribution}==").order_by("run")
    columns = ("run__version__model", "run__version__model__name", "run__version", "runtime", "run")
    measured = list(of_distribution.values_list(*columns).distinct())
    having = {model for model, _, _, runtime, _ in measured if runtime == str(new)}
    missing = {model: MissingModel(name, version) for model, name, version, *_ in measured}
    return sorted(missing[model] for model in missing.keys() - having - set(known))


def _list_open_runs(user: Anyone, new: Runtime, rounds: Iterable[WatchRound]) -> list[OpenRun]:
    """List the models that are being measured with the release or will be, the oldest run first."""
    runs = _list_runs(user).exclude(reason__in=SEARCHES)
    newest = runs.filter(state__in=OPEN_RUNS).order_by("-pk").values_list("pk", flat=True)[:MAX_OPEN]
    cells = CellRow.objects.filter(run__in=list(newest), beside=None, runtime=str(new)).order_by("run")
    columns = ("run__version__model", "run__version__model__name", "run")
    started = [OpenRun(*row) for row in cells.values_list(*columns).distinct()]
    waiting = [watched.version.model for watched in rounds if watched.state == RoundState.WAITING]
    return started + [OpenRun(model.pk, model.name, None) for model in dict.fromkeys(waiting)]


def _group_by_node(runs: Iterable[OpenRun], forecast: Forecast) -> tuple[dict[int, dict[str, str]], dict[int, int]]:
    """Return two maps: by model and node whether its block is `running` or `queued`, and by model a number of nodes.

    `queued` nodes are those that may take a waiting block. The number is how many nodes may take the same block, at
    most.
    """
    models = {open_run.run: open_run.model for open_run in runs if open_run.run is not None}
    begun = Block.objects.filter(run__in=models, state__in=(BlockState.LEASED, BlockState.REPORTED), node__isnull=False)
    states: dict[int, dict[str, str]] = defaultdict(dict)
    node_counts: dict[int, int] = {}
    for run, model in models.items():
        nodes, node_count = forecast.nodes_for_waiting_blocks(run)
        states[model] |= dict.fromkeys(nodes, "queued")
        node_counts[model] = max(node_count, node_counts.get(model, 0))
    for run, node in begun.order_by().values_list("run", "node__name"):
        states[models[run]][node] = "running"
    return states, node_counts


def _forecast_end(runs: Iterable[OpenRun], forecast: Forecast) -> tuple[datetime | None, datetime | None]:
    """Forecast when all of these runs will have ended: return that time and None, or None and the earliest time.

    Both are None without runs, and where any of the runs has no forecast or has not started.
    """
    ends_s: list[float] = []
    is_exact = True
    for open_run in runs:
        times = None if open_run.run is None else forecast.forecast_run(open_run.run)
        if times is None:
            return None, None
        end_s = times.ends_s
        if end_s is None:
            is_exact, end_s = False, times.earliest_end_s
        if end_s is None:
            return None, None
        ends_s.append(end_s)
    if not ends_s:
        return None, None
    end = forecast.now + timedelta(seconds=max(ends_s))
    return (end, None) if is_exact else (None, end)
