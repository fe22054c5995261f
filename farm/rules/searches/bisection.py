"""Find the release that made a model worse: which version to measure next, and what the outcomes say.

Pure: the caller measures. Every probe is one interleaved comparison of the good version with the probed one, so that a
probe's outcome never rests on yesterday's number.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from farm.rules.searches.search import SearchProblem


class Outcome(StrEnum):
    """What a probe shows of one version, compared with the good version in the same block."""

    GOOD = "good"
    BAD = "bad"
    # cannot load the model, cannot be installed, or stayed undecided at the end of its rounds
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Span:
    """Two judged versions next to each other, between which the outcome changed to `turned`."""

    before: str
    after: str
    # versions between the two that could not be judged
    between: tuple[str, ...]
    turned: Outcome


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a bisection. `suspects`: the versions of which one is the first bad one, `first_bad` the last of
    them; a single one unless skipped versions lie between it and `last_good`. `probes`: how many were measured.

    `is_exact` says that there is one suspect, `is_monotone` that the outcome changed only once.
    """

    last_good: str
    first_bad: str
    suspects: tuple[str, ...]
    turns: tuple[Span, ...]
    probes: int

    @property
    def is_exact(self) -> bool:
        return len(self.suspects) == 1

    @property
    def is_monotone(self) -> bool:
        return len(self.turns) == 1

    def sentence(self, what: str = "bad") -> str:
        """Write the answer as a sentence. `what` says how the first bad release differs, such as `in which peak memory
        is bigger`; `bad` where nothing more precise is known."""
        release = f"the first {what} release" if what == "bad" else f"the first release {what}"
        good = "was still good" if what == "bad" else "was not yet so"
        where = (
            f"{self.first_bad} is {release}; {self.last_good} {good}"
            if self.is_exact
            else f"one of {', '.join(self.suspects)} is {release} (those between could not be judged)"
        )
        effort = f"{self.probes} probe{'' if self.probes == 1 else 's'}"
        if self.is_monotone:
            return f"{where} ({effort})."
        told = {Outcome.BAD: "so", Outcome.GOOD: "back"} if what != "bad" else {}
        story = ", ".join(f"{told.get(span.turned, span.turned)} in {span.after}" for span in self.turns)
        return f"{where} ({effort}). It changed more than once: {story}."


class Bisection:
    """Binary search over published versions that also checks, once on each side, that the outcome turned only once."""

    def __init__(self, versions: Sequence[str], *, good: str, bad: str) -> None:
        """Take `versions` in release order. Raises SearchProblem where good or bad is not among them, or where good is
        not older than bad."""
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
        index = self._choose_inside_turn()
        if index is None:
            index = self._choose_outside_turn()
        return None if index is None else self._versions[index]

    def record(self, version: str, outcome: Outcome) -> None:
        """Note the outcome of a probe. Raises SearchProblem where the last version, given as bad, is not bad."""
        index = self._versions.index(version)
        if index == len(self._versions) - 1 and outcome is not Outcome.BAD:
            word = "not slower than" if outcome is Outcome.GOOD else "could not be compared with"
            raise SearchProblem(f"{version} was given as bad, but here it is {word} {self._versions[0]}.")
        self._outcomes[index] = outcome
        self._measured += 1
        self._pending = None

    def answer(self) -> Answer:
        """Return what is known now: the earliest change from good to bad names the release.

        It takes the outcome of the last version at least.
        """
        turns = self._turns()
        first = next(span for span in turns if span.turned is Outcome.BAD)
        return Answer(
            last_good=first.before,
            first_bad=first.after,
            suspects=(*first.between, first.after),
            turns=turns,
            probes=self._measured,
        )

    def _list_judged(self) -> list[int]:
        return sorted(index for index, outcome in self._outcomes.items() if outcome is not Outcome.SKIPPED)

    def _turns(self) -> tuple[Span, ...]:
        judged = self._list_judged()
        return tuple(
            Span(
                before=self._versions[low],
                after=self._versions[high],
                between=tuple(self._versions[low + 1 : high]),
                turned=self._outcomes[high],
            )
            for low, high in itertools.pairwise(judged)
            if self._outcomes[low] is not self._outcomes[high]
        )

    def _choose_inside_turn(self) -> int | None:
        """Return the unmeasured version nearest the middle of a turn that is not narrowed down yet."""
        judged = self._list_judged()
        for low, high in itertools.pairwise(judged):
            if self._outcomes[low] is not self._outcomes[high]:
                index = self._middle(low, high)
                if index is not None:
                    return index
        return None

    def _choose_outside_turn(self) -> int | None:
        """Return a version of the widest unmeasured gap, once on each side of the turn: was it like that all along?"""
        pairs = list(itertools.pairwise(self._list_judged()))
        turn = next(low for low, high in pairs if self._outcomes[low] is not self._outcomes[high])
        sides = {"before": [p for p in pairs if p[1] <= turn], "after": [p for p in pairs if p[0] > turn]}
        for side, gaps in sides.items():
            if side in self._checked or not gaps:
                continue
            self._checked.add(side)
            index = self._middle(*max(gaps, key=lambda gap: gap[1] - gap[0]))
            if index is not None:
                return index
        return None

    def _middle(self, low: int, high: int) -> int | None:
        free = [index for index in range(low + 1, high) if index not in self._outcomes]
        return min(free, key=lambda index: abs(2 * index - low - high)) if free else None
