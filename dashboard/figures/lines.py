"""The rows of long series: one line for a series on a node, its values, its level shifts and its alerts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dashboard import numbers


@dataclass(frozen=True, slots=True)
class Spot:
    """One value of a line. `low`, `high`: its interval; None where it has none. `round` is 0 for the pinned release."""

    at: datetime
    version: str
    ratio: float
    low: float | None
    high: float | None
    round: int
    run: int | None = None


@dataclass(frozen=True)
class Shift:
    """A level shift: the place of the new level's first value, and new / old."""

    place: int
    ratio: float


@dataclass(frozen=True)
class Mark:
    """An alert on a line: the place of the value that raised it."""

    place: int
    alert: int
    state: str


@dataclass(frozen=True)
class Line:
    """One series on one node. `name` is what tells it apart from the others of its watch."""

    series: str
    node: str
    label: str
    name: str
    spots: Sequence[Spot]
    shifts: Sequence[Shift] = field(default_factory=tuple)
    marks: Sequence[Mark] = field(default_factory=tuple)

    @property
    def key(self) -> str:
        """How the address names it."""
        return key_of(self.series, self.node)


def key_of(series: str, node: str) -> str:
    """How the address names a series on a node."""
    return f"{series[:12]}@{node}"


def shift_words(line: Line, shift: Shift) -> str:
    """A level shift by its size and the release it came with."""
    return f"{numbers.change(shift.ratio, 0.98, 1.02)} with {line.spots[shift.place].version}"
