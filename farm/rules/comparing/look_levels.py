"""When a comparison is looked at, and at which level: a rule whose false alarms hold however often somebody looks.

Verdicts change at looks alone, after fixed numbers of rounds, whoever asks for more of them and whenever: in between,
the verdict is that of the last look. The planned looks have most of the 1 %. Whoever measures more finds further
looks, without end by their rule: the k-th of them has 1 / (2 k (k + 1)) of the level that each test has at a planned
one (alpha spending, Lan and DeMets, 1983), so that all of them together have half of it and no more. `equal` is spent
the same way. tests/bench/continuing.py holds it against rules that look after every round.
"""

from typing import NamedTuple

# 8 · 2ᵏ and 12 · 2ᵏ rounds; a farm measures up to 96, a file may have more
PLANNED_LOOKS = (8, 12, 16, 24)
LOOKS = (*PLANNED_LOOKS, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)
PLANNED = len(PLANNED_LOOKS)
LATER_SHARE = 0.5

T_LEVEL = 0.0016
FLIP_LEVEL = 0.002
FLIP_FROM_ROUNDS = 12
SIGN_LEVEL = 0.0016
SIGN_FROM_ROUNDS = 24
# Narrower than 95 % would allow, because looks repeat.
EQUALITY_LEVEL = 0.975


class Levels(NamedTuple):
    """The levels of one look."""

    t: float
    flip: float
    sign: float
    # of the interval that must lie within the margin
    equality: float


def levels(place: int, *, share: float = 1.0) -> Levels:
    """Those of the look that has this place among its looks, counted from 0; `share`: of the level of each test."""
    later = 1.0 if place < PLANNED else _share(place - PLANNED + 1)
    part = share * later
    return Levels(part * T_LEVEL, part * FLIP_LEVEL, part * SIGN_LEVEL, 1.0 - later * (1.0 - EQUALITY_LEVEL))


def sentence(rounds: int) -> str:
    """What a reader must know of looks after the planned ones; empty where there was none."""
    count = sum(look <= rounds for look in LOOKS)
    return f"Looked at {count} times, which the level allows for." if count > PLANNED else ""


def too_few(rounds: int, *, least: int = LOOKS[0]) -> str:
    some = "1 round decides" if rounds == 1 else f"{rounds} rounds decide"
    return f"{some} nothing: a verdict takes at least {least}."


def _share(number: int) -> float:
    """What the later look of this number, from 1, has of a level: 1/4, 1/12, 1/24 …, in all 1/2."""
    return LATER_SHARE / (number * (number + 1))
