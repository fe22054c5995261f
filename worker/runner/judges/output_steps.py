"""Applies a recipe's step to an output before it is judged."""

import numpy as np

from worker.runner.judges.judge import Array, make_shape_refusal


def apply_step(outputs: Array, *, step: str | None, threshold: float, vocabulary: Array | None = None) -> Array:
    """Apply a step to an output: softmax, argmax, ctc, or else `threshold`. None returns the output as it is.

    Softmax and argmax are along the last axis. `threshold` gives 1 where a value is above it, else 0, and drops the
    second axis of a single column. Only ctc needs the vocabulary. Raises Refusal where ctc cannot decode the output.
    """
    if step is None:
        return outputs
    if step == "ctc":
        return decode_ctc(outputs, np.empty(0, "U1") if vocabulary is None else vocabulary)
    if step == "softmax":
        # half precision would overflow
        wide = outputs.astype(np.float64)
        shares = np.exp(wide - wide.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
    if step == "argmax":
        return np.asarray(outputs.argmax(axis=-1))
    flat = outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs
    return np.asarray((flat > threshold).astype(np.int64))


def decode_ctc(outputs: Array, vocabulary: Array) -> Array:
    """Decode each sample's best path of CTC to a text: best tokens, without repeats and blanks (whose text is empty).

    `outputs` are scores [sample, step, token] or token ids [sample, step]. Graves et al., ICML 2006. Raises Refusal for
    outputs of another shape, or tokens beyond the vocabulary.
    """
    ids = outputs.argmax(axis=-1) if outputs.ndim == 3 else outputs
    if ids.ndim != 2 or ids.dtype.kind not in "iu" or not np.isin(ids, range(len(vocabulary))).all():
        raise make_shape_refusal(
            f"the shape {list(outputs.shape)} or tokens beyond the {len(vocabulary)} of the vocabulary"
        )
    return np.array(["".join(vocabulary[row[np.diff(row, prepend=-1) != 0]]) for row in ids.astype(np.int64)])
