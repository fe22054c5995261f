"""Decides which cells are measured together, and which of them are compared.

Cells that differ in one axis belong in one block, above all those that differ in the runtime. A block holds at most 16
arms and 10 minutes, but has always room for two arms. What does not fit is split along the axis that matters least, and
the baseline, the first cell, is repeated in every further block.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

from farm.base.grouping import group_by
from farm.rules.cells.axes import SPLIT_ORDER
from farm.rules.planning.plans import Arm

MAX_BLOCK_S = 600.0
# a block has room for this many arms even if the model is slow, because a single arm compares nothing
MIN_ARMS = 2

# along this axis blocks are split last, so that all releases stay together as long as possible
LAST_SPLIT_AXIS = "runtime"
TWIN = "twin"
# scenarios in one block differ only in the streams of a closed loop, which readers know as another axis
SHOWN_AXES: Mapping[str, str] = {"scenario": "concurrency"}

P = TypeVar("P")
Positions = Callable[[P], Mapping[str, int]]


def group_into_blocks(cells: Sequence[P], *, positions: Positions[P], capacity: int) -> list[list[P]]:
    """Divide cells into blocks of at most `capacity` cells; `positions` returns a cell's position on each axis.

    Cells are first sorted by their positions on the axes of SPLIT_ORDER. The first cell of all is repeated in every
    further block as the baseline. If the values of the last axis do not fit one block, the first of those values is
    repeated instead. Neighbouring groups that fit in one block are joined.
    """
    if not cells:
        return []
    ordered = sorted(cells, key=lambda cell: tuple(positions(cell).get(axis, -1) for axis in SPLIT_ORDER))
    if len(ordered) <= capacity:
        return [ordered]
    blocks: list[list[P]] = []
    for anchor, family in _split(ordered, SPLIT_ORDER, anchor=ordered[0], positions=positions, room=capacity - 1):
        last = blocks[-1] if blocks else []
        if any(cell is anchor for cell in last) and len(last) + len(family) <= capacity:
            last.extend(family)
        else:
            blocks.append(list(family) if family[0] is anchor else [anchor, *family])
    return blocks


def _split(
    cells: list[P], axes: Sequence[str], *, anchor: P, positions: Positions[P], room: int
) -> list[tuple[P, list[P]]]:
    """Split cells along the axes into families of at most `room`, each with the cell to repeat before it."""
    if len(cells) <= room:
        return [(anchor, cells)]
    if not axes:
        return [(cells[0], cells[start : start + room]) for start in range(0, len(cells), room)]
    parts = group_by(cells, lambda cell: positions(cell).get(axes[0], -1))
    # the values of the last axis on which these cells differ stay one family
    if all(len(part) == 1 for part in parts.values()) and axes[0] == LAST_SPLIT_AXIS:
        return _split(cells, (), anchor=anchor, positions=positions, room=room)
    return [
        family
        for part in parts.values()
        for family in _split(part, axes[1:], anchor=anchor, positions=positions, room=room)
    ]


def count_fitting_arms(arm_s: float, *, limit: int) -> int:
    return max(MIN_ARMS, min(limit, int(MAX_BLOCK_S // arm_s)))


def list_comparisons(arms: Sequence[Arm]) -> list[tuple[int, int, str]]:
    """List (baseline, candidate, axis) for each pair of arms that differ on one axis or on none (axis `twin`).

    The list is in the order of the arms. The first two are indexes of `arms`; the baseline has the earlier position on
    the axis. The axis `scenario` is called `concurrency`. An axis that only one of the arms sets counts as a
    difference. An added twin is compared only with the arm that it repeats, because its other comparisons would be the
    same as those of that arm.
    """
    axes = {axis for arm in arms for axis in arm.positions}
    # arms that agree on all axes but one are grouped, once for each axis on which any differ
    differing = [axis for axis in axes if len({arm.positions.get(axis, -1) for arm in arms}) > 1]
    places = [tuple(arm.positions.get(axis, -1) for axis in differing) for arm in arms]
    added = {arm.arm for arm in arms if arm.twin_of is not None and arm.positions == arms[arm.twin_of].positions}
    comparisons = [(first, second, first, second, TWIN) for first, second in _list_pairs(places)]
    for number, axis in enumerate(differing):
        for first, second in _list_pairs([place[:number] + place[number + 1 :] for place in places]):
            step = places[second][number] - places[first][number]
            if step and second not in added:
                early, late = (first, second) if step > 0 else (second, first)
                comparisons.append((first, second, early, late, SHOWN_AXES.get(axis, axis)))
    return [(early, late, axis) for _, _, early, late, axis in sorted(comparisons)]


def _list_pairs(keys: Sequence[Hashable]) -> Iterator[tuple[int, int]]:
    for numbers in group_by(range(len(keys)), keys.__getitem__).values():
        yield from combinations(numbers, 2)
