"""Simulated launches: 24 rounds of two arms, or more, with noise on every launch and no difference between the arms.

Logarithms of samples, shape (comparisons, rounds, 2), in the order old, new. `spread` is the standard deviation of a
launch's everyday noise.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROUNDS = 24
SLOW_SHARE = 0.1
SLOW_FACTOR = 1.7
MEMORY = 0.4


class Noise(Protocol):
    """Launches of so many comparisons."""

    def __call__(self, count: int, spread: float, rng: np.random.Generator, rounds: int = ROUNDS) -> Floats: ...


def normal(count: int, spread: float, rng: np.random.Generator, rounds: int = ROUNDS) -> Floats:
    return spread * rng.normal(size=(count, rounds, 2))


def student_t3(count: int, spread: float, rng: np.random.Generator, rounds: int = ROUNDS) -> Floats:
    """Heavy tails: Student's t with three degrees of freedom, scaled to the spread."""
    return spread / np.sqrt(3.0) * rng.standard_t(3, size=(count, rounds, 2))


def bimodal(count: int, spread: float, rng: np.random.Generator, rounds: int = ROUNDS) -> Floats:
    """One launch in ten takes 1.7 times as long, on top of normal noise."""
    slow = rng.random((count, rounds, 2)) < SLOW_SHARE
    return normal(count, spread, rng, rounds) + np.where(slow, np.log(SLOW_FACTOR), 0.0)


def bimodal_twice(count: int, spread: float, rng: np.random.Generator, rounds: int = ROUNDS) -> Floats:
    """Two launches in ten take 1.7 times as long, on top of normal noise."""
    slow = rng.random((count, rounds, 2)) < 2.0 * SLOW_SHARE
    return normal(count, spread, rng, rounds) + np.where(slow, np.log(SLOW_FACTOR), 0.0)


def autoregressive(count: int, spread: float, rng: np.random.Generator, rounds: int = ROUNDS) -> Floats:
    """The machine remembers: launches correlate by 0.4 with the one before, whichever arm that was.

    Each arm goes first in half of the rounds, in random order, as in a block.
    """
    launches = spread * _remembering((count, 2 * rounds), rng).reshape(count, rounds, 2)
    swapped = rng.permuted(np.tile([False, True], (count, rounds // 2)), axis=1)
    return np.where(swapped[:, :, np.newaxis], launches[:, :, ::-1], launches)


def autoregressive_in_order(count: int, spread: float, rng: np.random.Generator, rounds: int = ROUNDS) -> Floats:
    """The same memory when old always goes first."""
    return spread * _remembering((count, 2 * rounds), rng).reshape(count, rounds, 2)


def autoregressive_by_arm(count: int, spread: float, rng: np.random.Generator, rounds: int = ROUNDS) -> Floats:
    """Not a block: each arm remembers its own launches only, as if the two ran on two machines."""
    return spread * np.stack([_remembering((count, rounds), rng) for _ in range(2)], axis=2)


ALL: dict[str, Noise] = {
    "normal": normal,
    "t3": student_t3,
    "bimodal": bimodal,
    "bimodal, two in ten": bimodal_twice,
    "ar": autoregressive,
    "ar, old always first": autoregressive_in_order,
    "ar, each arm by itself": autoregressive_by_arm,
}


def _remembering(shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """Rows of unit variance in which neighbours correlate by MEMORY."""
    values = rng.normal(size=shape)
    for place in range(1, shape[1]):
        values[:, place] = MEMORY * values[:, place - 1] + np.sqrt(1.0 - MEMORY**2) * values[:, place]
    return values
