"""The metrics of a cell as one list: every figure that it has, also those that are keys of the cell. Pure."""

from collections.abc import Collection

from farm.contract.document_cells import Cell, CellMetric, Figure
from farm.contract.reports import CheckReport
from farm.rules.cells import metrics
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import JUDGED
from farm.rules.cells.scenario import Scenario
from farm.rules.cells.scenario_metrics import MAX_RATE
from farm.rules.judging.summaries import CellSummary


def listed(
    cell: Cell, *, scenario: Scenario, check: CheckReport | None, summary: CellSummary | None, timed: Collection[str]
) -> list[CellMetric]:
    """In the order of the table, but the scenario's headline first: p50, or the rate that it looks for.

    `timed`: keys of the cell that its launches say, where others come once, from the check pass or a trace. What says
    how launches went (stable, disturbed) is no figure and not among them. The launches of metrics that are keys of the
    cell stand under the cell's own keys, where it keeps them.
    """
    headline = MAX_RATE if scenario.looks_for_a_rate else JUDGED.name
    launches = 1 if summary is None else len(summary.launched[JUDGED.name].samples)
    found = [
        _carried(metric, check, summary)
        if metric.is_under_metrics and metric.derive is None
        else _own(metric, cell, launches=launches if metric.name in timed or metric.derive else 1)
        for metric in metrics.METRICS
    ]
    return sorted((metric for metric in found if metric is not None), key=lambda metric: metric.name != headline)


def _carried(metric: Metric, check: CheckReport | None, summary: CellSummary | None) -> CellMetric | None:
    """One without a key of its own: of launches, or of the check pass what comes once."""
    if metric.summary is not None:
        figure = None if summary is None else summary.launched.get(metric.name)
        return None if figure is None else CellMetric.from_figure(metric.name, figure)
    value = None if check is None else metric.read_figure(check)
    if value is None:
        return None
    return CellMetric.from_figure(metric.name, Figure(value=value, unit=metric.unit, better=metric.better))


def _own(metric: Metric, cell: Cell, *, launches: int) -> CellMetric | None:
    """One that is a key of the cell, as it stands there, or that follows from such."""
    value = metric.value(cell)
    if value is None or not metric.better:
        return None
    low, high = metric.interval_of(cell) or (None, None)
    return CellMetric(
        name=metric.name, unit=metric.unit, better=metric.better, value=value, ci_low=low, ci_high=high, n=launches
    )
