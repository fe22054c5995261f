"""The best settings on each machine: the lowest latency, and the most items a second within a latency budget. Pure.

Only settings whose outputs pass take part; `left_out` says which of the others would have been the best. Settings that
launches do not tell apart from the best one stand beside it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

from farm.base.grouping import grouped
from farm.contract.document_cells import Cell
from farm.rules.presenting.hardware import Measured, fault_of
from farm.rules.presenting.lines import outputs_of

Times = tuple[float, float, float]


@dataclass(frozen=True)
class Best:
    """Of one machine: the best first, then those that launches do not tell apart from it.

    `most`: empty where nothing is within the budget.
    """

    node: str
    settings: int
    fastest: Sequence[Measured]
    most: Sequence[Measured]


def best_settings(measured: Iterable[Measured], *, budget_ms: float | None) -> list[Best]:
    """The best of each machine, by name.

    A budget is kept when the upper end of the interval is within it, so that it holds for most launches.
    """
    by_node = grouped((setting for setting in measured if _is_right(setting.cell)), lambda setting: setting.node)
    return [_best(node, known, budget_ms) for node, known in sorted(by_node.items())]


def _is_right(cell: Cell) -> bool:
    return outputs_of(cell) == "pass" and fault_of(cell) is None


def _best(node: str, known: Sequence[Measured], budget_ms: float | None) -> Best:
    timed = [setting for setting in known if setting.cell.throughput]
    within = [setting for setting in timed if budget_ms is None or _longest(setting.cell) <= budget_ms]
    return Best(node=node, settings=len(known), fastest=_lowest(known, _times), most=_lowest(within, _item_times))


def _lowest(known: Sequence[Measured], times: Callable[[Measured], Times]) -> list[Measured]:
    """The one of the lowest time, and those whose intervals reach into its own, in order."""
    ordered = sorted(known, key=lambda setting: times(setting)[1])
    return [setting for setting in ordered if times(setting)[0] <= times(ordered[0])[2]]


def _longest(cell: Cell) -> float:
    """The upper end of its latency; of too few launches for an interval the p50."""
    return cell.p50_ci_ms[1] if cell.p50_ci_ms is not None else cell.p50_ms or 0.0


def _times(measured: Measured) -> Times:
    """The lower end, the p50 and the upper end; of too few launches for an interval, nothing is told apart."""
    low, high = measured.cell.p50_ci_ms or (0.0, inf)
    return low, measured.cell.p50_ms or 0.0, high


def _item_times(measured: Measured) -> Times:
    """The same of one item."""
    low, p50, high = _times(measured)
    items = (measured.cell.throughput or 0.0) * p50
    return low / items, p50 / items, high / items


@dataclass(frozen=True)
class LeftOut:
    """How many settings do not take part because their outputs do not pass, and the fastest of them."""

    count: int
    fastest: Measured


def left_out(measured: Iterable[Measured]) -> LeftOut | None:
    """What was left out; None where nothing was."""
    others = [setting for setting in measured if not _is_right(setting.cell)]
    return LeftOut(len(others), min(others, key=lambda setting: setting.cell.p50_ms or 0.0)) if others else None
