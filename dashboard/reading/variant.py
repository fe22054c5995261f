"""What the page of a variant shows: sizes, which operators were quantised, where the error is, what to try next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard.reading import accuracy
from farm.contract.document_cells import Cell
from farm.registry.selectors import coverage_of, quantised_report
from farm.registry.states import MakingState
from farm.rules.cells import recipes
from farm.rules.presenting.tables import Column, Entry, Head, Number, Prose, Table, counted, verdict_entry, written
from farm.rules.quality import variant_advice
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.registry.models import Variant
    from farm.workshop.inspection import Coverage, QuantisedReport, TensorError

COVERAGE_COLUMNS: tuple[Column["Coverage"], ...] = (
    Column("Operator", lambda one: Entry(one.op_type)),
    Number("all", lambda one: counted(one.all)),
    Number("quantised", lambda one: counted(one.all - len(one.kept_float))),
    Prose(
        "Kept in float",
        lambda one: Entry(", ".join(name or "(unnamed)" for name in one.kept_float[:50])),
        note="by the model's own names; a trace shows what a runtime makes of it",
    ),
)
ERROR_COLUMNS: tuple[Column["TensorError"], ...] = (
    Column("Tensor", lambda one: Entry(one.tensor, is_name=True)),
    Column("Node", lambda one: Entry(one.node, is_name=True)),
    Column("Type", lambda one: Entry(one.op_type)),
    Number(
        "signal left, dB",
        lambda one: written(one.model_db, _decibels),
        note="against the original, over the whole model so far; lower is worse",
    ),
    Number("by its own rounding, dB", lambda one: written(one.rounding_db, _decibels)),
)
SCALE_HEADS = (
    Head("Weight"),
    Head("scales", is_number=True),
    Head("smallest", is_number=True),
    Head("largest", is_number=True),
)
VARIANT_HEADS = (Head("Variant"), Head("State"), Head("size", is_number=True), Head("What was done", is_text=True))
MOST_ROWS = 200


@dataclass(frozen=True)
class Made:
    """A variant in words. `report` is the state of the look into it, empty where none was asked for."""

    name: str
    sentence: str
    quantised: str
    is_random: bool
    is_quantised: bool
    can_be_ranked: bool
    coverage: Table | None
    errors: Table | None
    scales: Table | None
    report: str
    report_problem: str
    advice: list[str]


def name_of(variant: "Variant") -> str:
    recipe = variant.recipe
    if recipe.is_program:
        return "program for PyTorch"
    opset = f"opset {recipe.opset}" if recipe.opset != "as-is" else ""
    parts = [opset, recipes.precision_words(recipe.precision, recipes.label(recipe))]
    return ", ".join(part for part in parts if part)


def made(variant: "Variant", cell: Cell | None, *, arch: str = "", instruction_sets: Sequence[str] = ()) -> Made:
    """All of it. `cell`: a measured cell of the variant, on a processor of this kind."""
    report = getattr(variant, "report", None)
    found = quantised_report(variant)
    coverage = coverage_of(variant)
    recipe = variant.recipe
    return Made(
        name=name_of(variant),
        sentence=_sentence(variant),
        quantised=_quantised(coverage),
        is_random=recipe.options.get(recipes.SAMPLES) == recipes.RANDOM,
        is_quantised=recipes.is_quantised(recipe.precision),
        can_be_ranked=recipe.precision in recipes.EIGHT_BITS,
        coverage=_coverage(coverage) if coverage else None,
        errors=_errors(found) if found else None,
        scales=_scales(found) if found and found.scales else None,
        report=report.state if report else "",
        report_problem=report.reason_text if report else "",
        advice=_advice(variant, found, cell, arch, instruction_sets),
    )


def variants(rows: Sequence["Variant"], address: Callable[[int], str]) -> Table:
    """Variants of a version with what became of them."""
    lines = [
        (
            Entry(name_of(row), href=address(row.pk)),
            verdict_entry(row.state),
            written(row.derived.bytes, numbers.size) if row.derived else Entry(),
            Entry(row.reason_text or " ".join(row.history[:1])),
        )
        for row in rows
        if not row.recipe.is_identity
    ]
    return Table("variants", "Variants made of this version", VARIANT_HEADS, lines)


def _sentence(variant: "Variant") -> str:
    if variant.state == MakingState.FAILED:
        return f"It could not be created: {variant.reason_text}"
    if variant.derived is None:
        return "Being created."
    before, after = variant.artifact.bytes, variant.derived.bytes
    saved = f"{numbers.size(before - after)} saved" if after <= before else f"{numbers.size(after - before)} more"
    share = numbers.share(after / before) if before else ""
    return f"{numbers.size(after)}, {share} of the upload’s {numbers.size(before)}: {saved}."


def _quantised(coverage: Sequence["Coverage"]) -> str:
    """`12 of 16 operators`; empty where nothing was to be quantised."""
    ran = sum(one.all - len(one.kept_float) for one in coverage)
    return f"{ran} of {numbers.counted(sum(one.all for one in coverage), 'operator')}" if coverage else ""


def _coverage(coverage: Sequence["Coverage"]) -> Table:
    return Table.of("coverage", "Operators quantised and not", COVERAGE_COLUMNS, coverage)


def _errors(report: "QuantisedReport") -> Table:
    layers = (report.errors or ())[:MOST_ROWS]
    return Table.of("errors", "Layers by quantisation error, worst first", ERROR_COLUMNS, layers)


def _scales(report: "QuantisedReport") -> Table:
    rows = [
        (
            Entry(name, is_name=True),
            counted(len(scales)),
            Entry(f"{min(scales):.3g}", min(scales)),
            Entry(f"{max(scales):.3g}", max(scales)),
        )
        for name, scales in list(report.scales.items())[:MOST_ROWS]
        if scales
    ]
    return Table("scales", "Scales of weights, one for all or one a channel", SCALE_HEADS, rows)


def _decibels(value: float | None) -> str:
    return "no error" if value is None else numbers.fixed(value, 1)


def _advice(
    variant: "Variant", report: "QuantisedReport | None", cell: Cell | None, arch: str, instruction_sets: Sequence[str]
) -> list[str]:
    recipe = variant.recipe
    if recipe.precision not in recipes.EIGHT_BITS:
        return []
    from_making = variant_advice.advice(
        recipe.precision,
        recipe.options,
        samples=variant.artifact.calibration_samples,
        layers=(report.errors or ()) if report else (),
        instruction_sets=instruction_sets,
    )
    return [*from_making, *(accuracy.advice(cell, arch=arch) if cell else [])]
