"""Checks labels against the output that they judge: one function for each shape of labels. Runs in the child only.

Each function takes the output of the first batch after the recipe's step, all labels and the metric's name, and returns
the number of classes, or None if there are no classes. Each raises Problem bad_labels or bad_output.
"""

from collections.abc import Callable, Mapping

import numpy as np

from farm.contract.evaluation import LabelShape
from farm.workshop.arrays import Array
from farm.workshop.problems import Problem

Check = Callable[[Array, Array, str], int | None]


def check_classes(outputs: Array, labels: Array, metric: str) -> int | None:
    """Check that labels are one class a sample, from 0 on, and the output scores of these classes or the class.

    Return how many classes the output scores; None if it is the class itself. Raises Problem bad_labels or
    bad_output.
    """
    _check_whole(labels, metric)
    if outputs.ndim == 1 and outputs.dtype.kind in "iub" and metric != "top5":
        return None
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        text = f"The output has the shape {list(outputs.shape)}: {metric} wants one row of scores a sample."
        raise Problem("bad_output", text)
    check_class_range(labels, outputs.shape[1])
    return int(outputs.shape[1])


def check_class_range(labels: Array, count: int) -> None:
    """Check that all labels are from 0 to `count` - 1. Raises Problem bad_labels."""
    if labels.min() < 0 or labels.max() >= count:
        text = f"The labels reach from {labels.min()} to {labels.max()}, the output has the classes 0 to {count - 1}."
        raise Problem("bad_labels", text)


def check_like_output(outputs: Array, labels: Array, metric: str) -> None:
    """Check that labels are finite numbers of the output's shape. Raises Problem bad_labels or bad_output."""
    _check_shape(outputs, labels, metric)
    if labels.dtype.kind not in "fiub" or not np.isfinite(labels).all():
        raise Problem(
            "bad_labels", f"The labels are not all finite numbers: {metric} wants one for each of the output's."
        )


def check_groups(outputs: Array, labels: Array, metric: str) -> int | None:
    """Check that labels are one integer a sample, some shared by several, and the output one embedding a sample.

    Return how many different labels there are. Raises Problem bad_labels or bad_output.
    """
    _check_whole(labels, metric)
    if outputs.ndim < 2 or outputs.dtype.kind != "f":
        text = f"The output is {_layout(outputs)}: {metric} wants an embedding, a row of fractions a sample."
        raise Problem("bad_output", text)
    sizes = np.unique(labels, return_counts=True)[1]
    if sizes.max() < 2:
        text = f"Each of the {len(labels)} labels is there once: {metric} wants samples that share a label."
        raise Problem("bad_labels", text)
    return len(sizes)


def check_flags(outputs: Array, labels: Array, metric: str) -> int | None:
    """Check that labels have the output's shape and hold 1 for each class that a sample has, else 0.

    Return how many classes there are. Raises Problem bad_labels or bad_output.
    """
    if outputs.ndim != 2:
        text = f"The output has the shape {list(outputs.shape)}: {metric} wants one row of scores a sample."
        raise Problem("bad_output", text)
    _check_shape(outputs, labels, metric)
    if labels.dtype.kind not in "fiub" or not np.isin(labels, (0, 1)).all():
        raise Problem(
            "bad_labels", f"The labels are not all 0 or 1: {metric} wants 1 for each class that a sample has."
        )
    return int(labels.shape[1])


def check_texts(outputs: Array, labels: Array, metric: str) -> None:
    """Check that labels and output are one text a sample; not all labels may be empty.

    Raises Problem bad_labels or bad_output.
    """
    if labels.ndim != 1 or labels.dtype.kind != "U" or not "".join(labels).strip():
        text = (
            f"The labels are {_layout(labels)}: {metric} wants a text a sample, and one at least that says something."
        )
        raise Problem("bad_labels", text)
    if outputs.ndim != 1 or outputs.dtype.kind not in "UO":
        text = f"The output is {_layout(outputs)}: {metric} wants a text a sample; ctc+{metric} makes one of scores."
        raise Problem("bad_output", text)


def check_boxes(outputs: Array, labels: Array, metric: str) -> int | None:
    """Check that labels are rows of x1, y1, x2, y2, class a sample (class -1 for no box).

    The output must be rows of x1, y1, x2, y2, score, class. Return the greatest class of the labels, plus one. Raises
    Problem bad_labels or bad_output.
    """
    if outputs.ndim != 3 or outputs.shape[2] != 6 or outputs.dtype.kind not in "fiu":
        text = f"The output is {_layout(outputs)}: {metric} wants rows of x1, y1, x2, y2, score, class a sample."
        raise Problem("bad_output", text)
    if labels.ndim != 3 or labels.shape[2] != 5 or labels.dtype.kind not in "fiu" or not np.isfinite(labels).all():
        text = f"The labels are {_layout(labels)}: {metric} wants rows of x1, y1, x2, y2, class a sample, all finite."
        raise Problem("bad_labels", text)
    boxes = labels[labels[:, :, 4] >= 0]
    wrong = boxes[(boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1]) | (boxes[:, 4] != np.rint(boxes[:, 4]))]
    if len(boxes) == 0 or len(wrong):
        complaint = f"{wrong[0].tolist()} is among the labels" if len(wrong) else "No label is a box"
        text = f"{complaint}: {metric} wants x1 ≤ x2, y1 ≤ y2 and a whole class from 0 on, -1 for no box."
        raise Problem("bad_labels", text)
    return int(boxes[:, 4].max()) + 1


def check_tokens(outputs: Array, labels: Array, metric: str) -> int | None:
    """Check that labels are a token for each place, or below 0 for no token, and the output has scores for each token.

    At least one label must be a token. Return how many tokens the output scores. Raises Problem bad_labels or
    bad_output.
    """
    if outputs.ndim != 3 or outputs.dtype.kind != "f":
        text = f"The output is {_layout(outputs)}: {metric} wants scores of [sample, place, token]."
        raise Problem("bad_output", text)
    places, count = outputs.shape[1:]
    if labels.dtype.kind not in "iu" or labels.shape[1:] != (places,):
        text = f"The labels are {_layout(labels)}: {metric} wants a token for each of {places} places."
        raise Problem("bad_labels", text)
    if not 0 <= labels.max() < count:
        reach = f"{labels.min()} to {labels.max()}"
        raise Problem("bad_labels", f"The labels reach from {reach}, the output has the tokens 0 to {count - 1}.")
    return int(count)


def accept_anything(outputs: Array, labels: Array, metric: str) -> None:
    """Accept any output and labels, since the metric's own judge checks them."""


def _layout(array: Array) -> str:
    return f"{array.dtype} of shape {list(array.shape)}"


def _check_shape(outputs: Array, labels: Array, metric: str) -> None:
    if labels.shape[1:] != outputs.shape[1:]:
        output_shape, label_shape = list(outputs.shape[1:]), list(labels.shape[1:])
        raise Problem(
            "bad_output",
            f"Of a sample the output has the shape {output_shape}, the label {label_shape}: {metric} wants the same.",
        )


def _check_whole(labels: Array, metric: str) -> None:
    if labels.ndim != 1 or labels.dtype.kind not in "iub":
        text = f"The labels are {_layout(labels)}: {metric} wants one whole number a sample."
        raise Problem("bad_labels", text)


SHAPES: Mapping[LabelShape, Check] = {
    "class": check_classes,
    "like-output": check_like_output,
    "group": check_groups,
    "flags": check_flags,
    "texts": check_texts,
    "boxes": check_boxes,
    "tokens": check_tokens,
    "any": accept_anything,
}
