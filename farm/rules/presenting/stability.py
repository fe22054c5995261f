"""Whether a cell that did not settle puts a verdict at risk: only then it is called unstable. Pure.

A cell is not stable where the timing windows of a launch did not come to agree within DRIFT. Its pairs may still agree
far better than that, or show a change far larger: then there is nothing to warn of.
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

# windows that differ by more have not settled (docs/samples.md)
DRIFT: Final = 0.05
NO_ROUNDS: Final = "no number of rounds would decide on this machine"
MEASURED_ON: Final = "It is measured on, up to"
UNSTABLE: Final = (
    f"Unstable: timing windows of a launch differ by more than {percent(DRIFT)}. Stop other programs on the "
    "machine, or ask for more rounds."
)


def find_at_risk(cells: Iterable[Cell], comparisons: Iterable[Comparison]) -> set[str]:
    """Return the ids of unsettled cells that put a verdict at risk.

    That is where a comparison of the cell is undecided, or shows a change no larger than the drift; of a cell compared
    with nothing, where its own interval is wider than the drift, or unknown.
    """
    restless = {cell.id: cell for cell in cells if cell.is_stable is False}
    compared: dict[str, list[Comparison]] = {name: [] for name in restless}
    for comparison in comparisons if restless else ():
        for side in {comparison.baseline, comparison.candidate} & restless.keys():
            compared[side].append(comparison)
    at_risk = set()
    for name, cell in restless.items():
        judged = [comparison for comparison in compared[name] if comparison.ratio is not None]
        if any(map(_is_doubtful, judged)) if judged else _is_wider_than_drift(cell):
            at_risk.add(name)
    return at_risk


def describe_rounds_needed(comparison: Comparison) -> str:
    """Say how many rounds would decide what is undecided, or that none would; empty where too few were measured to
    tell, and where items per second alone are undecided, as rounds are counted for latency."""
    if comparison.verdict == "undecided" and comparison.rounds_needed is not None:
        return f"about {counted(comparison.rounds_needed, 'round')} in all would decide"
    return NO_ROUNDS if _is_beyond_rounds(comparison) else ""


def _is_beyond_rounds(comparison: Comparison) -> bool:
    is_open = comparison.verdict == "undecided" and comparison.rounds_needed is None
    is_judged = comparison.ratio is not None and comparison.smallest_detectable is not None
    return is_open and is_judged and MEASURED_ON not in (comparison.reason or "")


def more_may_decide(comparisons: Iterable[Comparison]) -> bool:
    """Say whether more rounds are worth it: not where something is undecided and no number of rounds would decide any
    of it. A/A copies do not count."""
    undecided = [pair for pair in comparisons if pair.verdict == "undecided" and pair.axis != TWIN]
    return not undecided or not all(map(_is_beyond_rounds, undecided))


def measured_on(comparison: Comparison, *, rounds: int) -> Comparison:
    """Return the comparison as one whose block goes on up to so many rounds: what it would advise is asked for
    already."""
    if comparison.verdict != "undecided" or comparison.axis == TWIN:
        return comparison
    known = (comparison.reason or "").replace(OUT_OF_TIME, "").strip()
    reason = " ".join(filter(None, (known, f"{MEASURED_ON} {rounds} rounds.")))
    return comparison.model_copy(update={"rounds_needed": None, "reason": reason})


def _is_doubtful(comparison: Comparison) -> bool:
    if comparison.verdict == "undecided":
        return True
    # what is equal was shown to be so within a margin smaller than the drift; the rest is no verdict
    if not is_change(comparison.verdict):
        return False
    nearest = min(abs(log(end)) for end in (comparison.ci_low, comparison.ci_high, comparison.ratio) if end)
    return nearest <= log1p(DRIFT)


def _is_wider_than_drift(cell: Cell) -> bool:
    if cell.p50_ms is None or cell.p50_ci_ms is None:
        return True
    low, high = cell.p50_ci_ms
    return (high - low) / 2 > DRIFT * cell.p50_ms
