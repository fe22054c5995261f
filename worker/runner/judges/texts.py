"""Judges recognised texts by their word or character error rate."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from worker.runner.judges.judge import Array, Judge, check_row_per_label, make_ratio_pseudovalues, make_shape_refusal


def count_edits(outputs: Array, labels: Array, *, cut: Callable[[str], Sequence[str]]) -> Array:
    """Count each sample's edits and its label's length, [sample, 2], in the words or characters that `cut` makes.

    Raises Refusal where the output is not one text a sample.
    """
    check_row_per_label(outputs, labels)
    if outputs.dtype.kind not in "UO" or outputs.ndim != 1:
        raise make_shape_refusal(f"{outputs.dtype} of shape {list(outputs.shape)}, which is not one text a sample")
    pairs = [(cut(str(wanted)), cut(str(output))) for wanted, output in zip(labels, outputs, strict=True)]
    return np.array([[compute_distance(wanted, output), len(wanted)] for wanted, output in pairs], dtype=np.float64)


def compute_distance(wanted: Sequence[str], output: Sequence[str]) -> int:
    """Compute Levenshtein's distance: the fewest substitutions, deletions and insertions.

    Wagner & Fischer, J. ACM 21, 1974.
    """
    numbers: dict[str, int] = {}
    left, right = ([numbers.setdefault(part, len(numbers)) for part in parts] for parts in (wanted, output))
    columns = np.arange(len(right) + 1)
    row, given = columns, np.array(right)
    for at, part in enumerate(left, 1):
        changed = np.minimum(row[1:] + 1, row[:-1] + (given != part))
        # an insertion costs one more for each step from the best place to its left
        row = np.minimum.accumulate(np.concatenate([[at], changed]) - columns) + columns
    return int(row[-1])


def compute_error_rate(seen: Sequence[Array]) -> Array:
    """Compute each sample's pseudo-value of all edits over all lengths: WER and CER, as jiwer computes them."""
    edits, lengths = np.concatenate(seen).T
    return make_ratio_pseudovalues(edits, lengths)


WER = Judge(partial(count_edits, cut=str.split), compute_error_rate)
CER = Judge(partial(count_edits, cut=str.strip), compute_error_rate)
