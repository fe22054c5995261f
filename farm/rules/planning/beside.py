"""Makes the inputs of several models in one block the same, where the models take the same inputs."""

from collections.abc import Sequence

from farm.rules.runtimes.models import ModelFacts, ModelInput


def describe_input_difference(model: ModelFacts, other: ModelFacts) -> str:
    """Describe the first difference between the inputs of two models; returns an empty string where both take the
    same."""
    mine, theirs = ({port.name: port for port in side.inputs} for side in (model, other))
    for name in [*mine, *(name for name in theirs if name not in mine)]:
        if name not in mine or name not in theirs:
            has, lacks = (model, other) if name in mine else (other, model)
            return f"{has.name} takes {name!r} and {lacks.name} does not"
        if not _takes_the_same(mine[name], theirs[name]):
            kinds = " and ".join(f"{port.dtype}{list(port.shape)}" for port in (mine[name], theirs[name]))
            return f"{name!r} is {kinds}"
    return ""


def align_inputs(model: ModelFacts, other: ModelFacts) -> tuple[ModelFacts, ModelFacts]:
    """Return both models with the same batch, sizes and kinds of input values.

    Both must take the same inputs. The first model's choice holds where both leave something open.
    """
    fills = {port.name: port.fill for port in model.inputs}
    common = {
        "inputs": tuple(port.model_copy(update={"fill": fills.get(port.name, port.fill)}) for port in other.inputs),
        "sizes": {**other.sizes, **_list_sizes(model, other)},
    }
    batch = next((side.batch for side in (model, other) if isinstance(side.batch, int)), None)
    first, second = (
        {"inputs_batch": batch} if batch is not None and isinstance(side.batch, str) else {} for side in (model, other)
    )
    return model.model_copy(update=first), other.model_copy(update={**common, **second})


def align_models(models: Sequence[ModelFacts]) -> tuple[list[ModelFacts], str]:
    """Return all models, with the inputs of each aligned to the first model's where it takes the same ones.

    The second value describes how the inputs of the first model that takes other ones differ; it is empty where all
    take the same.
    """
    first, *others = models
    apart = ""
    aligned: list[ModelFacts] = []
    for other in others:
        if (how := describe_input_difference(first, other)) and not apart:
            apart = how
        if not how:
            first, other = align_inputs(first, other)
        aligned.append(other)
    return [first, *aligned], apart


def _takes_the_same(port: ModelInput, other: ModelInput) -> bool:
    """Whether the same array fits both ports."""
    return (
        port.dtype == other.dtype
        and len(port.shape) == len(other.shape)
        and all(
            a == b or isinstance(a, str) or isinstance(b, str) for a, b in zip(port.shape, other.shape, strict=True)
        )
    )


def _list_sizes(model: ModelFacts, other: ModelFacts) -> dict[str, int]:
    """Find the first model's size along each dynamic dimension of the other's inputs."""
    theirs = {port.name: port for port in other.inputs}
    sizes: dict[str, int] = {}
    for port in model.inputs:
        for mine, name in zip(port.shape, theirs[port.name].shape if port.name in theirs else (), strict=False):
            size = mine if isinstance(mine, int) else model.sizes.get(mine)
            if isinstance(name, str) and size is not None:
                sizes[name] = size
    return sizes
