"""Finds measured cells in runs that a user may see: by search words, by model, or with a trace; and their launches."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Final

from django.db.models import Q, QuerySet

from farm.accounts.selectors import Anyone
from farm.base.grouping import group_by
from farm.contract import document_cells as doc_cells
from farm.contract import document_comparisons as doc_comparisons
from farm.contract.numbers import is_row_number
from farm.contract.reasons import CellStatus
from farm.contract.reports import RoundReport
from farm.fleet.selectors.nodes import name_or_removed
from farm.registry.models import Model, Version
from farm.rules.cells import recipes
from farm.rules.cells.axes import AXES
from farm.rules.judging.summaries import TimingsProblem, unpack_timings
from farm.rules.presenting.hardware import MeasuredSetting, with_comparable_times, with_verdicts
from farm.rules.presenting.lines import is_disturbed
from farm.rules.presenting.times import Times
from farm.rules.reporting import accuracies
from farm.rules.wording.vocabulary import CHANGES
from farm.runs.models import Arm, Cell, CellDocument, Comparison, Report, Run, match_arms
from farm.runs.selectors.evidence import COUNTED
from farm.runs.states import FOLLOW_UPS

MAX_HITS: Final = 50
MAX_WORDS: Final = 8
# the columns that a number in a search may be for; the word before it may name one
NUMBERS: Final = {
    "run": "block__run",
    "version": "block__run__version__number",
    "batch": "cell__batch",
    "threads": "cell__threads",
}
TEXTS: Final = ("runtime", "provider", "precision", "hardware", "run__version__model__name")
MAX_TRACED = 200
# cells of the newest runs
MAX_MEASURED = 500
# earlier versions with which the newest one's accuracy is compared
MAX_EARLIER = 10
# long columns that no setting needs
UNREAD = ("operators", "arm__cell__spec_json", "arm__block__plan_json", "arm__block__node__facts_json")
# the fields of a comparison that say by which clock its cells are compared, and which of them is better
READ_OF_COMPARISONS = ("baseline", "candidate", "axis", "ratio", "ci_low", "ci_high", "verdict_from", "margin")
# the fields of a cell's document that identify a setting and say how good it is; the others are not read
READ_FIELDS = {field for axis in AXES for field in axis.fields} | {
    *("id", "digest", "model_sha256", "uploaded", "status", "p50_ms", "p50_ci_ms", "throughput", "parity", "simulated"),
    *("active_providers", "providers", "cpu_p50_ms", "cpu_samples_ms", "disturbed_samples", "samples_ms", "accuracy"),
}


@dataclass(frozen=True)
class MeasuredCell:
    """A measured cell: its run, its id there, and its settings."""

    run_id: int
    name: str
    model: str
    version: int
    node: str
    runtime: str
    provider: str
    batch: int | None
    threads: int | None
    precision: str
    opset: str = ""


def cells_matching(user: Anyone, words: str) -> list[MeasuredCell]:
    """Find measured cells that match all of the search words, those of the newest run first.

    A word matches the model, runtime, provider, precision, hardware or node, or is a cell's id. A number matches the
    run, version, batch or threads; after one of these words it matches only that, as in `batch 8`, and the words
    themselves are ignored. Without words, every cell matches. Words after the first MAX_WORDS are not read. A/A twins,
    and cells of other versions than the run's, are left out. At most MAX_HITS + 1 are returned, so that callers see
    whether there are more.
    """
    rows = _measured_arms().filter(block__run__in=Run.objects.visible_to(user))
    typed = words.lower().split()[:MAX_WORDS]
    for previous, word in zip(["", *typed], typed, strict=False):
        if word not in NUMBERS:
            rows = rows.filter(_match_word(word, NUMBERS.get(previous)))
    return _list_measured(rows, limit=MAX_HITS + 1)


def list_measured_cells(runs: Sequence[Run]) -> list[MeasuredCell]:
    """List the measured cells of these runs, those of the newest run first, MAX_MEASURED at most.

    A/A twins, and cells of other versions than the run's, are left out.
    """
    return _list_measured(_measured_arms().filter(block__run__in=[run.pk for run in runs]), limit=MAX_MEASURED)


def _measured_arms() -> QuerySet[Arm]:
    return Arm.objects.filter(status=CellStatus.DONE, twin_of=None, cell__beside=None)


def _list_measured(rows: QuerySet[Arm], *, limit: int) -> list[MeasuredCell]:
    columns = ("runtime", "provider", "batch", "threads", "opset", "precision")
    arms = rows.order_by("-block__run_id", "number").values_list(
        "block__run_id", "name", "block__run__version__model__name", "block__run__version__number",
        "block__node__name", *(f"cell__{field}" for field in columns),
        *(f"block__run__version__inspection__{fact}" for fact in recipes.UPLOADED),
    )  # fmt: skip
    return [
        MeasuredCell(
            run_id, name, model, version, node or "", engine, provider, batch, threads, _precision_of(*facts), opset
        )
        for run_id, name, model, version, node, engine, provider, batch, threads, opset, *facts in arms[:limit]
    ]


def _precision_of(
    precision: str, dtypes: Mapping[str, int] | None, operators: Mapping[str, int] | None, is_quantised: bool | None
) -> str:
    return recipes.describe_precision(precision, uploaded=recipes.describe_uploaded(dtypes, operators, is_quantised))


def _match_word(word: str, field: str | None) -> Q:
    """Make the filter for a typed word; `field` is the column that a number is for, None if no word names one."""
    if is_row_number(word):
        fields = [field] if field else NUMBERS.values()
        return reduce(or_, (Q(**{field: int(word)}) for field in fields))
    matches = Q(name=word) | Q(block__node__name__icontains=word)
    return matches | reduce(or_, (Q(**{f"cell__{field}__icontains": word}) for field in TEXTS))


def list_launches(run: Run, name: str) -> list[tuple[int, list[float]]]:
    """List the launches of a cell in the order of rounds, each as its round (from 0) and its timings in ms.

    Disturbed launches are included, and those whose timings cannot be read are left out. Of a round that was reported
    in several attempts, the newest counts. Empty if the cell was never in a block.
    """
    arm = Arm.objects.filter(match_arms(run, name)).first()
    if arm is None:
        return []
    rows = Report.objects.filter(attempt__block=arm.block_id, attempt__state__in=COUNTED, kind="round")
    rounds: dict[int, list[float]] = {}
    for body in rows.order_by("attempt__number", "pk").values_list("body", flat=True):
        report = RoundReport.model_validate_json(body)
        for place in report.samples:
            if place.arm == arm.number and place.sample is not None:
                try:
                    rounds[report.round] = unpack_timings(place.sample).tolist()
                except TimingsProblem:
                    continue
    return sorted(rounds.items())


@dataclass(frozen=True)
class TracedCell:
    """A cell with a trace: its run, its id there, and its settings."""

    run_id: int
    name: str
    runtime: str
    provider: str
    batch: int | None
    threads: int | None
    precision: str


def traced_cells(user: Anyone, version: Version) -> list[TracedCell]:
    """List the traced cells in runs of the version that the user may see, the newest run first, MAX_TRACED at most.

    A/A twins, and cells of other versions than the run's, are left out.
    """
    rows = CellDocument.objects.filter(arm__cell__run__version=version, arm__twin_of=None).exclude(operators="[]")
    visible = rows.filter(arm__cell__beside=None, arm__cell__run__in=Run.objects.visible_to(user))
    types = [(version.inspection or {}).get(fact) for fact in recipes.UPLOADED]
    columns = ("run_id", "runtime", "provider", "batch", "threads", "precision")
    traced = visible.order_by("-arm__cell__run_id", "arm__cell__number").values_list(
        "arm__name", *(f"arm__cell__{name}" for name in columns)
    )
    return [
        TracedCell(run_id, name, runtime, provider, batch, threads, _precision_of(precision, *types))
        for name, run_id, runtime, provider, batch, threads, precision in traced[:MAX_TRACED]
    ]


def measured_settings(user: Anyone, model: Model) -> tuple[int | None, list[MeasuredSetting]]:
    """Return the number of the model's newest measured version, and its cells; (None, []) if none was measured.

    The newest measurement of each cell on each node is listed, those of the newest run first; where other programs
    disturbed it, the newest that they did not disturb takes its place, if there is one. A/A twins, cells of other
    versions than the run's, versions of branches, and runs that the farm started to confirm or explain something are
    left out. At most MAX_MEASURED measurements are read. Their `machine` is empty.
    """
    number, runs = _find_newest_runs(user, model)
    if number is None:
        return None, []
    rows = CellDocument.objects.filter(arm__twin_of=None, arm__status="done", arm__cell__run__in=runs)
    rows = rows.filter(arm__cell__beside=None)
    ordered = rows.order_by("-arm__cell__run_id", "arm__number")
    newest: dict[tuple[str, str], MeasuredSetting] = {}
    for row in ordered.select_related("arm__cell", "arm__block__node").defer(*UNREAD)[:MAX_MEASURED]:
        cell, name = row.arm.cell, name_or_removed(row.arm.block.node)
        newer = newest.get((cell.digest, name))
        if newer is None or is_disturbed(newer.cell):
            fields = {key: value for key, value in json.loads(row.body).items() if key in READ_FIELDS}
            body = doc_cells.Cell.model_validate({**fields, "id": row.arm.name})
            at = row.arm.block.ended_at
            if newer is None or not is_disturbed(body):
                newest[cell.digest, name] = MeasuredSetting(cell.run_id, number, name, machine="", at=at, cell=body)
    chosen = sorted(newest.values(), key=lambda measured: -measured.run)
    compared = accuracies.compare_across_runs([measured.cell for measured in chosen])
    cells = add_lost_accuracy(user, model, number, compared)
    settings = [replace(measured, cell=cell) for measured, cell in zip(chosen, cells, strict=True)]
    return number, add_compared_figures(settings)


def add_compared_figures(measured: Sequence[MeasuredSetting]) -> list[MeasuredSetting]:
    """Add to each cell which cells beat it, by the verdicts of its run, and the time by which it is compared.

    That is processor time on a node where a verdict rests on it, for cells that have it. The order stays the same.
    """
    by_run = group_by(range(len(measured)), lambda place: measured[place].run)
    # only verdicts of runs with disturbed launches rest on processor time
    disturbed = {cell.run for cell in measured if cell.cell.disturbed_samples}
    rows = Comparison.objects.filter(Q(run__in=disturbed) | Q(run__in=by_run, verdict__in=CHANGES))
    compared: dict[int, list[doc_comparisons.Comparison]] = {}
    for run, verdict, body in rows.order_by("pk").values_list("run", "verdict", "body"):
        fields = {key: value for key, value in json.loads(body).items() if key in READ_OF_COMPARISONS}
        compared.setdefault(run, []).append(doc_comparisons.Comparison.model_validate({**fields, "verdict": verdict}))
    places: list[int] = []
    for run, run_places in by_run.items():
        times = Times.of([measured[place].cell for place in run_places], compared.get(run, ()))
        places += [place for place in run_places if measured[place].cell.id in times.by_processor]
    return with_comparable_times(with_verdicts(measured, compared), places)


def add_lost_accuracy(user: Anyone, model: Model, number: int, cells: Sequence[doc_cells.Cell]) -> list[doc_cells.Cell]:
    """Add to the cells of version `number` the accuracy that they lost against earlier versions on the same data.

    Only the newest FP32 cell with an accuracy is read of each earlier version, and only of the MAX_EARLIER newest ones
    that have such a cell. Cells without an accuracy stay as they are.
    """
    if all(cell.accuracy is None or cell.accuracy.value is None for cell in cells):
        return list(cells)
    rows = CellDocument.objects.filter(arm__is_evaluated=True, arm__twin_of=None, arm__cell__precision="fp32")
    before = rows.filter(arm__cell__beside=None, arm__cell__run__in=_list_shown_runs(user, model)).filter(
        arm__cell__run__version__number__lt=number
    )
    newest_first = before.order_by("-arm__cell__run__version__number", "-pk")
    documents = newest_first.values_list("arm__cell__run__version__number", "pk")
    newest: dict[int, int] = {}
    for version, document in documents[:MAX_MEASURED]:
        newest.setdefault(version, document)
    chosen = list(newest.values())[:MAX_EARLIER]
    bodies = rows.filter(pk__in=chosen).order_by("arm__cell__run__version__number").values_list("body", flat=True)
    scores = [doc_cells.Accuracy.model_validate(json.loads(body)["accuracy"]) for body in bodies]
    return accuracies.compare_versions(cells, accuracies.drop_lossy(scores))


def _list_shown_runs(user: Anyone, model: Model) -> QuerySet[Run]:
    runs = Run.objects.visible_to(user).filter(version__model=model, version__branch="")
    return runs.exclude(reason__in=FOLLOW_UPS)


def _find_newest_runs(user: Anyone, model: Model) -> tuple[int | None, list[int]]:
    """Find the newest version with a measured cell (None without one), and its newest runs up to MAX_MEASURED cells."""
    visible = _list_shown_runs(user, model)
    measured = Cell.objects.filter(run__in=visible, beside=None, status="done").order_by("-run__version__number")
    number = measured.values_list("run__version__number", flat=True).first()
    if number is None:
        return None, []
    runs: list[int] = []
    cells = 0
    for run, count in visible.filter(version__number=number).order_by("-pk").values_list("pk", "cell_count"):
        if cells >= MAX_MEASURED:
            break
        runs.append(run)
        cells += count
    return number, runs
