"""The metrics of a cell as text and as values of charts. `farm.rules.cells.metrics` defines the metrics."""

from farm.contract.document_cells import Cell
from farm.rules.cells.metric import Metric
from farm.rules.presenting.lines import format_items_per_s
from farm.rules.wording import numbers
from farm.rules.wording.numbers import MIB


def metric_text(metric: Metric, cell: Cell) -> str:
    """Write a cell's figure without its unit; sizes in bytes include it. “not measured” where there is no figure."""
    value = metric.value(cell)
    if value is None:
        return numbers.NOT_MEASURED
    if metric.name == "throughput":
        return format_items_per_s(cell)
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
    """Write a cell's figure with its unit: `0.228 ms`, or with its interval `0.228 ms ± 0.002`. Counts and “yes” or
    “no” have no unit, and sizes have no interval. “not measured” where there is no figure."""
    value = metric.value(cell)
    if value is None or metric.reads not in ("latency", "plain"):
        return metric_text(metric, cell)
    spread = numbers.plus_minus(value, metric.interval_of(cell)) if has_interval else ""
    return " ".join(filter(None, (metric_text(metric, cell), metric.unit, spread)))


def title(metric: Metric) -> str:
    """Write a metric's name as it begins a sentence: `Peak memory`, but `p50`."""
    return metric.title if metric.title[1:2].isdigit() else metric.title[:1].upper() + metric.title[1:]


def axis_value(metric: Metric, cell: Cell) -> float | None:
    """Return a cell's figure as charts draw it: bytes in MiB, everything else unchanged. None without a figure."""
    value = metric.value(cell)
    if value is None:
        return None
    return value / MIB if metric.reads == "memory" else float(value)


def axis_title(metric: Metric) -> str:
    """Return the title of a chart's axis for this metric, with the unit of `axis_value`: `peak memory, MiB`."""
    return ", ".join(filter(None, (metric.title, "MiB" if metric.reads == "memory" else metric.unit)))
