"""Numbers against the right ones."""

import numpy as np

from worker.runner.judges.judge import Array, Judge, make_shape_refusal


def as_float64_rows(outputs: Array, labels: Array) -> tuple[Array, Array]:
    """Both in float64, a row a sample. Raises Refusal where they have not one shape."""
    if outputs.shape != labels.shape:
        raise make_shape_refusal(f"the shape {list(outputs.shape)} for labels of {list(labels.shape)}")
    own, wanted = (array.astype(np.float64).reshape(len(array), -1) for array in (outputs, labels))
    return own, wanted


def squared_errors(outputs: Array, labels: Array) -> Array:
    own, wanted = as_float64_rows(outputs, labels)
    return np.asarray(((own - wanted) ** 2).mean(axis=1))


MSE = Judge(squared_errors)
