"""Values by what they share."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)


def group_by(values: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """Every value under its key, in order, wherever it stands among the others."""
    groups: dict[Key, list[Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups
