"""Compares the scores of two decoders over a given text, where an early difference does not change later tokens."""

from array import array
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from sys import byteorder

from farm.contract.reports import ForcedScores

_BYTES = 4


class ScoresProblem(Exception):
    """Packed scores that cannot be read, or whose number differs between positions. The message says why."""


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """How the scores of two decoders differ over a given text."""

    # how many positions were compared
    positions: int
    # the largest difference of a score, infinite where it is not a number, and how many tokens after the prompt it is
    largest: float
    largest_at: int
    # how many of the positions have a difference beyond the tolerance
    beyond_tolerance: int

    @property
    def is_within_tolerance(self) -> bool:
        return self.beyond_tolerance == 0

    def sentence(self, *, baseline: str) -> str:
        """Say how the scores differ from those of the baseline, by the name of its cell."""
        scores = f"Given the same text, its scores at {self.positions} place{'' if self.positions == 1 else 's'}"
        if self.is_within_tolerance:
            return f"{scores} are within {self.largest:.2g} of {baseline}'s."
        place = "the end of the prompt" if self.largest_at == 0 else f"token {self.largest_at} behind it"
        size = f"by up to {self.largest:.2g}" if isfinite(self.largest) else "by no number"
        return (
            f"{scores} differ from {baseline}'s {size}, most at {place}: {self.beyond_tolerance} beyond the tolerance."
        )


def unpack_scores(scores: ForcedScores, *, byte_order: str = byteorder) -> list["array[float]"]:
    """Unpack the float32 scores of each position, one for each token of the vocabulary.

    They are packed as little-endian; `byte_order` is that of this machine. Raises ScoresProblem.
    """
    try:
        raw = b64decode(scores.scores, validate=True)
    except ValueError as error:
        raise ScoresProblem("the scores of a given text are not base64") from error
    count = len(scores.places)
    if not count or not raw or len(raw) % (_BYTES * count):
        raise ScoresProblem(f"{len(raw)} bytes of scores are not as many at each of {count} places")
    size = len(raw) // count
    rows = [array("f", raw[place * size : (place + 1) * size]) for place in range(count)]
    if byte_order == "big":
        for row in rows:
            row.byteswap()
    return rows


def compare_scores(scores: ForcedScores, baseline: ForcedScores, *, tolerance: float) -> ScoreDifference | None:
    """Compare scores with those of the baseline; None where their positions or the sizes of their vocabularies differ.

    A difference is allowed up to `tolerance` times the sum of the baseline's score and its largest score at the same
    position, because scores near zero have no exact digits after many layers. Raises ScoresProblem.
    """
    if scores.places != baseline.places:
        return None
    news, olds = unpack_scores(scores), unpack_scores(baseline)
    if len(news[0]) != len(olds[0]):
        return None
    differences = [max(map(_find_gap, new, old)) for new, old in zip(news, olds, strict=True)]
    beyond = sum(_is_beyond(new, old, tolerance=tolerance) for new, old in zip(news, olds, strict=True))
    largest = max(differences)
    largest_at = scores.places[differences.index(largest)]
    return ScoreDifference(len(differences), largest, largest_at, beyond)


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
