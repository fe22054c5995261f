"""Defines a kind of change: its words, how it is found, its limit, and whether a fresh block has to confirm it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from farm.rules.findings.cell_pairs import Pair
from farm.rules.wording.numbers import TIMES, Words
from farm.rules.wording.vocabulary import Sign

# names of the limits up to which a rule allows a change without an alert
Limit = Literal["latency", "session", "first", "memory"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one kind between the cells of a pair, or that there is none.

    - `worse` opens an alert.
    - `better`, and `well` for no change, resolve an alert.
    - `undecided` needs more rounds.
    - `passed` is undecided, but surely smaller than what the rule allows, so it needs no more rounds.
    """

    verdict: Literal["worse", "better", "undecided", "passed", "well"]
    text: str = ""
    # new / old; None where the change is no ratio
    size: float | None = None


# finds the changes of a pair; the second argument is how large a change the rule allows, as a fraction
Compare = Callable[[Pair, float], Iterable[Change]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of change that somebody must look at."""

    key: str
    title: Sign
    # what alerts, in words; `{limit}` stands for what a rule allows
    alerts_on: str
    # finds the changes of this kind; None where they come from the metrics that alert as this kind
    compare: Compare | None = None
    # the limit of a rule that applies; None where every change alerts
    limit: Limit | None = None
    # the words for more of it, and for less
    words: Words = TIMES
    # for a kind from a package: the key of the built-in kind that it is listed before; empty lists it last
    before: str = ""
    # whether a fresh block has to show the change again; False where the graph or the outputs prove it
    is_noisy: bool = True
    # whether pairs are also compared where a side has no figures
    is_of_endings: bool = False
    # whether its figures are those of the comparison's own verdict
    is_headline: bool = False
    # whether a session option may undo the change
    has_work_around: bool = False
