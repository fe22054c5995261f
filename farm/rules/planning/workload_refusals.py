"""Refuses cells whose batch, sizes, inputs or tolerances do not fit the model. Each reason names the way out."""

from collections.abc import Collection, Sequence
from functools import partial

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.cells import fills, scenarios
from farm.rules.cells.generate import Generate
from farm.rules.planning.refusals import RuleContext
from farm.rules.runtimes.engine import unsupported
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.nearest import describe_nearest_word


def refuse_batch(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse a batch that was asked for if the model has none, or if the model or given inputs fix another one."""
    model, asked = context.model, context.asked_batch
    if asked is None:
        return None
    if model.batch is None:
        text = (
            f"Nothing shows a batch that all inputs of {model.name} begin with: leave batch out, and set sizes with "
            "--shape NAME=SIZE, or `shapes` in a matrix."
        )
        return Reason(code=ReasonCode.NO_BATCH, text=text)
    if isinstance(model.batch, int) and asked != model.batch:
        text = f"{model.name} has the fixed batch {model.batch}: batch {asked} needs a dynamic first dimension."
        return Reason(code=ReasonCode.FIXED_BATCH, text=text)
    if model.inputs_batch is not None and asked != model.inputs_batch:
        text = f"The given inputs have batch {model.inputs_batch}: batch {asked} needs other inputs, or none."
        return Reason(code=ReasonCode.FIXED_BATCH, text=text)
    return None


def refuse_shapes(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse a size for a dimension that the model lacks, that is its batch, or whose size is already fixed."""
    for name, size in spec.workload.shapes.items():
        problem = _find_shape_problem(name, size, context)
        if problem is not None:
            return unsupported(problem)
    return None


def refuse_by_scenario(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse what a scenario cannot do with this model, runtime or provider."""
    shape_problem = partial(_find_shape_problem, context=context)
    problem = next(scenarios.of_cell(spec).refusals(spec, context.model, shape_problem=shape_problem), None)
    return None if problem is None else unsupported(problem)


def _find_shape_problem(name: str, size: int, context: RuleContext) -> str | None:
    model = context.model
    if name == model.batch and size == 0:
        return f"The dimension {name!r} is the batch, of which there is at least 1: leave it out of `shapes`."
    if name == model.batch:
        return f"The dimension {name!r} is the batch and is {context.asked_batch} already: leave it out of `shapes`."
    if name not in model.dims:
        dynamic = [dim for dim, fixed_size in model.dims.items() if fixed_size is None]
        dimensions = f"it has {', '.join(dynamic)}" if dynamic else "all its dimensions are fixed"
        return f"{model.name} has no dynamic dimension {name!r}{describe_nearest_word(name, dynamic)}: {dimensions}."
    size_of_inputs = model.sizes.get(name)
    if model.inputs_sha256 is not None and size_of_inputs not in (None, size):
        return f"The given inputs have {name} {size_of_inputs}: {size} needs other inputs, or none."
    fixed_size = model.dims[name]
    if fixed_size not in (None, size):
        return (
            f"The dimension {name!r} of {model.name} is fixed at {fixed_size}: {size} needs a model where it is "
            "dynamic."
        )
    return None


def refuse_inputs(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse values for an input that is given, that does not exist, or whose type does not hold them.

    Models whose inputs are not known are not checked.
    """
    model = context.model
    if model.inputs_sha256 is not None and context.asked_inputs:
        name = next(iter(context.asked_inputs))
        return unsupported(
            f"The input {name!r} is among the given ones: leave `inputs` out of the matrix, or give none."
        )
    if not model.inputs:
        return None
    for name, text in spec.workload.inputs.items():
        problem = _find_input_problem(name, text, model)
        if problem is not None:
            return unsupported(problem)
    return None


def _find_input_problem(name: str, text: str, model: ModelFacts) -> str | None:
    dtypes = {port.name: port.dtype for port in model.inputs}
    if name not in dtypes:
        nearest = describe_nearest_word(name, list(dtypes))
        return f"{model.name} has no input {name!r}{nearest}: it has {', '.join(dtypes)}."
    fill = fills.parse(text)
    if fill.dimension and fill.dimension not in model.sizes:
        return (
            f"The input {name!r} cannot be the size of {fill.dimension!r}: it is not a dynamic dimension of the model."
        )
    reason = fills.misfit_reason(fill, dtypes[name])
    return None if reason is None else f"The input {name!r} takes {dtypes[name]} and was to be {text}: {reason}"


def refuse_without_inputs(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse a model that ran with none of the inputs tried at inspection, unless the matrix gives sizes or inputs."""
    model = context.model
    if not model.inputs_problem or model.inputs_sha256 is not None or context.asked_sizes or context.asked_inputs:
        return None
    return Reason(code=ReasonCode.INFERENCE_FAILED, text=model.inputs_problem)


def find_unknown_outputs(tolerated: Collection[str], models: Sequence[ModelFacts]) -> tuple[str, ...]:
    """List the outputs that have a tolerance, but that no model has; none if the outputs of a model are unknown."""
    if not all(model.outputs for model in models):
        return ()
    outputs = {name for model in models for name in model.outputs}
    return tuple(name for name in tolerated if name not in outputs)


def refuse_tolerances(spec: CellSpec, context: RuleContext) -> Reason | None:
    """Refuse a tolerance for an output that the model lacks; what a decoder generates is judged by other names."""
    if not context.unknown_outputs or isinstance(scenarios.of_cell(spec), Generate):
        return None
    outputs = context.model.outputs
    shown = ", ".join(outputs[:8]) + (", …" if len(outputs) > 8 else "")
    return unsupported(
        f"{context.model.name} has no output {context.unknown_outputs[0]!r} for `tolerance`: it has {shown}."
    )
