"""Decides whether the memory of a cell on fresh inputs settles or grows, and describes by how much.

Growth is a figure in bytes per 1,000 inferences, judged by its 95 % interval. After too few launches there is no
interval. Memory may then be called settled, by the figure itself, but never growing.
"""

from farm.contract.document_cells import Figure
from farm.rules.cells.scenario_metrics import MIN_GROWTH
from farm.rules.wording.numbers import MIB


def is_growing(growth: Figure) -> bool:
    return growth.low is not None and growth.low > MIN_GROWTH


def is_settled(growth: Figure) -> bool:
    return (growth.value if growth.high is None else growth.high) <= MIN_GROWTH


def describe_growth(growth: Figure) -> str:
    """Say in one sentence whether memory grows, settles or is undecided."""
    size = f"{_format_mib(growth.value)} MiB in 1,000 inferences"
    if growth.low is not None and growth.high is not None:
        interval = f"{_format_mib(growth.low)} to {_format_mib(growth.high)}"
        size += f" (95 % interval {interval}, {len(growth.samples)} launches)"
    size += "."
    if is_growing(growth):
        return f"Memory grows by {size}"
    return f"Memory settles: {size}" if is_settled(growth) else f"Whether memory grows is undecided: {size}"


def _format_mib(value: float) -> str:
    # adding zero removes the minus before a zero
    return f"{round(value / MIB, 2) + 0.0:.2f}"
