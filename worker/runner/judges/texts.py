"""Judges recognised texts by their word or character error rate."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from worker.runner.judges.judge import Array, Judge, check_row_per_label, make_ratio_pseudovalues, make_shape_refusal


def count_edits(outputs: Array, labels: Array, *, split: Callable[[str], Sequence[str]]) -> Array:
    """Count each sample's edits and its label's length, in the words or characters that `split` makes of a text.

    Returns an array [sample, 2]. Raises Refusal where the output is not one text a sample.
    """
    check_row_per_label(outputs, labels)
    if outputs.dtype.kind not in "UO" or outputs.ndim != 1:
        raise make_shape_refusal(f"{outputs.dtype} of shape {list(outputs.shape)}, which is not one text a sample")
    pairs = [(split(str(label)), split(str(output))) for label, output in zip(labels, outputs, strict=True)]
    return np.array([[compute_edit_distance(label, output), len(label)] for label, output in pairs], dtype=np.float64)


def compute_edit_distance(label: Sequence[str], output: Sequence[str]) -> int:
    """Compute Levenshtein's distance: the minimum number of substitutions, deletions and insertions.

    The algorithm is that of Wagner & Fischer, J. ACM 21, 1974.
    """
    numbers: dict[str, int] = {}
    label_ids, output_ids = ([numbers.setdefault(part, len(numbers)) for part in parts] for parts in (label, output))
    columns = np.arange(len(output_ids) + 1)
    row, output_array = columns, np.array(output_ids)
    for position, label_id in enumerate(label_ids, 1):
        without_insertion = np.minimum(row[1:] + 1, row[:-1] + (output_array != label_id))
        # insertions: each step to the right of the best earlier place costs one
        row = np.minimum.accumulate(np.concatenate([[position], without_insertion]) - columns) + columns
    return int(row[-1])


def compute_error_rate(batches: Sequence[Array]) -> Array:
    """Compute each sample's pseudo-value of all edits over all lengths: WER and CER, as jiwer computes them.

    `batches` are results of `count_edits`. Raises Refusal where all labels are empty.
    """
    edits, lengths = np.concatenate(batches).T
    return make_ratio_pseudovalues(edits, lengths)


WER = Judge(partial(count_edits, split=str.split), compute_error_rate)
CER = Judge(partial(count_edits, split=str.strip), compute_error_rate)
