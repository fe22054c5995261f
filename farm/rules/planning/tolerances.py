"""Why a tolerance cannot be kept: it is of an output that the model does not have."""

from collections.abc import Collection

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason
from farm.rules.cells import scenarios
from farm.rules.cells.generate import Generate
from farm.rules.runtimes.engine import unsupported
from farm.rules.runtimes.models import ModelFacts


def refuse_unknown(tolerated: Collection[str], spec: CellSpec, model: ModelFacts) -> Reason | None:
    """Refuses the first tolerated name that is no output; what a decoder generates is judged by other names."""
    if not model.outputs or isinstance(scenarios.of_cell(spec), Generate):
        return None
    unknown = next((name for name in tolerated if name not in model.outputs), None)
    if unknown is None:
        return None
    few = ", ".join(model.outputs[:8]) + (", …" if len(model.outputs) > 8 else "")
    return unsupported(f"{model.name} has no output {unknown!r} for `tolerance`: it has {few}.")
