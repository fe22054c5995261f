"""Searches for the session option that undoes a change: each experiment is a block of candidates and both releases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from farm.contract.cells import Runtime
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import Point
from farm.rules.searches import switches
from farm.rules.searches.search import Answer, Experiment, Measured, Search
from farm.rules.searches.switches import CANDIDATES, TRIALS, Candidate, Trial
from farm.rules.wording.numbers import counted

MAX_STEPS = 4


class Step(TypedDict):
    """The candidates that were tried in one block, and the trials of those that could be measured, as plain values.

    `minutes` is how long measuring them took, and `run` the id of the farm's run.
    """

    tried: list[dict[str, object]]
    trials: list[dict[str, object]]
    minutes: NotRequired[float]
    run: NotRequired[int]


@dataclass
class WorkAround(Search[Step, Answer]):
    """The search for a single cell.

    `place` returns the cell's matrix, its point there, and how many candidates fit in a block. `names` returns names of
    optimizers, in the order in which to try them.
    """

    place: Callable[[], tuple[Matrix, Point, int]]
    old: Runtime
    new: Runtime
    names: Callable[[], Sequence[str]]
    steps: list[Step] = field(default_factory=list)

    def next(self) -> Experiment | None:
        """Return a block of candidates and both releases; None after MAX_STEPS, or if no candidate is left."""
        matrix, point, max_candidates = self.place()
        candidates = self._plan_candidates(point, max_candidates) if len(self.steps) < MAX_STEPS else []
        if not candidates:
            return None
        tried = switches.make_trial_matrix(matrix, point, old=self.old, new=self.new, candidates=candidates)
        return Experiment(tried, asked={"candidates": CANDIDATES.dump_python(candidates, mode="json")})

    def _plan_candidates(self, point: Point, max_candidates: int) -> list[Candidate]:
        if not self.steps:
            level = str(point.values.get("optimization", "all"))
            return switches.plan_first_candidates(self.names(), level=level, max_candidates=max_candidates)
        done = {str(plain["label"]) for step in self.steps for plain in step["tried"]}
        return switches.plan_next_candidates(
            self.trials, max_candidates=max_candidates
        ) or switches.plan_last_candidates(point, self.trials, done=done, max_candidates=max_candidates)

    @property
    def trials(self) -> list[Trial]:
        return [trial for step in self.steps for trial in parse_trials(step)]

    def read(self, asked: Mapping[str, object], measured: Measured | None) -> Step:
        """Read the trials of a block; there are none where nothing was measured."""
        candidates = CANDIDATES.validate_python(asked["candidates"])
        found: list[Trial] = []
        if measured is not None:
            found = switches.read_trials(measured.document, candidates, old=self.old, new=self.new)
        return Step(tried=CANDIDATES.dump_python(candidates, mode="json"), trials=_plain(found))

    def record(self, outcome: Step) -> None:
        self.steps.append(outcome)

    def answer(self) -> Answer:
        """Return the best work-around in a sentence, and as plain values with its code.

        `is_found` among these values says whether there is one.
        """
        best = switches.find_best_trial(self.trials)
        minutes = sum(step.get("minutes", 0.0) for step in self.steps)
        tried = sum(len(step["tried"]) for step in self.steps)
        if best is None:
            least = f"{100 * switches.WORTHWHILE:.0f} % of the change"
            text = f"None of {counted(tried, 'set')} of session options recovers as much as {least}."
            return Answer(text, {"is_found": False, "tried": tried, "minutes": minutes})
        plain = {"is_found": True, "tried": tried, "minutes": minutes, "code": switches.write_python(best)}
        return Answer(switches.describe_trial(best), {**plain, **_plain([best])[0]})


def parse_trials(step: Step) -> list[Trial]:
    return TRIALS.validate_python(step.get("trials", ()))


def _plain(trials: list[Trial]) -> list[dict[str, object]]:
    plain: list[dict[str, object]] = TRIALS.dump_python(
        trials, mode="json", exclude={"__all__": {"comparison": {"operators"}}}
    )
    return plain
