"""Texts that were read or heard, against the right ones."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from worker.runner.judges.judge import Array, Judge, parts_of_ratio, rows_of, unfit


def edited(outputs: Array, labels: Array, *, cut: Callable[[str], Sequence[str]]) -> Array:
    """How many words or characters are wrong, too many or missing in each sample, and how many its label has."""
    rows_of(outputs, labels)
    if outputs.dtype.kind not in "UO" or outputs.ndim != 1:
        raise unfit(f"{outputs.dtype} of shape {list(outputs.shape)}, which is not one text a sample")
    pairs = [(cut(str(wanted)), cut(str(output))) for wanted, output in zip(labels, outputs, strict=True)]
    return np.array([[distance(wanted, output), len(wanted)] for wanted, output in pairs], dtype=np.float64)


def distance(wanted: Sequence[str], output: Sequence[str]) -> int:
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


def rate(seen: Sequence[Array]) -> Array:
    """Parts of all edits over all words, or characters, of the labels: WER and CER as jiwer has them."""
    edits, lengths = np.concatenate(seen).T
    return parts_of_ratio(edits, lengths)


WER = Judge(partial(edited, cut=str.split), rate)
CER = Judge(partial(edited, cut=str.strip), rate)
