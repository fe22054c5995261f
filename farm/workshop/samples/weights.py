"""Draws weights that have the same bits on every machine and with every release of numpy."""

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float32]


class Seeded:
    """Draws a stream of weights from one seed.

    The weights are integers of numpy's frozen generator, scaled by powers of two and one factor, without any library
    function that may round differently elsewhere. Uniform ones lie from -`spread`, included, to `spread`, excluded.
    """

    def __init__(self, seed: int) -> None:
        self._stream = np.random.RandomState(seed)

    def draw_uniform(self, *shape: int, spread: float) -> Weights:
        whole = self._stream.randint(-(1 << 15), 1 << 15, size=shape).astype(np.float32)
        return np.asarray(whole * np.float32(spread / (1 << 15)), dtype=np.float32)

    def draw_matrix(self, rows: int, columns: int) -> Weights:
        """Draw a matrix that keeps the variance of what it multiplies: uniform, standard deviation 1/√rows."""
        return self.draw_uniform(rows, columns, spread=float(np.sqrt(3.0 / rows)))
