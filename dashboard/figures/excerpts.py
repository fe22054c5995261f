"""Fewer points of a long line, fewer bars, fewer letters: what stood out still stands out."""

from collections.abc import Callable, Sequence

from farm.contract.document_cells import Cell
from farm.rules.wording import numbers

MAX_BARS = 40


def barred(cells: Sequence[Cell], value: Callable[[Cell], float]) -> tuple[list[Cell], str]:
    """The cells that get a bar, at most MAX_BARS, and a sentence about the others; empty when there are none."""
    shown = [cells[place] for place in spread([value(cell) for cell in cells], most=MAX_BARS)]
    left = len(cells) - len(shown)
    return shown, f" {numbers.counted(left, 'cell')} between them are in the table only." if left else ""


def thinned(values: Sequence[float], *, most: int) -> list[int]:
    """Places of at most `most` (≥ 4) values, in order: the first, the last, and of each stretch its lowest and highest.

    All places when there are no more values than that.
    """
    count = len(values)
    if count <= most:
        return list(range(count))
    stretches = (most - 2) // 2
    chosen = {0, count - 1}
    for number in range(stretches):
        start, stop = number * count // stretches, (number + 1) * count // stretches
        chosen.add(min(range(start, stop), key=values.__getitem__))
        chosen.add(max(range(start, stop), key=values.__getitem__))
    return sorted(chosen)


def spread(values: Sequence[float], *, most: int) -> list[int]:
    """Places of at most `most` (≥ 2) values: the lowest, the highest, and evenly many ranks between, in their order."""
    count = len(values)
    if count <= most:
        return list(range(count))
    ranked = sorted(range(count), key=values.__getitem__)
    return sorted({ranked[number * (count - 1) // (most - 1)] for number in range(most)})


def start_of(name: str, *, most: int) -> str:
    """The first letters of a long name."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def end_of(name: str, *, most: int) -> str:
    """The last letters of a long name: nodes of one model are told apart by them."""
    return name if len(name) <= most else f"…{name[-most + 1 :]}"
