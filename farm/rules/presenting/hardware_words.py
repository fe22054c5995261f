"""Describes a model across hardware: the answer in a sentence, and what was left out of it. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from farm.base.grouping import group_by
from farm.rules.cells import label
from farm.rules.presenting.hardware import (
    FAULTS,
    Goal,
    Keeping,
    Measured,
    Target,
    Top,
    Wish,
    inference_times,
    item_times,
)
from farm.rules.presenting.lines import BUSY
from farm.rules.presenting.times import heading_of, items_words, title_of
from farm.rules.wording import titles
from farm.rules.wording.numbers import counted, latency, listed, plain

# said of a target whose best setting stands so
KEEPINGS: Mapping[Keeping, str] = {
    "kept": "within",
    "undecided": "undecided",
    "unknown": "loss not measured",
    "exceeded": "beyond",
}
SIDE_BY_SIDE = (
    "Different hardware, side by side: these figures come from different machines and times, so none of them is called "
    "faster or slower than another."
)


def side_by_side(measured: Iterable[Measured]) -> str:
    """Say that different hardware is not judged here, and which nodes share one machine."""
    machines = group_by(measured, lambda point: point.device or point.node)
    shared = [nodes for own in machines.values() if len(nodes := sorted({point.node for point in own})) > 1]
    said = "; ".join(f"{listed(nodes, most=len(nodes))} are nodes of one machine" for nodes in shared)
    if not shared:
        return SIDE_BY_SIDE
    if len(machines) == 1:
        return f"One hardware, measured at different times: {said}, so none is called faster or slower than another."
    return f"{SIDE_BY_SIDE} But {said}."


def setting(measured: Measured) -> str:
    """Format a setting: `1.31.1, CPU, int8-dynamic, batch 8, 1 thread`."""
    return f"{titles.runtime(measured.cell.runtime)}, {label.workload_label(measured.cell)}"


def format_settings(measured: Sequence[Measured]) -> list[str]:
    """Format several settings of one machine; those with equal words each get the axes on which they differ."""
    alike = group_by(measured, setting)
    differing = {words: label.varying_axes(own.cell for own in group) for words, group in alike.items()}
    return [
        ", ".join([words, *(axis.label(own.cell) for axis in differing[words])])
        for own, words in zip(measured, map(setting, measured), strict=True)
    ]


def time(measured: Measured) -> str:
    """Format a setting's latency: `0.228 ms ± 0.002`; `2.70 ms ± 0.05 of CPU time`."""
    lowest = latency(measured.cell.p50_ms, measured.cell.p50_ci_ms)
    return f"{lowest} of CPU time" if measured.is_processor else lowest


def alike(top: Top) -> str:
    """Say how many other settings launches do not tell apart from the best one; empty where they tell all."""
    others = len(top.settings) - 1
    return f"{others} other{'s are' if others > 1 else ' is'} not told apart from it." if others > 0 else ""


def items_heading(measured: Sequence[Measured]) -> str:
    by = [own.are_items_of_processor for own in measured]
    return heading_of("items/s", by) if any(own.is_processor for own in measured) else "items/s"


def explain_times(measured: Sequence[Measured]) -> str:
    """Say that settings are compared by processor time, and how many have none; empty where none is."""
    busy = {own.node for own in measured if own.is_processor}
    others = sum(own.node in busy and not own.is_processor and own.cell.p50_ms is not None for own in measured)
    if not busy:
        return ""
    it = "it has" if others == 1 else "they have"
    more = f"; {counted(others, 'setting')} by the clock, as {it} no processor time of one thread" if others else ""
    return f"{BUSY}{more}"


def target(found: Target) -> str:
    """Name a target: `bench-1 (openvino)`; of several nodes `openvino (2 nodes)`."""
    nodes, tag = found.nodes, found.tag
    return f"{nodes[0]} ({tag})" if len(nodes) == 1 else f"{tag} ({len(nodes)} nodes)"


def format_limits(wish: Wish) -> str:
    """Format the wish: `20 ms and 1 % loss`; empty where nothing is asked for."""
    budget = [] if wish.budget_ms is None else [f"{_plain(wish.budget_ms)} ms"]
    loss = [] if wish.loss is None else [f"{_plain(100 * wish.loss)} % loss"]
    return " and ".join(budget + loss)


def headline(found: Sequence[Target], wish: Wish, goal: Goal) -> str:
    """The best figure, and where it was measured unless another target reaches into its interval; empty where nothing
    was measured."""
    kept = [row for row in found if not wish.is_asked or row.keeping == "kept"]
    bests = [(row, row.best) for row in kept if row.best is not None]
    if not bests:
        return f"no target within {format_limits(wish)}" if found and wish.is_asked else ""
    (where, setting_measured), *others = bests
    by_items = goal == "items" and setting_measured.cell.throughput is not None
    is_processor = setting_measured.is_processor
    figure = items_words(setting_measured.cell, is_processor=is_processor) if by_items else time(setting_measured)
    times = item_times if by_items else inference_times
    is_alone = all(times(other)[0] > times(setting_measured)[2] for _, other in others)
    return f"{figure} at best{f', on {target(where)}' if is_alone else '; no target leads'}"


def answer_wish(found: Sequence[Target], wish: Wish, goal: Goal) -> str:
    """Say in a sentence or two where one version may run.

    `found` are its targets, as `hardware.targets` sorts them.
    """
    if not found:
        return "No hardware has measured this model yet."
    if not wish.is_asked:
        return f"Version {found[0].version} was measured on {_targets(len(found))}. {_best(found, goal)}"
    kept = [row for row in found if row.best is not None and row.keeping == "kept"]
    which = f"{len(kept)} of {_targets(len(found))}" if kept else f"None of {_targets(len(found))}"
    first = f"Within {format_limits(wish)}: {which} of version {found[0].version}."
    return " ".join(filter(None, (first, _best(kept, goal) if kept else _nearest(found), _open(found))))


def left_out(found: Iterable[Target]) -> str:
    """Say how many settings were measured, how many of them can never be the best, and why."""
    found = list(found)
    faults = [row.left_out for row in found]
    counts = {fault: sum(own.get(fault, 0) for own in faults) for fault in FAULTS}
    said = [f"{counts[fault]} {words}" for fault, words in FAULTS.items() if counts[fault]]
    total = sum(row.settings for row in found)
    return f"{counted(total, 'setting')} measured. " + (
        f"Left out: {', '.join(said)}." if said else "No setting was left out."
    )


def _best(kept: Sequence[Target], goal: Goal) -> str:
    """Describe the best of the settings that may be recommended."""
    first = next((row for row in kept if row.best is not None), None)
    if first is None or first.best is None:
        return "Every measured setting was left out, so none is recommended."
    cell, lowest = first.best.cell, time(first.best)
    items = items_words(cell, is_processor=first.best.is_processor) if cell.throughput is not None else ""
    figures = ", ".join(filter(None, (items, lowest) if goal == "items" else (lowest, items)))
    words = f"Lowest {title_of([first.best.is_processor])}" if goal == "latency" else "Most items/s"
    found = f"{words}: {figures} on {target(first)} with {setting(first.best)}."
    return " ".join(filter(None, (found, alike(first.top), first.top.doubt)))


def _nearest(found: Sequence[Target]) -> str:
    """Describe what comes nearest where nothing keeps the wish: the lowest latency that was measured at all."""
    known = [row.best for row in found if row.best is not None]
    if not known:
        return "Every measured setting was left out."
    fastest = min(known, key=lambda point: point.cell.p50_ms or 0.0)
    return f"The lowest latency is {time(fastest)}, on {fastest.node} ({fastest.tag}) with {setting(fastest)}."


def _open(found: Sequence[Target]) -> str:
    """Say what is not known of the other targets, and what would tell it."""
    states = [row.keeping for row in found if row.best is not None]
    undecided, unknown = states.count("undecided"), states.count("unknown")
    more = f"{undecided} undecided: the interval reaches beyond the limit." if undecided else ""
    loss = f"{unknown} without a measured loss: add labelled data to the model and measure again." if unknown else ""
    return " ".join(filter(None, (more, loss)))


def _targets(number: int) -> str:
    return counted(number, "target")


def _plain(value: float) -> str:
    return f"{value:g}" if abs(value) < 1000 else plain(value)
