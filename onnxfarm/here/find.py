"""Finds the best settings of a model by a race on this machine, in a limited time."""

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
class RaceRequest:
    """What a race searches for. `path`: the model's path, as the user wrote it. `minutes`: how long it may take.

    `save_model` writes the model that a cell runs, and returns its path; None: the best model is not written.
    """

    path: str
    goal: Goal = "latency"
    limits: Limits = field(default_factory=Limits)
    minutes: float = 10.0
    save_model: Callable[[CellSpec], Path] | None = None


def count_physical_cores() -> int:
    """Count the physical cores, because ONNX Runtime starts a thread for each by default.

    If their number is unknown, count the logical cores; return 1 if neither is known.
    """
    facts = read_facts(busy_window_s=0)
    return facts.physical_cores or facts.logical_cores or 1


def run_race(bench: Bench, space: Matrix, request: RaceRequest) -> Found:
    """Race the settings in `space` against each other on this machine, and return the answer as a document.

    Ctrl-C or the end of the time stops the race, and the answer is the best so far; Stopped is not raised. A model is
    saved only if a best setting was found. Raises Usage if fewer than two settings can run, or if the best model cannot
    be saved, and Infrastructure.
    """
    ends_at = bench.clock() + 60.0 * request.minutes
    plan = bench.plan(space)

    # find the settings that take part
    contenders, refused = split_contenders(plan, space, request.goal)
    if why := explain_no_race(contenders, refused):
        raise Usage(why)
    refusals = f"; {len(refused)} more cannot run here" if refused else ""
    print_lines(f"{counted(len(contenders), 'setting')} in the space{refusals}.", console=bench.console)

    def seconds_left() -> float:
        return ends_at - bench.clock()

    race = Race(
        space,
        contenders,
        request.goal,
        request.limits,
        # a block of a slow model has room for fewer settings, so take the size that the plan found
        max_in_block=max(len(block.arms) for block in plan.blocks),
        fits=lambda matrix: fits_in(bench.plan(matrix), seconds_left()),
        time_left=lambda: seconds_left() / (60.0 * request.minutes),
    )
    is_stopped = False
    try:
        carry_out(race, RaceMachine(bench, seconds_left))
    except Stopped as stopped:
        is_stopped = seconds_left() > 0.0
        if stopped.measured is not None:
            race.record_interrupted(stopped.measured)

    path = request.path
    if request.save_model is not None and (answer := race.answer().answer):
        specs = {arm.spec.digest: arm.spec for block in plan.blocks for arm in block.arms}
        path = str(request.save_model(specs[answer[0].digest]))
    minutes = request.minutes - seconds_left() / 60.0
    facts = race_document.Facts(bench.name, request.path, path, minutes, refused, is_stopped)
    return race_document.make_document(race, facts)


@dataclass
class RaceMachine:
    """Measures the experiments of a race on this machine. `seconds_left` returns the time until the race's end."""

    bench: Bench
    seconds_left: Callable[[], float]

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        """Measure an experiment with every pair of its cells compared.

        It has at most as many rounds as it asks for; None: as many as fit into the remaining time. With a single round
        nothing is compared. Raises Usage, Infrastructure and Stopped.
        """
        rounds: Any = experiment.asked["rounds"]
        every_pair = partial(compare_every_pair, rounds=rounds, left_s=self.seconds_left())
        return Machine(self.bench, every_pair).measure(experiment, search)
