"""What a cell on fresh inputs says of memory: settled, or growing, and by how much. Pure."""

from farm.contract.document_cells import Figure
from farm.rules.cells.scenario_metrics import MIN_GROWTH
from farm.rules.wording.numbers import MIB


def is_growing(growth: Figure) -> bool:
    return growth.low is not None and growth.low > MIN_GROWTH


def is_settled(growth: Figure) -> bool:
    return growth.low is None or growth.high is None or growth.high <= MIN_GROWTH


def sentence(growth: Figure) -> str:
    """One sentence on the growth of 1,000 inferences."""
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
