"""Texts that were read or heard, against the right ones."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from worker.runner.judges.judge import Array, Judge, check_row_per_label, make_shape_refusal, parts_of_ratio


def count_edits(outputs: Array, labels: Array, *, cut: Callable[[str], Sequence[str]]) -> Array:
    """How many words or characters are wrong, too many or missing in each sample, and how many its label has."""
    check_row_per_label(outputs, labels)
    if outputs.dtype.kind not in "UO" or outputs.ndim != 1:
        raise make_shape_refusal(f"{outputs.dtype} of shape {list(outputs.shape)}, which is not one text a sample")
    pairs = [(cut(str(wanted)), cut(str(output))) for wanted, output in zip(labels, outputs, strict=True)]
    return np.array([[edit_distance(wanted, output), len(wanted)] for wanted, output in pairs], dtype=np.float64)


def edit_distance(wanted: Sequence[str], output: Sequence[str]) -> int:
    """Levenshtein's: the fewest substitutions, deletions and insertions (Wagner & Fischer, J. ACM 21, 1974)."""
    numbers: dict[str, int] = {}
    left, right = ([numbers.setdefault(part, len(numbers)) for part in parts] for parts in (wanted, output))
    columns = np.arange(len(right) + 1)
    row, given = columns, np.array(right)
    for at, part in enumerate(left, 1):
        changed = np.minimum(row[1:] + 1, row[:-1] + (given != part))
        # an insertion takes the best place to its left, and one for each step from there
        row = np.minimum.accumulate(np.concatenate([[at], changed]) - columns) + columns
    return int(row[-1])


def error_rate(seen: Sequence[Array]) -> Array:
    """Parts of all edits over all words, or characters, of the labels: WER and CER as jiwer has them."""
    edits, lengths = np.concatenate(seen).T
    return parts_of_ratio(edits, lengths)


WER = Judge(partial(count_edits, cut=str.split), error_rate)
CER = Judge(partial(count_edits, cut=str.strip), error_rate)
