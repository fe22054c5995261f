"""Makes sets of inputs from the given ones, with other values and other sizes of dynamic dimensions.

Values are drawn by the seed from those that each input has, so that tokens stay tokens and masks stay masks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from worker.runner.arrays import Arrays
from worker.runner.parity import Array

# how `made` fills an input that is not drawn: consecutive positions, the size of a dimension, values below that size,
# or whole rows of the given input
POSITIONS, SIZE, BELOW, BOXES = "positions", "size", "below", "boxes"


@dataclass(frozen=True)
class InputSetOptions:
    """Options of the sets.

    `shapes` lists the sizes of dimensions by name. A size that is `random` is drawn between the smallest and the
    largest of the others, from 1 where there is one other. `made` says how inputs that are not drawn are filled, by
    name.
    """

    count: int = 8
    seed: int = 0
    shapes: Mapping[str, Sequence[object]] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class InputSet:
    """One set of inputs. `label` has the sizes of the dimensions that change, as `sequence=16`; empty for none."""

    arrays: Arrays
    label: str = ""


def make_input_sets(inputs: Arrays, dims: Mapping[str, Sequence[object]], options: InputSetOptions) -> list[InputSet]:
    """Make the sets, the same for the same seed. `dims` lists each input's dimensions, dynamic ones by name.

    There are `options.count` sets, or as many as the longest list of sizes in `options.shapes` has. The given `inputs`
    are not one of them. An input without elements, or that is the size of a dimension that does not change, stays as it
    is. Raises ValueError for sizes that are all `random`.
    """
    dice = np.random.default_rng(np.random.SeedSequence([options.seed % 2**32, 0xF4E5]))
    count = max(options.count, *(len(sizes) for sizes in options.shapes.values())) if options.shapes else options.count
    input_sets = []
    for number in range(count):
        sizes = {name: _choose_size(some, number, dice) for name, some in sorted(options.shapes.items())}
        arrays = {
            name: _draw(array, dims.get(name, ()), sizes, options.made.get(name, ""), dice)
            for name, array in inputs.items()
        }
        input_sets.append(InputSet(arrays, " ".join(f"{name}={size}" for name, size in sizes.items())))
    return input_sets


def _choose_size(sizes: Sequence[object], number: int, dice: np.random.Generator) -> int:
    chosen = sizes[number % len(sizes)]
    if isinstance(chosen, int):
        return chosen
    numbers = [size for size in sizes if isinstance(size, int)]
    low = min(numbers) if len(numbers) > 1 else 1
    return int(dice.integers(low, max(numbers) + 1))


def _draw(
    array: Array, dims: Sequence[object], sizes: Mapping[str, int], fill: str, dice: np.random.Generator
) -> Array:
    named = zip(dims, array.shape, strict=True) if len(dims) == array.ndim else ((None, size) for size in array.shape)
    shape = tuple(sizes.get(dim, size) if isinstance(dim, str) else size for dim, size in named)
    kind, _, dimension = fill.partition("@")[0].partition(":")
    if kind == POSITIONS and shape:
        # positions begin at the size of the named dimension or, if that is unchanged, at the input's first position
        start = sizes.get(dimension, int(array.flat[0]) if array.size and dimension else 0)
        return np.array(np.broadcast_to(np.arange(start, start + shape[-1], dtype=array.dtype), shape), order="C")
    if kind == SIZE and dimension in sizes:
        return np.full(shape, sizes[dimension], dtype=array.dtype)
    if array.size == 0 or kind == SIZE:
        return array
    if kind == BOXES:
        rows = array.reshape(-1, shape[-1])
        return rows[dice.integers(0, len(rows), shape[:-1])]
    # np.asarray, because the draw for a scalar input is no array
    drawn = np.asarray(array.reshape(-1)[dice.integers(0, array.size, shape)])
    return drawn % max(1, sizes[dimension]) if kind == BELOW and dimension in sizes else drawn
