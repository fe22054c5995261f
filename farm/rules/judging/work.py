"""Whether two arms do the same work: the instructions of an inference beside its time."""

from collections.abc import Sequence
from statistics import median

from farm.rules.wording.numbers import share

# launches of the same cell differ by a smaller fraction, and a change of the code that runs is mostly larger
SAME_WORK = 0.01


def describe_work(old: Sequence[float], new: Sequence[float], *, names: tuple[str, str]) -> str:
    """Say whether two arms do the same work, by the instructions per inference of their launches; empty without any.

    Both sides are named, because a comparison may be read from its other side.
    """
    if not old or not new:
        return ""
    ratio = median(new) / median(old)
    if abs(ratio - 1.0) <= SAME_WORK:
        return f"{names[0]} and {names[1]} do the same work: as many instructions per inference."
    more, less = (names[1], names[0]) if ratio > 1.0 else names
    difference = share(max(ratio, 1.0 / ratio) - 1.0)
    return f"{more} does more work than {less}: {difference} more instructions per inference."
