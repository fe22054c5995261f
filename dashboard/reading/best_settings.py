"""The panel of best settings on a model's page: a machine a row, within the latency that the reader may spend."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from django.urls import reverse

from farm.rules.presenting.best import Best, Setting, best_settings, left_out
from farm.rules.presenting.tables import Entry, Head, Table
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import sign_of

HEADS = (
    Head("Machine"),
    Head("Wanted"),
    Head("Setting"),
    Head("p50, ms", is_number=True),
    Head("±, ms", is_number=True, note="half of the 95 % interval over process launches"),
    Head("items/s", is_number=True),
    Head("Outputs"),
)
LONGEST_MS = 1e7


@dataclass(frozen=True)
class Panel:
    """`typed` and `error` are the field's; `least` and `most` the ends of what was measured, for the slider."""

    version: int
    sentence: str
    table: Table
    typed: str
    error: str
    least: float
    most: float
    # what does not take part; empty where everything does
    left_out: str = ""


def panel(version: int | None, settings: Sequence[Setting], typed: str) -> Panel | None:
    """None where nothing was measured. `typed` is the latency budget in ms as it stands in the address."""
    if version is None or not settings:
        return None
    budget, error = read_budget(typed)
    best_of_nodes = best_settings(settings, budget_ms=budget)
    latencies = [one.p50_ms for one in settings]
    rows = [row for best in best_of_nodes for row in _rows(best, budget)]
    return Panel(
        version=version,
        sentence=_sentence(best_of_nodes, budget),
        left_out=_left_out(settings),
        table=Table("best-settings", "Best settings on each machine", HEADS, rows),
        typed=typed,
        error=error,
        least=min(latencies),
        most=max(latencies),
    )


def read_budget(typed: str) -> tuple[float | None, str]:
    """Milliseconds, and what is wrong with them; nothing typed is no budget."""
    text = typed.strip().replace(",", ".")
    if not text:
        return None, ""
    try:
        value = float(text)
    except ValueError:
        return None, f"{typed[:20]!r} is not a number of milliseconds: enter one such as 5 or 0.5."
    if not isfinite(value) or not 0 < value <= LONGEST_MS:
        return None, "The budget must be more than 0 ms and at most 10,000 s."
    return value, ""


def _sentence(best_of_nodes: Sequence[Best], budget: float | None) -> str:
    if not best_of_nodes:
        return "Every measured setting fails parity, so none is recommended."
    most = max((best.most for best in best_of_nodes if best.most), key=lambda one: one.items_s or 0.0, default=None)
    within = f" within {numbers.plain(budget)} ms" if budget is not None else ""
    if most is None:
        fastest = min((best.fastest for best in best_of_nodes), key=lambda one: one.p50_ms)
        return f"No measured setting is{within}; the fastest is {_told(fastest)}."
    return f"Most{within}: {numbers.plain(most.items_s)} items/s with {_told(most)}."


def _left_out(settings: Sequence[Setting]) -> str:
    """What does not take part, so that nobody wonders where the fastest one is."""
    wrong = left_out(settings)
    if wrong is None:
        return ""
    what = "setting whose outputs fail" if wrong.count == 1 else "settings whose outputs fail"
    return f"Left out: {wrong.count} {what} parity; the fastest of them is {_told(wrong.fastest)}."


def _told(one: Setting) -> str:
    return f"{titles.setting(one)} on {one.node}, {numbers.latency(one.p50_ms, one.interval_ms)}"


def _rows(best: Best, budget: float | None) -> list[tuple[Entry, ...]]:
    wanted = "most items/s" if budget is None else f"most within {numbers.plain(budget)} ms"
    if best.most == best.fastest:
        return [_row(best.node, f"{wanted} and lowest latency", best.fastest)]
    rows = [_row(best.node, wanted, best.most)] if best.most else [_none(best.node, wanted)]
    return [*rows, _row(best.node, "lowest latency", best.fastest)]


def _row(node: str, wanted: str, one: Setting) -> tuple[Entry, ...]:
    half = numbers.half_width(one.interval_ms)
    parity = {True: "pass", False: "fail", None: "not compared"}[one.is_right]
    return (
        Entry(node),
        Entry(wanted),
        Entry(titles.setting(one), href=reverse("dashboard:cell", args=[one.run_id, one.cell])),
        Entry(numbers.milliseconds(one.p50_ms, one.interval_ms), one.p50_ms),
        Entry(numbers.plus_minus(one.p50_ms, one.interval_ms).removeprefix("± "), half),
        Entry(numbers.plain(one.items_s), one.items_s),
        Entry(sign=sign_of(parity), value=parity),
    )


def _none(node: str, wanted: str) -> tuple[Entry, ...]:
    return (Entry(node), Entry(wanted), Entry("none of the measured ones"), *(Entry() for _ in range(4)))
