"""The page of a new run: an editor for its matrix, which starts from a preset or another run, and the resulting plan.

The matrix can be edited as text, or in a form with a field for each axis, whose values are separated by commas. A
change of either updates the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from dashboard.reading import copies, inspection, refusals
from dashboard.reading.compared_cells import MAX_CHOSEN
from dashboard.reading.ledgers import explain_wait
from dashboard.views.access import action, form_page, signed_in_user, split_names
from dashboard.views.lists import first_rows, read_row_numbers
from farm.alerts.services.index import find_releases_for_matrix
from farm.base.refusals import Missing, Refusal, TooMany
from farm.contract.cells import Budget
from farm.contract.numbers import is_row_number
from farm.fleet.selectors import nodes_visible_to
from farm.registry import selectors as registry
from farm.registry.states import MakingState, VersionState
from farm.rules.cells.axes import BY_NAME, FIELD_AXES, MATRIX_AXES
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.values import Value, format_value, to_plain
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix_text import write_text
from farm.rules.planning.blocks import TWIN
from farm.rules.planning.plans import Arm, Plan, PlannedBlock, PlannedComparison
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_count, as_number
from farm.rules.runtimes import providers
from farm.rules.wording import numbers
from farm.runs import selectors, services
from farm.runs.selectors.pages import cell_specs

if TYPE_CHECKING:
    from farm.registry.models import Version


PREFIX = "axis-"
BUDGET = f"{PREFIX}budget"
# the name of the buttons that replace the matrix by one without a refusal
WAY = "way"
MAX_TYPED = 2000
USUAL = "onnxruntime=="
# the axis whose values are dimensions with sizes
SIZES = "shapes"
MAX_DIGITS = 12
# by axis: the label of its field, and an example of its values
LABELS = {
    "runtime": ("Releases", "1.29.0, 1.31.1"),
    "provider": ("Providers", "cpu, openvino"),
    "batch": ("Batch sizes", "1, 8"),
    "precision": ("Precisions", "fp32, int8-dynamic"),
    "shapes": ("Sizes", "sequence=64, sequence=128"),
    "threads": ("Threads", "1, 4"),
    "opset": ("Opsets", "as-is, 21"),
    "optimization": ("Optimization", "basic, all"),
    "hardware": ("Hardware", "cpu, cuda"),
    "concurrency": ("Concurrency", "1, 2"),
}
# axes whose values are shown with the axis's name, because they mean nothing without it
_NAMED = {"batch", "opset", *(axis.name for axis in FIELD_AXES)}
LABELS |= {axis.name: (BY_NAME[axis.name].heading, axis.example) for axis in FIELD_AXES if axis.name not in LABELS}


@dataclass(frozen=True)
class Field:
    """A field of the form: an axis of the matrix. `is_text`: all values can be written in the field; otherwise the axis
    can be edited only in the text."""

    name: str
    label: str
    example: str
    value: str
    is_text: bool


@dataclass(frozen=True)
class Form:
    """The fields of the form, the chosen budget, and all budgets."""

    fields: list[Field]
    budget: str
    budgets: tuple[str, ...] = tuple(budget.value for budget in Budget)


def make_form(text: str) -> Form | None:
    """Fill the form from the text of a matrix; None where the text is no valid matrix, so that the fields stay as they
    are."""
    try:
        matrix = matrices.parse(text, allowed=settings.ALLOWED_PACKAGES)
    except MatrixProblem:
        return None
    fields = []
    for name, (label, example) in LABELS.items():
        values = [_field_value(name, value) for value in matrix.axes.get(name, ())]
        fields.append(Field(name, label, example, ", ".join(filter(None, values)), is_text=None not in values))
    return Form(fields, matrix.budget.value)


def _field_value(name: str, value: Value) -> str | None:
    """Write a value as it appears in its field; None for a value with options, which a field cannot show."""
    plain = to_plain(value)
    if isinstance(plain, Mapping) and name not in ("precision", SIZES):
        return None
    label = format_value(value).removeprefix(USUAL)
    return providers.resolve(label).short if name == "provider" else label


def fields_differ(text: str, posted: Mapping[str, object]) -> bool:
    """Whether any posted field differs from the text, because it was changed just before sending. False where the text
    is no valid matrix. Fields that were not posted do not count."""
    form = make_form(text)
    if form is None:
        return False
    known = {f"{PREFIX}{field.name}": field.value for field in form.fields if field.is_text} | {BUDGET: form.budget}
    return any(split_names(str(posted[name])) != split_names(value) for name, value in known.items() if name in posted)


def change_field(text: str, name: str, typed: str) -> str:
    """Return the text of the matrix after a change of the field `name`. An empty field removes its axis, an unknown
    field changes nothing, and comments are lost. Raises MatrixProblem where the old or the new text is no valid
    matrix."""
    plain = matrices.parse(text, allowed=settings.ALLOWED_PACKAGES).as_plain()
    axis, value = name.removeprefix(PREFIX), typed[:MAX_TYPED].replace("\x00", "").strip()
    if name == BUDGET:
        plain["budget"] = value
    elif axis in LABELS:
        values = [_sizes(part) for part in split_names(value)] if axis == SIZES else split_names(value)
        plain["matrix"].pop(axis, None)
        plain["matrix"] |= {axis: values} if values else {}
    as_number = matrices.parse(plain, allowed=settings.ALLOWED_PACKAGES).as_plain()
    if not as_number["fail-fast"]:
        del as_number["fail-fast"]
    return write_text(as_number)


def _sizes(text: str) -> dict[str, int | str]:
    """Parse `sequence=64 past=3` to sizes by dimension. A size that is no number stays a text, which the matrix
    refuses."""
    pairs = (part.partition("=")[::2] for part in text.split())
    return {name: int(size) if size.isdecimal() and len(size) < MAX_DIGITS else size for name, size in pairs}


def write_summary(plan: Plan) -> str:
    """Write a sentence with the numbers of cells and blocks, the time on one node, and how many points are refused or
    excluded. Another sentence says that nothing can run."""
    if not plan.blocks:
        return "Nothing of this matrix can run."
    parts = [numbers.counted(plan.cells, "cell"), f"in {numbers.counted(len(plan.blocks), 'block')}"]
    refused = f"; {numbers.counted(len(plan.refused), 'point')} refused" if plan.refused else ""
    excluded = f"; {plan.excluded} excluded" if plan.excluded else ""
    return f"{' '.join(parts)}, about {numbers.duration(60 * plan.minutes)} on one node{refused}{excluded}."


def list_warnings(plan: Plan) -> list[str]:
    """Return a list with at most one sentence, which says that the plan assumes the noise of nodes without A/A pairs;
    empty where all noise was measured."""
    assumed = [block.noise for block in plan.blocks if block.is_noise_assumed]
    if not assumed:
        return []
    return [
        f"The smallest changes assume that identical launches differ by {numbers.share(max(assumed))}: the nodes have "
        "not measured an A/A pair yet."
    ]


def list_wishes(plan: Plan) -> list[str]:
    """List sentences that say how many rounds each block needs to detect the wished change. Blocks with equal sentences
    share one. Empty without a wish."""
    texts: dict[str, list[str]] = {}
    for block in plan.blocks:
        if block.wish is not None and _without_twins(block):
            texts.setdefault(block.wish.text, []).append(block.id)
    return [text if len(texts) == 1 else f"{numbers.listed(ids)}: {text}" for text, ids in texts.items()]


def make_block_table(plan: Plan, nodes: Mapping[str, str]) -> Table:
    """Make the table of the plan's blocks. `nodes`: the names of nodes by id; a node without a name is shown by its
    id."""
    columns: tuple[Column[PlannedBlock], ...] = (
        Column("Block", lambda block: Entry(block.id)),
        Number("cells", lambda block: as_count(len({arm.cell for arm in block.arms}))),
        Column(
            "Nodes that may take it",
            lambda block: Entry(numbers.listed([nodes.get(node, node) for node in block.nodes]) or "none now"),
        ),
        Number("rounds", _rounds),
        Number("comparisons", lambda block: as_count(len(_without_twins(block)))),
        Number(
            "smallest detectable change", _smallest, "what a comparison calls slower or faster about 95 times in 100"
        ),
        Number("minutes", lambda block: as_number(block.minutes)),
    )
    return Table.of("blocks", "Cells of one block are measured side by side on one node", columns, plan.blocks)


def _rounds(block: PlannedBlock) -> Entry:
    least = "" if block.min_rounds == block.max_rounds else f"{block.min_rounds}–"
    return Entry(f"{least}{block.max_rounds}", block.max_rounds)


def _without_twins(block: PlannedBlock) -> list[PlannedComparison]:
    return [comparison for comparison in block.comparisons if comparison.axis != TWIN]


def _smallest(block: PlannedBlock) -> Entry:
    seen = [pair.smallest_detectable for pair in _without_twins(block) if pair.smallest_detectable is not None]
    return Entry(numbers.share(min(seen)) if seen else "nothing to compare", min(seen, default=None))


def make_cell_table(plan: Plan) -> Table:
    """Make the table of all cells that will be measured, each once, with the number of its first block, from 1. A/A
    twins are left out."""
    arms: dict[str, tuple[Arm, int]] = {}
    for place, block in enumerate(plan.blocks, start=1):
        for arm in block.arms:
            if arm.twin_of is None:
                arms.setdefault(arm.cell, (arm, place))
    columns: tuple[Column[tuple[Arm, int]], ...] = (
        Column("Cell", lambda each: Entry(_labels(each[0].labels))),
        Number("Block", lambda each: as_count(each[1])),
    )
    return Table.of("plan-cells", "Cells", columns, arms.values())


def _labels(labels: Mapping[str, str]) -> str:
    return " · ".join(f"{axis} {value}" if axis in _NAMED else value for axis, value in labels.items())


VERSIONS_SHOWN = 200
MAX_SEED = 2**32 - 1


class Preset(NamedTuple):
    """A matrix to start from. `package` and `file`: where its text is stored."""

    name: str
    label: str
    package: str
    file: str


PRESETS = (
    Preset("releases", "two releases", "farm.rules.matrices", "default_matrix.yaml"),
    Preset("history", "six releases", "dashboard.presets", "history.yaml"),
    Preset("settings", "session settings", "dashboard.presets", "settings.yaml"),
    Preset("precisions", "precisions", "dashboard.presets", "precisions.yaml"),
    Preset("openvino", "OpenVINO", "dashboard.presets", "openvino.yaml"),
)


@form_page
def new_run(request: HttpRequest) -> HttpResponseBase:
    """Show the form of a new run with its plan. A POST starts the run and redirects to it, or shows the form again with
    what is wrong. Without a `seed` it is 0, and without a `version` the newest is measured that is not of a branch. The
    package index is queried where the matrix names an unknown release. It starts nothing where the fields of the form
    differ from the text of the matrix."""
    if request.method != "POST":
        return _form(request, matrix=_start_from(request), seed="0")
    matrix, seed = request.POST.get("matrix", ""), request.POST.get("seed", "0").strip()
    if not seed.isascii() or not seed.isdecimal() or len(seed) > 10 or int(seed) > MAX_SEED:
        wrong = f"The seed is {seed[:20]!r}: write a whole number from 0 to {MAX_SEED}."
        return _form(request, matrix=matrix, seed=seed, seed_error=wrong, status=400)
    if fields_differ(matrix, request.POST):
        return _form(request, matrix=matrix, seed=seed, differs=True, status=400)
    try:
        run = services.start_run(
            version=_version(request),
            matrix=matrix,
            requested_by=signed_in_user(request),
            seed=int(seed),
            known=find_releases_for_matrix(matrix),
        )
    except Refusal as refusal:
        return _form(request, matrix=matrix, seed=seed, error=str(refusal), status=refusal.status)
    return redirect("dashboard:run", run_id=run.pk)


@action
def plan(request: HttpRequest) -> HttpResponse:
    """Plan the matrix in the editor, and render the part of the page that shows the plan. No run is started, but a
    large plan is ordered and appears later, and the package index is queried where the matrix names an unknown release.
    A changed field updates the text, and a changed text updates the fields."""
    matrix = request.POST.get("matrix", "")
    touched = request.headers.get("HX-Trigger-Name", "")
    more: dict[str, object] = {"form": make_form(matrix)} if touched in ("matrix", WAY) else {}
    if touched == WAY:
        more |= {"is_rewritten": True, "matrix": matrix}
    if touched.startswith(PREFIX):
        try:
            matrix = change_field(matrix, touched, request.POST.get(touched, ""))
        except MatrixProblem as problem:
            return render(request, "dashboard/parts/planned.html", {"error": str(problem)})
        more = {"is_rewritten": True, "matrix": matrix}
    return render(request, "dashboard/parts/planned.html", {**_planned(request, matrix), **more})


def _form(request: HttpRequest, *, matrix: str, seed: str, status: int = 200, **more: object) -> HttpResponse:
    versions = first_rows(_ready(request).prefetch_related(None).defer("inspection"), VERSIONS_SHOWN)
    context: dict[str, object] = {
        "versions": versions,
        "presets": PRESETS,
        "chosen": request.GET.get("preset", "releases"),
    }
    if versions or request.GET.get("version"):
        context |= {"version": _version(request), "wish": request.POST.get("wish", ""), **_planned(request, matrix)}
    form = make_form(matrix) or make_form(_preset(request))
    context |= {"matrix": matrix, "form": form, "seed": seed, "axes": list(MATRIX_AXES), **more}
    return render(request, "dashboard/new_run.html", context, status=status)


def _ready(request: HttpRequest) -> QuerySet["Version"]:
    return registry.versions_visible_to(signed_in_user(request)).exclude(state=VersionState.REJECTED)


def _planned(request: HttpRequest, matrix: str) -> dict[str, object]:
    """Make the context with the tables of the plan, or with a sentence that says why there is no plan (yet). The form
    has the change that the reader wants to detect."""
    try:
        version = _version(request)
        planned = services.plan_or_order(
            version=version,
            matrix=matrix,
            asked_by=signed_in_user(request),
            wish=request.POST.get("wish", "").strip()[:20] or None,
            replaces_waiting=True,
            known=find_releases_for_matrix(matrix),
        )
    except TooMany as refusal:
        return {"waits": str(refusal)}
    except Refusal as refusal:
        return {"error": str(refusal)}
    if not isinstance(planned, Plan):
        size = numbers.counted(planned.points, "point")
        if planned.state == MakingState.MAKING:
            return {"waits": f"Planning {size}; the plan appears here in a moment."}
        return {"waits": f"{size} wait to be planned."}
    nodes = list(nodes_visible_to(signed_in_user(request)))
    return {
        "plan": planned,
        "summary": write_summary(planned),
        "guesses": inspection.list_guesses(registry.inspection_of(version)),
        "warnings": [*explain_wait(planned, nodes), *list_warnings(planned)],
        "wishes": list_wishes(planned),
        "blocks": make_block_table(planned, {str(node.pk): node.name for node in nodes}),
        "refused": refusals.group_refusals(planned.refused, lambda point: Entry(_labels(point.labels)), matrix=matrix),
        "cells": make_cell_table(planned),
        "copies": copies.copy_plan(version.pk, version.artifact.main, matrix, url=settings.PUBLIC_URL),
    }


def _version(request: HttpRequest) -> "Version":
    """Find the version that the form or the address names, else the newest that is not of a branch. Raises Missing
    where there is none."""
    wanted = request.POST.get("version") or request.GET.get("version") or ""
    if is_row_number(wanted):
        return registry.version(signed_in_user(request), int(wanted))
    newest = _ready(request).filter(branch="").values_list("pk", flat=True).first()
    if newest is None:
        raise Missing("There is no model to measure yet.", hint="Upload one first.")
    return registry.version(signed_in_user(request), newest)


def _start_from(request: HttpRequest) -> str:
    """Return the text of the matrix to start from: that of a run, of chosen cells, or of several runs, else a
    preset."""
    cell = request.GET.get("cell", "")
    named = read_row_numbers(request.GET, "like", most=MAX_CHOSEN)
    runs = [selectors.run(signed_in_user(request), number) for number in named]
    if len(runs) > 1 or (runs and cell):
        chosen = [(run.pk, name) for run in runs for name in ([cell] if cell else selectors.measured_cell_names(run))]
        return copies.write_matrix(cell_specs(chosen), matrices=[run.matrix for run in runs])
    return write_text(runs[0].matrix) if runs else _preset(request)


def _preset(request: HttpRequest) -> str:
    """Read the matrix of the preset that the address names, or of the first preset."""
    wanted = request.GET.get("preset", "")
    preset = next((preset for preset in PRESETS if preset.name == wanted), PRESETS[0])
    return resources.files(preset.package).joinpath(preset.file).read_text(encoding="utf-8")
