"""The rows of long series: one line for a series on a node, its values, its level shifts and its alerts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from farm.rules.wording import numbers


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
    """One series on one node. `name` is what tells it apart from the others of its watch; `words`: of more and less."""

    series: str
    node: str
    label: str
    name: str
    spots: Sequence[Spot]
    shifts: Sequence[Shift] = field(default_factory=tuple)
    marks: Sequence[Mark] = field(default_factory=tuple)
    words: numbers.Words = numbers.TIMES

    def change(self, spot: Spot) -> str:
        """How far a value is from the pinned release: `19 % slower`."""
        return numbers.change(spot.ratio, spot.low, spot.high, words=self.words)

    def interval(self, spot: Spot) -> str:
        """Between which changes it lies."""
        return numbers.change_interval(spot.low, spot.high, ratio=spot.ratio, words=self.words)

    @property
    def key(self) -> str:
        """How the address names it."""
        return key_of(self.series, self.node)


@dataclass(frozen=True)
class Across:
    """What lines are drawn over: `releases` in their order or, without any, time. `rounds`: a spot of each round that
    any of the lines was measured in."""

    releases: Sequence[str]
    rounds: Mapping[int, Spot]

    def x(self, spot: Spot) -> str:
        """Where a value stands."""
        return str(spot.version) if self.releases else f"{spot.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"

    def with_gaps(self, line: "Line", places: Sequence[int]) -> list[tuple[str, int | None, Spot | None]]:
        """The values at these places of a line; without place and value where others stand and it has none."""
        known = [(self.x(line.spots[place]), place, line.spots[place]) for place in places]
        standing = set(self.releases) - {spot.version for spot in line.spots}
        if not self.releases:
            missing = [self.rounds[number] for number in self.rounds.keys() - {spot.round for spot in line.spots}]
            standing = {self.x(spot) for spot in missing if line.spots[0].at < spot.at < line.spots[-1].at}
        order = {version: number for number, version in enumerate(self.releases)}
        points = [*known, *((x, None, None) for x in standing)]
        points.sort(key=lambda point: (order.get(point[0], 0), point[0]))
        # one gap breaks a line, however long it is
        return [point for before, point in pairwise([("", 0, None), *points]) if (before[1], point[1]) != (None, None)]


def key_of(series: str, node: str) -> str:
    """How the address names a series on a node."""
    return f"{series[:12]}@{node}"


def shift_words(line: Line, shift: Shift) -> str:
    """A level shift by its size and the release it came with."""
    return f"{numbers.change(shift.ratio, 0.98, 1.02, words=line.words)} with {line.spots[shift.place].version}"
