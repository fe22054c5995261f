"""Shows a bench document in the terminal: the verdict line, the cells, the comparisons, and the operators."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from farm.contract.document import Document
from farm.contract.document_cells import Cell, EngineParity, Parity
from farm.contract.document_comparisons import Comparison
from farm.rules.cells import recipes, scenarios
from farm.rules.cells.axes import AXES, BY_NAME, Axis
from farm.rules.cells.label import WORKLOAD
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import BY_NAME as METRICS
from farm.rules.cells.metrics import JUDGED, OF_CALLS
from farm.rules.cells.scenario_metrics import TOKENS_RATE, TTFT
from farm.rules.comparing.quantities import change_of
from farm.rules.presenting import metric_changes, parities, prefills, refusals
from farm.rules.presenting.changed_operators import (
    describe_trace_noise,
    format_operator_change,
    format_operator_times,
    list_changed_operators,
    list_named_operators,
    make_operators_heading,
)
from farm.rules.presenting.headlines import axis_rank, rank_results
from farm.rules.presenting.lines import (
    BUSY,
    PROCESSOR,
    format_items_per_s,
    format_outside_times,
    is_by_processor,
    is_less_accurate,
    is_wrong,
    make_comparison_line,
)
from farm.rules.presenting.stability import UNSTABLE, find_unstable
from farm.rules.presenting.times import Times
from farm.rules.quality import accuracy_metrics
from farm.rules.runtimes import engines
from farm.rules.wording import numbers, titles
from farm.rules.wording.numbers import counted, latency, memory, percent, plain
from farm.rules.wording.vocabulary import WRONG, is_change, mark_word, rank, sign_of
from onnxfarm.outputs import print_lines
from onnxfarm.terminal_tables import COLOURS, colour_text, lift_constant_columns, make_folding_table, split_to_width

# operators that are named for the largest change, and those that are listed with a verdict of their own
NAMED_OPERATORS, CALLED_OPERATORS = 3, 12
NAMED_INPUTS = NAMED_CELLS = MAX_WAYS = 8
MAX_COMPARISONS = 40
MAX_DIFFERENCES = 10
NARROW = 100
# estimated width of the columns of figures together, and of each further one
FIGURES_WIDTH, CALL_WIDTH = 80, 20
TWIN = "twin"
# columns of figures, by their head
PEAK, FIRST, BY_CLOCK = METRICS["peak_memory_bytes"], METRICS[TTFT], "by the clock"
HEADS = {"p50": JUDGED, "items/s": METRICS["throughput"], "session": METRICS["session_ms"], "memory": PEAK}
TOKEN_HEADS = {"per token": JUDGED, "first token": FIRST, "overall tokens/s": METRICS[TOKENS_RATE], "memory": PEAK}
# columns of words that become a line above the table where all of them say the same
LIFTED = ("state", "parity", "accuracy")
LIFTED_COMPARED = ("rounds", "detectable", "prefill", "memory", *titles.CALLS.values())

CALL = BY_NAME["call"]
# axes that tell apart the sides of a comparison whose operators are listed
SIDE_AXES = (BY_NAME["precision"], BY_NAME["batch"])
# the axes in the order of their columns: those that are compared most first, and where a cell ran last
_FIRST = ("runtime", "opset", "provider", "precision")
_LAST = ("model", "hardware", "node")
COLUMNS = tuple(
    sorted(AXES, key=lambda axis: (axis.name in _LAST, _FIRST.index(axis.name) if axis.name in _FIRST else len(_FIRST)))
)


def show(document: Document, *, console: Console, address: str = "") -> None:
    """Print a bench document for people. `address`: that of the run's page, printed last; empty: none."""
    if document.sentence:
        console.print(Text(f"\n{document.sentence}\n", style="bold"))
    if document.cells:
        shown = [cell for cell in document.cells if cell.status != "refused"] or document.cells
        varying = _find_varying(shown)
        table = _make_cell_table(document, shown, varying, width=console.width)
        constant, table = lift_constant_columns(table, *LIFTED)
        console.print(Text(", ".join(filter(None, (_describe_common(shown[0], varying), constant))), style="dim"))
        _show_table(table, *LIFTED, console=console)
        _show_inputs(shown, console=console)
        if find_unstable(document.cells, document.comparisons):
            console.print(Text(UNSTABLE, style="dim"))
        _show_reasons(document.cells, opening=document.sentence, console=console)
        _show_differences(document.cells, console=console)
        if document.comparisons:
            table = _make_comparison_table(document, varying, is_wide=console.width >= NARROW)
            constant, table = lift_constant_columns(table, *LIFTED_COMPARED)
            console.print(Text(f"\n{constant}" if constant else "", style="dim"))
            _show_table(table, console=console)
    _show_operators(document, console=console)
    _show_called_operators(document, console=console)
    if address:
        console.print(Text(f"\n{address}"), soft_wrap=True)


def _show_table(table: Table, *first_heads: str, console: Console) -> None:
    for part in split_to_width(table, *first_heads, width=console.width):
        console.print(part)


def _find_varying(cells: Sequence[Cell]) -> list[Axis]:
    """Return the axes in which these cells differ. A cell that never ran has no node, which is no difference."""
    texts = {axis.name: {_format_axis(axis, cell) for cell in cells} for axis in COLUMNS}
    return [axis for axis in COLUMNS if len(texts[axis.name] - ({""} if axis.name == "node" else set())) > 1]


def _describe_common(cell: Cell, varying: Sequence[Axis]) -> str:
    """Describe the axes in which the cells do not differ. `cell` is one of them. Defaults are left out."""
    shared = [axis for axis in COLUMNS if axis not in varying]
    model, runtime, node = (axis in shared for axis in (BY_NAME["model"], BY_NAME["runtime"], BY_NAME["node"]))
    parts = [
        (cell.model or "model") if model else "",
        titles.runtime_in_words(cell.runtime) if runtime else "",
        *(
            _format_axis(axis, cell, is_alone=True)
            for axis in shared
            if axis in WORKLOAD and axis != CALL and not axis.is_default(cell)
        ),
        f"timed by {CALL.label(cell)}" if CALL in shared and engines.engine_of(cell.runtime).has_calls else "",
        f"on {cell.node}" if node and cell.node else "",
    ]
    return ", ".join(part for part in parts if part)


def _make_cell_table(document: Document, cells: Sequence[Cell], varying: Sequence[Axis], *, width: int) -> Table:
    """Make the table of cells. Where it is too narrow, the varying axes share one column that may fold."""
    risky, times = find_unstable(document.cells, document.comparisons), Times.of(cells, document.comparisons)
    axes_width = sum(2 + max(len(_format_axis(axis, cell)) for cell in cells) for axis in varying)
    others = {call: of for call, of in OF_CALLS.items() if any(map(of.value, cells))}
    is_by_cpu = bool(times.by_processor)
    is_apart = width >= NARROW and axes_width <= width - FIGURES_WIDTH - CALL_WIDTH * (len(others) + is_by_cpu)
    is_eventful = bool(risky) or any(cell.status != "done" or cell.simulated or is_wrong(cell) for cell in cells)
    named = [axis.heading.lower() for axis in varying] if is_apart or len(varying) < 2 else ["measured"]
    table = make_folding_table("cell", *named)
    first, *further = (TOKEN_HEADS if all(map(prefills.is_generated, cells)) else HEADS).items()
    columns = [first, *((titles.CALLS[call], metric) for call, metric in others.items())]
    columns += [*([(BY_CLOCK, JUDGED)] * is_by_cpu), *further]
    # where a column has both, which of its figures are processor time
    marked = {head: () if head == BY_CLOCK else times.find_processor_exceptions(of.name, cells) for head, of in columns}
    for head, metric in columns:
        text = head if head == BY_CLOCK else times.heading(head, metric.name, cells).replace("the clock", "clock")
        text = text.replace(f"p50, {PROCESSOR}", "CPU time").replace(PROCESSOR, "CPU")
        table.add_column(text, justify="right", no_wrap=True)
    is_judged = any(cell.accuracy is not None for cell in cells)
    for head in ["parity", *(["accuracy"] if is_judged else []), *(["state"] if is_eventful else [])]:
        table.add_column(head, no_wrap=True)
    for cell in cells:
        by_axis = [_format_axis(axis, cell) for axis in varying]
        named_axes = by_axis if is_apart else [_format_axes(cell, varying)][: len(named)]
        whole = {head: cell if head == BY_CLOCK else times.with_compared_figures(cell) for head, _ in columns}
        figures = [_format_figure(of, whole[head]) + " CPU" * (cell.id in marked[head]) for head, of in columns]
        parity = colour_text(_format_parity(cell.parity), cell.parity.verdict)
        row: list[str | Text] = [cell.id, *named_axes, *figures, parity]
        row += [_format_accuracy(cell)] if is_judged else []
        if is_eventful:
            state = WRONG if is_wrong(cell) else str(cell.status)
            notes = ["simulated"] if cell.simulated else ["unstable"] if cell.id in risky else []
            row.append(colour_text(", ".join([mark_word(state), *notes]), state))
        table.add_row(*row)
    return table


def _format_axis(axis: Axis, cell: Cell, *, is_alone: bool = False) -> str:
    return _format_provider(cell) if axis.name == "provider" else axis.label(cell) if is_alone else axis.short(cell)


def _format_axes(cell: Cell, varying: Iterable[Axis]) -> str:
    return ", ".join(_format_axis(axis, cell, is_alone=True) for axis in varying)


def _format_figure(metric: Metric, cell: Cell) -> str:
    """Format a cell's figure of a metric, with the unit of a time; empty where the cell has none."""
    value = metric.value(cell)
    if not value:
        return ""
    if metric.reads == "latency":
        return latency(value, metric.interval_of(cell))
    if metric.reads == "memory":
        return memory(value)
    if metric.name == "throughput":
        return format_items_per_s(cell)
    return f"{plain(value)} ms" if metric.unit == "ms" else plain(value)


def _format_parity(parity: Parity) -> str:
    """Format `pass`, `not measured`, or `fail` with the largest difference and the NaN, or with the lowest cosine."""
    word = parity.verdict.replace("_", " ")
    if parity.verdict != "fail":
        return ", ".join(filter(None, (word, parities.describe_reference(parity))))
    beyond = [output for output in parity.outputs if output.violations] or parity.outputs
    # presets without atol judge by the cosine
    if parity.atol is None:
        cosine = min((output.cosine for output in parity.outputs if output.cosine is not None), default=None)
        return word if cosine is None else f"{word} cosine {numbers.format_cosine(cosine)}"
    nan = sum(output.nan_count for output in beyond)
    largest = max((output.max_abs for output in beyond if output.max_abs is not None), default=None)
    parts = ["" if largest is None else plain(largest), f"{nan} NaN" if nan else ""]
    return " ".join([word, *filter(None, parts)])


def _format_accuracy(cell: Cell) -> Text:
    """Format `98.1 % (96.6–99.0)`, in the colour of a warning where the accuracy is lower than that of FP32."""
    accuracy = cell.accuracy
    if accuracy is None or accuracy.value is None:
        return Text("" if accuracy is None else "not measured")
    text = f"{accuracy.metric} {accuracy_metrics.metric_of(accuracy).format_reached(accuracy)}"
    return Text(text, style=COLOURS["slower"] if is_less_accurate(accuracy) else "")


def _format_provider(cell: Cell) -> str:
    """Format the provider that was requested, and the one that ran where it is another."""
    requested = titles.provider(cell.provider)
    active = titles.provider(next(iter(cell.active_providers), cell.provider))
    return requested if active == requested else f"asked {requested}, ran {active}"


def _show_inputs(cells: Sequence[Cell], *, console: Console) -> None:
    """Print the inputs of the cells. Cells with the same inputs share a line."""
    ways: dict[str, list[str]] = {}
    for cell in cells:
        inputs = ", ".join(f"{fed.name} {fed.dtype}{fed.shape} ({fed.made_by})" for fed in cell.inputs[:NAMED_INPUTS])
        more = len(cell.inputs) - NAMED_INPUTS
        if inputs:
            ways.setdefault(inputs + (f", {more} more" if more > 0 else ""), []).append(cell.id)
    for inputs, ids in list(ways.items())[:MAX_WAYS]:
        who = f" of {', '.join(ids)}" if len(ways) > 1 else ""
        console.print(Text(f"inputs{who}: {inputs}", style="dim"), soft_wrap=True)
    if len(ways) > MAX_WAYS:
        console.print(Text(f"{len(ways) - MAX_WAYS} more sizes: onnxfarm results --json", style="dim"))


def _show_reasons(cells: Sequence[Cell], *, opening: str, console: Console) -> None:
    """Print why cells were not measured, with the ways out. A reason that `opening` has is not repeated."""
    reasons = {cell.id: cell.reason for cell in cells}
    # an A/A copy is listed only where its cell ended otherwise
    without_twins = [cell for cell in cells if cell.twin_of is None or cell.reason != reasons.get(cell.twin_of)]
    for reason, alike in refusals.group_by_reason(without_twins).items():
        shared = [axis for axis in _find_varying(cells) if len({_format_axis(axis, cell) for cell in alike}) == 1]
        axes = f", {_format_axes(alike[0], shared)}" if shared and alike[0].status == "refused" else ""
        named = ", ".join(cell.id for cell in alike[:NAMED_CELLS])
        more = f" and {len(alike) - NAMED_CELLS} more" if len(alike) > NAMED_CELLS else ""
        heading = named if len(alike) == 1 else f"{len(alike)} cells ({named}{more})"
        text = "the reason is above." if reason.text in opening else reason.text
        heading = f"{mark_word(alike[0].status)} {heading}{axes}: {text}"
        print_lines(heading, *(f"    {way_out}" for way_out in refusals.list_ways_out(alike)), console=console)
    for cell in cells:
        if cell.scenario_text:
            print_lines(f"{cell.id}, {scenarios.describe(cell.scenario)}: {cell.scenario_text}", console=console)
        if cell.sustained is not None:
            text = cell.sustained.reason.text if cell.sustained.reason else cell.sustained.text
            print_lines(f"{cell.id}, sustained: {text}", console=console)


def _show_differences(cells: Sequence[Cell], *, console: Console) -> None:
    """Print cells whose outputs differ from another engine's for the same variant, or from unoptimised ones."""
    cells_by_id = {cell.id: cell for cell in cells}
    lines = list({cell.parity.text: None for cell in cells if cell.parity.unjudged})
    lines += [
        f"≠ {cell.id} against {pair.cell} ({cells_by_id[pair.cell].runtime}): {pair.text}{_describe_divergence(pair)}"
        for cell in cells
        for pair in cell.engines
        if pair.verdict == "fail" and pair.cell in cells_by_id and cells_by_id[pair.cell].recipe == cell.recipe
    ]
    lines += [
        f"≠ {cell.id} against no optimisations: {cell.unoptimised.text}"
        for cell in cells
        # few bits enlarge the least difference: there the reference's tolerance says more, and the page has both
        if cell.unoptimised is not None
        and cell.unoptimised.verdict == "fail"
        and not recipes.is_quantised(cell.precision)
    ]
    if (more := len(lines) - MAX_DIFFERENCES) > 0:
        lines[MAX_DIFFERENCES:] = [f"{more} more differences: onnxfarm results --json"]
    print_lines(*lines, console=console)


def _describe_divergence(pair: EngineParity) -> str:
    """Return the sentence about the first divergent node, or the command that finds it; empty without either."""
    if pair.divergence:
        return f" {pair.divergence}"
    return f" Find the node: {pair.command}" if pair.command else ""


def _make_comparison_table(document: Document, varying: Sequence[Axis], *, is_wide: bool) -> Table:
    cells = {cell.id: cell for cell in document.cells}
    ordered = [metric_changes.convert_to_items(pair, cells) for pair in _sort_comparisons(document.comparisons, cells)]
    beside = {"prefill": prefills.find_prefill, "memory": metric_changes.find_memory_change} | {
        titles.CALLS[call]: partial(metric_changes.find_metric, metric.name) for call, metric in OF_CALLS.items()
    }
    shown_beside = {head: of for head, of in beside.items() if any(map(of, ordered))}
    table = make_folding_table("compared", "decoding" if "prefill" in shown_beside else "verdict")
    lines = [make_comparison_line(comparison, cells) for comparison in ordered[:MAX_COMPARISONS]]
    kinds = {line.quantity for line in lines}
    values = [min(kinds) if len(kinds) == 1 else "medians"] if any(line.values for line in lines) else []
    # on a narrow terminal an interval folds, so that what is compared has its place
    for head in ("interval", *values, "rounds", "detectable"):
        table.add_column(head, justify="right", no_wrap=is_wide or head != "interval", overflow="fold")
    for head in shown_beside:
        table.add_column(head, no_wrap=True)
    for comparison, line in zip(ordered, lines, strict=False):
        detectable, changes = comparison.smallest_detectable, [of(comparison) for of in shown_beside.values()]
        table.add_row(
            _format_sides(comparison, cells, varying),
            colour_text(line.words, line.change.word),
            line.change.interval if line.change.figures else "",
            *([line.values] if values else []),
            str(comparison.rounds),
            "" if detectable is None else percent(float(f"{detectable:.2g}")),
            *(colour_text(metric_changes.mark_change(change), change.verdict) if change else "" for change in changes),
        )
    by_processor = sum(map(is_by_processor, ordered))
    notes = [f"{BUSY} ({by_processor} of {counted(len(ordered), 'comparison')})"] * bool(by_processor)
    if values and any(line.why for line in lines):
        notes.append("medians that are apart otherwise than their pairs are left out")
    notes += dict.fromkeys(note for comparison in ordered for note in metric_changes.explain_undecided(comparison))
    if len(ordered) > MAX_COMPARISONS:
        notes.append(f"{len(ordered) - MAX_COMPARISONS} more: onnxfarm results --json")
    table.caption = "; ".join(notes) or None
    return table


def _sort_comparisons(comparisons: Sequence[Comparison], cells: Mapping[str, Cell]) -> list[Comparison]:
    """Sort the axis that the headline speaks of first and A/A pairs last; on each axis, larger changes first."""
    first = rank_results(comparisons, cells).axis
    return sorted(
        comparisons,
        key=lambda pair: (pair.axis == TWIN, pair.axis != first, axis_rank(pair.axis), *_rank_change(pair, cells)),
    )


def _format_sides(comparison: Comparison, cells: Mapping[str, Cell], varying: Iterable[Axis]) -> str:
    """Format `batch 1 → 8 (1.29.0, int8-dynamic)`: the axis that differs, then the other varying ones."""
    old, new = cells.get(comparison.baseline), cells.get(comparison.candidate)
    if old is None or new is None or comparison.axis not in BY_NAME:
        who = f"{comparison.baseline} → {comparison.candidate}"
        return f"{who} (A/A)" if comparison.axis == TWIN else who
    axis = BY_NAME[comparison.axis]
    others = _format_axes(old, [column for column in varying if column != axis])
    return f"{_format_axis(axis, old, is_alone=True)} → {_format_axis(axis, new)}" + (f" ({others})" if others else "")


def _rank_change(comparison: Comparison, cells: Mapping[str, Cell]) -> tuple[int, float]:
    change = change_of(comparison, cells)
    return rank(change.word), -change.size


def _show_operators(document: Document, *, console: Console) -> None:
    """Print the operators that explain the largest decided change on the axis of the headline."""
    cells = {cell.id: cell for cell in document.cells}
    axis = rank_results(document.comparisons, cells).axis
    changed = [c for c in document.comparisons if is_change(c.verdict) and c.operators and c.axis == axis]
    if not changed:
        return
    largest = min(changed, key=lambda pair: _rank_change(pair, cells))
    named = list_named_operators(largest)[:NAMED_OPERATORS]
    sides = _format_sides(largest, cells, SIDE_AXES)
    console.print(Text(f"\n{make_operators_heading(largest, sides)}"), soft_wrap=True)
    for operator in named:
        part = f", {numbers.explains(operator.moved_us, operator.share)}" if operator.share else ""
        moved = f"{numbers.signed(operator.moved_us)} µs"
        times = format_operator_times(operator) or format_operator_change(operator) or moved
        console.print(Text(f"  {operator.op_type} {operator.node}: {times}{part}"), soft_wrap=True)
    outside = format_outside_times([cells[side] for side in (largest.baseline, largest.candidate) if side in cells])
    # beside other programs the clock counts their turns too
    if outside and not describe_trace_noise(largest):
        console.print(Text(f"  in no operator (between them, and the profiler's own): {outside}"), soft_wrap=True)


def _show_called_operators(document: Document, *, console: Console) -> None:
    """Print the operators that changed by a verdict of their own; the model may have no verdict."""
    cells = {cell.id: cell for cell in document.cells}
    lines = []
    comparisons = [comparison for comparison in document.comparisons if comparison.axis != TWIN]
    for comparison in sorted(comparisons, key=lambda comparison: _rank_change(comparison, cells)):
        sides = _format_sides(comparison, cells, SIDE_AXES)
        for change in list_changed_operators(comparison):
            verdict = change.verdict or ""
            line = Text("  ") + colour_text(f"{sign_of(verdict).mark} {format_operator_change(change)}", verdict)
            details = ", ".join(filter(None, (format_operator_times(change), f"{change.rounds} rounds", sides)))
            lines.append(line + Text(f"  {change.op_type} {change.node}: {details}"))
    if lines:
        console.print(Text("\nOperators that changed, each judged by its own pairs:"), soft_wrap=True)
    more = len(lines) - CALLED_OPERATORS
    for line in [*lines[:CALLED_OPERATORS], *([Text(f"  and {more} more")] if more > 0 else [])]:
        console.print(line, soft_wrap=True)
