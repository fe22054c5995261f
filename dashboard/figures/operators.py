"""The chart of the operators behind a comparison: the time of each in baseline and candidate, side by side."""

from collections import Counter
from collections.abc import Callable, Sequence

from dashboard import axes
from dashboard.figures import scales, theme, traces
from dashboard.figures.figure import Figure, empty_figure, shorten_start
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, OperatorChange
from farm.rules.presenting import changed_operators
from farm.rules.presenting.changed_operators import list_changed_operators, may_be_chance
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_count, as_number, verdict_entry
from farm.rules.tracing.attribution import NAMED_SHARE, TypeChange, find_largest_share
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import is_change

NAME = "operators"
MAX_OPERATORS = 10
APART = "left out: both medians are apart otherwise than the pairs of traces"


def name_sides(baseline: Cell, candidate: Cell) -> tuple[str, str]:
    """Name two cells by the settings in which they differ."""
    varying = axes.varying_axes((baseline, candidate))
    return axes.name_of(baseline, varying), axes.name_of(candidate, varying)


def draw_operators(comparison: Comparison, names: tuple[str, str]) -> Figure:
    """Draw the MAX_OPERATORS operators that explain most of the change, the baseline in grey and the candidate in the
    colour of the operator's own change; the table lists all. `names`: of baseline and candidate. The chart is empty and
    says why where the cells were not traced side by side or no operator can be named."""
    baseline, candidate = names
    caption = f"Time per inference of {baseline} and {candidate}"
    columns = (*COLUMNS, *VERDICTS) if any(change.verdict for change in comparison.operators) else COLUMNS
    table = Table.of(NAME, caption, columns, changed_operators.sort_operators(comparison))
    if not comparison.operators:
        return empty_figure(NAME, "These two cells have not been traced side by side yet.", table)
    order = changed_operators.describe_order(comparison)
    largest = changed_operators.list_named_operators(comparison)[:MAX_OPERATORS]
    if not largest:
        return empty_figure(NAME, write_finding(comparison), table)
    return Figure(
        name=NAME,
        title=write_finding(comparison),
        summary=(
            f"Time per inference of the {numbers.counted(len(largest), 'operator')} that {order}, "
            f"{baseline} beside {candidate}, over {numbers.counted(comparison.traces, 'paired trace')}."
        ),
        data=[
            _draw_bars(baseline, theme.OTHER, [c.baseline_us for c in largest], largest),
            _draw_bars(candidate, [*map(_choose_colour, largest)], [c.candidate_us for c in largest], largest),
        ],
        layout=theme.make_layout(
            height=theme.row_height(len(largest), per_row=34),
            xaxis=theme.make_axis(
                "time per inference, µs",
                **scales.make_linear(
                    [t for c in largest for t in (c.baseline_us, c.candidate_us)], room=scales.FOR_LABELS
                ),
            ),
            yaxis=theme.make_named_rows(),
            barmode="group",
            bargap=0.3,
            bargroupgap=0.08,
            showlegend=True,
        ),
        table=table,
        note="Times are from traces. Tracing adds time to every operator, in both alike.",
    )


def write_finding(comparison: Comparison) -> str:
    """Say which type of operator explains the change. Where none does, or nothing changed, name the type that changed
    most. How many operators have a verdict of their own follows. There must be an operator."""
    named = find_largest_share(comparison.operators)
    if named is not None and named.share is not None and named.share >= NAMED_SHARE and is_change(comparison.verdict):
        return f"{_describe_move(named)}, {numbers.explains(named.moved_us, named.share)}{_describe_judged(comparison)}"
    if not is_change(comparison.verdict):
        finding = f"No change to explain, it is {comparison.verdict}"
    elif named is None:
        doubt = changed_operators.explain_trace_doubt(comparison)
        finding = doubt.capitalize() or "Too few traces to say what explains the change"
    else:
        finding = "No operator explains the change"
    most = None if list_changed_operators(comparison) else changed_operators.find_largest_type(comparison)
    return f"{finding}{f': most {_describe_move(most)}' if most else ''}{_describe_judged(comparison)}"


def _describe_move(change: TypeChange) -> str:
    time_us = numbers.signed(change.moved_us)
    return f"{change.op_type} ({numbers.counted(change.nodes, 'node')}) {time_us} µs"


def _describe_judged(comparison: Comparison) -> str:
    """Count the operators that are slower or faster by their own verdict; empty where operators were not judged."""
    if not any(change.verdict for change in comparison.operators):
        return ""
    verdicts = Counter(change.verdict for change in list_changed_operators(comparison))
    if not verdicts:
        return "; no single operator is significantly slower or faster"
    counts = numbers.listed([f"{count} {verdict}" for verdict, count in verdicts.most_common()])
    return f"; significant on their own, of all {numbers.counted(len(comparison.operators), 'operator')}: {counts}"


def _choose_colour(change: OperatorChange) -> str:
    """Choose by the operator's own verdict, else by the direction of its change; grey where that may be chance."""
    direction = "slower" if change.candidate_us > change.baseline_us else "faster"
    return theme.verdict_colour(change.verdict or ("undecided" if may_be_chance(change) else direction))


def _draw_bars(
    name: str, colour: str | Sequence[str], values: Sequence[float], changes: Sequence[OperatorChange]
) -> theme.Json:
    return traces.make_bars(
        values,
        map(_shorten_name, changes),
        name=name,
        **traces.make_bar_labels(map(numbers.plain, values)),
        marker={"color": colour},
        customdata=[change.op_type for change in changes],
        hover="%{fullData.name}, %{y} (%{customdata})<br>%{x:.4~g} µs per inference",
    )


def _shorten_name(change: OperatorChange) -> str:
    return shorten_start(change.node, most=44)


def _interval(low: float | None, high: float | None, write: Callable[[float], str]) -> Entry:
    return Entry(numbers.NOT_MEASURED if low is None or high is None else f"{write(low)} to {write(high)}", low)


def _side_entry(change: OperatorChange, place: int) -> Entry:
    sides, value = changed_operators.format_operator_sides(change), (change.baseline_us, change.candidate_us)[place]
    return Entry(sides[place], value) if sides else Entry(value=value, title=APART)


COLUMNS: tuple[Column[OperatorChange], ...] = (
    Column("Operator", lambda change: Entry(change.node, is_name=True), "the model's own node"),
    Column("Type", lambda change: Entry(change.op_type), "as executed"),
    Number("baseline, µs", lambda change: _side_entry(change, 0), "median over traces"),
    Number("candidate, µs", lambda change: _side_entry(change, 1), "median over traces"),
    Number("change, µs", lambda change: as_number(change.moved_us, numbers.signed), "median over paired traces"),
    Number(
        "interval, µs",
        lambda change: _interval(change.change_low_us, change.change_high_us, numbers.signed),
        "over paired traces",
    ),
    Number(
        "explains",
        lambda change: as_number(change.share, numbers.share),
        "share of the change of an inference as it was timed; may be negative or above 100 %",
    ),
    Prose(
        "Covers", lambda change: Entry(numbers.listed(change.covers, most=6), is_name=True), "own nodes fused into it"
    ),
)

# further columns for comparisons whose rounds were traced, so that each operator has a verdict
VERDICTS: tuple[Column[OperatorChange], ...] = (
    Column(
        "Verdict",
        lambda change: verdict_entry(change.verdict) if change.verdict else Entry(numbers.NOT_MEASURED),
        "by the operator's own pairs, over all operators of the comparison",
    ),
    Number("ratio", lambda change: as_number(change.ratio), "candidate / baseline over paired rounds"),
    Number("ratio from, to", lambda change: _interval(change.ci_low, change.ci_high, numbers.plain), "95 % interval"),
    Number("rounds", lambda change: Entry() if change.rounds is None else as_count(change.rounds)),
    Prose("Why", lambda change: Entry(change.reason or "")),
)
