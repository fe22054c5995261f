"""The kinds of change that somebody must look at: one entry each, what is told first first. Pure.

Watches judge by them, alerts keep them, lists filter and sort by them, rules and pages name them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from farm.rules.wording.numbers import TIMES, Words
from farm.rules.wording.vocabulary import ELSEWHERE, STATES, VERDICTS, WRONG, Sign, sign_of

Key = Literal["parity", "failed", "slower", "placement", "ttft", "session", "first", "memory", "growth"]
SIZES: Words = ("bigger", "smaller")
KEYS: tuple[Key, ...] = get_args(Key)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of change.

    `alerts_on`: what alerts, in words, `{limit}` being what a rule lets pass under the name of `limit`. `words`: what
    more of it is called, and less. `is_noisy`: a fresh block has to show it again, as what follows from the graph and
    the outputs need not. `has_work_around`: a session option may take it back.
    """

    title: Sign
    alerts_on: str
    limit: Literal["latency", "session", "first", "memory"] | None = None
    words: Words = TIMES
    is_noisy: bool = True
    has_work_around: bool = False


KINDS: Mapping[str, Kind] = {
    "parity": Kind(
        STATES[WRONG],
        "outputs that stop matching the reference, or match it worse",
        is_noisy=False,
    ),
    "failed": Kind(Sign("✕", "fails", "bad"), "a cell that worked and now fails or is refused"),
    "slower": Kind(
        VERDICTS["slower"],
        "latency more than {limit} slower, shown again by a fresh block",
        limit="latency",
        has_work_around=True,
    ),
    "placement": Kind(
        STATES[ELSEWHERE],
        "an operator that moved to another provider, more copies, a lost fusion",
        is_noisy=False,
    ),
    "ttft": Kind(
        Sign("▲", "slower first token", "slower"),
        "the first token more than {limit} later, shown again by a fresh block",
        limit="latency",
    ),
    "session": Kind(
        Sign("▲", "slower to load", "slower"), "session creation more than {limit} slower", limit="session"
    ),
    "first": Kind(
        Sign("▲", "slower first inference", "slower"), "the first inference more than {limit} slower", limit="first"
    ),
    "memory": Kind(
        Sign("▲", "more memory", "slower"), "peak memory more than {limit} larger", limit="memory", words=SIZES
    ),
    "growth": Kind(
        Sign("▲", "growing memory", "slower"),
        "memory that grows more from inference to inference, shown again by a fresh block",
        words=SIZES,
    ),
}


# what a gate may fail on: kinds of change, what verdicts on metrics say, and what is open
Check = Literal["slower", "bigger", "lower", "parity", "placement", "failed", "undecided"]
CHECKS: tuple[Check, ...] = get_args(Check)
# checks that a fresh block has to show again; the others follow from the graph, the outputs and a repeat
NOISY_CHECKS = frozenset({"lower", *(key for key, kind in KINDS.items() if kind.is_noisy and key in CHECKS)})


def title_of(key: str) -> Sign:
    """The sign of a kind of change; an unknown one is shown as it is."""
    return KINDS[key].title if key in KINDS else sign_of(key)


def rank(key: str) -> int:
    """Where a kind stands in a list."""
    return list(KINDS).index(key)


def rank_to_investigate(key: str) -> tuple[bool, int]:
    """The same for what is looked into first: what may have a work-around."""
    return not KINDS[key].has_work_around, rank(key)
