"""Describes a model across hardware: where it may run, how fast, and which settings were left out."""

from collections.abc import Iterable, Mapping, Sequence

from farm.base.grouping import group_by
from farm.rules.cells import label
from farm.rules.presenting.hardware import (
    FAULTS,
    Goal,
    LimitCheck,
    Limits,
    MeasuredSetting,
    Target,
    TopSettings,
    inference_times,
    item_times,
)
from farm.rules.presenting.lines import BUSY
from farm.rules.presenting.times import clock_title, format_items, metric_heading
from farm.rules.wording import titles
from farm.rules.wording.numbers import counted, latency, listed, plain

# words for whether the best setting of a target keeps the limits
LIMIT_CHECK_WORDS: Mapping[LimitCheck, str] = {
    "kept": "within",
    "undecided": "undecided",
    "unknown": "loss not measured",
    "exceeded": "beyond",
}
SIDE_BY_SIDE = (
    "Different hardware, side by side: these figures come from different machines and times, so none of them is called "
    "faster or slower than another."
)


def explain_side_by_side(measured: Iterable[MeasuredSetting]) -> str:
    """Say that different hardware is not judged here, and which nodes share one machine; empty for a single node."""
    machines = group_by(measured, lambda setting: setting.device or setting.node)
    nodes_of_machines = [sorted({setting.node for setting in settings}) for settings in machines.values()]
    shared = [nodes for nodes in nodes_of_machines if len(nodes) > 1]
    if not shared:
        return SIDE_BY_SIDE if len(machines) > 1 else ""
    sentences = "; ".join(f"{listed(nodes, most=len(nodes))} are nodes of one machine" for nodes in shared)
    if len(machines) == 1:
        return (
            f"One hardware, measured at different times: {sentences}, so none is called faster or slower than another."
        )
    return f"{SIDE_BY_SIDE} But {sentences}."


def format_setting(measured: MeasuredSetting) -> str:
    return f"{titles.runtime(measured.cell.runtime)}, {label.workload_label(measured.cell)}"


def format_distinct_settings(measured: Sequence[MeasuredSetting]) -> list[str]:
    """Format several settings of one machine; those with equal words each get the axes on which they differ."""
    texts = list(map(format_setting, measured))
    varying = {
        text: label.varying_axes(setting.cell for setting in alike)
        for text, alike in group_by(measured, format_setting).items()
    }
    return [
        ", ".join([text, *(axis.label(setting.cell) for axis in varying[text])])
        for setting, text in zip(measured, texts, strict=True)
    ]


def format_latency(measured: MeasuredSetting) -> str:
    text = latency(measured.cell.p50_ms, measured.cell.p50_ci_ms)
    return f"{text} of CPU time" if measured.is_processor else text


def count_as_good(top: TopSettings) -> str:
    """Say how many other settings may be as good as the best one by their intervals; empty where none may."""
    others = len(top.settings) - 1
    return f"{others} other{'s are' if others > 1 else ' is'} as fast within the intervals." if others > 0 else ""


def items_heading(measured: Sequence[MeasuredSetting]) -> str:
    by_processor = [setting.has_items_by_processor for setting in measured]
    return metric_heading("items/s", by_processor) if any(setting.is_processor for setting in measured) else "items/s"


def explain_processor_time(measured: Sequence[MeasuredSetting]) -> str:
    """Say that settings are compared by processor time, and how many on the same nodes by the clock.

    Empty where all are by the clock.
    """
    busy_nodes = {setting.node for setting in measured if setting.is_processor}
    if not busy_nodes:
        return ""
    by_clock = sum(
        setting.node in busy_nodes and not setting.is_processor and setting.cell.p50_ms is not None
        for setting in measured
    )
    if not by_clock:
        return BUSY
    they_have = "it has" if by_clock == 1 else "they have"
    return f"{BUSY}; {counted(by_clock, 'setting')} by the clock, as {they_have} no processor time of one thread"


def name_target(target: Target) -> str:
    nodes, tag = target.nodes, target.tag
    return f"{nodes[0]} ({tag})" if len(nodes) == 1 else f"{tag} ({len(nodes)} nodes)"


def format_limits(limits: Limits) -> str:
    """Format the limits: `20 ms and 1 % loss`; empty where there are none."""
    budget = [] if limits.budget_ms is None else [f"{_format_limit(limits.budget_ms)} ms"]
    loss = [] if limits.max_loss is None else [f"{_format_limit(100 * limits.max_loss)} % loss"]
    return " and ".join(budget + loss)


def write_headline(targets: Sequence[Target], limits: Limits, goal: Goal) -> str:
    """Write the best figure, and its target unless another target's interval overlaps with it.

    `targets` are in the order of `hardware.find_targets`. Where none keeps the limits, say that. Return an empty string
    without targets, and where there are no limits and every setting was left out.
    """
    keeping = [target for target in targets if not limits.has_any or target.limit_check == "kept"]
    bests = [(target, target.best) for target in keeping if target.best is not None]
    if not bests:
        return f"no target within {format_limits(limits)}" if targets and limits.has_any else ""
    (target, best), *others = bests
    if goal == "items" and best.cell.throughput is not None:
        figure, times = format_items(best.cell, is_processor=best.is_processor), item_times
    else:
        figure, times = format_latency(best), inference_times
    is_alone = all(times(other).low > times(best).high for _, other in others)
    return f"{figure} at best{f', on {name_target(target)}' if is_alone else '; no target leads'}"


def describe_targets(targets: Sequence[Target], limits: Limits, goal: Goal) -> str:
    """Say how many targets keep the limits, and the best setting; without limits, how many targets there are.

    Where none keeps them, give the lowest latency of all. Say how many targets are undecided or without a loss.
    `targets` are those of one version, in the order of `hardware.find_targets`.
    """
    if not targets:
        return "No hardware has measured this model yet."
    version, count = targets[0].version, counted(len(targets), "target")
    if not limits.has_any:
        return f"Version {version} was measured on {count}. {_describe_best(targets, goal)}"
    keeping = [target for target in targets if target.best is not None and target.limit_check == "kept"]
    within = f"Within {format_limits(limits)}: {len(keeping) or 'None'} of {count} of version {version}."
    best = _describe_best(keeping, goal) if keeping else _describe_nearest(targets)
    return " ".join(filter(None, (within, best, _describe_unknown(targets))))


def describe_left_out(targets: Iterable[Target]) -> str:
    """Say how many settings were measured, how many of them can never be the best, and why."""
    targets = list(targets)
    counts = {fault: sum(target.left_out.get(fault, 0) for target in targets) for fault in FAULTS}
    reasons = [f"{counts[fault]} {words}" for fault, words in FAULTS.items() if counts[fault]]
    left_out = f"Left out: {', '.join(reasons)}." if reasons else "No setting was left out."
    return f"{counted(sum(target.settings for target in targets), 'setting')} measured. {left_out}"


def _describe_best(targets: Sequence[Target], goal: Goal) -> str:
    first = next((target for target in targets if target.best is not None), None)
    if first is None or first.best is None:
        return "Every measured setting was left out, so none is recommended."
    best, cell = first.best, first.best.cell
    figures = [format_latency(best)]
    if cell.throughput is not None:
        figures.insert(0 if goal == "items" else 1, format_items(cell, is_processor=best.is_processor))
    title = f"Lowest {clock_title([best.is_processor])}" if goal == "latency" else "Most items/s"
    sentence = f"{title}: {', '.join(figures)} on {name_target(first)} with {format_setting(best)}."
    return " ".join(filter(None, (sentence, count_as_good(first.top), first.top.doubt)))


def _describe_nearest(targets: Sequence[Target]) -> str:
    """Describe the lowest latency of all, where no target keeps the limits."""
    bests = [target.best for target in targets if target.best is not None]
    if not bests:
        return "Every measured setting was left out."
    fastest = min(bests, key=lambda setting: setting.cell.p50_ms or 0.0)
    where = f"{fastest.node} ({fastest.tag}) with {format_setting(fastest)}"
    return f"The lowest latency is {format_latency(fastest)}, on {where}."


def _describe_unknown(targets: Sequence[Target]) -> str:
    """Say of how many targets it is not known whether they keep the limits, and why."""
    states = [target.limit_check for target in targets if target.best is not None]
    undecided, unknown = states.count("undecided"), states.count("unknown")
    interval = f"{undecided} undecided: the interval reaches beyond the limit." if undecided else ""
    loss = f"{unknown} without a measured loss: add labelled data to the model and measure again." if unknown else ""
    return " ".join(filter(None, (interval, loss)))


def _format_limit(value: float) -> str:
    return f"{value:g}" if abs(value) < 1000 else plain(value)
