"""The interface of a judge of labelled data, and the jackknife's pseudo-values for metrics other than means."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from worker.runner import faults

# an array of any shape; the element type is Any, because numpy's stubs cannot compare values of `generic`
Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


@dataclass(frozen=True)
class Judge:
    """A metric as two functions, which raise Refusal (see `make_shape_refusal`) for outputs that cannot be judged.

    `look` judges one batch from its outputs and labels. `samples` takes what `look` returned for every batch, and
    returns one figure a sample, whose mean is the metric: booleans where a sample is right or wrong, else numbers.
    """

    look: Callable[[Array, Array], Any]
    samples: Callable[[Sequence[Any]], Array] = np.concatenate


def make_shape_refusal(shape: str) -> faults.Refusal:
    """Return, not raise, the Refusal of an output that cannot be judged. `shape` says in words what the output has."""
    return faults.Refusal("inference_failed", f"on the labelled data the output has {shape}; judge another output")


def check_row_per_label(outputs: Array, labels: Array) -> None:
    """Raise Refusal unless the output has one row for each label."""
    if outputs.ndim == 0 or len(outputs) != len(labels):
        count = len(outputs) if outputs.ndim else 0
        raise make_shape_refusal(f"{count} rows for {len(labels)} labels")


def make_pseudovalues(whole: float, without: Array) -> Array:
    """Compute the jackknife's pseudo-values of a figure that is not a mean over samples, one for each sample.

    `whole` is the figure over all samples; `without` has, for each sample, the figure over all others. The
    pseudo-values (Tukey 1958; Miller, “The jackknife: a review”, Biometrika 61, 1974) are shifted so that their mean is
    `whole`. Their spread gives the interval of the figure, and of a paired difference.
    """
    return np.asarray(whole + (len(without) - 1) * (without.mean() - without), dtype=np.float64)


def make_ratio_pseudovalues(above: Array, below: Array) -> Array:
    """Compute the pseudo-values of sum(above) / sum(below), one a sample. Raises Refusal where sum(below) is 0."""
    total, count = float(above.sum()), float(below.sum())
    if count == 0:
        raise make_shape_refusal("no sample that counts")
    count_without = count - below
    # without any counted sample the ratio would be 0 / 0, so the ratio of all samples stands in for it
    without = np.divide(total - above, count_without, out=np.full(len(above), total / count), where=count_without > 0)
    return make_pseudovalues(total / count, without)
