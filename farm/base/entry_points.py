"""Loads the plug-ins that installed packages add to our tables, by the entry points of packaging metadata.

Farm, node and client each load the entries of the packages in their own environment. Loading an entry imports its
module. A malformed entry is left out; the log says why, and so do answers to people who name the entry.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)
Entry = TypeVar("Entry")


class EntryError(ValueError):
    """An entry cannot be used. The message completes the sentence `The metric 'x' is left out: …`."""


@dataclass(frozen=True, slots=True)
class InstalledEntries(Generic[Entry]):
    """Entries from installed packages. `refused` maps the lower-case name of each unused entry to a sentence why."""

    entries: tuple[Entry, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group(Generic[Entry]):
    """A table that packages may add entries to, as one group of entry points."""

    # the name of the group
    name: str
    entry_type: type[Entry]
    # the noun for an entry in messages
    noun: str
    # called with an entry and those accepted before it: returns the entry as it is used, or raises EntryError
    accept: Callable[[Entry, Sequence[Entry]], Entry]

    def load_installed(self) -> InstalledEntries[Entry]:
        """Load the entries of the packages installed here, and log a warning for each that is refused."""
        installed = self.load(entry_points(group=self.name))
        for sentence in installed.refused.values():
            logger.warning("%s", sentence)
        return installed

    def load(self, points: Iterable[EntryPoint]) -> InstalledEntries[Entry]:
        """Load these entry points in the order of their names; those that cannot be used are in `refused`."""
        entries: list[Entry] = []
        refused: dict[str, str] = {}
        for point in sorted(points):
            try:
                entries.append(self.accept(self._load_entry(point), entries))
            except EntryError as problem:
                origin = f"of {point.dist.name} " if point.dist is not None else ""
                refused[point.name.lower()] = f"The {self.noun} {point.name!r} {origin}is left out: {problem}"
        return InstalledEntries(tuple(entries), refused)

    def _load_entry(self, point: EntryPoint) -> Entry:
        try:
            entry = point.load()
        except Exception as error:  # other people's modules may raise anything
            raise EntryError(f"{point.value} cannot be imported ({type(error).__name__}: {error}).") from error
        if not isinstance(entry, self.entry_type):
            expected = self.entry_type.__name__
            article = "an" if expected[0] in "AEIOU" else "a"
            raise EntryError(f"{point.value} is a {type(entry).__name__} and has to be {article} {expected}.")
        return entry


def raise_first_problem(problems: Iterable[str]) -> None:
    """Raise EntryError with the first of these sentences; do nothing where there is none."""
    for problem in problems:
        raise EntryError(problem)
