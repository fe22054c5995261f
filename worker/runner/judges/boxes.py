"""Judges detected boxes by mAP@.5, as pycocotools computes it over all areas."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from worker.runner.judges.judge import Array, Judge, check_row_per_label, make_pseudovalues, make_shape_refusal

OVERLAP = 0.5
# boxes of one class in one image
MAX_BOXES = 100
RECALLS = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class Matched:
    """One class in one image: scores of the detections, highest first, which are right, and how many boxes exist."""

    kind: int
    scores: Array
    right: Array
    count: int


def match_boxes(outputs: Array, labels: Array) -> list[list[Matched]]:
    """Match each sample's detections with its labels, class by class.

    Outputs are rows of x1, y1, x2, y2, score, class; labels are rows of x1, y1, x2, y2, class. Rows with a class below
    0, or a score of 0 or less, are no boxes. Raises Refusal for outputs of another shape.
    """
    check_row_per_label(outputs, labels)
    if outputs.ndim != 3 or outputs.shape[2] != 6:
        raise make_shape_refusal(
            f"the shape {list(outputs.shape)}, which is not rows of x1, y1, x2, y2, score, class a sample"
        )
    return [list(_match(*pair)) for pair in zip(outputs.astype(np.float64), labels.astype(np.float64), strict=True)]


def _match(found: Array, there: Array) -> Iterator[Matched]:
    found = found[np.isfinite(found).all(axis=1) & (found[:, 4] > 0) & (found[:, 5] >= 0)]
    there = there[there[:, 4] >= 0]
    kinds, known = np.rint(found[:, 5]), np.rint(there[:, 4])
    for kind in np.unique(np.concatenate([kinds, known])):
        detections = found[kinds == kind]
        detections = detections[np.argsort(-detections[:, 4], kind="mergesort")][:MAX_BOXES]
        wanted = there[known == kind]
        yield Matched(int(kind), detections[:, 4], _mark_right(detections[:, :4], wanted[:, :4]), len(wanted))


def _mark_right(found: Array, there: Array) -> Array:
    """Mark each detection right that overlaps a free label by half or more; it takes the one that it overlaps most."""
    overlap = _compute_overlaps(found, there)
    right = np.zeros(len(found), dtype=bool)
    for at, row in enumerate(overlap if len(there) else ()):
        best = len(row) - 1 - int(np.argmax(row[::-1]))
        right[at] = row[best] >= OVERLAP
        if right[at]:
            overlap[:, best] = -1.0
    return right


def _compute_overlaps(found: Array, there: Array) -> Array:
    """Compute the intersection over union of each detection with each label."""
    low = np.maximum(found[:, None, :2], there[None, :, :2])
    high = np.minimum(found[:, None, 2:], there[None, :, 2:])
    shared = np.clip(high - low, 0.0, None).prod(axis=2)
    areas, other = ((boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (found, there))
    union = areas[:, None] + other[None, :] - shared
    return np.asarray(np.divide(shared, union, out=np.zeros_like(shared), where=union > 0))


def compute_mean_average_precision(seen: Sequence[list[list[Matched]]]) -> Array:
    """Compute each sample's pseudo-value of mAP, the mean over the labels' classes of their average precision.

    Raises Refusal where no label has a box.
    """
    samples = [sample for batch in seen for sample in batch]
    kinds = sorted({scored.kind for sample in samples for scored in sample if scored.count})
    if not kinds:
        raise make_shape_refusal("no labels with boxes beside it")
    # [class, sample]: the average precision without that sample; NaN where no box of the class is left
    without = np.empty((len(kinds), len(samples)))
    whole = []
    for row, kind in zip(without, kinds, strict=True):
        of_kind = {at: scored for at, sample in enumerate(samples) for scored in sample if scored.kind == kind}
        scores = np.concatenate([scored.scores for scored in of_kind.values()])
        order = np.argsort(-scores, kind="mergesort")
        right = np.concatenate([scored.right for scored in of_kind.values()])[order]
        owner = np.repeat(list(of_kind), [len(scored.scores) for scored in of_kind.values()])[order]
        count = sum(scored.count for scored in of_kind.values())
        whole.append(_average_precision(right, count))
        row[:] = whole[-1]
        for at, scored in of_kind.items():
            row[at] = _average_precision(right[owner != at], count - scored.count)
    left = np.isfinite(without)
    means = np.where(left, without, 0.0).sum(axis=0) / np.maximum(left.sum(axis=0), 1)
    figure = float(np.mean(whole))
    return make_pseudovalues(figure, np.where(left.any(axis=0), means, figure))


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
