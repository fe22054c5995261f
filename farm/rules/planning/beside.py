"""Makes the inputs of several models in one block the same, where the models take the same inputs."""

from collections.abc import Sequence

from farm.rules.runtimes.models import ModelFacts, ModelInput


def describe_input_difference(model: ModelFacts, other: ModelFacts) -> str:
    """Describe the first difference between the inputs of two models; empty where both take the same."""
    ports, other_ports = ({port.name: port for port in side.inputs} for side in (model, other))
    for name in dict.fromkeys([*ports, *other_ports]):
        if name not in ports or name not in other_ports:
            has, lacks = (model, other) if name in ports else (other, model)
            return f"{has.name} takes {name!r} and {lacks.name} does not"
        if not _take_same_array(ports[name], other_ports[name]):
            types = " and ".join(f"{port.dtype}{list(port.shape)}" for port in (ports[name], other_ports[name]))
            return f"{name!r} is {types}"
    return ""


def align_inputs(model: ModelFacts, other: ModelFacts) -> tuple[ModelFacts, ModelFacts]:
    """Return copies of both models with the same batch, sizes and kinds of input values.

    Both must take the same inputs. The first model's sizes and kinds of values hold for the other. Where only one fixes
    the batch, it holds for both.
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
    """Return all models, one at least, with the inputs of each aligned to the first model's where it takes the same.

    The second value describes how the inputs of the first model that takes other ones differ; it is empty where all
    take the same.
    """
    first, *others = models
    first_difference = ""
    aligned: list[ModelFacts] = []
    for other in others:
        difference = describe_input_difference(first, other)
        if not difference:
            first, other = align_inputs(first, other)
        aligned.append(other)
        first_difference = first_difference or difference
    return [first, *aligned], first_difference


def _take_same_array(port: ModelInput, other: ModelInput) -> bool:
    return (
        port.dtype == other.dtype
        and len(port.shape) == len(other.shape)
        and all(
            size == other_size or isinstance(size, str) or isinstance(other_size, str)
            for size, other_size in zip(port.shape, other.shape, strict=True)
        )
    )


def _list_sizes(model: ModelFacts, other: ModelFacts) -> dict[str, int]:
    """Find the first model's size along each dynamic dimension of the other's inputs."""
    other_shapes = {port.name: port.shape for port in other.inputs}
    sizes: dict[str, int] = {}
    for port in model.inputs:
        for dimension, name in zip(port.shape, other_shapes.get(port.name, ()), strict=False):
            size = dimension if isinstance(dimension, int) else model.sizes.get(dimension)
            if isinstance(name, str) and size is not None:
                sizes[name] = size
    return sizes
