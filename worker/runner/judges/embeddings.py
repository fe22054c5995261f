"""Judges embeddings: by their cosine with given ones, and by whether samples of one label lie together.

The cosine with an embedding of zeros is 0. Values that are not finite are refused; so are given embeddings of another
shape than the outputs.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from worker.runner.judges.judge import Array, Judge, check_row_per_label, make_shape_refusal
from worker.runner.judges.values import convert_to_float64_rows

# similarities are computed for this many samples at a time; for 50,000 samples, that and sorting take 205 MB
ROWS_AT_ONCE = 256


def compute_cosine_similarities(outputs: Array, labels: Array) -> Array:
    outputs_scaled, labels_scaled = (_scale_to_length_1(rows) for rows in convert_to_float64_rows(outputs, labels))
    return np.asarray((outputs_scaled * labels_scaled).sum(axis=1))


def normalise(outputs: Array, labels: Array) -> tuple[Array, Array]:
    """Scale each embedding to length 1, as rows of float32, and return them with the labels. Zeros stay zeros.

    Raises Refusal for outputs that are not one embedding of finite floats a sample.
    """
    check_row_per_label(outputs, labels)
    if outputs.ndim < 2 or outputs.dtype.kind != "f":
        raise make_shape_refusal(f"the shape {list(outputs.shape)} and type {outputs.dtype}, not an embedding a sample")
    # single precision is enough for neighbours, and takes half the time
    return _scale_to_length_1(outputs.astype(np.float32).reshape(len(outputs), -1)), labels


def compute_recall_at(batches: Sequence[tuple[Array, Array]], *, count: int) -> Array:
    """Mark each sample right that shares its label with one of its `count` nearest others (Recall@K).

    Song et al., “Deep metric learning via lifted structured feature embedding” (CVPR 2016). Raises Refusal where there
    are too few samples.
    """
    rows, labels = (np.concatenate(part) for part in zip(*batches, strict=True))
    if len(rows) <= count:
        raise make_shape_refusal(f"{len(rows)} samples, and each is looked for among {count} others")
    return np.concatenate([_mark_hits(rows, labels, start, count) for start in range(0, len(rows), ROWS_AT_ONCE)])


def _mark_hits(rows: Array, labels: Array, start: int, count: int) -> Array:
    indexes = np.arange(start, min(start + ROWS_AT_ONCE, len(rows)))
    similarities = rows[indexes] @ rows.T
    # no sample is its own neighbour
    similarities[indexes - start, indexes] = -np.inf
    nearest = np.argpartition(-similarities, count - 1, axis=1)[:, :count]
    return np.asarray((labels[nearest] == labels[indexes][:, None]).any(axis=1))


def _scale_to_length_1(rows: Array) -> Array:
    if not np.isfinite(rows).all():
        raise make_shape_refusal("values that are not finite numbers")
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, length, out=np.zeros_like(rows), where=length > 0))


COSINE = Judge(compute_cosine_similarities)
RECALL1, RECALL5, RECALL10 = (Judge(normalise, partial(compute_recall_at, count=count)) for count in (1, 5, 10))
