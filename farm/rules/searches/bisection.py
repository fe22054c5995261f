"""Finds the release that made a model worse: chooses the next version to measure, and derives the answer.

The caller measures. Every probe is one interleaved comparison of the good version with the probed one, so that its
outcome never rests on an older measurement.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from farm.rules.searches.search import SearchProblem
from farm.rules.wording.numbers import counted


class Outcome(StrEnum):
    """What a probe shows of one version, compared with the good version in the same block."""

    GOOD = "good"
    BAD = "bad"
    # it cannot load the model or be installed, or the comparison stayed undecided
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Transition:
    """Two neighbouring judged versions whose outcomes differ. `outcome` is that of the later one."""

    before: str
    after: str
    # versions between the two that could not be judged
    between: tuple[str, ...]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a bisection.

    One of the `suspects` is the first bad version. The last of them is `first_bad`; the others are skipped versions
    between it and `last_good`. `transitions` are in release order. `probes` counts the versions that were measured.
    `is_exact` says that there is one suspect, and `is_monotone` that the outcome changed only once.
    """

    last_good: str
    first_bad: str
    suspects: tuple[str, ...]
    transitions: tuple[Transition, ...]
    probes: int

    @property
    def is_exact(self) -> bool:
        return len(self.suspects) == 1

    @property
    def is_monotone(self) -> bool:
        return len(self.transitions) == 1

    def sentence(self, description: str = "bad") -> str:
        """Write the answer as a sentence.

        `description` says how the first bad release differs, such as `in which peak memory is bigger`. It is `bad` if
        nothing more precise is known.
        """
        if description == "bad":
            release, good, words = "the first bad release", "was still good", {}
        else:
            release, good = f"the first release {description}", "was not yet so"
            words = {Outcome.BAD: "so", Outcome.GOOD: "back"}

        if self.is_exact:
            where = f"{self.first_bad} is {release}; {self.last_good} {good}"
        else:
            where = f"one of {', '.join(self.suspects)} is {release} (those between could not be judged)"
        sentence = f"{where} ({counted(self.probes, 'probe')})."
        if self.is_monotone:
            return sentence
        changes = [f"{words.get(change.outcome, change.outcome)} in {change.after}" for change in self.transitions]
        return f"{sentence} It changed more than once: {', '.join(changes)}."


class Bisection:
    """Binary search over published versions. It also checks once on each side of the change that there is no other."""

    def __init__(self, versions: Sequence[str], *, good: str, bad: str) -> None:
        """Take `versions` in release order.

        Raises SearchProblem where good or bad is not among them, or where good is not older than bad.
        """
        for name in (good, bad):
            if name not in versions:
                raise SearchProblem(f"{name} is not a published version; published are {', '.join(versions)}.")
        first, last = versions.index(good), versions.index(bad)
        if first >= last:
            raise SearchProblem(f"The good version {good} must be older than the bad one {bad}; swap them.")
        self._versions = list(versions[first : last + 1])
        self._outcomes: dict[int, Outcome] = {0: Outcome.GOOD}
        self._measured = 0
        self._checked: set[str] = set()
        self._pending: str | None = None

    def next(self) -> str | None:
        """Return the version to measure next, the same until its outcome is recorded; None once the answer is known."""
        if self._pending is None:
            self._pending = self._choose()
        return self._pending

    def _choose(self) -> str | None:
        last = len(self._versions) - 1
        if last not in self._outcomes:
            return self._versions[last]
        index = self._choose_inside_transition()
        if index is None:
            index = self._choose_outside_transition()
        return None if index is None else self._versions[index]

    def record(self, version: str, outcome: Outcome) -> None:
        """Record the outcome of a probe.

        Raises SearchProblem where the last version, given as bad, is not bad, and ValueError for a version that is not
        between good and bad.
        """
        index = self._versions.index(version)
        if index == len(self._versions) - 1 and outcome is not Outcome.BAD:
            word = "not slower than" if outcome is Outcome.GOOD else "could not be compared with"
            raise SearchProblem(f"{version} was given as bad, but here it is {word} {self._versions[0]}.")
        self._outcomes[index] = outcome
        self._measured += 1
        self._pending = None

    def answer(self) -> Answer:
        """Return the earliest change from good to bad, by the outcomes so far.

        Raises StopIteration until the outcome of the last version is recorded.
        """
        transitions = self._list_transitions()
        first = next(change for change in transitions if change.outcome is Outcome.BAD)
        return Answer(
            last_good=first.before,
            first_bad=first.after,
            suspects=(*first.between, first.after),
            transitions=transitions,
            probes=self._measured,
        )

    def _list_judged(self) -> list[int]:
        return sorted(index for index, outcome in self._outcomes.items() if outcome is not Outcome.SKIPPED)

    def _list_changed_pairs(self) -> list[tuple[int, int]]:
        pairs = itertools.pairwise(self._list_judged())
        return [(low, high) for low, high in pairs if self._outcomes[low] is not self._outcomes[high]]

    def _list_transitions(self) -> tuple[Transition, ...]:
        return tuple(
            Transition(
                before=self._versions[low],
                after=self._versions[high],
                between=tuple(self._versions[low + 1 : high]),
                outcome=self._outcomes[high],
            )
            for low, high in self._list_changed_pairs()
        )

    def _choose_inside_transition(self) -> int | None:
        """Return the unmeasured version nearest the middle of the first transition that has one."""
        for low, high in self._list_changed_pairs():
            index = self._find_middle(low, high)
            if index is not None:
                return index
        return None

    def _choose_outside_transition(self) -> int | None:
        """Return the middle of the widest gap before the first transition, and at the next call after it.

        These probes check that the outcome does not change there as well.
        """
        first = self._list_changed_pairs()[0][0]
        pairs = list(itertools.pairwise(self._list_judged()))
        sides = {"before": [p for p in pairs if p[1] <= first], "after": [p for p in pairs if p[0] > first]}
        for side, gaps in sides.items():
            if side in self._checked or not gaps:
                continue
            self._checked.add(side)
            index = self._find_middle(*max(gaps, key=lambda gap: gap[1] - gap[0]))
            if index is not None:
                return index
        return None

    def _find_middle(self, low: int, high: int) -> int | None:
        unmeasured = [index for index in range(low + 1, high) if index not in self._outcomes]
        return min(unmeasured, key=lambda index: abs(2 * index - low - high), default=None)
