"""Whether the memory of a cell on fresh inputs settles or grows, and by how much. Pure.

A growth is a figure in bytes per 1,000 inferences. It is judged by its 95 % interval, which one launch alone lacks.
"""

from farm.contract.document_cells import Figure
from farm.rules.cells.scenario_metrics import MIN_GROWTH
from farm.rules.wording.numbers import MIB


def is_growing(growth: Figure) -> bool:
    return growth.low is not None and growth.low > MIN_GROWTH


def is_settled(growth: Figure) -> bool:
    return growth.low is None or growth.high is None or growth.high <= MIN_GROWTH


def describe_growth(growth: Figure) -> str:
    """Say in one sentence whether memory grows, settles or is undecided."""
    if is_growing(growth):
        return f"Memory grows by {_mib(growth.value)} MiB in 1,000 inferences{_interval(growth)}."
    if is_settled(growth):
        return f"Memory settles: {_mib(growth.value)} MiB in 1,000 inferences{_interval(growth)}."
    return f"Whether memory grows is undecided: {_mib(growth.value)} MiB in 1,000 inferences{_interval(growth)}."


def _interval(growth: Figure) -> str:
    if growth.low is None or growth.high is None:
        return ""
    return f" (95 % interval {_mib(growth.low)} to {_mib(growth.high)}, {len(growth.samples)} launches)"


def _mib(value: float) -> str:
    # no minus before a zero
    return f"{round(value / MIB, 2) + 0.0:.2f}"
