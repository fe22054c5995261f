"""Groups values by a key."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)


def group_by(values: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """Group values by key; groups, and the values in them, keep the order of `values`, which need not be sorted."""
    groups: dict[Key, list[Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups
