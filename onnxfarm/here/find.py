"""A race on this machine: its settings from a plan, its blocks with every pair compared, and its end in time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from farm.contract.cells import CellSpec
from farm.contract.document_cells import Cell
from farm.contract.document_find import Found, LeftSetting
from farm.rules.cells import label
from farm.rules.cells.identity import fields_of
from farm.rules.cells.values import plain_of
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import expand
from farm.rules.planning.plans import Plan, PlannedBlock, PlannedComparison
from farm.rules.runtimes import providers
from farm.rules.searches import found
from farm.rules.searches.limits import Limits
from farm.rules.searches.race import Contender, Race
from farm.rules.searches.search import Experiment, Outcome, Search, carry_out
from farm.rules.searches.standings import Goal
from farm.rules.wording.numbers import counted, listed
from onnxfarm.here.workbench import Bench, Machine
from onnxfarm.outputs import print_lines
from onnxfarm.problems import Stopped, Usage
from worker.agent.machine.facts import read_facts

# what all pairs of a block are compared along: settings may differ in several axes
AXIS = "setting"
OF_PROCESSOR = "Processor time is known of one thread on the CPU alone."
SHOWN_REASONS = 3


@dataclass(frozen=True)
class Question:
    """What is looked for, and in how many minutes. `path`: of the model, as the user wrote it. `save`: writes the model
    that a cell runs, and says where."""

    path: str
    goal: Goal = "latency"
    limits: Limits = field(default_factory=Limits)
    minutes: float = 10.0
    save: Callable[[CellSpec], Path] | None = None


def count_physical_cores() -> int:
    """What ONNX Runtime takes threads for where nobody says how many."""
    facts = read_facts(busy_window_s=0)
    return facts.physical_cores or facts.logical_cores or 1


def run_race(bench: Bench, space: Matrix, question: Question) -> Found:
    """The document of what was found. Raises Usage for a space without two settings that run, Infrastructure."""
    began = bench.clock()
    plan = bench.plan(space)
    contenders, refused = split_contenders(plan, space, question.goal)
    _check(contenders, refused)
    cannot = f"; {len(refused)} more cannot run here" if refused else ""
    print_lines(f"{counted(len(contenders), 'setting')} in the space{cannot}.", console=bench.console)

    def left_s() -> float:
        return 60.0 * question.minutes - (bench.clock() - began)

    def fits(matrix: Matrix) -> bool:
        blocks = bench.plan(matrix).blocks
        if len(blocks) != 1:
            return False
        needed_s = (blocks[0].once_s or 0.0) + blocks[0].min_rounds * (blocks[0].round_s or 0.0)
        return needed_s <= left_s()

    # of a slow model a block has fewer
    room = max(len(block.arms) for block in plan.blocks)

    def left() -> float:
        return left_s() / (60.0 * question.minutes)

    race = Race(space, contenders, question.goal, question.limits, room, fits, left)
    is_stopped = False
    try:
        carry_out(race, Track(bench, left_s))
    except Stopped as stopped:
        is_stopped = left_s() > 0.0
        if stopped.measured is not None:
            race.interrupt(stopped.measured)
    path = question.path
    if question.save is not None and (first := race.answer().found[:1]):
        specs = {arm.spec.digest: arm.spec for block in plan.blocks for arm in block.arms}
        path = str(question.save(specs[first[0].digest]))
    minutes = (bench.clock() - began) / 60.0
    asked = found.Asked(bench.name, question.path, path, minutes, refused, is_stopped)
    return found.document_of(race, asked)


@dataclass
class Track:
    """This machine, which measures so many rounds as an experiment asks for."""

    bench: Bench
    left_s: Callable[[], float]

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        rounds = experiment.asked["rounds"]

        def every_pair(block: PlannedBlock) -> PlannedBlock:
            pairs = combinations([arm.arm for arm in block.arms], 2)
            compared = tuple(
                PlannedComparison(baseline=baseline, candidate=candidate, axis=AXIS) for baseline, candidate in pairs
            )
            most = _max_rounds_in(block, self.left_s()) if rounds is None else int(str(rounds))
            changes = {"comparisons": compared, "max_rounds": most, "min_rounds": min(block.min_rounds, most)}
            return block.model_copy(update=changes)

        return Machine(self.bench, every_pair).measure(experiment, search)


def _max_rounds_in(block: PlannedBlock, left_s: float) -> int:
    """Of a final block, as many as its budget has and the time that is left allows, but never less than its fewest."""
    possible = (left_s - (block.once_s or 0.0)) / block.round_s if block.round_s else block.max_rounds
    return max(block.min_rounds, min(block.max_rounds, int(possible)))


def split_contenders(plan: Plan, space: Matrix, goal: Goal = "latency") -> tuple[list[Contender], list[LeftSetting]]:
    """The settings that can run, in the order of the space, and the others with their reasons."""
    points = expand(space).points
    places = {_key(point.positions): place for place, point in enumerate(points)}
    specs = {places[_key(arm.positions)]: arm for block in plan.blocks for arm in block.arms}
    cells = {place: _cell(arm.spec, arm.labels.get("session", "default")) for place, arm in specs.items()}
    varying = label.varying_axes(cells.values())
    contenders: dict[str, Contender] = {}
    refused = [
        LeftSetting(
            label=", ".join(point.labels.values()),
            settings={axis: plain_of(value) for axis, value in points[places[_key(point.positions)]].values.items()},
            why="refused",
            text=point.reason.text,
        )
        for point in plan.refused
    ]
    for place, cell in sorted(cells.items()):
        spec, name = specs[place].spec, label.describe_cell(cell, varying) or label.label_along(cell, varying)
        contender = Contender(cell.digest, {**points[place].values, "runtime": spec.runtime}, name)
        if goal == "processor-time" and (spec.session.threads > 1 or spec.provider != providers.CPU.name):
            plain = found.plain_settings(contender)
            refused.append(LeftSetting(label=name, settings=plain, why="refused", text=OF_PROCESSOR))
        else:
            contenders.setdefault(cell.digest, contender)
    return [*contenders.values()], refused


def _key(positions: Any) -> frozenset[tuple[str, int]]:
    return frozenset(positions.items())


def _cell(spec: CellSpec, session: str) -> Cell:
    known = {"id": spec.digest, "model_sha256": spec.artifact_sha256, "status": "done"}
    return Cell.model_validate(fields_of(spec, opset=None, session=session) | known)


def _check(contenders: Sequence[Contender], refused: Sequence[LeftSetting]) -> None:
    """Raises Usage."""
    reasons = listed(list(dict.fromkeys(left.text for left in refused)), most=SHOWN_REASONS)
    if not contenders:
        raise Usage(f"No setting of the space can run here: {reasons}")
    if len(contenders) == 1:
        why = f" ({len(refused)} cannot run: {reasons})" if refused else ""
        raise Usage(
            f"The space has one setting that can run, {contenders[0].label}, so that there is nothing to find{why}: "
            "give more values with --over, or measure it with `onnxfarm bench`."
        )
