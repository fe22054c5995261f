"""The best settings on each machine: the lowest latency, and the most items a second within a latency budget. Pure.

Only settings whose outputs pass take part; `left_out` says which of the others would have been the best. Settings that
launches do not tell apart from the best one stand beside it, unless a paired verdict does; of too few launches for an
interval nothing is claimed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from farm.base.grouping import group_by
from farm.contract.document_cells import Cell
from farm.rules.comparing.signed_ranks import AT_LEAST, too_few_sentence
from farm.rules.presenting.hardware import Goal, Measured, fault_of, unbeaten
from farm.rules.presenting.lines import outputs_of
from farm.rules.wording.numbers import counted

Times = tuple[float, float, float]


@dataclass(frozen=True)
class Top:
    """The best of some settings, then those that launches do not tell apart from it; `unclear`: how many others may be
    as good, because they, or the best one, have too few launches to tell."""

    settings: Sequence[Measured] = ()
    unclear: int = 0

    @property
    def doubt(self) -> str:
        """Why other settings may be as good, and how many launches would tell; empty where nothing is open."""
        if not self.unclear:
            return ""
        if self.settings[0].cell.p50_ci_ms is None:
            return too_few_sentence(len(self.settings[0].cell.samples_ms))
        return f"Of {counted(self.unclear, 'other')} there are too few launches to tell: {AT_LEAST}."


@dataclass(frozen=True)
class Best:
    """The best settings of one machine; `most`, by items a second, is empty where nothing is within the budget."""

    node: str
    settings: int
    fastest: Top
    most: Top


def best_settings(measured: Iterable[Measured], *, budget_ms: float | None) -> list[Best]:
    """Return the best settings of each machine, sorted by its name.

    A setting keeps the budget where the upper end of its interval is within it, so that the budget holds for most
    launches.
    """
    by_node = group_by((setting for setting in measured if _is_right(setting.cell)), lambda setting: setting.node)
    found = []
    for node, known in sorted(by_node.items()):
        timed = [setting for setting in known if setting.cell.throughput]
        within = [setting for setting in timed if budget_ms is None or _inference_times(setting)[2] <= budget_ms]
        best = Best(
            node=node, settings=len(known), fastest=_find_fastest(known, "latency"), most=_find_fastest(within, "items")
        )
        found.append(best)
    return found


def _is_right(cell: Cell) -> bool:
    return outputs_of(cell) == "pass" and fault_of(cell) is None


def _find_fastest(known: Sequence[Measured], goal: Goal) -> Top:
    """Find the setting of the lowest time, of an inference or an item, and those whose intervals reach into its own.

    They are in order, and none of them loses to another by a paired verdict.
    """
    if not known:
        return Top()
    times = _item_times if goal == "items" else _inference_times
    first, *others = sorted(unbeaten(known, goal), key=lambda setting: times(setting)[1])
    sure = [setting for setting in others if setting.cell.p50_ci_ms is not None]
    if first.cell.p50_ci_ms is None:
        return Top([first], len(others))
    alike = [setting for setting in sure if times(setting)[0] <= times(first)[2]]
    return Top([first, *alike], len(others) - len(sure))


def _inference_times(measured: Measured) -> Times:
    """The lower end, the p50 and the upper end; of too few launches for an interval the p50 thrice."""
    p50 = measured.cell.p50_ms or 0.0
    low, high = measured.cell.p50_ci_ms or (p50, p50)
    return low, p50, high


def _item_times(measured: Measured) -> Times:
    """The same of one item."""
    low, p50, high = _inference_times(measured)
    items = (measured.cell.throughput or 0.0) * p50
    return low / items, p50 / items, high / items


@dataclass(frozen=True)
class LeftOut:
    """How many timed settings do not take part because their outputs do not pass, and the fastest of them."""

    count: int
    fastest: Measured


def find_left_out(measured: Iterable[Measured]) -> LeftOut | None:
    timed = (setting for setting in measured if setting.cell.p50_ms is not None)
    others = sorted(
        (setting for setting in timed if not _is_right(setting.cell)), key=lambda setting: _inference_times(setting)[1]
    )
    return LeftOut(len(others), others[0]) if others else None
