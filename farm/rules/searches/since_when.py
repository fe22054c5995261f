"""Since which release a cell has changed: each experiment measures the good release beside a probed one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from farm.contract.cells import Runtime
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import replace_runtimes
from farm.rules.runtimes.order import release_order
from farm.rules.searches.bisection import Bisection, Outcome
from farm.rules.searches.search import Answer, Experiment, Measured, Search, SearchProblem
from farm.rules.searches.sought import Sought, Step, make_step

LOST = "The run was deleted before its results were read."


@dataclass
class SinceWhen(Search[Step, Answer]):
    """The search between two releases of `versions`, all published ones in release order.

    `point`: makes the matrix of the one cell that is measured. `sought`: the change that is looked for. `over`: ends
    the answer's sentence, such as ` over 12 versions`.
    """

    point: Callable[[], Matrix]
    versions: Sequence[str]
    good: Runtime
    bad: Runtime
    sought: Sought
    over: str = ""
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bisection = Bisection(self.versions, good=self.good.version, bad=self.bad.version)

    def next(self) -> Experiment | None:
        """Return the good release beside the next one to probe; None once the answer is known."""
        version = self.bisection.next()
        if version is None:
            return None
        matrix = replace_runtimes(self.point(), [self.good, self._release(version)])
        return Experiment(matrix, f"{self.good} beside {version}", asked={"probe": version})

    def read(self, asked: Mapping[str, object], measured: Measured | None) -> Step:
        """Judge the probed release, which is skipped where nothing was measured."""
        probe = self._release(str(asked["probe"]))
        if measured is None:
            return make_step(probe, Outcome.SKIPPED, LOST)
        return self.sought.judge_probe(measured.document, good=self.good, probe=probe)

    def is_undecided(self, outcome: Step) -> bool:
        return outcome["outcome"] == Outcome.SKIPPED and outcome["ratio"] is not None

    def record(self, outcome: Step) -> None:
        """Note a step. Raises SearchProblem where releases were published since the search began, or where the bad
        release is not bad."""
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
        turn = next((step for step in self.steps if step["version"] == found.first_bad), None)
        plain = {
            "first_bad": found.first_bad,
            "last_good": found.last_good,
            "suspects": list(found.suspects),
            "is_exact": found.is_exact,
            "is_monotone": found.is_monotone,
            "turns": [{"before": t.before, "after": t.after, "turned": t.turned.value} for t in found.turns],
            "probes": found.probes,
            "skipped": [step["version"] for step in self.steps if step["outcome"] == Outcome.SKIPPED],
            "minutes": minutes,
            "ratio": self.sought.ratio if turn is None else turn["ratio"],
            "low": None if turn is None else turn["low"],
            "high": None if turn is None else turn["high"],
        }
        sentence = found.sentence(self.sought.words[0])
        spent = f" It took {minutes:.1f} minutes{self.over}." if self.steps else ""
        return Answer(sentence[:1].upper() + sentence[1:] + spent, plain)

    def _release(self, version: str) -> Runtime:
        return Runtime(distribution=self.good.distribution, version=version)


def narrow(steps: Iterable[Step], *, good: str, bad: str) -> tuple[str, str]:
    """Return the nearest two releases of which the steps measured the older one as good and the newer one as bad."""
    judged = {step["version"]: step["outcome"] for step in steps if step["outcome"] != Outcome.SKIPPED}
    judged |= {good: Outcome.GOOD, bad: Outcome.BAD}
    pairs = pairwise(sorted(judged, key=release_order))
    return next((old, new) for old, new in pairs if (judged[old], judged[new]) == (Outcome.GOOD, Outcome.BAD))
