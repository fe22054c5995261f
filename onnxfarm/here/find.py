"""A race on this machine: its settings from a plan, its blocks with every pair compared, and its end in time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from farm.contract.cells import CellSpec
from farm.contract.document_find import Found, Goal
from farm.rules.matrices.matrix import Matrix
from farm.rules.searches import race_document
from farm.rules.searches.contenders import compare_every_pair, explain_no_race, fits_in, split_contenders
from farm.rules.searches.limits import Limits
from farm.rules.searches.race import Race
from farm.rules.searches.search import Experiment, Outcome, Search, carry_out
from farm.rules.wording.numbers import counted
from onnxfarm.here.workbench import Bench, Machine
from onnxfarm.outputs import print_lines
from onnxfarm.problems import Stopped, Usage
from worker.agent.machine.facts import read_facts


@dataclass(frozen=True)
class Question:
    """What is looked for, and in how many minutes. `path`: that of the model, as the user wrote it.

    `save`: writes the model that a cell runs, and returns its path.
    """

    path: str
    goal: Goal = "latency"
    limits: Limits = field(default_factory=Limits)
    minutes: float = 10.0
    save: Callable[[CellSpec], Path] | None = None


def count_physical_cores() -> int:
    """Count the cores for which ONNX Runtime starts a thread each where nobody says how many.

    Where that is unknown, they are the logical cores.
    """
    facts = read_facts(busy_window_s=0)
    return facts.physical_cores or facts.logical_cores or 1


def run_race(bench: Bench, space: Matrix, question: Question) -> Found:
    """Race the settings of a space on this machine, and return the document of the answer.

    A race that is stopped returns the best so far. Raises Usage for a space without two settings that run, and
    Infrastructure.
    """
    ends_at = bench.clock() + 60.0 * question.minutes
    plan = bench.plan(space)
    contenders, refused = split_contenders(plan, space, question.goal)
    if why := explain_no_race(contenders, refused):
        raise Usage(why)
    cannot = f"; {len(refused)} more cannot run here" if refused else ""
    print_lines(f"{counted(len(contenders), 'setting')} in the space{cannot}.", console=bench.console)

    def seconds_left() -> float:
        return ends_at - bench.clock()

    race = Race(
        space,
        contenders,
        question.goal,
        question.limits,
        # of a slow model a block has fewer settings
        max_in_block=max(len(block.arms) for block in plan.blocks),
        fits=lambda matrix: fits_in(bench.plan(matrix), seconds_left()),
        time_left=lambda: seconds_left() / (60.0 * question.minutes),
    )
    is_stopped = False
    try:
        carry_out(race, RaceMachine(bench, seconds_left))
    except Stopped as stopped:
        is_stopped = seconds_left() > 0.0
        if stopped.measured is not None:
            race.record_interrupted(stopped.measured)
    path = question.path
    if question.save is not None and (answer := race.answer().answer):
        specs = {arm.spec.digest: arm.spec for block in plan.blocks for arm in block.arms}
        path = str(question.save(specs[answer[0].digest]))
    minutes = question.minutes - seconds_left() / 60.0
    facts = race_document.Facts(bench.name, question.path, path, minutes, refused, is_stopped)
    return race_document.make_document(race, facts)


@dataclass
class RaceMachine:
    """This machine, which measures as many rounds as an experiment asks for."""

    bench: Bench
    seconds_left: Callable[[], float]

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        """Measure an experiment in the rounds that it asks for, with every pair of cells compared."""
        rounds: Any = experiment.asked["rounds"]
        every_pair = partial(compare_every_pair, rounds=rounds, left_s=self.seconds_left())
        return Machine(self.bench, every_pair).measure(experiment, search)
