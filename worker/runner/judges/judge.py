"""What a judge of labelled data is, and how one makes of a figure of all samples the part of each in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from worker.runner import faults

# of any shape; comparing scores needs a type that numpy's stubs can order
Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


@dataclass(frozen=True)
class Judge:
    """`look`: what is kept of a batch, from its outputs and its labels. `samples`: of all batches, one figure a sample.

    The mean of the figures is the metric. They are truths where a sample is right or wrong, else numbers. Both raise
    Refusal, by `make_shape_refusal`, for outputs that cannot be judged.
    """

    look: Callable[[Array, Array], Any]
    samples: Callable[[Sequence[Any]], Array] = np.concatenate


def make_shape_refusal(what: str) -> faults.Refusal:
    return faults.Refusal("inference_failed", f"on the labelled data the output has {what}; judge another output")


def check_row_per_label(outputs: Array, labels: Array) -> None:
    """Raises Refusal where there is not one row a label."""
    if outputs.ndim == 0 or len(outputs) != len(labels):
        count = len(outputs) if outputs.ndim else 0
        raise make_shape_refusal(f"{count} rows for {len(labels)} labels")


def parts(whole: float, without: Array) -> Array:
    """What each sample adds to a figure that is not a mean over samples, such that the mean of the parts is the figure.

    `without`: the figure over all samples but each. These are the jackknife's pseudo-values (Tukey 1958; Miller,
    “The jackknife: a review”, Biometrika 61, 1974), moved to the figure itself; their spread gives its interval, and
    that of a paired difference.
    """
    return np.asarray(whole + (len(without) - 1) * (without.mean() - without), dtype=np.float64)


def parts_of_ratio(above: Array, below: Array) -> Array:
    """`parts` of a sum over a sum. Raises Refusal where the second one is 0."""
    total, count = float(above.sum()), float(below.sum())
    if count == 0:
        raise make_shape_refusal("nothing that counts")
    rest = count - below
    # a sample that is all there is leaves nothing behind
    without = np.divide(total - above, rest, out=np.full(len(above), total / count), where=rest > 0)
    return parts(total / count, without)
