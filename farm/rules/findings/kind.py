"""What a kind of change is: its words, how a pair is compared, whether it needs confirmation, its limit. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from farm.rules.findings.cell_pairs import Pair
from farm.rules.wording.numbers import TIMES, Words
from farm.rules.wording.vocabulary import Sign

# the shares that a rule lets pass, by their names
Limit = Literal["latency", "session", "first", "memory"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one kind between the cells of a pair.

    `worse` alerts, `better` is news, `undecided` needs more rounds; `passed` is undecided too, but surely within what
    the rule lets pass, and needs none. `better` and `well` (no change) resolve an alert. `size`: new / old, where it is
    a ratio.
    """

    verdict: Literal["worse", "better", "undecided", "passed", "well"]
    text: str = ""
    size: float | None = None


# finds the changes of a pair; the second argument is the fraction that the rule lets pass
Compare = Callable[[Pair, float], Iterable[Change]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of change.

    `alerts_on`: what alerts, in words, `{limit}` being what a rule lets pass under the name of `limit`, but not
    that it is shown again, which `is_noisy` says. `compare`: what of a pair it is about; without it, metrics whose
    entries alert as it. `words`: what more of it is called, and less. `before`: the kind of ours that one of a package
    is told before, else it is told last. `is_noisy`: a fresh block has to show it again, as what follows from the graph
    and the outputs need not. `is_of_endings`: it is about pairs of which a side has no figures, too. `is_headline`: its
    figures are those of the comparison itself. `has_work_around`: a session option may take it back.
    """

    key: str
    title: Sign
    alerts_on: str
    compare: Compare | None = None
    limit: Limit | None = None
    words: Words = TIMES
    before: str = ""
    is_noisy: bool = True
    is_of_endings: bool = False
    is_headline: bool = False
    has_work_around: bool = False
