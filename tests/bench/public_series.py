"""Public series that people labelled, and how well level shifts are found in them.

The series are of the Turing Change Point Dataset (tests/bench/public/README.md has sources and licences). Five people
marked each, and disagree. F1 and covering are defined as in G. J. J. van den Burg and C. K. I. Williams, "An Evaluation
of Change Point Detection Algorithms", arXiv:2003.06222, section 4.2, and in `analysis/scripts/metrics.py` of TCPDBench:
row 0 counts as a change that everybody marks and finds, so that a series without any can be scored.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

FILE = Path(__file__).parent / "public" / "series.jsonl"
# A change counts as found within so many rows.
MARGIN = 5
QUALITY_CONTROL = "quality_control_"


@dataclass(frozen=True, slots=True)
class PublicSeries:
    """`labels`: what each person marked. `published`: F1 and covering by method, as others measured them."""

    name: str
    licence: str
    values: tuple[float, ...]
    labels: tuple[tuple[int, ...], ...]
    published: Mapping[str, Mapping[str, float]]


def public_series() -> list[PublicSeries]:
    """All that lie in the file."""
    rows = [json.loads(line) for line in FILE.read_text().splitlines()]
    return [
        PublicSeries(
            name=row["name"],
            licence=row["licence"],
            values=tuple(row["values"]),
            labels=tuple(tuple(marks) for marks in row["annotations"].values()),
            published=row["published"],
        )
        for row in rows
    ]


def f1(labels: Sequence[Sequence[int]], found: Sequence[int]) -> float:
    """Precision against what anybody marked, recall as the mean over people."""
    people = [{0, *marks} for marks in labels]
    reported = {0, *found}
    precision = _hits(set().union(*people), reported) / len(reported)
    recall = fmean(_hits(marks, reported) / len(marks) for marks in people)
    return 2.0 * precision * recall / (precision + recall)


def covering(labels: Sequence[Sequence[int]], found: Sequence[int], *, rows: int) -> float:
    """How much of each person's segments the best segment found overlaps (Jaccard), by rows; the mean over people."""
    ours = _segments(found, rows)
    return fmean(
        sum((stop - start) * max(_overlap((start, stop), other) for other in ours) for start, stop in theirs) / rows
        for theirs in (_segments(marks, rows) for marks in labels)
    )


def scored(series: Sequence[PublicSeries], found: Sequence[Sequence[int]]) -> dict[str, object]:
    """F1, covering and how many were reported, by series, and the means of the groups."""
    by_name = {
        one.name: {
            "f1": f1(one.labels, indices),
            "covering": covering(one.labels, indices, rows=len(one.values)),
            "reported": len(indices),
        }
        for one, indices in zip(series, found, strict=True)
    }
    return {"means": means({name: row["f1"] for name, row in by_name.items()}), "series": by_name}


def published(series: Sequence[PublicSeries]) -> dict[str, dict[str, float]]:
    """The mean F1 of the groups by method, from the figures of others."""
    return {
        method: means({one.name: one.published["f1"][method] for one in series}) for method in series[0].published["f1"]
    }


def means(by_name: Mapping[str, float]) -> dict[str, float]:
    """The mean over the quality-control series, over the others, and over all."""
    control = [value for name, value in by_name.items() if name.startswith(QUALITY_CONTROL)]
    others = [value for name, value in by_name.items() if not name.startswith(QUALITY_CONTROL)]
    return {"quality control": fmean(control), "others": fmean(others), "all": fmean([*control, *others])}


def _hits(marks: set[int], reported: set[int]) -> int:
    """How many marks have a report of their own within the margin, the nearest first."""
    free = set(reported)
    for mark in sorted(marks):
        near = [index for index in free if abs(index - mark) <= MARGIN]
        if near:
            free.remove(min(near, key=lambda index: (abs(index - mark), index)))
    return len(reported) - len(free)


def _segments(cuts: Sequence[int], rows: int) -> list[tuple[int, int]]:
    return list(pairwise([*sorted({0, *cuts}), rows]))


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> float:
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return max(0, shared) / (max(one[1], other[1]) - min(one[0], other[0]))
