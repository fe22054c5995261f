"""Long series: each watched cell as a ratio to the pinned reference that stood in the same block."""

from farm.alerts.models import Point, WatchRound
from farm.contract.document import Document
from farm.contract.document_comparisons import Comparison
from farm.rules.findings import cell_pairs
from farm.rules.presenting import metric_changes


def keep_points(one: WatchRound, document: Document) -> int:
    """A point for every release of the round that was compared with the reference; gives how many."""
    watch = one.watch
    reference = watch.runtime(one.pinned)
    runtimes = {cell.runtime for cell in document.cells} - {reference}
    rows = []
    for runtime in sorted(runtimes, key=str):
        for pair in cell_pairs.pairs(document, old=reference, new=runtime):
            comparison = pair.comparison
            if comparison is None or comparison.ratio is None or comparison.verdict == "not comparable":
                continue
            rows.append(
                Point(
                    round=one,
                    watch=watch,
                    series=pair.series,
                    label=cell_pairs.series_label(pair.new)[:300],
                    node=pair.new.node or "",
                    runtime=str(runtime),
                    ratio=comparison.ratio,
                    low=comparison.ci_low,
                    high=comparison.ci_high,
                    p50_ms=pair.new.p50_ms,
                    reference_ms=pair.old.p50_ms,
                    metrics=_metrics(comparison),
                )
            )
    Point.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _metrics(comparison: Comparison) -> dict[str, list[float]] | None:
    """Further metrics that have a ratio."""
    further = [one for one in metric_changes.further(comparison) if one.ratio]
    return {one.name: list(metric_changes.figures(one)) for one in further} or None
