"""Shows a bench document in the terminal: the verdict line, the cells, the comparisons, and the operators."""

from collections.abc import Collection, Iterable, Mapping, Sequence
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
from farm.rules.presenting import changed_operators as operators
from farm.rules.presenting import metric_changes, parities, prefills, refusals
from farm.rules.presenting.headlines import axis_sort_key, rank_results
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
from farm.rules.wording.vocabulary import WRONG, is_change, rank, sign_of, with_mark
from onnxfarm.outputs import print_lines
from onnxfarm.terminal_tables import COLOURS, colour_text, lift_constant_columns, make_folding_table, split_to_width

# at most this many operators explain the largest change, and this many are listed with their own verdict
MAX_EXPLAINING_OPERATORS, MAX_CHANGED_OPERATORS = 3, 12
MAX_INPUTS = MAX_NAMED = MAX_INPUT_LINES = 8
MAX_COMPARISONS, MAX_DIFFERENCES = 40, 10
# a narrower terminal has no room for a column for each axis
MIN_WIDE_WIDTH = 100
# the estimated width of all usual columns of figures, and of each further one
FIGURES_WIDTH, CALL_WIDTH = 80, 20
TWIN = "twin"
# the metric of each column of figures, by its header
PEAK, FIRST, BY_CLOCK = METRICS["peak_memory_bytes"], METRICS[TTFT], "by the clock"
FIGURE_COLUMNS = {"p50": JUDGED, "items/s": METRICS["throughput"], "session": METRICS["session_ms"], "memory": PEAK}
TOKEN_COLUMNS = {"per token": JUDGED, "first token": FIRST, "overall tokens/s": METRICS[TOKENS_RATE], "memory": PEAK}
# columns that become a line above the table if all rows have the same text
LIFTED = ("state", "parity", "accuracy")
LIFTED_COMPARED = ("rounds", "detectable", "prefill", "memory", *titles.CALLS.values())

CALL = BY_NAME["call"]
# the axes that describe the sides of a comparison whose operators are listed
SIDE_AXES = (BY_NAME["precision"], BY_NAME["batch"])
# the axes in the order of their columns: first those that are compared most, last where a cell ran
_FIRST = {name: place for place, name in enumerate(("runtime", "opset", "provider", "precision"))}
_LAST = ("model", "hardware", "node")
COLUMNS = tuple(sorted(AXES, key=lambda axis: (axis.name in _LAST, _FIRST.get(axis.name, len(_FIRST)))))


def show(document: Document, *, console: Console, address: str = "") -> None:
    """Print a bench document for people. `address`: the run's page on the farm, printed last; empty: not printed.

    The table leaves out refused cells unless all are refused; their reasons are printed. Long lists are cut.
    """
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
            table = _make_comparison_table(document, varying, is_wide=console.width >= MIN_WIDE_WIDTH)
            constant, table = lift_constant_columns(table, *LIFTED_COMPARED)
            console.print(Text(f"\n{constant}" if constant else "", style="dim"))
            _show_table(table, console=console)
    _show_operators(document, console=console)
    _show_called_operators(document, console=console)
    if address:
        console.print(Text(f"\n{address}"), soft_wrap=True)


def _show_table(table: Table, *first_headers: str, console: Console) -> None:
    for part in split_to_width(table, *first_headers, width=console.width):
        console.print(part)


def _find_varying(cells: Sequence[Cell]) -> list[Axis]:
    # a cell that never ran has no node, which is no difference
    texts = {axis.name: {_format_axis(axis, cell) for cell in cells} for axis in COLUMNS}
    return [axis for axis in COLUMNS if len(texts[axis.name] - ({""} if axis.name == "node" else set())) > 1]


def _describe_common(cell: Cell, varying: Sequence[Axis]) -> str:
    """Describe the axes in which the cells agree, without defaults. `cell` is one of the cells."""
    shared = [axis for axis in COLUMNS if axis not in varying]
    settings = [axis for axis in shared if axis in WORKLOAD and axis != CALL and not axis.is_default(cell)]
    parts = []
    if BY_NAME["model"] in shared:
        parts.append(cell.model or "model")
    if BY_NAME["runtime"] in shared:
        parts.append(titles.runtime_in_words(cell.runtime))
    parts += [_format_axis(axis, cell, is_alone=True) for axis in settings]
    if CALL in shared and engines.engine_of(cell.runtime).has_calls:
        parts.append(f"timed by {CALL.label(cell)}")
    if BY_NAME["node"] in shared and cell.node:
        parts.append(f"on {cell.node}")
    return ", ".join(filter(None, parts))


def _make_cell_table(document: Document, cells: Sequence[Cell], varying: Sequence[Axis], *, width: int) -> Table:
    """Make the table of cells. If there is no room for a column for each varying axis, they share one that may fold."""
    unstable, times = find_unstable(document.cells, document.comparisons), Times.of(cells, document.comparisons)
    other_calls = {call: metric for call, metric in OF_CALLS.items() if any(map(metric.value, cells))}
    is_by_cpu = bool(times.by_processor)
    is_judged = any(cell.accuracy is not None for cell in cells)
    is_eventful = bool(unstable) or any(cell.status != "done" or cell.simulated or is_wrong(cell) for cell in cells)

    # the columns of axes
    axes_width = sum(2 + max(len(_format_axis(axis, cell)) for cell in cells) for axis in varying)
    room = width - FIGURES_WIDTH - CALL_WIDTH * (len(other_calls) + is_by_cpu)
    has_axis_columns = width >= MIN_WIDE_WIDTH and axes_width <= room
    headers = [axis.heading.lower() for axis in varying] if has_axis_columns or len(varying) < 2 else ["measured"]
    table = make_folding_table("cell", *headers)

    # the columns of figures
    first, *further = (TOKEN_COLUMNS if all(map(prefills.is_generated, cells)) else FIGURE_COLUMNS).items()
    columns = [first, *((titles.CALLS[call], metric) for call, metric in other_calls.items())]
    columns += [*([(BY_CLOCK, JUDGED)] * is_by_cpu), *further]
    # by column: the cells whose figure is processor time, if other cells have times by the clock
    by_cpu: dict[str, Collection[str]] = {}
    for name, metric in columns:
        by_cpu[name] = () if name == BY_CLOCK else times.find_processor_exceptions(metric.name, cells)
        header = name if name == BY_CLOCK else times.heading(name, metric.name, cells).replace("the clock", "clock")
        header = header.replace(f"p50, {PROCESSOR}", "CPU time").replace(PROCESSOR, "CPU")
        table.add_column(header, justify="right", no_wrap=True)
    for header in ["parity", *["accuracy"] * is_judged, *["state"] * is_eventful]:
        table.add_column(header, no_wrap=True)

    for cell in cells:
        axes = [_format_axis(axis, cell) for axis in varying]
        row: list[str | Text] = [cell.id, *(axes if has_axis_columns else [_format_axes(cell, varying)][: len(axes)])]
        compared = times.with_compared_figures(cell)
        for name, metric in columns:
            figure = _format_figure(metric, cell if name == BY_CLOCK else compared)
            row.append(f"{figure} CPU" if cell.id in by_cpu[name] else figure)
        row.append(colour_text(_format_parity(cell.parity), cell.parity.verdict))
        if is_judged:
            row.append(_format_accuracy(cell))
        if is_eventful:
            state = WRONG if is_wrong(cell) else str(cell.status)
            note = ", simulated" if cell.simulated else ", unstable" if cell.id in unstable else ""
            row.append(colour_text(f"{with_mark(state)}{note}", state))
        table.add_row(*row)
    return table


def _format_axis(axis: Axis, cell: Cell, *, is_alone: bool = False) -> str:
    if axis.name == "provider":
        return _format_provider(cell)
    return axis.label(cell) if is_alone else axis.short(cell)


def _format_axes(cell: Cell, varying: Iterable[Axis]) -> str:
    return ", ".join(_format_axis(axis, cell, is_alone=True) for axis in varying)


def _format_figure(metric: Metric, cell: Cell) -> str:
    """Format a cell's value of a metric, with the unit of a time; empty for 0 and for none."""
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
    """Format `pass`, `not measured`, or `fail` with the largest difference and count of NaN, or the lowest cosine."""
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
    """Format `top1 98.1 % (96.6–99.0)`, in a warning's colour if the accuracy is lower than that of FP32."""
    accuracy = cell.accuracy
    if accuracy is None or accuracy.value is None:
        return Text("" if accuracy is None else "not measured")
    text = f"{accuracy.metric} {accuracy_metrics.metric_of(accuracy).format_with_interval(accuracy)}"
    return Text(text, style=COLOURS["slower"] if is_less_accurate(accuracy) else "")


def _format_provider(cell: Cell) -> str:
    """Format the requested provider, and the one that ran if it is another."""
    requested = titles.provider(cell.provider)
    active = titles.provider(next(iter(cell.active_providers), cell.provider))
    return requested if active == requested else f"asked {requested}, ran {active}"


def _show_inputs(cells: Sequence[Cell], *, console: Console) -> None:
    """Print the inputs of the cells. Cells with the same inputs share a line."""
    ids_by_inputs: dict[str, list[str]] = {}
    for cell in cells:
        inputs = ", ".join(f"{fed.name} {fed.dtype}{fed.shape} ({fed.made_by})" for fed in cell.inputs[:MAX_INPUTS])
        more = len(cell.inputs) - MAX_INPUTS
        if inputs:
            ids_by_inputs.setdefault(inputs + (f", {more} more" if more > 0 else ""), []).append(cell.id)
    for inputs, ids in list(ids_by_inputs.items())[:MAX_INPUT_LINES]:
        cell_ids = f" of {', '.join(ids)}" if len(ids_by_inputs) > 1 else ""
        console.print(Text(f"inputs{cell_ids}: {inputs}", style="dim"), soft_wrap=True)
    if len(ids_by_inputs) > MAX_INPUT_LINES:
        console.print(Text(f"{len(ids_by_inputs) - MAX_INPUT_LINES} more sizes: onnxfarm results --json", style="dim"))


def _show_reasons(cells: Sequence[Cell], *, opening: str, console: Console) -> None:
    """Print why cells were not measured, and what to do. A reason that is in `opening` is not repeated."""
    reasons = {cell.id: cell.reason for cell in cells}
    # list an A/A copy only if it ended otherwise than its cell
    without_twins = [cell for cell in cells if cell.twin_of is None or cell.reason != reasons.get(cell.twin_of)]
    for reason, alike in refusals.group_by_reason(without_twins).items():
        shared = [axis for axis in _find_varying(cells) if len({_format_axis(axis, cell) for cell in alike}) == 1]
        axes = f", {_format_axes(alike[0], shared)}" if shared and alike[0].status == "refused" else ""
        named = ", ".join(cell.id for cell in alike[:MAX_NAMED])
        more = f" and {len(alike) - MAX_NAMED} more" if len(alike) > MAX_NAMED else ""
        heading = named if len(alike) == 1 else f"{len(alike)} cells ({named}{more})"
        text = "the reason is above." if reason.text in opening else reason.text
        heading = f"{with_mark(alike[0].status)} {heading}{axes}: {text}"
        print_lines(heading, *(f"    {way_out}" for way_out in refusals.list_ways_out(alike)), console=console)
    for cell in cells:
        if cell.scenario_text:
            print_lines(f"{cell.id}, {scenarios.describe(cell.scenario)}: {cell.scenario_text}", console=console)
        if cell.sustained is not None:
            text = cell.sustained.reason.text if cell.sustained.reason else cell.sustained.text
            print_lines(f"{cell.id}, sustained: {text}", console=console)


def _show_differences(cells: Sequence[Cell], *, console: Console) -> None:
    """Print cells whose outputs differ from those of another engine, or from those without optimisations."""
    cells_by_id = {cell.id: cell for cell in cells}
    lines = list({cell.parity.text: None for cell in cells if cell.parity.unjudged})
    for cell in cells:
        for pair in cell.engines:
            other = cells_by_id.get(pair.cell)
            if pair.verdict == "fail" and other is not None and other.recipe == cell.recipe:
                lines.append(
                    f"≠ {cell.id} against {other.id} ({other.runtime}): {pair.text}{_describe_divergence(pair)}"
                )
    for cell in cells:
        # quantisation enlarges tiny differences, so those of quantised cells are not listed
        if cell.unoptimised and cell.unoptimised.verdict == "fail" and not recipes.is_quantised(cell.precision):
            lines.append(f"≠ {cell.id} against no optimisations: {cell.unoptimised.text}")
    if (more := len(lines) - MAX_DIFFERENCES) > 0:
        lines[MAX_DIFFERENCES:] = [f"{more} more differences: onnxfarm results --json"]
    print_lines(*lines, console=console)


def _describe_divergence(pair: EngineParity) -> str:
    """Return the sentence about the first divergent node, or the command that finds it; empty if there is neither."""
    if pair.divergence:
        return f" {pair.divergence}"
    return f" Find the node: {pair.command}" if pair.command else ""


def _make_comparison_table(document: Document, varying: Sequence[Axis], *, is_wide: bool) -> Table:
    cells = {cell.id: cell for cell in document.cells}
    ordered = [metric_changes.convert_to_items(pair, cells) for pair in _sort_comparisons(document.comparisons, cells)]
    finders = {"prefill": prefills.find_prefill, "memory": metric_changes.find_memory_change}
    for call, metric in OF_CALLS.items():
        finders[titles.CALLS[call]] = partial(metric_changes.find_metric, metric.name)
    other_metrics = {header: find for header, find in finders.items() if any(map(find, ordered))}
    table = make_folding_table("compared", "decoding" if "prefill" in other_metrics else "verdict")
    lines = [make_comparison_line(comparison, cells) for comparison in ordered[:MAX_COMPARISONS]]
    kinds = {line.quantity for line in lines}
    values = [min(kinds) if len(kinds) == 1 else "medians"] if any(line.values for line in lines) else []
    # on a narrow terminal an interval folds, so that the first column has enough room
    for header in ("interval", *values, "rounds", "detectable"):
        table.add_column(header, justify="right", no_wrap=is_wide or header != "interval", overflow="fold")
    for header in other_metrics:
        table.add_column(header, no_wrap=True)
    for comparison, line in zip(ordered, lines, strict=False):
        detectable, changes = comparison.smallest_detectable, [find(comparison) for find in other_metrics.values()]
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
    """Sort comparisons: the axis of the headline first, A/A pairs last, and on each axis larger changes first."""
    first = rank_results(comparisons, cells).axis
    return sorted(
        comparisons,
        key=lambda pair: (pair.axis == TWIN, pair.axis != first, axis_sort_key(pair.axis), *_rank_change(pair, cells)),
    )


def _format_sides(comparison: Comparison, cells: Mapping[str, Cell], varying: Iterable[Axis]) -> str:
    """Format `batch 1 → 8 (1.29.0, int8-dynamic)`: the axis of the comparison, then the others in `varying`."""
    old, new = cells.get(comparison.baseline), cells.get(comparison.candidate)
    if old is None or new is None or comparison.axis not in BY_NAME:
        sides = f"{comparison.baseline} → {comparison.candidate}"
        return f"{sides} (A/A)" if comparison.axis == TWIN else sides
    axis = BY_NAME[comparison.axis]
    others = _format_axes(old, [column for column in varying if column != axis])
    return f"{_format_axis(axis, old, is_alone=True)} → {_format_axis(axis, new)}" + (f" ({others})" if others else "")


def _rank_change(comparison: Comparison, cells: Mapping[str, Cell]) -> tuple[int, float]:
    change = change_of(comparison, cells)
    return rank(change.word), -change.size


def _show_operators(document: Document, *, console: Console) -> None:
    """Print the operators that explain the largest decided change on the headline's axis; nothing if there is none."""
    cells = {cell.id: cell for cell in document.cells}
    axis = rank_results(document.comparisons, cells).axis
    changed = [c for c in document.comparisons if is_change(c.verdict) and c.operators and c.axis == axis]
    if not changed:
        return
    largest = min(changed, key=lambda pair: _rank_change(pair, cells))
    named = operators.list_named_operators(largest)[:MAX_EXPLAINING_OPERATORS]
    sides = _format_sides(largest, cells, SIDE_AXES)
    console.print(Text(f"\n{operators.make_operators_heading(largest, sides)}"), soft_wrap=True)
    for operator in named:
        part = f", {numbers.explains(operator.moved_us, operator.share)}" if operator.share else ""
        moved = f"{numbers.signed(operator.moved_us)} µs"
        times = operators.format_operator_times(operator) or operators.format_operator_change(operator) or moved
        console.print(Text(f"  {operator.op_type} {operator.node}: {times}{part}"), soft_wrap=True)
    outside = format_outside_times([cells[side] for side in (largest.baseline, largest.candidate) if side in cells])
    # on a busy machine, this time includes that of other programs
    if outside and not operators.note_busy_machine(largest):
        console.print(Text(f"  in no operator (between them, and the profiler's own): {outside}"), soft_wrap=True)


def _show_called_operators(document: Document, *, console: Console) -> None:
    """Print the operators that became slower or faster by their own verdict, even if the model's is undecided."""
    cells = {cell.id: cell for cell in document.cells}
    lines = []
    comparisons = [comparison for comparison in document.comparisons if comparison.axis != TWIN]
    for comparison in sorted(comparisons, key=lambda comparison: _rank_change(comparison, cells)):
        sides = _format_sides(comparison, cells, SIDE_AXES)
        for change in operators.list_changed_operators(comparison):
            verdict = change.verdict or ""
            text = colour_text(f"{sign_of(verdict).mark} {operators.format_operator_change(change)}", verdict)
            times = operators.format_operator_times(change)
            details = ", ".join(filter(None, (times, f"{change.rounds} rounds", sides)))
            lines.append(Text("  ") + text + Text(f"  {change.op_type} {change.node}: {details}"))
    if lines:
        console.print(Text("\nOperators that changed, each judged by its own pairs:"), soft_wrap=True)
    more = len(lines) - MAX_CHANGED_OPERATORS
    for line in [*lines[:MAX_CHANGED_OPERATORS], *([Text(f"  and {more} more")] if more > 0 else [])]:
        console.print(line, soft_wrap=True)
