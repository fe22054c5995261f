"""Compares one model across hardware: the best settings of each version on each target, and which keep a wish. Pure.

A target is a node with the hardware tag that a provider runs on there, or a tag alone. Targets stand side by side and
are never judged against each other: they were not measured in one block, often not on one day.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from farm.base.grouping import group_by
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells.metrics import items_per_cpu_second
from farm.rules.comparing.quantities import Change, change_of
from farm.rules.comparing.signed_ranks import AT_LEAST, too_few_sentence
from farm.rules.presenting.lines import fails_parity, is_loss_shown
from farm.rules.presenting.times import Times
from farm.rules.quality import accuracy_metrics
from farm.rules.runtimes import providers
from farm.rules.wording.numbers import counted

By = Literal["node", "tag"]
Goal = Literal["latency", "items"]
Fault = Literal["wrong", "elsewhere", "untimed", "input"]
Keeping = Literal["kept", "undecided", "unknown", "exceeded"]

# why a setting is never the best one, in words that follow a number of settings
FAULTS: Mapping[Fault, str] = {
    "wrong": "with wrong outputs",
    "elsewhere": "that ran on the CPU instead of the provider asked for",
    "untimed": "without a latency",
    "input": "fed inputs of another size than most",
}
# from the best to the worst
_ORDER: tuple[Keeping, ...] = ("kept", "undecided", "unknown", "exceeded")
CPU = providers.CPU.name


@dataclass(frozen=True, slots=True)
class Measured:
    """One cell as a node measured it. `machine`: the processor or accelerator in words; `at`: when its block ended;
    `device`: what nodes of one machine share; empty: not known; `is_processor`: its times are processor time;
    `beaten_by`: for each goal the cells of its run to which it loses by a paired verdict."""

    run: int
    version: int
    node: str
    machine: str
    at: datetime | None
    cell: Cell
    device: str = ""
    is_processor: bool = False
    beaten_by: Mapping[Goal, Collection[str]] = field(default_factory=dict)

    @property
    def are_items_of_processor(self) -> bool:
        return self.is_processor and items_per_cpu_second(self.cell) is not None

    @property
    def tag(self) -> str:
        entry = providers.find(self.cell.provider)
        return self.cell.hardware if entry is None else entry.tag_with(self.cell.provider_options)


@dataclass(frozen=True, slots=True)
class Top:
    """The best of some settings, then those that launches do not tell apart from it; `unclear`: how many others may be
    as good, because they, or the best one, have too few launches to tell."""

    settings: Sequence[Measured] = ()
    unclear: int = 0

    @property
    def doubt(self) -> str:
        """Why other settings may be as good, and how many launches would tell; empty where nothing is open."""
        if not self.unclear:
            return ""
        if self.settings[0].cell.p50_ci_ms is None:
            return too_few_sentence(len(self.settings[0].cell.samples_ms))
        return f"Of {counted(self.unclear, 'other')} there are too few launches to tell: {AT_LEAST}."


@dataclass(frozen=True, slots=True)
class Loss:
    """What outputs lost against FP32, as a fraction: points of a share, or by how much a mean error grew.

    `worst`: the worse end of its 95 % interval. `basis`: judged on labelled data, or FP32 that passes parity.
    """

    value: float
    worst: float
    basis: Literal["labelled data", "parity"]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a setting has to keep: milliseconds of one inference, and a loss as a fraction; None: anything will do."""

    budget_ms: float | None = None
    loss: float | None = None

    @property
    def is_asked(self) -> bool:
        return self.budget_ms is not None or self.loss is not None


@dataclass(frozen=True, slots=True)
class Target:
    """A version on a target. `settings`: how many were measured there; `left_out`: how many of them for each fault.

    `top`: the best one and those like it, empty where all were left out. `keeping`: whether the best keeps the wish; of
    no wish everything does.
    """

    version: int
    nodes: tuple[str, ...]
    tag: str
    machine: str
    settings: int
    left_out: Mapping[Fault, int]
    top: Top
    keeping: Keeping

    @property
    def best(self) -> Measured | None:
        return next(iter(self.top.settings), None)


def with_comparable_times(measured: Sequence[Measured], by_processor: Collection[int]) -> list[Measured]:
    """Return the settings with the times that they are compared by.

    `by_processor` are indices of settings whose verdicts rest on processor time; every setting of their nodes that has
    it then gets processor time.
    """
    busy = {measured[place].node for place in by_processor}
    found = []
    for setting in measured:
        cell = setting.cell
        if setting.node in busy:
            cell = Times(frozenset({cell.id})).with_compared_time(cell)
        found.append(setting if cell is setting.cell else replace(setting, cell=cell, is_processor=True))
    return found


def with_verdicts(measured: Sequence[Measured], compared: Mapping[int, Iterable[Comparison]]) -> list[Measured]:
    """Return the settings with what beats them. `compared`: of each run, its comparisons."""
    cells = {(setting.run, setting.cell.id): setting.cell for setting in measured}
    beaten: dict[tuple[int, str], dict[Goal, set[str]]] = {}
    for run, pairs in compared.items():
        for pair in pairs:
            sides = {side: cells[run, side] for side in (pair.baseline, pair.candidate) if (run, side) in cells}
            if len(sides) < 2 or pair.verdict_from == "rate":
                continue
            changes: Mapping[Goal, Change] = {"latency": change_of(pair, {}), "items": change_of(pair, sides)}
            for goal, change in changes.items():
                if change.is_decided:
                    better, worse = (pair.baseline, pair.candidate)[:: -1 if change.is_gain else 1]
                    beaten.setdefault((run, worse), {}).setdefault(goal, set()).add(better)
    return [replace(setting, beaten_by=beaten.get((setting.run, setting.cell.id), {})) for setting in measured]


def unbeaten(settings: Sequence[Measured], goal: Goal) -> Sequence[Measured]:
    """Return those that lose to none of the others by a paired verdict; all of them where each does."""
    present = {(setting.run, setting.cell.id) for setting in settings}
    left = [
        setting
        for setting in settings
        if present.isdisjoint((setting.run, better) for better in setting.beaten_by.get(goal, ()))
    ]
    return left or settings


def find_top(known: Sequence[Measured], goal: Goal) -> Top:
    """Find the setting of the lowest time, of an inference or an item, and those whose intervals reach into its own.

    They are in order, and none of them loses to another by a paired verdict.
    """
    if not known:
        return Top()
    times = item_times if goal == "items" else inference_times
    first, *others = sorted(unbeaten(known, goal), key=lambda setting: times(setting)[1])
    sure = [setting for setting in others if setting.cell.p50_ci_ms is not None]
    if first.cell.p50_ci_ms is None:
        return Top([first], len(others))
    alike = [setting for setting in sure if times(setting)[0] <= times(first)[2]]
    return Top([first, *alike], len(others) - len(sure))


def inference_times(measured: Measured) -> tuple[float, float, float]:
    """The lower end, the p50 and the upper end; of too few launches for an interval the p50 thrice."""
    p50 = measured.cell.p50_ms or 0.0
    low, high = measured.cell.p50_ci_ms or (p50, p50)
    return low, p50, high


def item_times(measured: Measured) -> tuple[float, float, float]:
    """The same of one item; zeros where nobody knows how many items an inference has."""
    low, p50, high = inference_times(measured)
    items = (measured.cell.throughput or 0.0) * p50
    return (low / items, p50 / items, high / items) if items else (0.0, 0.0, 0.0)


def find_usual_sizes(measured: Sequence[Measured]) -> Mapping[str, int]:
    """Return the sizes of dimensions that most settings were fed, the newest of equally many: a time of a shorter input
    is of less work, and no better setting."""
    newest_first = sorted(measured, key=lambda point: -point.run)
    counts = Counter(tuple(sorted(point.cell.shapes.items())) for point in newest_first)
    # of equally many the first one that was counted
    return dict(counts.most_common(1)[0][0]) if counts else {}


def fault_of(cell: Cell, wish: Wish = Wish(), usual: Mapping[str, int] | None = None) -> Fault | None:
    """Return why a cell is never the best one; None where it may be. A loss that the wish itself limits is no fault.

    `usual`: the sizes that it has to have been fed; None: any.
    """
    if fails_parity(cell) or (wish.loss is None and is_loss_shown(cell.accuracy)):
        return "wrong"
    if _is_elsewhere(cell):
        return "elsewhere"
    # a simulator's latency is none of the hardware
    if cell.p50_ms is None or cell.simulated:
        return "untimed"
    return None if usual is None or cell.shapes == usual else "input"


def find_loss(cell: Cell) -> Loss | None:
    """Return what is known of a cell's loss against FP32; None where nothing is, so that no limit can be said to be
    kept."""
    judged = cell.accuracy
    if judged is not None and judged.difference is not None and judged.value is not None:
        low, high = judged.difference_low, judged.difference_high
        ends = (judged.difference if low is None else low, judged.difference if high is None else high)
        # of a share in points, of anything else a part of what it was
        before = 1.0 if accuracy_metrics.metric_of(judged).is_share else judged.value - judged.difference
        lost = (-judged.difference, -ends[0]) if judged.higher_is_better else (judged.difference, ends[1])
        return Loss(lost[0] / before, lost[1] / before, "labelled data") if before > 0 else None
    if cell.precision == "fp32" and cell.parity.verdict == "pass":
        return Loss(0.0, 0.0, "parity")
    return None


def judge_wish(cell: Cell, wish: Wish) -> Keeping:
    """Judge whether a cell keeps the wish, by the worse ends of its intervals, so that it holds for most launches.

    `undecided`: the value is within the limit and its interval reaches beyond. `unknown`: the loss was not measured.
    """
    kept: list[Keeping] = ["kept"]
    if wish.budget_ms is not None:
        value = cell.p50_ms or 0.0
        kept.append(_judge_limit(value, cell.p50_ci_ms[1] if cell.p50_ci_ms else value, wish.budget_ms))
    if wish.loss is not None:
        loss = find_loss(cell)
        kept.append("unknown" if loss is None else _judge_limit(loss.value, loss.worst, wish.loss))
    return max(kept, key=_ORDER.index)


def targets(
    measured: Iterable[Measured], *, by: By = "node", goal: Goal = "latency", wish: Wish = Wish()
) -> list[Target]:
    """Return every version on every target that has measured it, the newest version first, then what keeps the wish
    best.

    The best setting of a target is one that keeps the wish best, and among those the one of the lowest p50 or the most
    items/s.
    """

    def rank(target: Target) -> tuple[float, float]:
        if target.best is None:
            return len(_ORDER), 0.0
        return _ORDER.index(target.keeping), _cost(target.best.cell, goal)

    measured = list(measured)
    by_version = group_by(measured, lambda point: point.version)
    usual = {version: find_usual_sizes(points) for version, points in by_version.items()}
    groups = group_by(measured, lambda point: (point.version, point.node if by == "node" else "", point.tag))
    found = [_make_target(settings, goal, wish, usual[settings[0].version]) for settings in groups.values()]
    return sorted(found, key=lambda row: (-row.version, *rank(row), row.nodes, row.tag))


def select_version(found: Sequence[Target], wanted: int | None = None) -> list[Target]:
    newest = max((row.version for row in found), default=0) if wanted is None else wanted
    return [row for row in found if row.version == newest]


def _make_target(settings: Sequence[Measured], goal: Goal, wish: Wish, usual: Mapping[str, int]) -> Target:
    faults = [fault_of(point.cell, wish, usual) for point in settings]
    right = [point for point, fault in zip(settings, faults, strict=True) if fault is None]
    kept = {id(point): judge_wish(point.cell, wish) for point in right}
    keeping: Keeping = min(kept.values(), key=_ORDER.index, default="unknown")
    able = [point for point in right if kept[id(point)] == keeping]
    counting = [point for point in able if point.cell.throughput] if goal == "items" else able
    top = find_top(counting, goal) if counting else find_top(able, "latency")
    named = next(iter(top.settings), settings[0])
    return Target(
        version=named.version,
        nodes=tuple(sorted({point.node for point in settings})),
        tag=named.tag,
        machine=named.machine,
        settings=len(settings),
        left_out={fault: faults.count(fault) for fault in FAULTS if fault in faults},
        top=top,
        keeping=keeping,
    )


def _cost(cell: Cell, goal: Goal) -> float:
    return -(cell.throughput or 0.0) if goal == "items" else cell.p50_ms or 0.0


def _is_elsewhere(cell: Cell) -> bool:
    """Whether all of it ran on the CPU instead: by its trace, or without one by the providers that its session
    started."""
    if cell.provider == CPU:
        return False
    ran = [share.name for share in cell.providers if share.nodes] or cell.active_providers
    return bool(ran) and set(ran) == {CPU}


def _judge_limit(value: float, worst: float, limit: float) -> Keeping:
    if value > limit:
        return "exceeded"
    return "kept" if worst <= limit else "undecided"
