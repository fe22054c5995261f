"""Lists every metric that a cell has, including those that are fields of the cell."""

from collections.abc import Collection

from farm.contract.document_cells import Cell, CellMetric, Figure
from farm.contract.reports import CheckReport
from farm.rules.cells import metrics
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import JUDGED
from farm.rules.cells.scenario import Scenario
from farm.rules.cells.scenario_metrics import MAX_RATE
from farm.rules.judging.summaries import CellSummary


def list_metrics(
    cell: Cell, *, scenario: Scenario, check: CheckReport | None, summary: CellSummary | None, timed: Collection[str]
) -> list[CellMetric]:
    """List a cell's metrics: first what its scenario is about, p50 or the highest rate, then the others in the order of
    the table of metrics.

    `timed` are the fields of the cell that come from its launches; the others come once, from the check or a trace.
    """
    headline = MAX_RATE if scenario.looks_for_a_rate else JUDGED.name
    launches = 1 if summary is None else len(summary.launched[JUDGED.name].samples)
    listed = [
        _read_reported(metric, check, summary)
        if metric.is_under_metrics and metric.derive is None
        else _read_field(metric, cell, launches=launches if metric.name in timed or metric.derive else 1)
        for metric in metrics.METRICS
    ]
    return sorted((metric for metric in listed if metric is not None), key=lambda metric: metric.name != headline)


def _read_reported(metric: Metric, check: CheckReport | None, summary: CellSummary | None) -> CellMetric | None:
    """Return a metric that is no field of the cell, from its launches or its check; None where neither has it."""
    if metric.summary is not None:
        figure = None if summary is None else summary.launched.get(metric.name)
        return None if figure is None else CellMetric.from_figure(metric.name, figure)
    value = None if check is None else metric.read_figure(check)
    if value is None:
        return None
    return CellMetric.from_figure(metric.name, Figure(value=value, unit=metric.unit, better=metric.better))


def _read_field(metric: Metric, cell: Cell, *, launches: int) -> CellMetric | None:
    """Return a metric that is a field of the cell, or is derived from its fields.

    Return None where the cell lacks it, and for fields of which neither more nor less is better, such as whether the
    launches were stable.
    """
    value = metric.value(cell)
    if value is None or not metric.better:
        return None
    low, high = metric.interval_of(cell) or (None, None)
    return CellMetric(
        name=metric.name, unit=metric.unit, better=metric.better, value=value, ci_low=low, ci_high=high, n=launches
    )
