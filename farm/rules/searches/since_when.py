"""Searches for the release in which a cell changed: each experiment compares the good release with a probed one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from farm.contract.cells import Runtime
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import replace_runtimes
from farm.rules.runtimes.order import release_order
from farm.rules.searches.bisection import Bisection, Outcome
from farm.rules.searches.search import Answer, Experiment, Measured, Search, SearchProblem
from farm.rules.searches.targets import Step, Target, make_step

LOST = "The run was deleted before its results were read."


@dataclass
class SinceWhen(Search[Step, Answer]):
    """The search between two releases of `versions`, all published ones in release order.

    `point` makes the matrix of the single cell to measure. `target` is the change to look for. `suffix` ends the
    answer's sentence, such as ` over 12 versions`. A probe is undecided if it was skipped although it was compared.
    """

    point: Callable[[], Matrix]
    versions: Sequence[str]
    good: Runtime
    bad: Runtime
    target: Target
    suffix: str = ""
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bisection = Bisection(self.versions, good=self.good.version, bad=self.bad.version)

    def next(self) -> Experiment | None:
        """Return the block of the good release and the next one to probe; None once the answer is known."""
        version = self.bisection.next()
        if version is None:
            return None
        matrix = replace_runtimes(self.point(), [self.good, self._release(version)])
        return Experiment(matrix, f"{self.good} beside {version}", asked={"probe": version})

    def read(self, asked: Mapping[str, object], measured: Measured | None) -> Step:
        """Judge the probed release; it is skipped if nothing was measured."""
        probe = self._release(str(asked["probe"]))
        if measured is None:
            return make_step(probe, Outcome.SKIPPED, LOST)
        return self.target.judge_probe(measured.document, good=self.good, probe=probe)

    def is_undecided(self, outcome: Step) -> bool:
        return outcome["outcome"] == Outcome.SKIPPED and outcome["ratio"] is not None

    def record(self, outcome: Step) -> None:
        """Record a step.

        Raises SearchProblem if releases were published since the search began, or if the bad release is not bad.
        """
        if outcome["version"] != self.bisection.next():
            raise SearchProblem(
                f"New releases of {self.good.distribution} were published in the meantime; start the bisection again."
            )
        self.bisection.record(outcome["version"], Outcome(outcome["outcome"]))
        self.steps.append(outcome)

    def answer(self) -> Answer:
        """Return the first bad release in a sentence, and as plain values with its ratio to the good one."""
        found = self.bisection.answer()
        minutes = sum(step.get("minutes", 0.0) for step in self.steps)
        first_bad_step = next((step for step in self.steps if step["version"] == found.first_bad), None)
        figures = {"ratio": self.target.ratio, "low": None, "high": None} if first_bad_step is None else first_bad_step
        plain = {
            "first_bad": found.first_bad,
            "last_good": found.last_good,
            "suspects": list(found.suspects),
            "is_exact": found.is_exact,
            "is_monotone": found.is_monotone,
            "turns": [
                {"before": change.before, "after": change.after, "turned": change.outcome.value}
                for change in found.transitions
            ],
            "probes": found.probes,
            "skipped": [step["version"] for step in self.steps if step["outcome"] == Outcome.SKIPPED],
            "minutes": minutes,
            "ratio": figures["ratio"],
            "low": figures["low"],
            "high": figures["high"],
        }
        sentence = found.sentence(self.target.description)
        duration = f" It took {minutes:.1f} minutes{self.suffix}." if self.steps else ""
        return Answer(sentence[:1].upper() + sentence[1:] + duration, plain)

    def _release(self, version: str) -> Runtime:
        return Runtime(distribution=self.good.distribution, version=version)


def narrow(steps: Iterable[Step], *, good: str, bad: str) -> tuple[str, str]:
    """Narrow the range from a good to a bad release by the outcomes of steps; skipped releases are ignored.

    Return the first two neighbours of which the older one is good and the newer one bad. There may be none
    where `good` is not older than `bad`, which raises StopIteration.
    """
    judged = {step["version"]: step["outcome"] for step in steps if step["outcome"] != Outcome.SKIPPED}
    judged |= {good: Outcome.GOOD, bad: Outcome.BAD}
    pairs = pairwise(sorted(judged, key=release_order))
    return next((old, new) for old, new in pairs if (judged[old], judged[new]) == (Outcome.GOOD, Outcome.BAD))
