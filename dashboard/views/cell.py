"""The page of a cell, with its tab of the trace, and the parts that its share link shows too."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from dashboard import axes
from dashboard.figures import accuracies, samples, scenarios, timelines, warm_up
from dashboard.figures.figure import Address
from dashboard.reading import accuracy, comparisons, copies, facts, operators
from dashboard.reading import cell as reading
from dashboard.reading.cell import list_open_cells
from dashboard.reading.cells import group_refused
from dashboard.reading.runs import address_to_repeat
from dashboard.views.access import page, signed_in_user
from dashboard.views.divergence import list_engine_pairs, make_panel
from dashboard.views.run import cell_addresses_in
from farm.base.refusals import Missing
from farm.contract.document import BlockFacts, Document
from farm.contract.document_cells import Cell, Parity
from farm.contract.document_comparisons import Comparison
from farm.rules.presenting import parities, prefills, sentences, simulated
from farm.rules.presenting.headlines import rank_results
from farm.rules.presenting.lines import is_wrong, why_wrong
from farm.rules.presenting.stability import UNSTABLE, find_unstable
from farm.rules.presenting.tables import Entry, Head, Table
from farm.rules.presenting.times import Times, format_latency
from farm.rules.quality.parity import LEVELS
from farm.rules.reporting import compiled_models
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import WRONG, Sign, sign_of
from farm.runs import selectors
from farm.runs.selectors import pages
from farm.runs.selectors.cells import list_launches
from farm.runs.selectors.compared_versions import collect_model_facts
from farm.runs.selectors.retention import explain_removed_timings, explain_removed_traces
from farm.runs.selectors.variants import variant_of_cell
from farm.runs.services import find_or_order_timeline
from farm.runs.services.timelines import WAITS

if TYPE_CHECKING:
    from farm.runs.models import Run


HEADS = (Head("Against"), Head("Verdict"), Head("largest difference", is_number=True), Head("In words", is_text=True))
DIFFERS = Sign("≠", "differs", "warn")

Line = tuple[Entry, ...]


def make_comparison_table(cells: Sequence[Cell], cell: Cell, address: Address) -> Table:
    """Make the table that compares the cell's outputs: first with the same cell under other settings, if it was checked
    so, then with the other cells of its block."""
    is_checked = cell.is_repeatable is not None
    checks = (_check_optimisations, _check_repetition, _check_batch_row, _check_precision) if is_checked else ()
    rows = [check(cell) for check in checks] + _compare_engines(cells, cell, address)
    return Table("beside", "Outputs against other engines and settings", HEADS, rows)


def _check_optimisations(cell: Cell) -> Line:
    unoptimised = cell.unoptimised
    name = "its own runtime without optimisations"
    if unoptimised is None:
        why = "checked on the CPU provider only, where optimisations are on and a second session is cheap"
        return _make_line(Entry(name), sign_of("not measured"), None, why)
    return _make_parity_line(Entry(name), unoptimised)


def _check_repetition(cell: Cell) -> Line:
    sentence = "The same input twice gives the same bits." if cell.is_repeatable else "The same input twice differs."
    return _make_line(Entry("the same input again"), sign_of("pass") if cell.is_repeatable else DIFFERS, None, sentence)


def _check_batch_row(cell: Cell) -> Line:
    name, largest = Entry("a row of the batch alone"), cell.batch_row_max_abs
    if largest is None:
        return _make_line(name, sign_of("not measured"), None, "needs a dynamic batch, and more than one row in it")
    is_unchanged = largest <= LEVELS.atol
    how = "is what it is alone" if is_unchanged else "depends on the other rows of its batch"
    return _make_line(
        name, sign_of("pass") if is_unchanged else DIFFERS, largest, f"A row {how}, by atol {LEVELS.atol:g}."
    )


def _check_precision(cell: Cell) -> Line:
    executed = cell.executed_precision
    sentence = f"The provider says it executes {executed}." if executed else "The provider reports no precision."
    sign = Sign("·", "told" if executed else "not reported", "quiet")
    asked = axes.BY_NAME["precision"].label(cell)
    name = Entry(f"the precision asked for, {asked}")
    return _make_line(name, DIFFERS if parities.ran_in_other_precision(cell) else sign, None, sentence)


def _compare_engines(cells: Sequence[Cell], cell: Cell, address: Address) -> list[Line]:
    """Compare the cell's outputs with those of other cells of its block. Cells with other outputs come first."""
    block = [other for other in cells if other.block == cell.block]
    along = axes.varying_axes(block)
    ranked = sorted(list_engine_pairs(block, cell), key=lambda each: each[1].verdict != "fail")
    lines = []
    for other, pair in ranked:
        name, runtime = axes.name_of(other, along), "A/A twin" if other.twin_of else titles.runtime(other.runtime)
        link = Entry(name, href=address(other.id), soft="" if runtime in name else runtime)
        lines.append(_make_parity_line(link, pair))
    return lines


def _make_parity_line(name: Entry, parity: Parity) -> Line:
    sign = DIFFERS if parity.verdict == "fail" else sign_of(parity.verdict.replace("_", " "))
    largest = max((port.max_abs for port in parity.outputs if port.max_abs is not None), default=None)
    return _make_line(name, sign, largest, parity.text)


def _make_line(name: Entry, sign: Sign, largest: float | None, sentence: str) -> Line:
    difference = "" if largest is None else numbers.scientific(largest)
    return (name, Entry(sign=sign, value=sign.word), Entry(difference, largest), Entry(sentence))


# the state of a cell that has not ended, in words, by the state of its block
OPEN = {
    "measuring": "being measured",
    "queued": "waiting for its block",
    "preparing": "being prepared",
    "settling": "measured, being settled",
}
# statuses of cells that may succeed with other sizes, limits or settings
ENDED_BADLY = ("failed", "timeout", "crashed")
MACHINE = (
    ("Processor", "cpu_model"),
    ("Logical cores", "logical_cores"),
    ("System", "os"),
    ("Architecture", "arch"),
    ("Governor", "governor"),
    ("Turbo", "turbo"),
    ("Load, 1 min", "load_1m"),
    ("Other programs", "busy_share"),
    ("Other runners", "other_runners"),
    ("Temperature, °C", "temperature_c"),
    ("Sandbox", "sandbox"),
    ("Emulated", "is_emulated"),
)


@page
def cell(request: HttpRequest, run_id: int, cell_id: str) -> HttpResponse:
    """Show the page of a cell, also of one that has not ended. With `view=trace` it shows the tab of the trace, which
    orders the timeline if it does not exist yet. Raises Missing for a cell that the run does not have, and for the
    trace of one that has not ended."""
    row = selectors.run(signed_in_user(request), run_id)
    if request.GET.get("view") == "trace":
        return _render_trace(request, row, cell_id)
    document = selectors.document(row, with_operators=False)
    found, state = _find_cell(row, cell_id, document)
    address = cell_addresses_in(run_id)
    before = next((block for block in document.blocks if block.block == found.block), None)
    node = list_machine_facts(document.machine, found.node, before)
    arch = dict(node).get("Architecture", "")
    ran = reading.describe_placement(found)
    may_write = selectors.can_write_run(signed_in_user(request), row)
    context = {
        "run": row,
        **make_panels(found, document, address, state=state),
        **_list_files(row, found),
        "facts": [facts.Fact("Provider asked → ran", f"{ran.requested} → {ran.active}"), *facts.list_cell_facts(found)],
        "state": state,
        "is_open": state in OPEN,
        "scenario": scenarios.make_panels(found, Times.of([found], document.comparisons)),
        "inputs": reading.input_table(found),
        "quantised": [
            text
            for text in (accuracies.describe_float_operators(found), *accuracy.list_advice(found, arch=arch))
            if text
        ],
        "beside": make_comparison_table(document.cells, found, address),
        **make_panel(request, row, document.cells, found),
        "siblings": reading.sibling_table(document, found, address),
        "variant": variant_of_cell(row, found.id),
        "machine": node,
        "advice": before.advice if before else [],
        "copies": copies.copy_cell(
            row.pk, found, chosen=pages.cell_specs([(row.pk, found.id)])[0], matrix=row.matrix, url=settings.PUBLIC_URL
        ),
        "share_subject": f"{row.pk}:{found.id}",
        "may_write": may_write,
        "again": address_to_repeat(row, found.id) if may_write and state in ENDED_BADLY else "",
        "may_share": found.p50_ms is not None and may_write,
        "refused": group_refused([found], address, matrix=row.matrix if may_write else ""),
    }
    return render(request, "dashboard/cell.html", context)


def make_panels(cell: Cell, document: Document, address: Address, *, state: str) -> dict[str, object]:
    """Make the context that a cell's page shares with its share link: headline, metrics, samples, operators and
    comparisons. `state`: the status of the cell, or a key of OPEN where it has not ended."""
    by_id = {cell.id: cell for cell in document.cells}
    compared = _list_comparisons(document, cell)
    times = Times.of([cell], compared)
    metrics, more_metrics = reading.fold_metrics(
        reading.metric_table(cell), is_by_processor=cell.id in times.by_processor
    )
    return {
        "cell": cell,
        "placement": reading.describe_placement(cell),
        "headline": write_headline(cell, state, compared),
        "because": _write_because(cell, compared, by_id),
        "notes": list_notes(cell, compared),
        "facts": facts.list_cell_facts(cell),
        "figure": samples.draw_samples(cell, times),
        "metrics": metrics,
        "more_metrics": more_metrics,
        "providers": reading.provider_table(cell),
        "operators": operators.operator_table(cell),
        "memory_note": operators.describe_memory(cell),
        "prompt_operators": operators.prompt_table(cell),
        "generated": reading.compare_generated(document.cells, cell, address),
        "parity": reading.parity_table(cell),
        "accuracy": accuracy.list_sentences(cell),
        "comparisons": comparisons.make_table(compared, by_id, address),
    }


def _list_comparisons(document: Document, cell: Cell) -> list[Comparison]:
    return [pair for pair in document.comparisons if cell.id in (pair.baseline, pair.candidate)]


def _list_files(row: "Run", cell: Cell) -> dict[str, object]:
    """Make the context of the cell's files: log, traces and compiled model, or why they were removed."""
    compiled = selectors.compiled_model(row, cell.id)
    return {
        "log": pages.log_of_check_pass(row, cell.id),
        "traces": list(selectors.traces_of(row, cell.id)),
        "compiled": compiled,
        "compilation": compiled_models.describe_compilation(cell) if compiled else "",
        "gone_compiled": selectors.explain_removed_compiled(row, cell.id),
        "gone_timings": explain_removed_timings(row),
        "gone_traces": explain_removed_traces(row),
    }


def _find_cell(row: "Run", cell_id: str, document: Document) -> tuple[Cell, str]:
    """Load the cell with its operators, or make it from the plan where it has not ended, and return it with its state.
    Raises Missing for a cell that the run does not have."""
    known = {cell.id for cell in document.cells}
    if cell_id in known:
        measured = selectors.cell_document(row, cell_id)
        return measured, measured.status.value
    opened, states = list_open_cells(pages.unsettled_plans(row), known=known, models=collect_model_facts(row.versions))
    waiting = next((cell for cell in opened if cell.id == cell_id), None)
    if waiting is None:
        raise Missing(f"Run {row.pk} has no cell {cell_id!r}.", hint="Its cells are listed on the run's page.")
    return waiting, states[cell_id]


def write_headline(cell: Cell, state: str, compared: Sequence[Comparison] = ()) -> str:
    """Describe the cell in one sentence: its settings and latency, marked where its outputs are wrong, or why it has no
    latency. `state`: a key of OPEN for a cell that has not ended; `compared`: the cell's comparisons, which decide the
    kind of time."""
    marked = f"{WRONG.capitalize()}: " if is_wrong(cell, compared) else ""
    what = f"{cell.model or 'The model'} on {titles.runtime_in_words(cell.runtime)}, {titles.provider(cell.provider)}"
    if state in OPEN:
        return f"{what}: {OPEN[state]}"
    if cell.p50_ms is None:
        return f"{what}: {cell.reason.text if cell.reason else numbers.NOT_MEASURED}"
    batch = f"batch {cell.batch}, " if cell.batch is not None else ""
    each = " a token" if prefills.is_generated(cell) else ""
    return f"{marked}{what}, {batch}{axes.BY_NAME['precision'].label(cell)}: {format_latency(cell, compared)}{each}"


def list_notes(cell: Cell, compared: Sequence[Comparison] = ()) -> list[str]:
    """List sentences that readers should know before they trust the figures, such as a simulated provider, time on
    other providers or an unstable verdict. Wrong outputs are not included, since the headline names them."""
    sentences = [simulated.NOTE] if cell.simulated else []
    if cell.p50_ms is not None and cell.reason is not None:
        sentences.append(cell.reason.text)
    if parities.ran_in_other_precision(cell):
        asked = axes.BY_NAME["precision"].label(cell)
        sentences.append(f"{asked} was asked for; the provider says it executed {cell.executed_precision}.")
    if elsewhere := reading.describe_time_elsewhere(cell):
        sentences.append(elsewhere)
    if find_unstable([cell], compared):
        sentences.append(UNSTABLE)
    if cell.copies:
        counted = numbers.counted(cell.copies, "copy", "copies")
        sentences.append(f"{counted} between host and device in every inference.")
    return sentences


def _write_because(cell: Cell, compared: list[Comparison], by_id: Mapping[str, Cell]) -> str:
    """Say why outputs are wrong, if they are, and what the most important comparison of the cell found."""
    why = why_wrong(cell) if is_wrong(cell, compared) else ""
    known = [comparison for comparison in compared if comparison.baseline in by_id and comparison.candidate in by_id]
    own = [comparison for comparison in known if comparison.candidate == cell.id]
    lead = rank_results(own or known, by_id).leading
    compared_as = sentences.comparison_sentence(lead.comparison, by_id, change=lead.change) if lead is not None else ""
    if compared_as and not own:
        # the verdict is about the candidate, so it is dropped for the baseline
        compared_as = f"Baseline: {compared_as.partition(': ')[2]}"
    return " ".join(filter(None, (why, compared_as)))


def list_machine_facts(
    facts: Mapping[str, object], node: str | None, before: BlockFacts | None = None
) -> list[tuple[str, str]]:
    """List the known facts of the node that measured, as pairs of name and text. `facts`: the facts of one machine, or
    of several, by node name, under the key `nodes`; `before`: what was read just before the block, which replaces older
    values."""
    nodes = facts.get("nodes")
    found = nodes.get(node or "") if isinstance(nodes, dict) else facts
    read: dict[str, object] = dict(found) if isinstance(found, Mapping) else {}
    if before is not None:
        read |= before.model_dump(exclude={"block", "node", "advice"})
        read["busy_share"] = None if before.busy_share is None else numbers.share(before.busy_share)
    known = [(name, read.get(key)) for name, key in MACHINE]
    size = read.get("memory_bytes")
    memory = [("Memory", numbers.size(size))] if isinstance(size, int | float) and size else []
    shown = [(name, _format_fact(value)) for name, value in known if value not in (None, "")]
    return [*([("Node", node)] if node and read else []), *shown[:2], *memory, *shown[2:]]


def _format_fact(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return numbers.plain(value) if isinstance(value, float) else str(value)


def _render_trace(request: HttpRequest, row: "Run", cell_id: str) -> HttpResponse:
    """Render the tab of the trace: the timeline of an inference, its placement, and the warm-up of launches. A timeline
    that does not exist yet is ordered."""
    cell = selectors.cell_document(row, cell_id)
    trace, gone = find_or_order_timeline(row, cell_id), explain_removed_timings(row)
    document = selectors.document(row, with_operators=False)
    by_id = {other.id: other for other in document.cells}
    sides = {(pair.baseline, pair.candidate) for pair in _list_comparisons(document, cell)}
    others = {(old, new): by_id[old if new == cell.id else new] for old, new in sorted(sides)}
    along = axes.varying_axes([cell, *others.values()])
    drawn = timelines.draw_timeline(trace, untraced_ms=cell.p50_ms)
    known = [(operator.op_type, operator.time_us) for operator in cell.operators]
    context = {
        "run": row,
        "cell": cell,
        # the cell's own operators are known while the trace is not read
        "headline": timelines.write_finding(known, operators.total_us(cell)) if drawn.empty and known else drawn.title,
        "figures": [
            drawn,
            timelines.draw_placement(trace),
            *([] if gone else [warm_up.draw_warm_up(list_launches(row, cell_id))]),
        ],
        "gone": gone,
        "waits": trace == WAITS,
        "beside": [
            (axes.name_of(other, along), before_and_after_address(row.pk, old, new))
            for (old, new), other in others.items()
        ],
        "trace": selectors.traces_of(row, cell_id).first(),
    }
    return render(request, "dashboard/trace.html", context)


def before_and_after_address(run_id: int, old: str, new: str) -> str:
    return f"{reverse('dashboard:compare')}?cells={run_id}:{old}&cells={run_id}:{new}&view=timeline"


@page
def redirect_to_trace(request: HttpRequest, run_id: int, cell_id: str) -> HttpResponseBase:
    return redirect(f"{cell_addresses_in(run_id)(cell_id)}?view=trace")
