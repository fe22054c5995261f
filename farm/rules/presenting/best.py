"""The best settings on each machine: the lowest latency, and the most items a second within a latency budget. Pure.

Settings whose outputs are wrong do not take part; `left_out` says which of them would have been the best.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """One measured cell. `is_right`: its outputs are within tolerance; None where they were not compared.

    `interval_ms`: 95 % over process launches.
    """

    run_id: int
    cell: str
    node: str
    runtime: str
    provider: str
    precision: str
    batch: int | None
    threads: int | None
    p50_ms: float
    interval_ms: tuple[float, float] | None = None
    items_s: float | None = None
    is_right: bool | None = None


@dataclass(frozen=True)
class Best:
    """Of one machine. `most`: None where nothing is within the budget."""

    node: str
    settings: int
    fastest: Setting
    most: Setting | None


def best_settings(settings: Iterable[Setting], *, budget_ms: float | None) -> list[Best]:
    """The best of each machine, by name. Cells whose outputs are wrong do not take part.

    A budget is kept when the upper end of the interval is within it, so that it holds for most launches.
    """
    by_node: dict[str, list[Setting]] = {}
    for one in settings:
        if one.is_right is not False:
            by_node.setdefault(one.node, []).append(one)
    return [_best(node, known, budget_ms) for node, known in sorted(by_node.items())]


def _best(node: str, known: Sequence[Setting], budget_ms: float | None) -> Best:
    within = [one for one in known if one.items_s is not None and (budget_ms is None or _upper(one) <= budget_ms)]
    return Best(
        node=node,
        settings=len(known),
        fastest=min(known, key=lambda one: one.p50_ms),
        most=max(within, key=lambda one: one.items_s or 0.0) if within else None,
    )


def _upper(one: Setting) -> float:
    return one.interval_ms[1] if one.interval_ms is not None else one.p50_ms


@dataclass(frozen=True)
class LeftOut:
    """How many settings do not take part because their outputs fail parity, and the fastest of them."""

    count: int
    fastest: Setting


def left_out(settings: Iterable[Setting]) -> LeftOut | None:
    """What was left out; None where nothing was."""
    wrong = [one for one in settings if one.is_right is False]
    return LeftOut(len(wrong), min(wrong, key=lambda one: one.p50_ms)) if wrong else None
