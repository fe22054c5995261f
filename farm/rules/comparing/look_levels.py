"""Fixes after which rounds a comparison is tested (a *look*), and at which level, so that false alarms stay at 1 %.

A verdict changes only at a look, after a fixed number of rounds; in between it is that of the last look. The planned
looks use most of the 1 %. Longer measurements have later looks, as many as needed: the k-th of them has
1 / (2 k (k + 1)) of the level that each test has at a planned look (alpha spending, Lan and DeMets, 1983), so that all
of them together have half of it. The level of `equal` is divided in the same way. tests/bench/continuing.py has a
comparison with rules that look after every round.
"""

from typing import NamedTuple

from farm.rules.wording.numbers import counted

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
    """The levels of one look: the largest p of each test, and the confidence of the interval that shows equality."""

    t: float
    flip: float
    sign: float
    equality: float


def levels_at(look: int, *, share: float = 1.0) -> Levels:
    """Compute the levels of a look by its index among the looks, from 0.

    `share` is the part of each test's level to use, where another test has the rest; that of equality is not divided.
    """
    later = 1.0 if look < PLANNED else _compute_later_share(look - PLANNED + 1)
    part = share * later
    return Levels(part * T_LEVEL, part * FLIP_LEVEL, part * SIGN_LEVEL, 1.0 - later * (1.0 - EQUALITY_LEVEL))


def describe_looks(rounds: int) -> str:
    """Say how many looks there were within `rounds`; empty if there were only planned ones."""
    count = sum(look <= rounds for look in LOOKS)
    return f"Looked at {count} times, which the level allows for." if count > PLANNED else ""


def describe_later_rounds(count: int, *, look: int) -> str:
    """Say that `count` rounds came after the last look and do not count yet; empty where none did."""
    if not count:
        return ""
    return f"{counted(count, 'round')} after the last look, at {look} rounds, {'is' if count == 1 else 'are'} left out."


def explain_too_few_rounds(rounds: int, *, min_rounds: int = LOOKS[0]) -> str:
    decide = "1 round decides" if rounds == 1 else f"{rounds} rounds decide"
    return f"{decide} nothing: a verdict takes at least {min_rounds}."


def _compute_later_share(number: int) -> float:
    # 1/4, 1/12, 1/24 … for later looks 1, 2, 3 …, in all 1/2
    return LATER_SHARE / (number * (number + 1))
