"""Builds the fields of a CellSpec from the values of a matrix, and those of a document's cell from a CellSpec."""

from collections.abc import Mapping

from farm.contract.cells import CellSpec
from farm.rules.cells import recipes, scenarios
from farm.rules.cells.axes import FIELD_AXES
from farm.rules.cells.axis import Part
from farm.rules.cells.session_sets import OPTIONS
from farm.rules.cells.values import Value


def part_fields(values: Mapping[str, Value], part: Part) -> dict[str, object]:
    """Return the fields of this part of a CellSpec that a point sets; `values` are those of the point by axis."""
    return {axis.field: values[axis.name] for axis in FIELD_AXES if axis.part == part and axis.name in values}


def document_fields(spec: CellSpec, *, opset: int | None, session: str, sustained_s: float = 0.0) -> dict[str, object]:
    """Build the fields of a document's cell that say what it measures.

    `opset` is that of the model, for a cell that keeps it; None if it is not known. `session` is the name of the cell's
    session set, and `sustained_s` the seconds for which its block goes on after the rounds.
    """
    return {
        "digest": spec.digest,
        "opset": spec.recipe.opset if isinstance(spec.recipe.opset, int) else opset,
        "runtime": str(spec.runtime),
        "provider": spec.provider,
        "provider_options": spec.provider_options,
        "batch": spec.workload.batch,
        "shapes": spec.workload.shapes,
        "precision": spec.recipe.precision,
        "recipe": recipes.describe_recipe(spec.recipe),
        "session": {"name": session, **spec.session.model_dump(mode="json", include=OPTIONS)},
        "hardware": spec.hardware,
        **{axis.field: axis.value_in(spec) for axis in FIELD_AXES},
        "scenario": scenarios.recorded_text(spec.workload, sustained_s=sustained_s),
    }
