"""The page of a variant: how it was made, what quantisation did to it, and how its measurements compare."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from dashboard.figures import accuracies, ratios
from dashboard.figures.figure import latency_entry
from dashboard.reading import accuracy
from dashboard.reading.facts import Fact
from dashboard.reading.runs import version_address
from dashboard.views.access import action, page, signed_in_user
from farm.accounts.selectors import can_write
from farm.base.refusals import Missing, NotAllowed
from farm.contract.document_cells import Cell
from farm.registry import selectors, services
from farm.registry.selectors import coverage_of, quantised_report
from farm.registry.states import MakingState
from farm.rules.cells import recipes
from farm.rules.comparing.quantities import Change, change_of
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_count, as_number, verdict_entry
from farm.rules.presenting.times import Times
from farm.rules.quality import variant_advice
from farm.rules.wording import numbers, titles
from farm.runs.selectors.variants import measured_cell, measured_cells_of, processor_of

if TYPE_CHECKING:
    from farm.registry.models import Variant, Version
    from farm.runs.selectors.variants import VariantCell
    from farm.workshop.inspection import Coverage, TensorError


COVERAGE_COLUMNS: tuple[Column["Coverage"], ...] = (
    Column("Operator", lambda kind: Entry(kind.op_type)),
    Number("all", lambda kind: as_count(kind.all)),
    Number("quantised", lambda kind: as_count(kind.all - len(kind.kept_float))),
    Prose(
        "Kept in float",
        lambda kind: Entry(", ".join(name or "(unnamed)" for name in kind.kept_float[:50])),
        note="by the model's own names; a trace shows what a runtime makes of it",
    ),
)
ERROR_COLUMNS: tuple[Column["TensorError"], ...] = (
    Column("Tensor", lambda error: Entry(error.tensor, is_name=True)),
    Column("Node", lambda error: Entry(error.node, is_name=True)),
    Column("Type", lambda error: Entry(error.op_type)),
    Number(
        "signal left, dB",
        lambda error: as_number(error.model_db, _format_decibels),
        note="against the original, over the whole model so far; lower is worse",
    ),
    Number("by its own rounding, dB", lambda error: as_number(error.rounding_db, _format_decibels)),
)
# of a weight's name and its scales
SCALE_COLUMNS: tuple[Column[tuple[str, Sequence[float]]], ...] = (
    Column("Weight", lambda weight: Entry(weight[0], is_name=True)),
    Number("scales", lambda weight: as_count(len(weight[1]))),
    Number("smallest", lambda weight: as_number(min(weight[1]), "{:.3g}".format)),
    Number("largest", lambda weight: as_number(max(weight[1]), "{:.3g}".format)),
)
MAX_ROWS = 200


@dataclass(frozen=True)
class Made:
    """A variant in words. `quantised`: how many operators are quantised, empty where this is not known; `is_random`: it
    was calibrated with random samples; `can_be_ranked`: its layers can be ranked by error."""

    name: str
    sentence: str
    quantised: str
    is_random: bool
    is_quantised: bool
    can_be_ranked: bool
    coverage: Table
    errors: Table
    scales: Table
    advice: list[str]


def variant_name(variant: "Variant") -> str:
    """Name a variant by what was done to the upload: the opset where it was changed, then the precision."""
    recipe = variant.recipe
    if recipe.is_program:
        return "program for PyTorch"
    opset = f"opset {recipe.opset}" if recipe.opset != "as-is" else ""
    changed = recipes.describe_precision(recipe.precision, recipes.describe_recipe(recipe))
    parts = [opset, "as uploaded" if recipe.precision == "fp32" else changed]
    return ", ".join(part for part in parts if part)


def describe_variant(
    variant: "Variant", cell: Cell | None, *, arch: str = "", instruction_sets: Sequence[str] = ()
) -> Made:
    """Describe a variant with its coverage, errors, scales and advice. A table has no rows where its data do not exist,
    such as errors before the analysis. `cell`: a measured cell of the variant; `arch` and `instruction_sets`: of the
    machine that measured it."""
    found, coverage = quantised_report(variant), coverage_of(variant)
    layers = (found.errors or ()) if found else ()
    scales = [(name, values) for name, values in found.scales.items() if values] if found else []
    operators = numbers.counted(sum(kind.all for kind in coverage), "operator")
    quantised = sum(kind.all - len(kind.kept_float) for kind in coverage)
    recipe = variant.recipe
    return Made(
        name=variant_name(variant),
        sentence=_write_sentence(variant),
        quantised=f"{quantised} of {operators}" if coverage else "",
        is_random=recipe.options.get(recipes.SAMPLES) == recipes.RANDOM,
        is_quantised=recipes.is_quantised(recipe.precision),
        can_be_ranked=recipe.precision in recipes.EIGHT_BITS,
        coverage=Table.of("coverage", "Operators quantised and not", COVERAGE_COLUMNS, coverage),
        errors=Table.of("errors", "Layers by quantisation error, worst first", ERROR_COLUMNS, layers[:MAX_ROWS]),
        scales=Table.of("scales", "Scales of weights, one for all or one a channel", SCALE_COLUMNS, scales[:MAX_ROWS]),
        advice=_list_advice(variant, layers, cell, arch, instruction_sets),
    )


VARIANT_COLUMNS: tuple[Column["Variant"], ...] = (
    Column("Variant", lambda row: Entry(variant_name(row), href=reverse("dashboard:variant", args=[row.pk]))),
    Column("State", lambda row: verdict_entry(row.state)),
    Number("size", lambda row: as_number(row.derived.bytes, numbers.size) if row.derived else Entry()),
    Prose("What was done", lambda row: Entry(row.reason_text or " ".join(row.history[:1]))),
)


def make_variant_table(rows: Iterable["Variant"]) -> Table:
    # a variant that is the upload itself has no page
    derived = [row for row in rows if not row.recipe.is_identity]
    return Table.of("variants", "Variants made of this version", VARIANT_COLUMNS, derived)


def _write_sentence(variant: "Variant") -> str:
    if variant.state == MakingState.FAILED:
        return f"It could not be created: {variant.reason_text}"
    if variant.derived is None:
        return "Being created."
    before, after = variant.artifact.bytes, variant.derived.bytes
    saved = f"{numbers.size(before - after)} saved" if after <= before else f"{numbers.size(after - before)} more"
    share = numbers.share(after / before) if before else ""
    return f"{numbers.size(after)}, {share} of the upload’s {numbers.size(before)}: {saved}."


def _format_decibels(value: float | None) -> str:
    return "no error" if value is None else numbers.fixed(value, 1)


def _list_advice(
    variant: "Variant", layers: "Sequence[TensorError]", cell: Cell | None, arch: str, instruction_sets: Sequence[str]
) -> list[str]:
    recipe = variant.recipe
    if recipe.precision not in recipes.EIGHT_BITS:
        return []
    from_making = variant_advice.advise(
        recipe.precision,
        recipe.options,
        samples=variant.artifact.calibration_samples,
        layers=layers,
        instruction_sets=instruction_sets,
    )
    return [*from_making, *(accuracy.list_advice(cell, arch=arch) if cell else [])]


def _name_entry(measured: "VariantCell") -> Entry:
    href = reverse("dashboard:cell", args=[measured.run.pk, measured.cell.id])
    return Entry(_describe_setting(measured.cell), href=href, soft=f"run {measured.run.pk}")


def _describe_setting(cell: Cell) -> str:
    """List the settings of a cell: `1.31.1, CPU, batch 1, sequence 64, 4 threads`."""
    batch = [f"batch {cell.batch}"] if cell.batch is not None else []
    sizes = [f"{name} {size}" for name, size in cell.shapes.items()]
    runs_on = [titles.runtime(cell.runtime), titles.provider(cell.provider)]
    return ", ".join([*runs_on, *batch, *sizes, numbers.counted(cell.threads, "thread")])


def _change(measured: "VariantCell") -> Change | None:
    return change_of(measured.against, {}) if measured.against is not None else None


def _verdict_entry(measured: "VariantCell") -> Entry:
    change = _change(measured)
    return verdict_entry(change.word, soft=f"than {measured.upload}") if change else Entry("not measured side by side")


def _time_entry(measured: "VariantCell") -> Entry:
    times = Times.of([measured.cell], [measured.against] if measured.against else [])
    return latency_entry(times.with_compared_time(measured.cell), is_marked=measured.cell.id in times.by_processor)


COLUMNS: tuple[Column["VariantCell"], ...] = (
    Prose("Measured as", _name_entry),
    Column("Node", lambda measured: Entry(measured.cell.node or "")),
    Number("latency, ms", _time_entry, "p50, or where the verdict rests on it processor time"),
    Column("Against the upload", _verdict_entry, "the same cell of the upload as it is, measured in the same block"),
    Number("change", lambda measured: ratios.change_entry(_change(measured)), "of that latency"),
    Number("95 % interval", lambda measured: ratios.interval_entry(_change(measured))),
    Number("rounds", lambda measured: as_count(measured.against.rounds) if measured.against else Entry()),
    Column(
        "Parity", lambda measured: verdict_entry(measured.cell.parity.verdict), "outputs against the upload's reference"
    ),
)
ACCURACY = Number["VariantCell"]("accuracy", lambda row: accuracies.accuracy_entry(row.cell), "on labelled data")


def find_largest_change(measured: Sequence["VariantCell"]) -> "tuple[VariantCell, Change] | None":
    """Find the largest decided change against the upload; cells that fail parity do not count."""
    right = (setting for setting in measured if setting.cell.parity.verdict != "fail")
    decided = [(setting, change) for setting in right if (change := _change(setting)) is not None and change.is_decided]
    return max(decided, key=lambda pair: pair[1].size, default=None)


def write_finding(measured: Sequence["VariantCell"]) -> str:
    """Name the largest decided change against the upload, and say whether outputs pass parity. Empty where nothing was
    measured."""
    if not measured:
        return ""
    largest = find_largest_change(measured)
    right = [setting for setting in measured if setting.cell.parity.verdict != "fail"]
    if all(setting.against is None for setting in measured):
        first = "Not measured beside the upload yet."
    elif largest:
        setting, change = largest
        rounds = numbers.counted(setting.against.rounds if setting.against else 0, "round")
        interval = f"95 % interval {change.interval}, {rounds}" if change.figures else rounds
        where = f"on {setting.cell.node} with {_describe_setting(setting.cell)}"
        first = f"{change.text or change.word} than {setting.upload} {where} (run {setting.run.pk}, {interval})."
    else:
        first = f"No decided change in {numbers.counted(len(right), 'measured cell')}." if right else ""
    return f"{first} {_describe_parity(measured)}".strip()


def _describe_parity(measured: Iterable["VariantCell"]) -> str:
    verdicts = [setting.cell.parity.verdict for setting in measured if setting.cell.parity.verdict in ("pass", "fail")]
    failed = verdicts.count("fail")
    if not verdicts:
        return ""
    if not failed:
        counted_cells = "the measured cell" if len(verdicts) == 1 else f"all {len(verdicts)} measured cells"
        return f"Outputs pass parity in {counted_cells}."
    return f"Outputs fail parity in {failed} of {numbers.counted(len(verdicts), 'measured cell')}."


OPEN = (MakingState.PENDING, MakingState.MAKING)


def _list_facts(variant: "Variant", version: "Version | None", made: Made) -> list[Fact]:
    derived, size = variant.derived, numbers.size(variant.artifact.bytes)
    digest = derived.sha256 if derived else ""
    note = "of the derived model and its external data: names and contents"
    facts = [
        Fact("Made from", str(version or ""), href=version_address(version) if version else ""),
        Fact("Recipe", made.name, is_name=True),
        Fact("Size", f"{size} → {numbers.size(derived.bytes)}" if derived else size),
        Fact("Quantised", made.quantised),
        Fact("Bundle digest", digest[:12], copy=digest, is_name=True, note=note),
        Fact("Created", at=variant.finished_at),
    ]
    return [fact for fact in facts if fact.is_known]


@page
def variant(request: HttpRequest, variant_id: int) -> HttpResponseBase:
    """Show how a variant was made, which operators are quantised, where its errors are, and what to try next. A variant
    that is the upload itself redirects to the model's page, if the reader may see a version with it."""
    user = signed_in_user(request)
    row = selectors.variant(user, variant_id)
    version = selectors.version_of_artifact(user, row.artifact)
    if row.recipe.is_identity and version is not None:
        # such a variant has no page of its own
        return redirect(version_address(version))
    measured = measured_cell(user, row)
    run, cell = measured or (None, None)
    arch, sets = processor_of(run, cell.node) if run is not None and cell is not None else ("", ())
    found = describe_variant(row, cell, arch=arch, instruction_sets=sets)
    rows, report = measured_cells_of(user, row), getattr(row, "report", None)
    has_accuracy = any(setting.cell.accuracy is not None for setting in rows)
    columns = [*COLUMNS, ACCURACY] if has_accuracy else COLUMNS
    largest = find_largest_change(rows)
    context = {
        "variant": row,
        "version": version,
        "facts": _list_facts(row, version, found),
        "made": found,
        "measured": Table.of("measured", "Measured cells of this variant", columns, rows),
        "change": f"{largest[1].text or largest[1].word} than {largest[0].upload}" if largest else "",
        "finding": write_finding(rows),
        "run": run,
        "cell": cell,
        "stayed": accuracies.describe_float_operators(cell) if cell else "",
        "is_open": row.state in OPEN or (report is not None and report.state in OPEN),
        "may_write": can_write(user, team=row.artifact.team),
    }
    name = "dashboard/parts/variant.html" if request.headers.get("HX-Target") == "variant" else "dashboard/variant.html"
    return render(request, name, context)


@action
def order_report(request: HttpRequest, variant_id: int) -> HttpResponseBase:
    """Order the analysis of errors by layer and of scales, and redirect to the variant's page. A refusal is raised."""
    row = selectors.variant(signed_in_user(request), variant_id)
    services.order_variant_report(variant=row, by=signed_in_user(request))
    return redirect("dashboard:variant", variant_id=row.pk)


@page
def serve_report(request: HttpRequest, variant_id: int) -> HttpResponseBase:
    """Serve the analysis as JSON to people who may write in the team, because scales are a part of the model. Raises
    NotAllowed for viewers, and Missing where there is no analysis yet."""
    row = selectors.variant(signed_in_user(request), variant_id)
    if not can_write(signed_in_user(request), team=row.artifact.team):
        raise NotAllowed(f"Only members can see the scales of variant {variant_id}: they are part of the model.")
    report = getattr(row, "report", None)
    if report is None or report.report_json is None:
        raise Missing(
            f"Variant {variant_id} has not been analysed yet.", hint="Start the analysis on the variant's page."
        )
    return JsonResponse(report.report_json)
