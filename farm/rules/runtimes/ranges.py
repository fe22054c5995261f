"""Reads lists of releases as people write them: `all`, `1.15..1.31`, `1.20.1,1.23.0`, mixed."""

from collections.abc import Sequence

from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.runtimes.order import release_order

ALL = "all"


class RangeProblem(ValueError):
    """What was written names no release. The message is one sentence."""


def parse_versions(text: str, published: Sequence[str]) -> list[str]:
    """Return the published releases that a text names, in release order.

    The end of a range stands for all its patch releases: 1.15..1.31 holds 1.31.1. Raises RangeProblem where a part
    names no release.
    """
    versions: set[str] = set()
    for part in [part.strip() for part in text.split(",") if part.strip()]:
        versions |= _list_releases(part, published)
    if not versions:
        raise RangeProblem(f"“{text}” names no release: write {ALL}, 1.15..1.31 or 1.29.0,1.31.1.")
    return sorted(versions, key=release_order)


def _list_releases(part: str, published: Sequence[str]) -> set[str]:
    if part == ALL:
        return set(published)
    low, dots, high = (end.strip() for end in part.partition(".."))
    if not dots:
        if part not in published:
            raise RangeProblem(choice_sentence("release", part, published))
        return {part}
    start, end = _read_numbers(low, part), _read_numbers(high, part)
    if end and start > end:
        raise RangeProblem(f"The range {part} ends before it begins; swap its ends.")
    numbers = {version: release_order(version).release for version in published}
    releases = {
        version for version, release in numbers.items() if release >= start and (not end or release[: len(end)] <= end)
    }
    if not releases:
        span = f"{published[0]} to {published[-1]}" if published else "none"
        raise RangeProblem(f"No release lies in {part}; published are {span}.")
    return releases


def _read_numbers(text: str, part: str) -> tuple[int, ...]:
    if text and not all(piece.isdecimal() and len(piece) < 7 for piece in text.split(".")):
        raise RangeProblem(f"The range {part} is not two releases: write it like 1.15..1.31.")
    return tuple(int(piece) for piece in text.split(".")) if text else ()
