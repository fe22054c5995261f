"""The panel of best settings on a model's page: a machine a row, within the latency that the reader may spend."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.urls import reverse

from dashboard import axes
from dashboard.figures import latency
from dashboard.figures.figure import Figure, items_entry, latency_entry
from farm.rules.presenting import hardware_words
from farm.rules.presenting.best import Best, count_other_sizes, find_best_settings, find_left_out
from farm.rules.presenting.hardware import FAULTS, MeasuredSetting, TopSettings, find_loss
from farm.rules.presenting.hardware_words import count_as_good, format_setting
from farm.rules.presenting.lines import judge_outputs, why_wrong
from farm.rules.presenting.tables import Entry, Head, Table, verdict_entry
from farm.rules.presenting.times import clock_title, format_items
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import WRONG, with_mark

MAX_BUDGET_MS = 1e7
# at most so many settings have a row of their own where their launches do not differ
MAX_ALIKE = 4
UNKNOWN_ACCURACY = f"accuracy {numbers.NOT_MEASURED}"
# maps a measured setting to the address of its cell's page
CellAddress = Callable[[MeasuredSetting], str]


@dataclass(frozen=True)
class Panel:
    """The panel of best settings. `typed` and `error`: the text of the budget field and what is wrong with it;
    `left_out`: which settings are not considered and why, empty where all are; `busy`: explains that times are
    processor time, empty where none is; `figure`: None where no setting is shown; `top`: the settings with the lowest
    latency of all machines, whatever the budget, without settings where every one was left out."""

    version: int
    sentence: str
    table: Table
    figure: Figure | None
    typed: str
    error: str
    left_out: str = ""
    busy: str = ""
    top: TopSettings = field(default_factory=TopSettings)

    @property
    def headline(self) -> str:
        """Say how fast the model is at best, or that no setting is recommended; a predicate that follows the name of
        the model on the page."""
        if not self.top.settings:
            return "has no setting to recommend"
        return f"takes {hardware_words.format_latency(self.top.settings[0])} at best"

    @property
    def because(self) -> str:
        """Name the fastest setting, and say how many others are as fast and what makes that doubtful; `left_out` where
        no setting is recommended."""
        if not self.top.settings:
            return self.left_out
        fastest = self.top.settings[0]
        parts = (f"{format_setting(fastest)} on {fastest.node}", count_as_good(self.top), self.top.doubt)
        return " · ".join(filter(None, parts))


def cell_address(measured: MeasuredSetting) -> str:
    return reverse("dashboard:cell", args=[measured.run, measured.cell.id])


def make_panel(
    version: int | None, settings: Sequence[MeasuredSetting], typed: str, address: CellAddress = cell_address
) -> Panel | None:
    """Make the panel; None without a version or a measured setting. `version`: the number of the version; `typed`: the
    latency budget in ms as the reader typed it. A budget that cannot be parsed does not limit the settings, and the
    panel's `error` says what is wrong. `address`: links a setting to its cell."""
    if version is None or not settings:
        return None
    budget, error = parse_budget(typed)
    bests = find_best_settings(settings, budget_ms=budget)
    shown = [measured for best in bests for measured in (*best.most_items.settings, *best.fastest.settings)]
    kinds = {measured.is_processor for measured in shown}
    rows = [row for best in bests for row in _make_rows(best, budget, address, are_mixed=len(kinds) > 1)]
    heads = (
        Head("Machine"),
        Head("Wanted"),
        Head("Setting"),
        Head(f"{clock_title(sorted(kinds))}, ms", is_number=True, note="with half of its 95 % interval over launches"),
        Head(hardware_words.items_heading(shown), is_number=True),
        Head("Outputs"),
    )
    table = Table("best-settings", "Best settings on each machine", heads, rows)
    title = f"The best of {numbers.counted(len(settings), 'measured setting')}"
    return Panel(
        version=version,
        sentence=_write_sentence(bests, budget),
        left_out=_describe_left_out(settings),
        busy=hardware_words.explain_processor_time(settings),
        table=table,
        figure=latency.draw_settings(_name_settings(shown), title, table, address) if shown else None,
        typed=typed,
        error=error,
        top=min(
            (best.fastest for best in bests), key=lambda top: top.settings[0].cell.p50_ms or 0.0, default=TopSettings()
        ),
    )


def _name_settings(shown: Sequence[MeasuredSetting]) -> dict[str, MeasuredSetting]:
    """Name settings by what differs between them, and by their node; the fastest comes first."""
    varying = axes.varying_axes([measured.cell for measured in shown])
    ranked = sorted(shown, key=lambda measured: measured.cell.p50_ms or 0.0)
    return {f"{axes.name_of(measured.cell, varying)} on {measured.node}": measured for measured in ranked}


def parse_budget(typed: str) -> tuple[float | None, str]:
    """Parse a latency budget in ms: return the budget and an empty text, or None and what is wrong. An empty text is no
    budget and no error: None and an empty text."""
    value, error = parse_number(typed, "a number of milliseconds: enter one such as 5 or 0.5")
    if value is not None and not 0 < value <= MAX_BUDGET_MS:
        return None, "The budget must be more than 0 ms and at most 10,000 s."
    return value, error


def parse_number(typed: str, wanted: str) -> tuple[float | None, str]:
    """Parse a number with a decimal `.` or `,`: return the number and an empty text, or None and a sentence that it is
    not `wanted`. An empty text gives None and no error. Nothing is raised, and `nan` and `inf` count as numbers."""
    try:
        return float(typed.strip().replace(",", ".")) if typed.strip() else None, ""
    except ValueError:
        return None, f"{typed[:20]!r} is not {wanted}."


def _write_sentence(bests: Sequence[Best], budget: float | None) -> str:
    """Say which setting has most items a second within the budget. Empty without a budget where it is the one with the
    lowest latency, which the headline names."""
    if not bests:
        return "Every measured setting was left out, so none is recommended."
    if budget is None and all(best.most_items == best.fastest for best in bests):
        return ""
    found = [best.most_items for best in bests if best.most_items.settings]
    most = max(found, key=lambda top: top.settings[0].cell.throughput or 0.0, default=None)
    within = f" within {numbers.plain(budget)} ms" if budget is not None else ""
    if most is None:
        tops = [best.fastest.settings[0] for best in bests]
        fastest = min(tops, key=lambda measured: measured.cell.p50_ms or 0.0)
        return f"No measured setting is{within}; the fastest is {_describe_setting(fastest)}."
    first = most.settings[0]
    text = f"Most{within}: {format_items(first.cell, is_processor=first.is_processor)} with {_describe_setting(first)}."
    return f"{text} {most.doubt}".strip()


def _describe_left_out(settings: Sequence[MeasuredSetting]) -> str:
    """Say how many settings are left out for their input sizes and how many for their outputs, and name the fastest of
    those with wrong outputs. Empty where none is left out."""
    count, others = count_other_sizes(settings), find_left_out(settings)
    other_sizes = f"Without {numbers.counted(count, 'setting')} {FAULTS['input']}." if count else ""
    if others is None:
        return other_sizes
    what = "setting whose outputs do" if others.count == 1 else "settings whose outputs do"
    fastest, wrong = others.fastest, why_wrong(others.fastest.cell)
    why = f": {with_mark(WRONG)}. {wrong}" if wrong else "."
    wrongs = f"Left out: {others.count} {what} not pass; the fastest of them is {_describe_setting(fastest)}{why}"
    return f"{wrongs} {other_sizes}".strip()


def _describe_setting(measured: MeasuredSetting) -> str:
    return f"{format_setting(measured)} on {measured.node}, {hardware_words.format_latency(measured)}"


def _make_rows(best: Best, budget: float | None, address: CellAddress, *, are_mixed: bool) -> list[tuple[Entry, ...]]:
    """Make the rows of a machine. `are_mixed`: the table mixes processor time and time by the clock, so that each
    processor time is marked."""
    wanted = "most items/s" if budget is None else f"most within {numbers.plain(budget)} ms"
    if best.most_items == best.fastest:
        tops = [(f"{wanted} and lowest latency", best.fastest)]
    else:
        tops = [(wanted, best.most_items), ("lowest latency", best.fastest)]
    shown: list[tuple[str, MeasuredSetting]] = []
    for words, top in tops:
        doubt = f". {top.doubt}" if top.doubt and len(top.settings) == 1 else ""
        # settings whose launches do not differ have a row each, up to MAX_ALIKE
        labels = [f"{words}{doubt}", *["as fast within the intervals"] * (MAX_ALIKE - 1)]
        shown += zip(labels, top.settings, strict=False)
    names = hardware_words.format_distinct_settings([measured for _, measured in shown])
    rows: list[tuple[Entry, ...]] = [
        (
            Entry(measured.node),
            Entry(words),
            Entry(name, href=address(measured)),
            latency_entry(measured.cell, is_marked=are_mixed and measured.is_processor, has_interval=True),
            items_entry(measured.cell, is_marked=are_mixed and measured.has_items_by_processor),
            verdict_entry(judge_outputs(measured.cell), soft="" if find_loss(measured.cell) else UNKNOWN_ACCURACY),
        )
        for (words, measured), name in zip(shown, names, strict=True)
    ]
    none = (Entry(best.node), Entry(wanted), Entry("none of the measured ones"), *[Entry()] * 3)
    return rows if best.most_items.settings else [none, *rows]
