"""Parses lists of releases as people write them: `all`, `1.15..1.31`, `1.20.1,1.23.0`, or a mixture."""

from collections.abc import Sequence

from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.runtimes.order import release_order

ALL = "all"


class RangeProblem(ValueError):
    """A text, or a part of it, names no published release. The message is one sentence."""


def parse_versions(text: str, published: Sequence[str]) -> list[str]:
    """Return the published releases that a text names, in release order.

    The end of a range includes all releases that begin with it: 1.15..1.31 holds 1.31.1, and 1.20.1..1.20 holds 1.20.1.
    Raises RangeProblem where a part of the text names no release.
    """
    versions: set[str] = set()
    for part in [part.strip() for part in text.split(",") if part.strip()]:
        versions |= _parse_part(part, published)
    if not versions:
        raise RangeProblem(f"“{text}” names no release: write {ALL}, 1.15..1.31 or 1.29.0,1.31.1.")
    return sorted(versions, key=release_order)


def _parse_part(part: str, published: Sequence[str]) -> set[str]:
    if part == ALL:
        return set(published)
    if ".." in part:
        return _parse_range(part, published)
    if part not in published:
        raise RangeProblem(choice_sentence("release", part, published))
    return {part}


def _parse_range(text: str, published: Sequence[str]) -> set[str]:
    begin, end = (_parse_numbers(side.strip(), text) for side in text.split("..", 1))
    if begin[: len(end)] > end:
        raise RangeProblem(f"The range {text} ends before it begins; swap its ends.")
    numbers = {version: release_order(version).release for version in published}
    # an open end is empty, so that every release lies before it
    versions = {version for version, release in numbers.items() if begin <= release and release[: len(end)] <= end}
    if not versions:
        span = f"{published[0]} to {published[-1]}" if published else "none"
        raise RangeProblem(f"No release lies in {text}; published are {span}.")
    return versions


def _parse_numbers(side: str, range_text: str) -> tuple[int, ...]:
    """Parse one side of a range; an open side is empty."""
    if not side:
        return ()
    pieces = side.split(".")
    if not all(piece.isdecimal() and len(piece) < 7 for piece in pieces):
        raise RangeProblem(f"The range {range_text} is not two releases: write it like 1.15..1.31.")
    return tuple(map(int, pieces))
