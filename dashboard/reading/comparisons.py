"""The comparisons of a run as a table and for charts, and the choice of the axis along which they are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from dashboard import axes
from dashboard.figures import ratios
from dashboard.figures.figure import Address
from dashboard.figures.ratios import Named
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.presenting import metric_changes
from farm.rules.presenting.headlines import axis_sort_key, rank_results
from farm.rules.presenting.lines import make_comparison_line
from farm.rules.presenting.stability import describe_rounds_needed
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_count, as_number, verdict_entry
from farm.rules.wording import numbers

# words for a noise floor that does not come from the node's own history
NOISE_FROM = {"block": "block", "assumed": "assumed"}


def _medians_entry(named: Named) -> Entry:
    return Entry(named.line.values, title=named.line.details)


def _noise_entry(named: Named) -> Entry:
    comparison = named.comparison
    known = NOISE_FROM.get(comparison.noise_from or "", "")
    return Entry(numbers.share(comparison.noise), comparison.noise, soft=known)


def _memory_entry(comparison: Comparison) -> Entry:
    change = metric_changes.find_memory_change(comparison)
    if change is None:
        return Entry(numbers.NOT_MEASURED)
    return verdict_entry(change.verdict, soft="" if change.verdict == "equal" else metric_changes.format_size(change))


def _others_entry(comparison: Comparison) -> Entry:
    """Make the entry of the metrics other than latency and memory. It lists the metrics that changed, losses first.
    Where none changed it lists the undecided ones, or says “equal”."""
    others = [
        change for change in metric_changes.list_displayed_changes(comparison) if change.name != metric_changes.RESIDENT
    ]
    changed = [change for change in metric_changes.list_decided_changes(comparison) if change in others]
    if not others:
        return Entry(numbers.NOT_MEASURED)
    if not changed:
        undecided = {metric_changes.title(change): change.reason for change in others if change.verdict == "undecided"}
        if not undecided:
            return verdict_entry("equal")
        why = "; ".join(f"{title}: {reason}" for title, reason in undecided.items() if reason)
        return replace(verdict_entry("undecided", soft=numbers.listed(list(undecided))), title=why)
    alike = [
        f"{metric_changes.title(change)} {metric_changes.format_size(change)}".rstrip()
        for change in changed
        if change.verdict == changed[0].verdict
    ]
    more = f"; {len(changed) - len(alike)} more" if len(changed) > len(alike) else ""
    return verdict_entry(changed[0].verdict, soft=f"{', '.join(alike)}{more}")


NOTE: Column[Named] = Prose("Note", lambda named: Entry(_write_note(named)))
OTHERS: Column[Named] = Prose(
    "Other metrics",
    lambda named: _others_entry(named.comparison),
    "session creation, address space and what the scenario is about: those that changed, each by its own verdict",
)
COLUMNS: tuple[Column[Named], ...] = (
    Column("Where", lambda named: Entry(named.where)),
    Column("Baseline → candidate", lambda named: Entry(named.step, href=named.href)),
    ratios.VERDICT,
    replace(ratios.CHANGE, note="of p50 latency, candidate against baseline; of items per second between batches"),
    ratios.INTERVAL,
    # the note stands near the verdict, where readers see it without scrolling
    NOTE,
    Number("medians", _medians_entry, "of the same launches; none where they give another change"),
    Number("rounds", lambda named: as_count(named.comparison.rounds)),
    Number(
        "noise floor",
        _noise_entry,
        "how much identical launches differ, on the node or in this block: standard deviation over rounds",
    ),
    replace(ratios.MARGIN, note="changes within it are called equal: from the node's A/A pairs, at least 2 %"),
    Number(
        "smallest detectable",
        lambda named: as_number(named.comparison.smallest_detectable, numbers.share),
        "the smallest change that so many rounds would call slower or faster",
    ),
    Column(
        "Memory", lambda named: _memory_entry(named.comparison), "resident peak of the process; under 16 MiB is equal"
    ),
    OTHERS,
)


def list_axes(comparisons: Sequence[Comparison]) -> list[str]:
    """List the axes along which cells were compared, the most interesting first and A/A twins (`twin`) last."""
    return sorted(
        {comparison.axis for comparison in comparisons}, key=lambda axis: (axis == "twin", axis_sort_key(axis))
    )


def select_axis(comparisons: Sequence[Comparison], axis: str, cells: Mapping[str, Cell]) -> list[Comparison]:
    """Select the comparisons along an axis, where that is empty along the axis of the comparison that the run's
    headline names. Where there are none along it, those along the first of list_axes are selected."""
    known, wanted = list_axes(comparisons), axis or rank_results(comparisons, cells).axis
    chosen = wanted if wanted in known else known[0] if known else ""
    return [comparison for comparison in comparisons if comparison.axis == chosen]


def drop_twins(comparisons: Sequence[Comparison], cells: Mapping[str, Cell]) -> list[Comparison]:
    """Drop comparisons of which a cell is not in `cells`, and those of A/A twins unless there are no others."""
    known = [comparison for comparison in comparisons if comparison.baseline in cells and comparison.candidate in cells]
    single = [pair for pair in known if not cells[pair.baseline].twin_of and not cells[pair.candidate].twin_of]
    return single or known


def name_step(comparison: Comparison, cells: Mapping[str, Cell], shared: Sequence[axes.Axis]) -> tuple[str, str]:
    """Name a comparison in two parts: the settings that both cells have, or their node where there are none; and the
    step from the baseline to the candidate. `shared`: the axes that vary in the run, by which settings are named. Cells
    without a difference are called `A/A: the same cell twice`. A cell that is not in `cells` raises KeyError."""
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    differing = axes.varying_axes([baseline, candidate])
    where = [axis for axis in shared if axis not in differing]
    if not differing:
        return axes.name_of(baseline, where), "A/A: the same cell twice"
    step = f"{_name_side(baseline, differing)} → {_name_side(candidate, differing)}"
    return (axes.name_of(baseline, where) if where else baseline.node or "this machine"), step


def _name_side(cell: Cell, differing: Sequence[axes.Axis]) -> str:
    return f"{axes.name_of(cell, differing)}{' (A/A twin)' if cell.twin_of else ''}"


def name_comparisons(comparisons: Sequence[Comparison], cells: Mapping[str, Cell], address: Address) -> list[Named]:
    """Name comparisons for tables and charts, in the order given. A comparison between batches becomes a change of
    items per second. Comparisons of which a cell is not in `cells` are left out."""
    shared = axes.varying_axes(cells.values())
    named_comparisons = []
    for comparison in comparisons:
        if comparison.baseline in cells and comparison.candidate in cells:
            where, step = name_step(comparison, cells, shared)
            line = make_comparison_line(comparison, cells)
            per_item = metric_changes.convert_to_items(comparison, cells)
            named_comparisons.append(Named(per_item, where, step, address(comparison.candidate), line))
    return named_comparisons


def make_table(comparisons: Sequence[Comparison], cells: Mapping[str, Cell], address: Address) -> Table:
    """Make the table of comparisons. Comparisons of which a cell is not in `cells` are left out. The columns of
    notes and of other metrics are left out where no row has any."""
    rows = name_comparisons(comparisons, cells, address)
    has_others = any(_others_entry(named.comparison).text != numbers.NOT_MEASURED for named in rows)
    is_shown = {NOTE: any(map(_write_note, rows)), OTHERS: has_others}
    shown = [column for column in COLUMNS if is_shown.get(column, True)]
    # the id `comparisons` belongs to the table of the chart
    caption = "Cells compared side by side, in interleaved rounds of one block"
    return Table.of("compared-pairs", caption, shown, rows)


def _write_note(named: Named) -> str:
    comparison = named.comparison
    parts = [] if comparison.interleaved else ["different hardware: not interleaved."]
    if comparison.reason:
        parts.append(comparison.reason)
    elif named.change.quantity == "items" and comparison.ratio is not None:
        parts.append(f"One call, with the whole batch, takes {numbers.plain(comparison.ratio)}× the time.")
    if (needed := describe_rounds_needed(comparison)) and (comparison.rounds_needed or inf) > comparison.rounds:
        parts.append(f"{needed[:1].upper()}{needed[1:]}.")
    return " ".join([*parts, *metric_changes.explain_undecided(comparison)])
