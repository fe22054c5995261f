"""Compares one model across hardware: the best settings of each version on each target, and which keep the limits.

A target is a node with the hardware tag of a provider that runs there, or a tag alone. Targets are listed side by side
and never judged against each other, because they were not measured in one block, and often not on one day.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple

from farm.base.grouping import group_by
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells.metrics import items_per_cpu_second
from farm.rules.comparing.quantities import Change, change_of
from farm.rules.comparing.signed_ranks import AT_LEAST, explain_too_few_launches
from farm.rules.presenting.lines import fails_parity, find_accuracy_loss, has_excessive_loss
from farm.rules.presenting.times import Times
from farm.rules.runtimes import providers
from farm.rules.wording.numbers import counted

By = Literal["node", "tag"]
Goal = Literal["latency", "items"]
Fault = Literal["wrong", "elsewhere", "untimed", "input"]
LimitCheck = Literal["kept", "undecided", "unknown", "exceeded"]

# why a setting is never the best one, in words that follow a number of settings
FAULTS: Mapping[Fault, str] = {
    "wrong": "with wrong outputs",
    "elsewhere": "that ran on the CPU instead of the provider asked for",
    "untimed": "without a latency",
    "input": "fed inputs of another size than most",
}
# from the best to the worst
_ORDER: tuple[LimitCheck, ...] = ("kept", "undecided", "unknown", "exceeded")
CPU = providers.CPU.name


@dataclass(frozen=True, slots=True)
class MeasuredSetting:
    """One cell as a node measured it.

    `machine` is the processor or accelerator in words; `tag` is the hardware tag of the cell's provider, or the cell's
    hardware where the provider is not known. `at` is when the block ended. Nodes of one machine have the same `device`,
    which is empty where it is not known. `is_processor` says that the cell's times are processor time, and
    `has_items_by_processor` that its items per second are too. `beaten_by` has, for each goal, the ids of the cells of
    its run to which it loses by a paired verdict.
    """

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
    def has_items_by_processor(self) -> bool:
        return self.is_processor and items_per_cpu_second(self.cell) is not None

    @property
    def tag(self) -> str:
        entry = providers.find(self.cell.provider)
        return self.cell.hardware if entry is None else entry.tag_with(self.cell.provider_options)


@dataclass(frozen=True, slots=True)
class TopSettings:
    """The best setting, followed by those that may be as good because their intervals overlap with its own.

    `unclear` counts other settings that may be as good, because they or the best one have too few launches to tell.
    """

    settings: Sequence[MeasuredSetting] = ()
    unclear: int = 0

    @property
    def doubt(self) -> str:
        """Why `unclear` settings may be as good, and how many launches would tell; empty where there are none."""
        if not self.unclear:
            return ""
        if self.settings[0].cell.p50_ci_ms is None:
            return explain_too_few_launches(len(self.settings[0].cell.samples_ms))
        return f"Of {counted(self.unclear, 'other')} there are too few launches to tell: {AT_LEAST}."


@dataclass(frozen=True, slots=True)
class Loss:
    """How much accuracy a cell lost against FP32, as a fraction.

    For a metric that is a share, the loss is the difference of the shares; for an error, it is relative to FP32's.
    `worst` is the worse end of the 95 % interval. Without labelled data, FP32 that passes parity has lost nothing.
    """

    value: float
    worst: float
    basis: Literal["labelled data", "parity"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a setting has to keep: a latency in ms and a loss of accuracy as a fraction. None means no limit."""

    budget_ms: float | None = None
    max_loss: float | None = None

    @property
    def has_any(self) -> bool:
        return self.budget_ms is not None or self.max_loss is not None


@dataclass(frozen=True, slots=True)
class Target:
    """A version on a target.

    `settings` is the number of settings measured there, `left_out` the number with each fault. `top` is empty where all
    were left out. `limit_check` says whether the best setting keeps the limits; without a best one it is `unknown`.
    """

    version: int
    nodes: tuple[str, ...]
    tag: str
    machine: str
    settings: int
    left_out: Mapping[Fault, int]
    top: TopSettings
    limit_check: LimitCheck

    @property
    def best(self) -> MeasuredSetting | None:
        return next(iter(self.top.settings), None)


def with_comparable_times(measured: Sequence[MeasuredSetting], by_processor: Collection[int]) -> list[MeasuredSetting]:
    """Return the settings with the times that they are compared by.

    `by_processor` are the indices of settings whose verdicts rest on processor time. All settings of their nodes then
    get processor time, where they have it.
    """
    busy_nodes = {measured[index].node for index in by_processor}
    comparable = []
    for setting in measured:
        cell = setting.cell
        if setting.node in busy_nodes:
            cell = Times(frozenset({cell.id})).with_compared_time(cell)
        comparable.append(setting if cell is setting.cell else replace(setting, cell=cell, is_processor=True))
    return comparable


def with_verdicts(
    measured: Sequence[MeasuredSetting], comparisons: Mapping[int, Iterable[Comparison]]
) -> list[MeasuredSetting]:
    """Return the settings with `beaten_by`: the cells that are better by a decided verdict, for each goal.

    `comparisons` are those of each run, by its number. Verdicts on a rate, and pairs with a side that is not among the
    settings, are ignored.
    """
    cells = {(setting.run, setting.cell.id): setting.cell for setting in measured}
    beaten_by: dict[tuple[int, str], dict[Goal, set[str]]] = {}
    for run, pair in ((run, pair) for run, pairs in comparisons.items() for pair in pairs):
        sides = {side: cells[run, side] for side in (pair.baseline, pair.candidate) if (run, side) in cells}
        if len(sides) < 2 or pair.verdict_from == "rate":
            continue
        changes: Mapping[Goal, Change] = {"latency": change_of(pair, {}), "items": change_of(pair, sides)}
        for goal, change in changes.items():
            if change.is_decided:
                better, worse = (pair.candidate, pair.baseline) if change.is_gain else (pair.baseline, pair.candidate)
                beaten_by.setdefault((run, worse), {}).setdefault(goal, set()).add(better)
    return [replace(setting, beaten_by=beaten_by.get((setting.run, setting.cell.id), {})) for setting in measured]


def find_top(settings: Sequence[MeasuredSetting], goal: Goal) -> TopSettings:
    """Find the setting with the lowest time of an inference or an item, and those whose intervals overlap with its own.

    They are sorted by time, and none of them loses to another by a paired verdict, unless every setting loses to one.
    Where the best one has no interval, it stands alone and all others are unclear. Without settings, all is empty.
    """
    if not settings:
        return TopSettings()
    times = item_times if goal == "items" else inference_times
    best, *others = sorted(_drop_beaten(settings, goal), key=lambda setting: times(setting).p50)
    if best.cell.p50_ci_ms is None:
        return TopSettings([best], len(others))
    with_interval = [setting for setting in others if setting.cell.p50_ci_ms is not None]
    overlapping = [setting for setting in with_interval if times(setting).low <= times(best).high]
    return TopSettings([best, *overlapping], len(others) - len(with_interval))


def _drop_beaten(settings: Sequence[MeasuredSetting], goal: Goal) -> Sequence[MeasuredSetting]:
    """Return the settings that lose to none of the others by a paired verdict; all of them where each loses."""
    present = {(setting.run, setting.cell.id) for setting in settings}
    unbeaten = [
        setting
        for setting in settings
        if present.isdisjoint((setting.run, better) for better in setting.beaten_by.get(goal, ()))
    ]
    return unbeaten or settings


class TimeWithInterval(NamedTuple):
    """A p50 in ms and the ends of its interval, which are the p50 itself where launches are too few for an interval."""

    low: float
    p50: float
    high: float


def inference_times(measured: MeasuredSetting) -> TimeWithInterval:
    """Return the time of one inference by the cell's p50; zeros where it has none."""
    p50 = measured.cell.p50_ms or 0.0
    low, high = measured.cell.p50_ci_ms or (p50, p50)
    return TimeWithInterval(low, p50, high)


def item_times(measured: MeasuredSetting) -> TimeWithInterval:
    """Return the time of one item; zeros where it is not known how many items an inference has."""
    low, p50, high = inference_times(measured)
    items = (measured.cell.throughput or 0.0) * p50
    return TimeWithInterval(low / items, p50 / items, high / items) if items else TimeWithInterval(0.0, 0.0, 0.0)


def find_usual_sizes(measured: Sequence[MeasuredSetting]) -> Mapping[str, int]:
    """Return the sizes of dimensions that most settings were fed; of equally many, those of the newest run.

    A setting that was fed other sizes did other work, so its time is not comparable. Empty without settings.
    """
    newest_first = sorted(measured, key=lambda setting: -setting.run)
    counts = Counter(tuple(sorted(setting.cell.shapes.items())) for setting in newest_first)
    # Among equal counts, most_common keeps the order of first appearance.
    return dict(counts.most_common(1)[0][0]) if counts else {}


def find_fault(cell: Cell, limits: Limits = Limits(), usual_sizes: Mapping[str, int] | None = None) -> Fault | None:
    """Return why a cell can never be the best one; None where it can.

    Of several faults the first in FAULTS is returned; a simulated cell is `untimed`. A loss of accuracy is no fault
    where `limits` has a limit for it. `usual_sizes` are the sizes that inputs must have had; None accepts any.
    """
    if fails_parity(cell) or (limits.max_loss is None and has_excessive_loss(cell.accuracy)):
        return "wrong"
    if _is_elsewhere(cell):
        return "elsewhere"
    # The latency of a simulator says nothing about the hardware.
    if cell.p50_ms is None or cell.simulated:
        return "untimed"
    return None if usual_sizes is None or cell.shapes == usual_sizes else "input"


def find_loss(cell: Cell) -> Loss | None:
    """Return a cell's loss of accuracy against FP32; None where it was not measured.

    A gain is negative. Without labelled data, FP32 that passes parity has lost nothing.
    """
    loss = find_accuracy_loss(cell.accuracy)
    if loss is not None:
        return Loss(loss.value, loss.interval[1] if loss.interval else loss.value, "labelled data")
    if cell.precision == "fp32" and cell.parity.verdict == "pass":
        return Loss(0.0, 0.0, "parity")
    return None


def check_limits(cell: Cell, limits: Limits) -> LimitCheck:
    """Check whether a cell keeps the limits, by the worse ends of its intervals, so that they hold for most launches.

    Return `kept`; `undecided` where a value is within its limit but its interval reaches beyond; `exceeded` where the
    value is beyond it; or `unknown` where the loss was not measured. Of two limits the worse result counts, `unknown`
    being worse than `undecided`. Without limits, and for a cell without a latency under a budget, it is `kept`.
    """
    judgements: list[LimitCheck] = ["kept"]
    if limits.budget_ms is not None:
        p50 = cell.p50_ms or 0.0
        judgements.append(_judge_limit(p50, cell.p50_ci_ms[1] if cell.p50_ci_ms else p50, limits.budget_ms))
    if limits.max_loss is not None:
        loss = find_loss(cell)
        judgements.append("unknown" if loss is None else _judge_limit(loss.value, loss.worst, limits.max_loss))
    return max(judgements, key=_ORDER.index)


def _judge_limit(value: float, worst: float, limit: float) -> LimitCheck:
    if value > limit:
        return "exceeded"
    return "kept" if worst <= limit else "undecided"


def find_targets(
    measured: Iterable[MeasuredSetting], *, by: By = "node", goal: Goal = "latency", limits: Limits = Limits()
) -> list[Target]:
    """Find every version on every target that has measured it.

    The newest version comes first, then the best limit check, then the best figure; targets without a best setting come
    last in their version. The best setting of a target has the best limit check, and among those the lowest p50 or the
    lowest time of an item; the lowest p50 also where none of them has items/s.
    """

    def order(target: Target) -> tuple[float, float]:
        if target.best is None:
            return len(_ORDER), 0.0
        cell = target.best.cell
        cost = -(cell.throughput or 0.0) if goal == "items" else cell.p50_ms or 0.0
        return _ORDER.index(target.limit_check), cost

    measured = list(measured)
    by_version = group_by(measured, lambda setting: setting.version)
    usual_sizes = {version: find_usual_sizes(settings) for version, settings in by_version.items()}
    groups = group_by(measured, lambda setting: (setting.version, setting.node if by == "node" else "", setting.tag))
    targets = [_make_target(settings, goal, limits, usual_sizes[settings[0].version]) for settings in groups.values()]
    return sorted(targets, key=lambda target: (-target.version, *order(target), target.nodes, target.tag))


def select_version(targets: Sequence[Target], version: int | None = None) -> list[Target]:
    """Select the targets of a version; of the newest one where it is None."""
    if version is None:
        version = max((target.version for target in targets), default=0)
    return [target for target in targets if target.version == version]


def _make_target(
    settings: Sequence[MeasuredSetting], goal: Goal, limits: Limits, usual_sizes: Mapping[str, int]
) -> Target:
    faults = [find_fault(setting.cell, limits, usual_sizes) for setting in settings]
    right = [setting for setting, fault in zip(settings, faults, strict=True) if fault is None]
    judgements = {id(setting): check_limits(setting.cell, limits) for setting in right}
    limit_check: LimitCheck = min(judgements.values(), key=_ORDER.index, default="unknown")
    candidates = [setting for setting in right if judgements[id(setting)] == limit_check]
    if goal == "items":
        with_items = [setting for setting in candidates if setting.cell.throughput]
        top = find_top(with_items, "items") if with_items else find_top(candidates, "latency")
    else:
        top = find_top(candidates, "latency")
    example = next(iter(top.settings), settings[0])
    return Target(
        version=example.version,
        nodes=tuple(sorted({setting.node for setting in settings})),
        tag=example.tag,
        machine=example.machine,
        settings=len(settings),
        left_out={fault: faults.count(fault) for fault in FAULTS if fault in faults},
        top=top,
        limit_check=limit_check,
    )


def _is_elsewhere(cell: Cell) -> bool:
    """Whether all of a cell ran on the CPU instead of its provider: by its trace, or without one by the providers that
    its session started."""
    if cell.provider == CPU:
        return False
    ran = [share.name for share in cell.providers if share.nodes] or cell.active_providers
    return bool(ran) and set(ran) == {CPU}
