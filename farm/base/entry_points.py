"""Loads the entries that installed packages add to tables of ours, as entry points of packaging metadata.

Farm, node and client load them alike, each where the package is installed beside them. Loading an entry imports its
module. A malformed entry is left out, and a sentence says why, in the log and to people who name the entry.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)
Entry = TypeVar("Entry")


class EntryError(ValueError):
    """An entry cannot be used. The message is the end of a sentence about it."""


@dataclass(frozen=True, slots=True)
class InstalledEntries(Generic[Entry]):
    """Entries from installed packages: those that are used, and for each refused name a sentence that says why."""

    entries: tuple[Entry, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group(Generic[Entry]):
    """A table that packages may add entries to."""

    # the entry-point group
    name: str
    # the class of an entry
    shape: type[Entry]
    # the noun for an entry in a sentence
    called: str
    # returns the entry as it is used, given those before it, or raises EntryError
    checked: Callable[[Entry, Sequence[Entry]], Entry]

    def installed(self) -> InstalledEntries[Entry]:
        """Load the entries of the packages installed here, and log a warning for each that is refused."""
        outside = self.read(entry_points(group=self.name))
        for sentence in outside.refused.values():
            logger.warning("%s", sentence)
        return outside

    def read(self, points: Iterable[EntryPoint]) -> InstalledEntries[Entry]:
        """Load these entry points in the order of their names; those that cannot be used are in `refused`."""
        entries: list[Entry] = []
        refused: dict[str, str] = {}
        for point in sorted(points):
            try:
                entries.append(self.checked(self._load(point), entries))
            except EntryError as problem:
                origin = f"of {point.dist.name} " if point.dist is not None else ""
                refused[point.name.lower()] = f"The {self.called} {point.name!r} {origin}is left out: {problem}"
        return InstalledEntries(tuple(entries), refused)

    def _load(self, point: EntryPoint) -> Entry:
        try:
            entry = point.load()
        except Exception as error:  # other people's modules may raise anything
            raise EntryError(f"{point.value} cannot be imported ({type(error).__name__}: {error}).") from error
        if not isinstance(entry, self.shape):
            shape = self.shape.__name__
            article = "an" if shape[0] in "AEIOU" else "a"
            raise EntryError(f"{point.value} is a {type(entry).__name__} and has to be {article} {shape}.")
        return entry


def raise_first_problem(problems: Iterable[str]) -> None:
    for problem in problems:
        raise EntryError(problem)
