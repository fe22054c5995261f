"""The product of a matrix's axes as an array: one dimension an axis, one element a value."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from farm.base.grouping import group_by
from farm.rules.cells.values import Value, comparison_key

Selector = Mapping[str, Value]
Index = tuple[NDArray[np.intp], ...]


class Product:
    """`places`: where each value stands on its axis, by axis and `key_of`; one that is listed twice has two."""

    def __init__(self, axes: Mapping[str, Sequence[Value]]) -> None:
        self.shape = tuple(len(values) for values in axes.values())
        keys = {name: [comparison_key(value) for value in values] for name, values in axes.items()}
        self.places = {name: group_by(range(len(own)), own.__getitem__) for name, own in keys.items()}

    def index_of(self, selector: Selector) -> Index:
        """Find the numpy index of the points that match all declared axes of a selector."""
        chosen = [
            self.places[name].get(comparison_key(selector[name]), []) if name in selector else range(size)
            for name, size in zip(self.places, self.shape, strict=True)
        ]
        return np.ix_(*(np.array(places, dtype=np.intp) for places in chosen))

    def without(self, exclude: Iterable[Selector]) -> NDArray[np.bool_]:
        """Mark the points of the product that no selector excludes."""
        remains = np.ones(self.shape, dtype=np.bool_)
        # the same entry a thousand times is one
        different = {frozenset((name, comparison_key(value)) for name, value in rule.items()): rule for rule in exclude}
        for selector in different.values():
            remains[self.index_of(selector)] = False
        return remains
