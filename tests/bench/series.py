"""Seeded series with known level shifts, for scoring change-point detection.

Each series is a level of 1 to 50 ms over 60 to 200 points with 0.5 to 2 % noise. The kinds add, one or several at once:
level shifts of 3 to 25 % that last at least ten points (the labels), drifts, spikes, and noise that remembers (AR 0.4).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# What is added to the white noise of each kind of series.
KINDS: dict[str, frozenset[str]] = {
    "quiet": frozenset(),
    "shifts": frozenset({"shifts"}),
    "spikes": frozenset({"spikes"}),
    "ar": frozenset({"ar"}),
    "drift": frozenset({"drift"}),
    "shifts, spikes": frozenset({"shifts", "spikes"}),
    "shifts, ar": frozenset({"shifts", "ar"}),
    "shifts, drift": frozenset({"shifts", "drift"}),
    "drift, spikes, ar": frozenset({"drift", "spikes", "ar"}),
    "shifts, drift, spikes, ar": frozenset({"shifts", "drift", "spikes", "ar"}),
}

SHORTEST_LEVEL = 10


@dataclass(frozen=True, slots=True)
class Labelled:
    """Values in ms, and the indices at which a new level begins."""

    kind: str
    values: Floats
    shifts: tuple[int, ...]


def labelled_series(count: int, *, seed: int) -> list[Labelled]:
    """So many series, the kinds in turn."""
    rng = np.random.default_rng(seed)
    kinds = list(KINDS)
    return [_one(kinds[place % len(kinds)], rng) for place in range(count)]


def rounded(series: Labelled, *, unit: float) -> Labelled:
    """The same in whole units, each that share of the median: neighbours are often equal, as in coarse clocks."""
    size = unit * float(np.median(series.values))
    return replace(series, values=size * np.round(series.values / size))


def _one(kind: str, rng: np.random.Generator) -> Labelled:
    parts = KINDS[kind]
    length = int(rng.integers(60, 201))
    noise = rng.uniform(0.005, 0.02)
    logs = np.log(rng.uniform(1.0, 50.0)) + noise * _noise(length, 0.4 if "ar" in parts else 0.0, rng)
    shifts: tuple[int, ...] = ()
    if "shifts" in parts:
        shifts = _places(int(rng.integers(1, 4)), length, rng)
        for place in shifts:
            size = rng.uniform(0.03, 0.25)
            logs[place:] += rng.choice([-1.0, 1.0]) * np.log1p(size)
    if "drift" in parts:
        logs += _drift(length, rng)
    if "spikes" in parts:
        hit = rng.random(length) < 0.03
        logs[hit] += np.log(rng.uniform(1.1, 2.0, size=int(hit.sum())))
    return Labelled(kind, np.exp(logs), shifts)


def _noise(length: int, memory: float, rng: np.random.Generator) -> Floats:
    """Noise of standard deviation one whose neighbours correlate by `memory`."""
    fresh = rng.normal(size=length)
    values = np.empty(length)
    values[0] = fresh[0]
    for place in range(1, length):
        values[place] = memory * values[place - 1] + np.sqrt(1.0 - memory**2) * fresh[place]
    return values


def _drift(length: int, rng: np.random.Generator) -> Floats:
    """A straight line over the whole series, or a slow swing; 3 to 12 % from end to end or from low to high."""
    size = rng.choice([-1.0, 1.0]) * rng.uniform(0.03, 0.12)
    along = np.linspace(0.0, 1.0, length)
    if rng.random() < 0.5:
        return np.asarray(size * along)
    return np.asarray(size / 2.0 * np.sin(2.0 * np.pi * (along + rng.random())))


def _places(count: int, length: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Sorted places at least the shortest level apart from each other and from both ends."""
    free = length - (count + 1) * SHORTEST_LEVEL
    cuts = np.sort(rng.integers(0, free + 1, size=count))
    return tuple(int(cut + (rank + 1) * SHORTEST_LEVEL) for rank, cut in enumerate(cuts))
