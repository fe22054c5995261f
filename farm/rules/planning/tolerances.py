"""Why a tolerance cannot be kept: it is of an output that the model does not have."""

from collections.abc import Collection, Sequence

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason
from farm.rules.cells import scenarios
from farm.rules.cells.generate import Generate
from farm.rules.runtimes.engine import unsupported
from farm.rules.runtimes.models import ModelFacts


def find_unknown_outputs(tolerated: Collection[str], models: Sequence[ModelFacts]) -> tuple[str, ...]:
    """List the tolerated names that no model has as an output; none where a model's outputs are not known."""
    if not all(model.outputs for model in models):
        return ()
    outputs = {name for model in models for name in model.outputs}
    return tuple(name for name in tolerated if name not in outputs)


def refuse_unknown(unknown: Sequence[str], spec: CellSpec, model: ModelFacts) -> Reason | None:
    """Refuse the first of the unknown outputs; what a decoder generates is judged by other names."""
    if not unknown or isinstance(scenarios.of_cell(spec), Generate):
        return None
    few = ", ".join(model.outputs[:8]) + (", …" if len(model.outputs) > 8 else "")
    return unsupported(f"{model.name} has no output {unknown[0]!r} for `tolerance`: it has {few}.")
