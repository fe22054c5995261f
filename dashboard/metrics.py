"""How the metrics of a cell are written on pages. What they are stands in `farm.rules.cells.metrics`."""

from dashboard import numbers
from farm.contract.document import Cell
from farm.rules.cells.metrics import Metric


def metric_text(metric: Metric, cell: Cell) -> str:
    """A cell's figure without its unit, but for bytes; `not measured` where there is none."""
    value = metric.value(cell)
    if value is None:
        return numbers.NOT_MEASURED
    match metric.reads:
        case "yes":
            return "yes" if value else "no"
        case "count":
            return str(int(value))
        case "memory":
            return numbers.memory(value)
        case "latency":
            return numbers.milliseconds(value, metric.interval_of(cell))
        case "plain":
            return numbers.plain(value)


def metric_with_unit(metric: Metric, cell: Cell, *, has_interval: bool = False) -> str:
    """The same with its unit, as it stands outside a table: `0.228 ms`, and `0.228 ms ± 0.002` where asked for."""
    value = metric.value(cell)
    if value is None or metric.reads not in ("latency", "plain"):
        return metric_text(metric, cell)
    spread = numbers.plus_minus(value, metric.interval_of(cell)) if has_interval else ""
    return " ".join(filter(None, (metric_text(metric, cell), metric.unit, spread)))
