"""A race on this machine: its settings from a plan, its blocks with every pair compared, and its end in time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farm.contract.cells import CellSpec
from farm.contract.document_find import Found, Goal
from farm.rules.matrices.matrix import Matrix
from farm.rules.planning.plans import PlannedBlock
from farm.rules.searches import found
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
    """Counts the cores for which ONNX Runtime starts a thread each where nobody says how many."""
    facts = read_facts(busy_window_s=0)
    return facts.physical_cores or facts.logical_cores or 1


def run_race(bench: Bench, space: Matrix, question: Question) -> Found:
    """Races the settings of a space on this machine, and returns the document of what was found.

    A race that is stopped returns the best so far. Raises Usage for a space without two settings that run, and
    Infrastructure.
    """
    began = bench.clock()
    plan = bench.plan(space)
    contenders, refused = split_contenders(plan, space, question.goal)
    if why := explain_no_race(contenders, refused):
        raise Usage(why)
    cannot = f"; {len(refused)} more cannot run here" if refused else ""
    print_lines(f"{counted(len(contenders), 'setting')} in the space{cannot}.", console=bench.console)

    def left_s() -> float:
        return 60.0 * question.minutes - (bench.clock() - began)

    def fits(matrix: Matrix) -> bool:
        return fits_in(bench.plan(matrix), left_s())

    # of a slow model a block has fewer
    room = max(len(block.arms) for block in plan.blocks)

    def left() -> float:
        return left_s() / (60.0 * question.minutes)

    race = Race(space, contenders, question.goal, question.limits, room, fits, left)
    is_stopped = False
    try:
        carry_out(race, RaceMachine(bench, left_s))
    except Stopped as stopped:
        is_stopped = left_s() > 0.0
        if stopped.measured is not None:
            race.record_interrupted(stopped.measured)
    path = question.path
    if question.save is not None and (first := race.answer().found[:1]):
        specs = {arm.spec.digest: arm.spec for block in plan.blocks for arm in block.arms}
        path = str(question.save(specs[first[0].digest]))
    minutes = (bench.clock() - began) / 60.0
    asked = found.Asked(bench.name, question.path, path, minutes, refused, is_stopped)
    return found.make_document(race, asked)


@dataclass
class RaceMachine:
    """This machine, which measures so many rounds as an experiment asks for."""

    bench: Bench
    left_s: Callable[[], float]

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        rounds = experiment.asked["rounds"]

        def every_pair(block: PlannedBlock) -> PlannedBlock:
            return compare_every_pair(block, rounds=None if rounds is None else int(str(rounds)), left_s=self.left_s())

        return Machine(self.bench, every_pair).measure(experiment, search)
