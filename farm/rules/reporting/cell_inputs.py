"""Lists the inputs of a cell: their shapes as numbers, and how their values were made."""

from collections.abc import Mapping

from farm.contract import document_cells as doc_cells
from farm.contract.cells import CellSpec, Workload
from farm.rules.cells import fills
from farm.rules.runtimes.models import ModelFacts, ModelInput


def list_inputs(spec: CellSpec, model: ModelFacts) -> list[doc_cells.Input]:
    """Return the inputs of a cell; empty where inspection did not list them, or a dimension's size is not known."""
    # Given inputs keep the sizes that they came with, even where a refused cell asks for others.
    is_given = spec.workload.inputs_sha256 is not None
    sizes = {**spec.workload.shapes, **model.sizes} if is_given else {**model.sizes, **spec.workload.shapes}
    batch = model.inputs_batch if is_given and model.inputs_batch else spec.workload.batch
    if isinstance(model.batch, str) and batch is not None:
        sizes[model.batch] = batch
    if any(isinstance(dim, str) and dim not in sizes for port in model.inputs for dim in port.shape):
        return []
    return [_make_input(port, spec.workload, sizes) for port in model.inputs]


def _make_input(port: ModelInput, workload: Workload, sizes: Mapping[str, int]) -> doc_cells.Input:
    is_given = workload.inputs_sha256 is not None
    fill = workload.inputs.get(port.name, fills.default_fill(port.dtype))
    return doc_cells.Input(
        name=port.name,
        dtype=port.dtype,
        shape=[dim if isinstance(dim, int) else sizes[dim] for dim in port.shape],
        made_by="given with the model" if is_given else fills.describe_fill(fill, seed=workload.seed),
        fill="" if is_given else fill,
    )
