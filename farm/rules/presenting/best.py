"""The best settings on each machine: the lowest latency, and the most items a second within a latency budget. Pure.

Only settings whose outputs pass take part; `left_out` says which of the others would have been the best. Settings that
launches do not tell apart from the best one stand beside it, unless a paired verdict does; of too few launches for an
interval nothing is claimed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from farm.base.grouping import group_by
from farm.contract.document_cells import Cell
from farm.rules.presenting.hardware import Measured, Top, fault_of, find_top, find_usual_sizes, inference_times
from farm.rules.presenting.lines import outputs_of


@dataclass(frozen=True)
class Best:
    """The best settings of one machine; `most`, by items a second, is empty where nothing is within the budget."""

    node: str
    settings: int
    fastest: Top
    most: Top


def best_settings(measured: Iterable[Measured], *, budget_ms: float | None) -> list[Best]:
    """Return the best settings of each machine, sorted by its name, among those that were fed inputs of the usual size.

    A setting keeps the budget where the upper end of its interval is within it, so that the budget holds for most
    launches.
    """
    measured = list(measured)
    usual = find_usual_sizes(measured)
    right = [setting for setting in measured if _is_right(setting.cell, usual)]
    by_node = group_by(right, lambda setting: setting.node)
    found = []
    for node, known in sorted(by_node.items()):
        timed = [setting for setting in known if setting.cell.throughput]
        within = [setting for setting in timed if budget_ms is None or inference_times(setting)[2] <= budget_ms]
        best = Best(node=node, settings=len(known), fastest=find_top(known, "latency"), most=find_top(within, "items"))
        found.append(best)
    return found


def _is_right(cell: Cell, usual: Mapping[str, int] | None = None) -> bool:
    return outputs_of(cell) == "pass" and fault_of(cell, usual=usual) is None


@dataclass(frozen=True)
class LeftOut:
    """How many timed settings do not take part because their outputs do not pass, and the fastest of them."""

    count: int
    fastest: Measured


def count_other_inputs(measured: Sequence[Measured]) -> int:
    """Count the settings with right outputs that were fed inputs of another size than most."""
    usual = find_usual_sizes(measured)
    return sum(_is_right(setting.cell) and not _is_right(setting.cell, usual) for setting in measured)


def find_left_out(measured: Iterable[Measured]) -> LeftOut | None:
    timed = (setting for setting in measured if setting.cell.p50_ms is not None)
    others = sorted(
        (setting for setting in timed if not _is_right(setting.cell)), key=lambda setting: inference_times(setting)[1]
    )
    return LeftOut(len(others), others[0]) if others else None
