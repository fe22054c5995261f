"""The page of one cell."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.figures import accuracies, samples, scenarios
from dashboard.figures.figure import Address
from dashboard.reading import accuracy, comparisons, copies, facts, tokens
from dashboard.reading import cell as reading
from dashboard.reading.open_cells import open_cells
from dashboard.reading.output_checks import beside
from dashboard.views.access import page, person
from dashboard.views.divergence import panel
from dashboard.views.run import address_in
from farm.base.refusals import Missing
from farm.contract.document import BlockFacts, Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.registry.selectors import model_file_digest
from farm.rules.presenting import prefills, sentences, simulated
from farm.rules.presenting.headlines import opening_of
from farm.rules.presenting.stability import at_risk
from farm.rules.reporting import compiled_models
from farm.rules.wording import numbers, titles
from farm.runs import selectors
from farm.runs.selectors import pages
from farm.runs.selectors.retention import removed_timings, removed_traces
from farm.runs.selectors.variants import variant_of_cell

if TYPE_CHECKING:
    from farm.runs.models import Run

# a cell that has not ended, by what goes on in its block
OPEN = {
    "measuring": "being measured",
    "queued": "waiting for its block",
    "preparing": "being prepared",
    "settling": "measured, being settled",
}
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
    """One cell of a run: what ran first where it differs from what was asked, then every number."""
    row = selectors.run(person(request), run_id)
    document = selectors.document(row, with_operators=False)
    found, state = _find(row, cell_id, document)
    address = address_in(run_id)
    before = next((one for one in document.blocks if one.block == found.block), None)
    node = machine(document.machine, found.node, before)
    arch = dict(node).get("Architecture", "")
    context = {
        "run": row,
        **panels(found, document, address, state=state),
        "state": state,
        "is_open": state in OPEN,
        "title": f"{found.id} of run {row.pk}",
        "scenario": scenarios.panels_of(found),
        "inputs": reading.inputs(found),
        "quantised": [text for text in (accuracies.stayed(found), *accuracy.advice(found, arch=arch)) if text],
        "beside": beside(document.cells, found, address),
        **panel(request, row, document.cells, found),
        "siblings": reading.siblings(document.cells, found, address),
        "traces": _traces(row, found),
        "compiled": _compiled(row, found),
        "gone_compiled": selectors.gone_compiled(row, found.id),
        "gone_timings": removed_timings(row),
        "gone_traces": removed_traces(row),
        "variant": variant_of_cell(row, found.id),
        "log": pages.log_of(row, found.id),
        "machine": node,
        "advice": before.advice if before else [],
        "copies": copies.of_cell(
            row.pk, found, chosen=pages.measured_as([(row.pk, found.id)])[0], url=settings.PUBLIC_URL
        ),
        "share_subject": f"{row.pk}:{found.id}",
        "may_write": (may_write := selectors.can_write_run(person(request), row)),
        "may_share": found.p50_ms is not None and may_write,
    }
    return render(request, "dashboard/cell.html", context)


def panels(cell: Cell, document: Document, address: Address, *, state: str) -> dict[str, object]:
    """What a page says of a cell, whoever reads it: its metrics, samples, operators and comparisons."""
    by_id = {one.id: one for one in document.cells}
    compared = [one for one in document.comparisons if cell.id in (one.baseline, one.candidate)]
    return {
        "cell": cell,
        "placement": reading.placement(cell),
        "headline": headline(cell, state),
        "because": _because(compared, by_id),
        "notes": notes(cell, compared),
        "facts": facts.of_cell(cell),
        "figure": samples.samples(cell),
        "metrics": reading.metrics(cell),
        "providers": reading.providers(cell),
        "operators": reading.operators(cell),
        "memory_note": reading.memory_note(cell),
        "prompt_operators": tokens.of_prompt(cell),
        "generated": tokens.generated(document.cells, cell, address),
        "parity": reading.parity(cell),
        # held against cells of every block, which the cell's own row does not know
        "accuracy": accuracy.panel(by_id.get(cell.id, cell)),
        "comparisons": comparisons.table(compared, by_id, address),
    }


def _find(row: "Run", cell_id: str, document: Document) -> tuple[Cell, str]:
    """The cell with its operators; a planned one that has not ended, with its state."""
    known = {one.id for one in document.cells}
    if cell_id in known:
        measured = selectors.cell_document(row, cell_id)
        return measured, measured.status.value
    opened, states = open_cells(
        pages.open_blocks(row),
        known=known,
        model=str(row.version.model),
        model_sha256=model_file_digest(row.version),
    )
    waiting = next((one for one in opened if one.id == cell_id), None)
    if waiting is None:
        raise Missing(f"Run {row.pk} has no cell {cell_id!r}.", hint="Its cells are listed on the run's page.")
    return waiting, states[cell_id]


def headline(cell: Cell, state: str) -> str:
    """The cell in one sentence: its latency, or why it has none."""
    what = f"{cell.model or 'The model'} on {titles.runtime_in_words(cell.runtime)}, {titles.provider(cell.provider)}"
    if state in OPEN:
        return f"{what}: {OPEN[state]}"
    if cell.p50_ms is None:
        return f"{what}: {cell.reason.text if cell.reason else numbers.NOT_MEASURED}"
    batch = f"batch {cell.batch}, " if cell.batch is not None else ""
    each = " a token" if prefills.is_generated(cell) else ""
    return f"{what}, {batch}{cell.precision}: {numbers.latency(cell.p50_ms, cell.p50_ci_ms)}{each}"


def notes(cell: Cell, compared: Sequence[Comparison] = ()) -> list[str]:
    """What to know before believing the numbers."""
    sentences = [simulated.NOTE] if cell.simulated else []
    if cell.p50_ms is not None and cell.reason is not None:
        sentences.append(cell.reason.text)
    if cell.executed_precision and cell.executed_precision != cell.precision:
        sentences.append(f"{cell.precision} was asked for; the provider says it executed {cell.executed_precision}.")
    if elsewhere := reading.time_elsewhere(cell):
        sentences.append(elsewhere)
    if at_risk([cell], compared):
        sentences.append(
            "Unstable: the timing windows of its launches differ by more than 5 %, as much as the change to be judged."
        )
    if cell.copies:
        sentences.append(
            f"{numbers.counted(cell.copies, 'copy', 'copies')} between host and device in every inference."
        )
    return sentences


def _because(compared: list[Comparison], by_id: Mapping[str, Cell]) -> str:
    """The comparison that matters most, in words."""
    known = [one for one in compared if one.baseline in by_id and one.candidate in by_id]
    lead = opening_of(known, by_id).lead
    return sentences.comparison_sentence(lead.comparison, by_id) if lead is not None else ""


def _traces(row: "Run", cell: Cell) -> list[dict[str, object]]:
    return [
        {"href": f"/api/v1/traces/{trace.pk}.json", "number": trace.trace_round + 1}
        for trace in selectors.traces_of(row, cell.id)
    ]


def _compiled(row: "Run", cell: Cell) -> dict[str, object] | None:
    """The model that the provider compiled, with what it was compiled for; None where there is none."""
    found = selectors.compiled_model(row, cell.id)
    if found is None:
        return None
    return {
        "href": f"/api/v1/runs/{row.pk}/cells/{cell.id}/compiled.onnx",
        "sentence": compiled_models.sentence(cell),
        "sha256": found.blob.sha256,
        "bytes": found.blob.bytes,
    }


def machine(facts: Mapping[str, object], node: str | None, before: BlockFacts | None = None) -> list[tuple[str, str]]:
    """Facts of the node that measured, those that are known; what passes as it was just before the block."""
    nodes = facts.get("nodes")
    own = nodes.get(node or "") if isinstance(nodes, dict) else facts
    one: dict[str, object] = dict(own) if isinstance(own, Mapping) else {}
    if before is not None:
        one |= before.model_dump(exclude={"block", "node", "advice"})
        one["busy_share"] = None if before.busy_share is None else numbers.share(before.busy_share)
    known = [(name, one.get(key)) for name, key in MACHINE]
    size = one.get("memory_bytes")
    memory = [("Memory", numbers.size(size))] if isinstance(size, int | float) and size else []
    shown = [(name, _in_words(value)) for name, value in known if value not in (None, "")]
    return [*([("Node", node)] if node and one else []), *shown[:2], *memory, *shown[2:]]


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return numbers.plain(value) if isinstance(value, float) else str(value)
