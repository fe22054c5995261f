"""Chooses the size of every dynamic dimension in a workload, and fills shapes with these sizes by name.

`fill_shape` raises KeyError for a name without a size.
"""

from collections.abc import Mapping
from typing import TypedDict

from farm.rules.runtimes.nearest import nearest_word
from farm.workshop.problems import Problem

_SEQUENCE = 64
_IMAGE_SIDE = 224
_IMAGE_WORDS = ("height", "width")
_IMAGE_NAMES = {"h", "w"}


class DynamicDims(TypedDict):
    """The part of a model's signature that is needed here: its batch, and the names of all dynamic dimensions."""

    batch: int | str | None
    dims: list[str]


def resolve_sizes(facts: DynamicDims, *, batch: int | None, shapes: Mapping[str, int]) -> dict[str, int]:
    """Choose the size of every dynamic dimension, by name.

    `shapes` holds the sizes that the user chose. Of the other dimensions, the batch gets `batch`, or 1 if that is None,
    those named like an image's side get 224, and the rest get 64. Raises Problem with the code fixed_batch or no_batch
    if the model does not take `batch`, and unknown_dim for a name in `shapes` that the model does not have.
    """
    chosen, model_batch = dict(shapes), facts["batch"]
    if batch is not None:
        _check_batch(batch, model_batch)
        if isinstance(model_batch, str):
            chosen.setdefault(model_batch, batch)
    dims = list(facts["dims"])
    for name in chosen:
        if name not in dims:
            if nearest := nearest_word(name, dims):
                hint = f"; did you mean {nearest!r}?"
            else:
                hint = f": it has {', '.join(dims)}." if dims else ": none."
            raise Problem("unknown_dim", f"The model has no dynamic dimension {name!r}{hint}")
    if isinstance(model_batch, str):
        chosen.setdefault(model_batch, 1)
    return {name: chosen.get(name, _guess_size(name)) for name in dims}


def _guess_size(name: str) -> int:
    lowered = name.lower()
    is_image = lowered in _IMAGE_NAMES or any(word in lowered for word in _IMAGE_WORDS)
    return _IMAGE_SIDE if is_image else _SEQUENCE


def fill_shape(shape: list[int | str], sizes: Mapping[str, int]) -> list[int]:
    return [dim if isinstance(dim, int) else sizes[dim] for dim in shape]


def _check_batch(batch: int, model_batch: int | str | None) -> None:
    if model_batch is None:
        text = (
            "Nothing shows a batch that all inputs of the model begin with: leave batch out, and set sizes with "
            "--shape NAME=SIZE, or `shapes` in a matrix."
        )
        raise Problem("no_batch", text)
    if isinstance(model_batch, int) and model_batch != batch:
        text = f"The model has the fixed batch {model_batch}: batch {batch} needs"
        raise Problem("fixed_batch", f"{text} an export with a dynamic first dimension.")
