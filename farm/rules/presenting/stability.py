"""Decides whether unstable timings put a verdict at risk, and whether more rounds would decide it.

A cell's timings are unstable where the timing windows of a launch differ by more than DRIFT. Its verdicts may still be
reliable: its pairs may agree far better than that, or show a far larger change. Otherwise the cell is reported.
"""

from collections.abc import Iterable
from math import log, log1p
from typing import Final

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.planning.blocks import TWIN
from farm.rules.planning.estimates import OUT_OF_TIME
from farm.rules.wording.numbers import counted, percent
from farm.rules.wording.vocabulary import is_change

# Timing windows that differ by more have not settled (docs/samples.md).
DRIFT: Final = 0.05
NO_ROUNDS: Final = "no number of rounds would decide on this machine"
UNSTABLE: Final = (
    f"Unstable: timing windows of a launch differ by more than {percent(DRIFT)}. Stop other programs on the "
    "machine, or ask for more rounds."
)


def find_unstable(cells: Iterable[Cell], comparisons: Iterable[Comparison]) -> set[str]:
    """Return the ids of the cells whose timings did not settle, and thereby put a verdict at risk.

    A verdict is at risk where it is undecided, or its change may be no larger than DRIFT. A/A pairs count; comparisons
    without a ratio do not. A cell without comparisons is included where the half width of its own interval exceeds
    DRIFT, or the interval is not known.
    """
    unsettled = {cell.id: cell for cell in cells if cell.is_stable is False}
    judged: dict[str, list[Comparison]] = {cell_id: [] for cell_id in unsettled}
    for comparison in comparisons:
        if comparison.ratio is not None:
            for side in {comparison.baseline, comparison.candidate} & unsettled.keys():
                judged[side].append(comparison)
    return {
        cell_id
        for cell_id, cell in unsettled.items()
        if (any(map(_is_at_risk, judged[cell_id])) if judged[cell_id] else _is_interval_wide(cell))
    }


def _is_at_risk(comparison: Comparison) -> bool:
    """Whether the verdict is undecided, or its change may be no larger than DRIFT."""
    if comparison.verdict == "undecided":
        return True
    # Equal sides were shown to lie within a margin that is smaller than the drift.
    if not is_change(comparison.verdict):
        return False
    nearest = min(abs(log(end)) for end in (comparison.ci_low, comparison.ci_high, comparison.ratio) if end)
    return nearest <= log1p(DRIFT)


def _is_interval_wide(cell: Cell) -> bool:
    if cell.p50_ms is None or cell.p50_ci_ms is None:
        return True
    low, high = cell.p50_ci_ms
    return (high - low) / 2 > DRIFT * cell.p50_ms


def describe_rounds_needed(comparison: Comparison) -> str:
    """Say how many rounds would decide an undecided comparison, or that no number would.

    Return an empty string where it is decided, where too few rounds were measured to tell, and while its block is
    still being measured.
    """
    if comparison.verdict == "undecided" and comparison.rounds_needed is not None:
        return f"about {counted(comparison.rounds_needed, 'round')} in all would decide"
    return NO_ROUNDS if _is_beyond_rounds(comparison) else ""


def may_more_rounds_decide(comparisons: Iterable[Comparison]) -> bool:
    """Whether more rounds are worth measuring; A/A copies do not count.

    False only where comparisons are undecided and no number of rounds would decide any of them, so True where none is
    undecided.
    """
    undecided = [pair for pair in comparisons if pair.verdict == "undecided" and pair.axis != TWIN]
    return not undecided or not all(map(_is_beyond_rounds, undecided))


def _is_beyond_rounds(comparison: Comparison) -> bool:
    """Whether no number of rounds would decide a comparison whose block has ended; False before it can be judged."""
    is_open = comparison.verdict == "undecided" and comparison.rounds_needed is None
    is_judged = comparison.ratio is not None and comparison.smallest_detectable is not None
    return is_open and is_judged and comparison.max_rounds is None


def mark_continued(comparison: Comparison, *, max_rounds: int) -> Comparison:
    """Return a comparison of a block that is still being measured, up to `max_rounds`.

    An undecided comparison no longer asks for more rounds, and its reason says that measuring continues. Decided
    comparisons and A/A pairs are returned unchanged.
    """
    if comparison.verdict != "undecided" or comparison.axis == TWIN:
        return comparison
    reason = (comparison.reason or "").replace(OUT_OF_TIME, "").strip()
    reason = f"{reason} It is measured on, up to {max_rounds} rounds.".strip()
    return comparison.model_copy(update={"rounds_needed": None, "max_rounds": max_rounds, "reason": reason})
