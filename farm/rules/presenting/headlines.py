"""Which comparisons a run opens with: the largest decided change on any axis, then the axis that is asked for first.

A side whose outputs fail parity is never praised: a change that it wins does not lead, and is named apart. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells.axes import ASKED_ORDER
from farm.rules.comparing.quantities import Change, change_of
from farm.rules.planning.blocks import TWIN
from farm.rules.presenting.lines import is_wrong
from farm.rules.wording.vocabulary import rank

# Along these another amount of work is done at a time, with nothing to divide it by: more time for it is no news.
WORK_AXES = ("concurrency", "shapes", "hardware")


@dataclass(frozen=True, slots=True)
class Standing:
    """A comparison with what it comes to. `is_right`: its better side does not fail parity; True for none."""

    comparison: Comparison
    change: Change
    is_right: bool

    @property
    def axis(self) -> str:
        return self.comparison.axis


@dataclass(frozen=True, slots=True)
class Opening:
    """What a run is told by: the comparison that leads, and `asked` of the axis that is asked for first, if another.

    `left_out`: gains that do not lead because the outputs of the better side fail parity.
    """

    lead: Standing | None
    asked: Standing | None
    standings: Sequence[Standing]
    left_out: Sequence[Standing]

    @property
    def told(self) -> list[Standing]:
        """Those that are told in sentences of their own, in their order."""
        return [one for one in (self.lead, self.asked) if one is not None]


def opening_of(comparisons: Sequence[Comparison], cells: Mapping[str, Cell]) -> Opening:
    """What the comparisons of a run, or of one cell, open with."""
    standings = [_standing(one, cells) for one in comparisons if one.axis != TWIN]
    known = [one for one in standings if one.change.word != "not comparable"]
    asked = _worst_of_first_axis(known)
    decided = [one for one in known if one.change.is_decided and one.axis not in WORK_AXES]
    right = [one for one in decided if one.is_right]
    largest = max(right, key=lambda one: one.change.size, default=None)
    # of changes that cannot be told apart, the one that readers ask for first
    lead = asked if largest is None or _is_as_large(asked, largest) else largest
    return Opening(
        lead=lead,
        asked=None if asked is lead else asked,
        standings=known,
        left_out=[one for one in decided if not one.is_right],
    )


def opening_comparison(comparisons: Sequence[Comparison], cells: Mapping[str, Cell]) -> Comparison | None:
    """The comparison that a run opens with: the largest decided change on any axis, where there is one."""
    lead = opening_of(comparisons, cells).lead
    return None if lead is None else lead.comparison


def of_first_axis(comparisons: Sequence[Comparison], cells: Mapping[str, Cell]) -> Comparison | None:
    """The comparison to look at along the axis that is asked for first: releases, where they were compared."""
    found = _worst_of_first_axis(opening_of(comparisons, cells).standings)
    return None if found is None else found.comparison


def _standing(one: Comparison, cells: Mapping[str, Cell]) -> Standing:
    change = change_of(one, cells)
    return Standing(one, change, is_right=not is_wrong(one, change, cells))


def _is_as_large(asked: Standing | None, largest: Standing) -> bool:
    """Whether the intervals of two decided changes overlap, whichever direction they have."""
    if asked is None or not asked.change.is_decided or not asked.is_right:
        return False
    return _ends(asked.change)[1] >= _ends(largest.change)[0]


def _ends(change: Change) -> tuple[float, float]:
    """The least and the largest that a change may be, up or down alike, on the log scale."""
    low, high = (abs(log(end)) for end in (change.low or 1.0, change.high or 1.0))
    return min(low, high), max(low, high)


def _worst_of_first_axis(standings: Sequence[Standing]) -> Standing | None:
    axis = min((one.axis for one in standings), key=axis_rank, default=None)
    return max((one for one in standings if one.axis == axis), key=_weight, default=None)


def axis_rank(axis: str) -> tuple[int, str]:
    """Where an axis stands among those that a reader asks for first."""
    return (ASKED_ORDER.index(axis) if axis in ASKED_ORDER else len(ASKED_ORDER), axis)


def _weight(one: Standing) -> tuple[bool, int, float]:
    """Right outputs before wrong ones, slower before faster before undecided; the larger change first."""
    return one.is_right, -rank(one.change.word), one.change.size
