"""Judges numbers by their squared error."""

import numpy as np

from worker.runner.judges.judge import Array, Judge, make_shape_refusal


def convert_to_float64_rows(outputs: Array, labels: Array) -> tuple[Array, Array]:
    """Convert both to float64 arrays [sample, value]. Raises Refusal where their shapes differ."""
    if outputs.shape != labels.shape:
        raise make_shape_refusal(f"the shape {list(outputs.shape)} for labels of {list(labels.shape)}")
    output_rows, label_rows = (array.astype(np.float64).reshape(len(array), -1) for array in (outputs, labels))
    return output_rows, label_rows


def compute_squared_errors(outputs: Array, labels: Array) -> Array:
    """Compute the mean squared error of each sample. Raises Refusal where the shapes differ."""
    output_rows, label_rows = convert_to_float64_rows(outputs, labels)
    return np.asarray(((output_rows - label_rows) ** 2).mean(axis=1))


MSE = Judge(compute_squared_errors)
