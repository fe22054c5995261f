"""Finds the best settings on each machine: the lowest latency, and the most items a second within a latency budget.

Only settings whose outputs pass are considered. Settings whose intervals overlap with the best one's are listed with
it, unless a paired verdict tells them apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from farm.base.grouping import group_by
from farm.contract.document_cells import Cell
from farm.rules.presenting.hardware import (
    MeasuredSetting,
    TopSettings,
    find_fault,
    find_top,
    find_usual_sizes,
    inference_times,
)
from farm.rules.presenting.lines import judge_outputs


@dataclass(frozen=True)
class Best:
    """The best settings of one machine, out of `settings` with right outputs, no other fault and usual input sizes.

    `most_items` is empty where no setting is within the budget.
    """

    node: str
    settings: int
    fastest: TopSettings
    most_items: TopSettings


def find_best_settings(measured: Iterable[MeasuredSetting], *, budget_ms: float | None) -> list[Best]:
    """Find the best settings of each machine, sorted by node, among those that were fed inputs of the usual sizes.

    A setting is within the budget where the upper end of its interval is, so that the budget holds for most launches;
    without a budget every setting is. A setting without a throughput never has the most items. Settings with wrong
    outputs or another fault are ignored, and machines without any right setting are left out.
    """
    measured = list(measured)
    usual_sizes = find_usual_sizes(measured)
    right = [setting for setting in measured if _is_right(setting.cell, usual_sizes)]
    by_node = group_by(right, lambda setting: setting.node)
    bests = []
    for node, settings in sorted(by_node.items()):
        within_budget = [
            setting
            for setting in settings
            if setting.cell.throughput and (budget_ms is None or inference_times(setting).high <= budget_ms)
        ]
        fastest, most_items = find_top(settings, "latency"), find_top(within_budget, "items")
        bests.append(Best(node=node, settings=len(settings), fastest=fastest, most_items=most_items))
    return bests


def count_other_sizes(measured: Sequence[MeasuredSetting]) -> int:
    """Count the settings with right outputs and no other fault that were fed inputs of other sizes than most."""
    usual_sizes = find_usual_sizes(measured)
    return sum(_is_right(setting.cell) and setting.cell.shapes != usual_sizes for setting in measured)


@dataclass(frozen=True)
class LeftOut:
    """How many timed settings were left out, and the fastest of them."""

    count: int
    fastest: MeasuredSetting


def find_left_out(measured: Iterable[MeasuredSetting]) -> LeftOut | None:
    """Count the timed settings that can never be the best, by their outputs or another fault; None without any.

    Outputs that were not judged count as wrong; inputs of other sizes than most are no fault here.
    """
    wrong = [setting for setting in measured if setting.cell.p50_ms is not None and not _is_right(setting.cell)]
    if not wrong:
        return None
    return LeftOut(len(wrong), min(wrong, key=lambda setting: inference_times(setting).p50))


def _is_right(cell: Cell, usual_sizes: Mapping[str, int] | None = None) -> bool:
    return judge_outputs(cell) == "pass" and find_fault(cell, usual_sizes=usual_sizes) is None
