"""A model beside another in one block: both are given the same inputs, where they take the same."""

from collections.abc import Sequence

from farm.rules.runtimes.models import ModelFacts, ModelInput


def difference(model: ModelFacts, other: ModelFacts) -> str:
    """How the inputs of two models differ, by the first that does; empty where both take the same."""
    mine, theirs = ({port.name: port for port in side.inputs} for side in (model, other))
    for name in [*mine, *(name for name in theirs if name not in mine)]:
        if name not in mine or name not in theirs:
            has, lacks = (model, other) if name in mine else (other, model)
            return f"{has.name} takes {name!r} and {lacks.name} does not"
        if not _takes_the_same(mine[name], theirs[name]):
            kinds = " and ".join(f"{port.dtype}{list(port.shape)}" for port in (mine[name], theirs[name]))
            return f"{name!r} is {kinds}"
    return ""


def fed_alike(model: ModelFacts, other: ModelFacts) -> tuple[ModelFacts, ModelFacts]:
    """Two models that take the same, with the same batch, sizes and kinds of values: those of the first where it may
    choose."""
    fills = {port.name: port.fill for port in model.inputs}
    found = {
        "inputs": tuple(port.model_copy(update={"fill": fills.get(port.name, port.fill)}) for port in other.inputs),
        "sizes": {**other.sizes, **_sizes(model, other)},
    }
    batch = next((side.batch for side in (model, other) if isinstance(side.batch, int)), None)
    first, second = (
        {"inputs_batch": batch} if batch is not None and isinstance(side.batch, str) else {} for side in (model, other)
    )
    return model.model_copy(update=first), other.model_copy(update={**found, **second})


def side_by_side(models: Sequence[ModelFacts]) -> tuple[list[ModelFacts], str]:
    """Models of one block, each that takes what the first does fed alike; how the inputs of another differ, if so."""
    first, *others = models
    apart = ""
    found: list[ModelFacts] = []
    for other in others:
        if (how := difference(first, other)) and not apart:
            apart = how
        if not how:
            first, other = fed_alike(first, other)
        found.append(other)
    return [first, *found], apart


def _takes_the_same(port: ModelInput, other: ModelInput) -> bool:
    """Whether the same array fits both."""
    return (
        port.dtype == other.dtype
        and len(port.shape) == len(other.shape)
        and all(
            a == b or isinstance(a, str) or isinstance(b, str) for a, b in zip(port.shape, other.shape, strict=True)
        )
    )


def _sizes(model: ModelFacts, other: ModelFacts) -> dict[str, int]:
    """What the first model has along each dynamic dimension of the other's inputs."""
    theirs = {port.name: port for port in other.inputs}
    found: dict[str, int] = {}
    for port in model.inputs:
        for mine, name in zip(port.shape, theirs[port.name].shape if port.name in theirs else (), strict=False):
            size = mine if isinstance(mine, int) else model.sizes.get(mine)
            if isinstance(name, str) and size is not None:
                found[name] = size
    return found
