"""The scores of two decoders over the same given text, by token, which an early difference does not stop."""

from array import array
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from sys import byteorder

from farm.contract.reports import ForcedScores

_BYTES = 4


class ScoresProblem(Exception):
    """Packed scores that cannot be read, or are not equally many at each place. The message says why."""


@dataclass(frozen=True, slots=True)
class Forced:
    """How the scores of two decoders differ over a given text."""

    # how many places were compared
    places: int
    # the largest difference of a score, and how many tokens after the prompt it is
    largest: float
    place: int
    # how many of the places have a difference beyond the tolerance
    beyond: int

    @property
    def is_same(self) -> bool:
        return self.beyond == 0

    def sentence(self, *, named: str) -> str:
        """Say how the scores differ from those of the cell with this name."""
        where = f"Given the same text, its scores at {self.places} place{'' if self.places == 1 else 's'}"
        if self.is_same:
            return f"{where} are within {self.largest:.2g} of {named}'s."
        place = "the end of the prompt" if self.place == 0 else f"token {self.place} behind it"
        size = f"by up to {self.largest:.2g}" if isfinite(self.largest) else "by no number"
        return f"{where} differ from {named}'s {size}, most at {place}: {self.beyond} beyond the tolerance."


def unpack_scores(scores: ForcedScores, *, machine: str = byteorder) -> list["array[float]"]:
    """Unpack the scores of each place for a machine of this byte order. Raises ScoresProblem."""
    try:
        raw = b64decode(scores.scores, validate=True)
    except ValueError as error:
        raise ScoresProblem("the scores of a given text are not base64") from error
    count = len(scores.places)
    if not count or not raw or len(raw) % (_BYTES * count):
        raise ScoresProblem(f"{len(raw)} bytes of scores are not as many at each of {count} places")
    size = len(raw) // count
    rows = [array("f", raw[place * size : (place + 1) * size]) for place in range(count)]
    if machine == "big":
        for row in rows:
            row.byteswap()
    return rows


def compare_scores(scores: ForcedScores, baseline: ForcedScores, *, tolerance: float) -> Forced | None:
    """Compare scores with those of the baseline; None where their places or their numbers of tokens differ.

    A difference may be `tolerance` times the score, plus as much of the largest score at its place, because scores near
    zero have no digits of their own after many layers. Raises ScoresProblem.
    """
    if scores.places != baseline.places:
        return None
    news, olds = unpack_scores(scores), unpack_scores(baseline)
    if len(news[0]) != len(olds[0]):
        return None
    differences = [max(map(_find_gap, new, old)) for new, old in zip(news, olds, strict=True)]
    beyond = sum(_is_beyond(new, old, tolerance=tolerance) for new, old in zip(news, olds, strict=True))
    worst = max(range(len(differences)), key=lambda place: differences[place])
    return Forced(len(differences), differences[worst], scores.places[worst], beyond)


def _find_gap(new: float, old: float) -> float:
    """Compute the difference of two scores: 0 for equal infinities, infinite where it is not a number."""
    if new == old:
        return 0.0
    return abs(new - old) if isfinite(new - old) else inf


def _is_beyond(new: Sequence[float], old: Sequence[float], *, tolerance: float) -> bool:
    largest = max((abs(b) for b in old if isfinite(b)), default=0.0)
    return any(
        _find_gap(a, b) > tolerance * (largest + (abs(b) if isfinite(b) else 0.0))
        for a, b in zip(new, old, strict=True)
    )
