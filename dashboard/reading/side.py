"""Cells of any runs side by side: a base and up to three others, line by line, with what differs marked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dashboard import axes, numbers, words
from dashboard.metrics import metric_with_unit
from dashboard.words import Sign, sign_of
from farm.contract.document import Cell, Comparison
from farm.rules.cells.metrics import BY_NAME
from farm.rules.comparing import verdicts
from farm.rules.comparing.quantities import change_between, items_factor
from farm.rules.comparing.sides import between, by_sides

MOST = 4
FEWEST_SAMPLES = 2
DIFFERENT_MODELS = Sign("≠", "different models", "quiet")


def _measured(heading: str, place: str) -> tuple[str, Callable[[Cell], str]]:
    return heading, partial(metric_with_unit, BY_NAME[place], has_interval=True)


METRICS: tuple[tuple[str, Callable[[Cell], str]], ...] = (
    _measured("p50", "p50_ms"),
    _measured("Throughput", "throughput"),
    _measured("Session creation", "session_ms"),
    _measured("First inference", "first_ms"),
    _measured("Peak memory", "peak_memory_bytes"),
    ("Parity", lambda c: words.sign_of(c.parity.verdict).word),
    ("Executed nodes", lambda c: ", ".join(f"{words.provider(p.name)} {p.nodes}" for p in c.providers)),
)
FACTS: tuple[tuple[str, Callable[[Cell], str]], ...] = (
    ("Model file digest", lambda c: c.model_sha256[:12]),
    ("Provider ran", lambda c: ", ".join(map(words.provider, c.active_providers))),
    ("Executed precision", lambda c: c.executed_precision or ""),
    ("Packages", lambda c: ", ".join(f"{name} {version}" for name, version in sorted(c.packages.items()))),
)


@dataclass(frozen=True)
class Chosen:
    """A cell of a run, as the address names it: `12:c3-b1`."""

    key: str
    run_id: int
    cell: Cell
    href: str


@dataclass(frozen=True)
class Line:
    """One fact or metric across the cells. `differs`: not all are the same."""

    name: str
    texts: Sequence[str]
    differs: bool


@dataclass(frozen=True)
class Judged:
    """A cell against the base. `how` says what the figures rest on; `change` is empty for none, the figures None."""

    sign: Sign
    change: str
    how: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def is_sure(self) -> bool:
        """Whether its interval leaves out that nothing changed."""
        return self.low is not None and self.high is not None and not self.low <= 1.0 <= self.high


def lines(chosen: Sequence[Chosen]) -> list[Line]:
    """Axes, facts and metrics of the cells."""
    cells = [one.cell for one in chosen]
    rows = [(axis.heading, axis.label) for axis in axes.AXES]
    shown = []
    for name, write in (*rows, *FACTS, *METRICS):
        texts = [write(cell) for cell in cells]
        if any(texts):
            shown.append(Line(name, texts, len(set(texts)) > 1))
    return shown


def headline(chosen: Sequence[Chosen], judged: Sequence[Judged]) -> str:
    """The cells against the first one, in a sentence; empty for a single cell."""
    if not judged:
        return ""
    along = axes.varying(one.cell for one in chosen)
    names = [axes.name_of(one.cell, along) for one in chosen]
    if len(set(names)) < len(names):
        names = [f"run {one.run_id}, {one.cell.id}" for one in chosen]
    said = [
        f"{name} {one.sign.word}{f' ({one.change})' if one.change else ''}"
        for name, one in zip(names[1:], judged, strict=True)
    ]
    return numbers.unbroken(f"Against {names[0]}: {numbers.listed(said, most=MOST)}")


def judge(base: Chosen, other: Chosen, measured: Sequence[Comparison]) -> Judged:
    """A cell against the base, whichever of them was measured as the baseline: paired where one block measured both,
    else unpaired and labelled as such."""
    is_one_run = base.run_id == other.run_id
    paired = between(by_sides(measured), base.cell.id, other.cell.id) if is_one_run else None
    if paired is None:
        return _unpaired(base.cell, other.cell)
    told = change_between(paired, base.cell, other.cell)
    if told.figures is None:
        return Judged(sign_of(told.word), "", paired.reason or "")
    interval = numbers.change_interval(told.low, told.high, ratio=told.ratio)
    how = f"{interval}, {numbers.count(paired.rounds, 'round')} side by side in one block"
    return Judged(sign_of(told.word), numbers.change(*told.figures), how, *told.figures)


def _unpaired(base: Cell, other: Cell) -> Judged:
    if base.model != other.model:
        how = f"{other.model} is a different model than {base.model}: shown side by side, without a verdict."
        return Judged(DIFFERENT_MODELS, "", how)
    if len(base.samples_ms) < FEWEST_SAMPLES or len(other.samples_ms) < FEWEST_SAMPLES:
        return Judged(sign_of("not comparable"), "", "One of the two has no samples.")
    if base.shapes != other.shapes or (base.batch != other.batch and items_factor(base, other) is None):
        return Judged(sign_of("not comparable"), "", "The workloads differ: other shapes, or one without a batch.")
    judged = verdicts.judge_unpaired(base.samples_ms, other.samples_ms)
    figures = judged.ratio, judged.ci_low, judged.ci_high
    if (times := items_factor(base, other)) is not None:
        figures = times / judged.ratio, times / judged.ci_high, times / judged.ci_low
    interval = numbers.change_interval(figures[1], figures[2], ratio=figures[0])
    change = f"{numbers.change(*figures)}{'' if times is None else ' items/s'}"
    if base.node != other.node:
        how = f"{interval}; different hardware: {base.node or 'no node'} and {other.node or 'no node'}, no verdict"
        return Judged(Sign("≠", "different hardware", "quiet"), change, how, *figures)
    how = f"{interval}; not measured side by side: the machine may have changed between the two, no verdict"
    return Judged(Sign("≠", "not side by side", "quiet"), change, how, *figures)
