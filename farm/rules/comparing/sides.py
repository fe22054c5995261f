"""Finds comparisons by their two cells, in either direction.

A block compares each two arms once, with the older runtime as the baseline; a watch or a gate with an older candidate
needs the comparison the other way round.
"""

from collections.abc import Iterable, Mapping

from farm.contract.document import Document
from farm.contract.document_comparisons import Comparison, MetricChange, OperatorChange
from farm.rules.wording.vocabulary import opposite_of

# comparisons by the ids of (baseline, candidate)
BySides = Mapping[tuple[str, str], Comparison]


def index_by_sides(comparisons: Iterable[Comparison]) -> BySides:
    return {(comparison.baseline, comparison.candidate): comparison for comparison in comparisons}


def comparison_between(by_sides: BySides, baseline: str, candidate: str) -> Comparison | None:
    """Find the comparison of two cells by their ids; None where they were not compared.

    If it was made the other way round, its sides are swapped.
    """
    comparison = by_sides.get((baseline, candidate))
    if comparison is not None:
        return comparison
    other = by_sides.get((candidate, baseline))
    return None if other is None else swap_sides(other)


def find_comparison(document: Document, baseline: str, candidate: str) -> Comparison | None:
    """Find the comparison of two cells of a document, swapped or None as by `comparison_between`."""
    return comparison_between(index_by_sides(document.comparisons), baseline, candidate)


def swap_sides(comparison: Comparison) -> Comparison:
    """Swap baseline and candidate: slower becomes faster, and ratios are inverted, also of operators and metrics."""
    swapped: dict[str, object] = {
        "baseline": comparison.candidate,
        "candidate": comparison.baseline,
        "verdict": opposite_of(comparison.verdict),
        "items_verdict": comparison.items_verdict and opposite_of(comparison.items_verdict),
        "operators": [_swap_operator(change) for change in comparison.operators],
        "prompt_operators": [_swap_operator(change) for change in comparison.prompt_operators],
        "metrics": [_swap_metric(change) for change in comparison.metrics],
    }
    for quantity in ("", "wall_", "cpu_", "items_"):
        swapped |= _invert_ratio(comparison, quantity)
    return comparison.model_copy(update=swapped)


def _invert_ratio(change: Comparison | OperatorChange | MetricChange, quantity: str = "") -> dict[str, float | None]:
    """Invert the ratio of a quantity and its interval; `quantity` is the prefix of their fields."""
    ratio, low, high = (getattr(change, f"{quantity}{figure}") for figure in ("ratio", "ci_low", "ci_high"))
    inverse = (1.0 / figure if figure else None for figure in (ratio, high, low))
    return dict(zip((f"{quantity}ratio", f"{quantity}ci_low", f"{quantity}ci_high"), inverse, strict=True))


def _swap_operator(change: OperatorChange) -> OperatorChange:
    """Swap the sides of an operator; its share of the whole change stays, since both change sign."""
    swapped = {
        "baseline_us": change.candidate_us,
        "candidate_us": change.baseline_us,
        "change_us": _negate(change.change_us),
        "change_low_us": _negate(change.change_high_us),
        "change_high_us": _negate(change.change_low_us),
        **_invert_ratio(change),
        "verdict": change.verdict and opposite_of(change.verdict),
    }
    return change.model_copy(update=swapped)


def _swap_metric(change: MetricChange) -> MetricChange:
    """Swap the sides of a metric; the margin of a repeat, a fraction of its baseline, becomes one of the other side."""
    is_of_baseline = change.p is None and change.change is None and change.ratio
    swapped = {
        "baseline": change.candidate,
        "candidate": change.baseline,
        **_invert_ratio(change),
        "change": _negate(change.change),
        "change_low": _negate(change.change_high),
        "change_high": _negate(change.change_low),
        "verdict": opposite_of(change.verdict),
        "margin": change.margin / (change.ratio or 1.0) if is_of_baseline else change.margin,
    }
    return change.model_copy(update=swapped)


def _negate(value: float | None) -> float | None:
    return None if value is None else -value
