"""Compares how many instructions two arms execute for an inference, to tell more work from slower work."""

from collections.abc import Sequence
from statistics import median

from farm.rules.wording.numbers import share

# launches of the same cell differ by a smaller fraction, and most changes of the code that runs are larger
MIN_CHANGE = 0.01


def describe_work(old: Sequence[float], new: Sequence[float], *, names: tuple[str, str]) -> str:
    """Say which of two arms executes more instructions per inference, and by how much, or that they do the same work.

    The work is the same where the medians differ by at most 1 %. `old` and `new` are the counts of their launches, and
    `names` those of the two arms in the same order. Empty where either has no count.
    """
    if not old or not new:
        return ""
    ratio = median(new) / median(old)
    if abs(ratio - 1.0) <= MIN_CHANGE:
        return f"{names[0]} and {names[1]} do the same work: as many instructions per inference."
    more, less = (names[1], names[0]) if ratio > 1.0 else names
    difference = share(max(ratio, 1.0 / ratio) - 1.0)
    return f"{more} does more work than {less}: {difference} more instructions per inference."
