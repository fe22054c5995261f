"""What a kind of change is: its words, how a pair is compared, its limit, and whether a fresh block confirms it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from farm.rules.findings.cell_pairs import Pair
from farm.rules.wording.numbers import TIMES, Words
from farm.rules.wording.vocabulary import Sign

# the limits of a rule on how large a change may be without alerting, by name
Limit = Literal["latency", "session", "first", "memory"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one kind between the cells of a pair.

    `worse` alerts, `better` is news, and `undecided` needs more rounds. `passed` is undecided too, but needs no more
    rounds, since the change is surely smaller than what the rule allows. `better` and `well`, which means no change,
    resolve an alert.
    """

    verdict: Literal["worse", "better", "undecided", "passed", "well"]
    text: str = ""
    # new / old; None where the change is no ratio
    size: float | None = None


# finds the changes of a pair; the second argument is how large a change the rule allows, as a fraction
Compare = Callable[[Pair, float], Iterable[Change]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of change."""

    key: str
    title: Sign
    # what alerts, in words; `{limit}` stands for what a rule allows
    alerts_on: str
    # finds the changes of this kind; None for a kind that metrics alert as
    compare: Compare | None = None
    # the limit of a rule that applies; None where every change alerts
    limit: Limit | None = None
    # what more of it is called, and what less
    words: Words = TIMES
    # of a kind from a package: the kind of ours that it is listed before; empty: it is listed last
    before: str = ""
    # whether a fresh block has to show the change again, as it need not where the graph or the outputs prove it
    is_noisy: bool = True
    # whether pairs are compared too of which a side has no figures
    is_of_endings: bool = False
    # whether its figures are those of the comparison itself
    is_headline: bool = False
    # whether a session option may take the change back
    has_work_around: bool = False
