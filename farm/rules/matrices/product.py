"""The product of a matrix's axes as an array with a dimension for each axis."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from farm.base.grouping import group_by
from farm.rules.cells.values import Value, comparison_key

Selector = Mapping[str, Value]
Index = tuple[NDArray[np.intp], ...]


class Product:
    """All combinations of the values of some axes. `shape` has the number of values of each axis."""

    def __init__(self, axes: Mapping[str, Sequence[Value]]) -> None:
        self.shape = tuple(len(values) for values in axes.values())
        keys = {name: [comparison_key(value) for value in values] for name, values in axes.items()}
        # the indices of each value on its axis, by axis and comparison key; a value that is listed twice has two
        self.places = {name: group_by(range(len(texts)), texts.__getitem__) for name, texts in keys.items()}

    def index_of(self, selector: Selector) -> Index:
        """Return the numpy index of the points that have all values of a selector.

        Axes of the selector that the product lacks are ignored. A value that its axis does not have matches no point.
        """
        places_by_axis = [
            self.places[name].get(comparison_key(selector[name]), []) if name in selector else range(size)
            for name, size in zip(self.places, self.shape, strict=True)
        ]
        return np.ix_(*(np.array(places, dtype=np.intp) for places in places_by_axis))

    def mark_remaining(self, exclude: Iterable[Selector]) -> NDArray[np.bool_]:
        """Return an array with a dimension for each axis: True for the points that no selector excludes.

        A selector excludes by its axes that the product has; one that names only others excludes every point.
        """
        remains = np.ones(self.shape, dtype=np.bool_)
        # an entry that is repeated a thousand times is applied once
        different = {frozenset((name, comparison_key(value)) for name, value in rule.items()): rule for rule in exclude}
        for selector in different.values():
            remains[self.index_of(selector)] = False
        return remains
