"""The interface of a judge of labelled data, and pseudo-values of figures that are no means over samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from worker.runner import faults

# of any shape; comparing scores needs a type that numpy's stubs can order
Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


@dataclass(frozen=True)
class Judge:
    """Two functions: `look` judges one batch from its outputs and labels, `samples` makes one figure a sample of all.

    The mean of the figures is the metric. They are truths where a sample is right or wrong, else numbers. Both raise
    Refusal, by `make_shape_refusal`, for outputs that cannot be judged.
    """

    look: Callable[[Array, Array], Any]
    samples: Callable[[Sequence[Any]], Array] = np.concatenate


def make_shape_refusal(what: str) -> faults.Refusal:
    return faults.Refusal("inference_failed", f"on the labelled data the output has {what}; judge another output")


def check_row_per_label(outputs: Array, labels: Array) -> None:
    """Raises Refusal where the output has not one row for each label."""
    if outputs.ndim == 0 or len(outputs) != len(labels):
        count = len(outputs) if outputs.ndim else 0
        raise make_shape_refusal(f"{count} rows for {len(labels)} labels")


def make_pseudovalues(whole: float, without: Array) -> Array:
    """Make each sample's pseudo-value of a figure that is no mean over samples; their mean is the figure `whole`.

    `without` has, for each sample, the figure over all other samples. These are the jackknife's pseudo-values (Tukey
    1958; Miller, “The jackknife: a review”, Biometrika 61, 1974), moved so that their mean is the figure; their spread
    gives its interval, and that of a paired difference.
    """
    return np.asarray(whole + (len(without) - 1) * (without.mean() - without), dtype=np.float64)


def make_ratio_pseudovalues(above: Array, below: Array) -> Array:
    """Make pseudo-values of the ratio of two sums over samples. Raises Refusal where the second sum is 0."""
    total, count = float(above.sum()), float(below.sum())
    if count == 0:
        raise make_shape_refusal("nothing that counts")
    rest = count - below
    # without its only sample, the sums are 0
    without = np.divide(total - above, rest, out=np.full(len(above), total / count), where=rest > 0)
    return make_pseudovalues(total / count, without)
