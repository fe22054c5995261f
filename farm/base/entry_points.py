"""Entries that installed packages add to a table of ours, as entry points: declared as ours are.

Farm, node and client read them alike, each where the package is installed beside them. Reading one is an import. One
that is malformed stops nobody: a sentence says why it is left out, in the log and to whoever asks for it.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)
Entry = TypeVar("Entry")


class EntryError(ValueError):
    """An entry that cannot be taken. The message is the end of a sentence about it."""


@dataclass(frozen=True, slots=True)
class Outside(Generic[Entry]):
    """`entries` that were taken, and by the name of each other one a sentence that says why it was not."""

    entries: tuple[Entry, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group(Generic[Entry]):
    """A table that packages may add to.

    `name`: of the entry points. `shape`: what an entry is. `called`: what one is in a sentence. `checked`: the entry as
    it is taken, beside those that were taken before it; raises EntryError.
    """

    name: str
    shape: type[Entry]
    called: str
    checked: Callable[[Entry, Sequence[Entry]], Entry]

    def installed(self) -> Outside[Entry]:
        """The entries of the packages that are installed here."""
        found = self.read(entry_points(group=self.name))
        for sentence in found.refused.values():
            logger.warning("%s", sentence)
        return found

    def read(self, points: Iterable[EntryPoint]) -> Outside[Entry]:
        """The entries that these points give, in the order of their names; the first one of a name has it."""
        taken: list[Entry] = []
        refused: dict[str, str] = {}
        for point in sorted(points):
            try:
                taken.append(self.checked(self._loaded(point), taken))
            except EntryError as problem:
                by = f"of {point.dist.name} " if point.dist is not None else ""
                refused[point.name.lower()] = f"The {self.called} {point.name!r} {by}is left out: {problem}"
        return Outside(tuple(taken), refused)

    def _loaded(self, point: EntryPoint) -> Entry:
        try:
            given = point.load()
        except Exception as error:  # whatever other people's modules raise
            raise EntryError(f"{point.value} cannot be imported ({type(error).__name__}: {error}).") from error
        if not isinstance(given, self.shape):
            shape = self.shape.__name__
            article = "an" if shape[0] in "AEIOU" else "a"
            raise EntryError(f"{point.value} is a {type(given).__name__} and has to be {article} {shape}.")
        return given


def raise_first_problem(problems: Iterable[str]) -> None:
    for problem in problems:
        raise EntryError(problem)
