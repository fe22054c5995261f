"""Judges detected boxes by mAP@.5, as pycocotools computes it over all areas."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from worker.runner.judges.judge import Array, Judge, check_row_per_label, make_pseudovalues, make_shape_refusal

# a right detection has at least this intersection over union with a label
MIN_OVERLAP = 0.5
# how many detections of one class in one image count, the best first
MAX_BOXES = 100
RECALLS = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class ClassMatch:
    """The detections of one class in one image: their scores, highest first, and which of them are right.

    `count` is the number of boxes that the image's label has of this class.
    """

    class_id: int
    scores: Array
    is_right: Array
    count: int


def match_boxes(outputs: Array, labels: Array) -> list[list[ClassMatch]]:
    """Match each sample's detections with its labels, class by class.

    Outputs are rows of x1, y1, x2, y2, score, class; labels are rows of x1, y1, x2, y2, class. Rows with a class below
    0, a score of 0 or less, or a value that is not finite are left out. For each class in an image, only the MAX_BOXES
    best detections count. Raises Refusal for outputs of another shape.
    """
    check_row_per_label(outputs, labels)
    if outputs.ndim != 3 or outputs.shape[2] != 6:
        raise make_shape_refusal(
            f"the shape {list(outputs.shape)}, which is not rows of x1, y1, x2, y2, score, class a sample"
        )
    pairs = zip(outputs.astype(np.float64), labels.astype(np.float64), strict=True)
    return [list(_match_by_class(detections, boxes)) for detections, boxes in pairs]


def _match_by_class(rows: Array, label_rows: Array) -> Iterator[ClassMatch]:
    detections = rows[np.isfinite(rows).all(axis=1) & (rows[:, 4] > 0) & (rows[:, 5] >= 0)]
    labels = label_rows[label_rows[:, 4] >= 0]
    detected_classes, label_classes = np.rint(detections[:, 5]), np.rint(labels[:, 4])
    for class_id in np.unique(np.concatenate([detected_classes, label_classes])):
        of_class = detections[detected_classes == class_id]
        of_class = of_class[np.argsort(-of_class[:, 4], kind="mergesort")][:MAX_BOXES]
        labels_of_class = labels[label_classes == class_id]
        is_right = _mark_right(of_class[:, :4], labels_of_class[:, :4])
        yield ClassMatch(int(class_id), of_class[:, 4], is_right, len(labels_of_class))


def _mark_right(detections: Array, labels: Array) -> Array:
    """Mark each detection right that overlaps an unmatched label by MIN_OVERLAP, and match it with the best one."""
    overlap = _compute_overlaps(detections, labels)
    is_right = np.zeros(len(detections), dtype=bool)
    for number, row in enumerate(overlap if len(labels) else ()):
        # of equal overlaps the last one is the best, as in pycocotools
        best_label = len(row) - 1 - int(np.argmax(row[::-1]))
        is_right[number] = row[best_label] >= MIN_OVERLAP
        if is_right[number]:
            overlap[:, best_label] = -1.0
    return is_right


def _compute_overlaps(detections: Array, labels: Array) -> Array:
    """Compute the intersection over union of each detection with each label."""
    low = np.maximum(detections[:, None, :2], labels[None, :, :2])
    high = np.minimum(detections[:, None, 2:], labels[None, :, 2:])
    shared = np.clip(high - low, 0.0, None).prod(axis=2)
    areas, label_areas = ((boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (detections, labels))
    union = areas[:, None] + label_areas[None, :] - shared
    return np.asarray(np.divide(shared, union, out=np.zeros_like(shared), where=union > 0))


def compute_mean_average_precision(batches: Sequence[list[list[ClassMatch]]]) -> Array:
    """Compute each sample's pseudo-value of mAP, the mean over the labels' classes of their average precision.

    Raises Refusal where no label has a box.
    """
    samples = [sample for batch in batches for sample in batch]
    classes = sorted({match.class_id for sample in samples for match in sample if match.count})
    if not classes:
        raise make_shape_refusal("no labels with boxes beside it")
    # [class, sample]: the average precision without that sample; NaN where no box of the class is left
    without = np.empty((len(classes), len(samples)))
    whole = []
    for row, class_id in zip(without, classes, strict=True):
        of_class = {at: match for at, sample in enumerate(samples) for match in sample if match.class_id == class_id}
        scores = np.concatenate([match.scores for match in of_class.values()])
        order = np.argsort(-scores, kind="mergesort")
        right = np.concatenate([match.is_right for match in of_class.values()])[order]
        owner = np.repeat(list(of_class), [len(match.scores) for match in of_class.values()])[order]
        count = sum(match.count for match in of_class.values())
        whole.append(_average_precision(right, count))
        row[:] = whole[-1]
        for at, match in of_class.items():
            row[at] = _average_precision(right[owner != at], count - match.count)
    is_defined = np.isfinite(without)
    means = np.where(is_defined, without, 0.0).sum(axis=0) / np.maximum(is_defined.sum(axis=0), 1)
    figure = float(np.mean(whole))
    return make_pseudovalues(figure, np.where(is_defined.any(axis=0), means, figure))


def _average_precision(right: Array, count: int) -> float:
    """Average the best precision at 101 recalls; NaN where there is nothing to find."""
    if count == 0:
        return float("nan")
    hits = np.cumsum(right)
    precision = hits / np.arange(1, len(hits) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.searchsorted(hits / count, RECALLS, side="left")
    return float(np.concatenate([best, [0.0]])[np.minimum(at, len(best))].mean())


MAP50 = Judge(match_boxes, compute_mean_average_precision)
