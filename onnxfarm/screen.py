"""The last screen of a run: the verdict line, the table of cells, the comparisons, the operators, the address."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from farm.contract.document import Cell, Comparison, Document
from farm.rules.reporting.wording import change, microseconds, milliseconds, percent, signed, three_digits

# of the largest change, so many operators are named
NAMED_OPERATORS = 3
MOST_COMPARISONS = 40
COLOURS = {"slower": "bold yellow", "faster": "cyan", "fail": "bold red", "failed": "red", "crashed": "red"}


def show(document: Document, *, console: Console, address: str = "") -> None:
    """Print a document for people; numbers end where their interval starts."""
    if document.sentence:
        console.print(f"\n{document.sentence}\n", style="bold", highlight=False)
    if document.cells:
        console.print(_cells(document.cells))
    _show_reasons(document.cells, console=console)
    if document.comparisons:
        console.print(_comparisons(document))
    _show_operators(document, console=console)
    if address:
        console.print(f"\n{address}", highlight=False, soft_wrap=True)


def _cells(cells: Sequence[Cell]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for head in ("cell", "runtime", "provider", "precision", "batch", "threads"):
        table.add_column(head, no_wrap=head == "runtime")
    for head in ("p50", "items/s", "session", "memory"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("parity")
    table.add_column("state")
    for cell in cells:
        table.add_row(*_row(cell))
    return table


def _row(cell: Cell) -> list[str]:
    batch = "–" if cell.batch is None else str(cell.batch)
    return [
        cell.id,
        cell.runtime,
        _provider(cell),
        cell.precision,
        batch,
        str(cell.threads),
        "" if cell.p50_ms is None else milliseconds(cell.p50_ms, cell.p50_ci_ms),
        "" if cell.throughput is None else three_digits(cell.throughput),
        "" if cell.session_ms is None else f"{three_digits(cell.session_ms)} ms",
        "" if cell.peak_memory_bytes is None else f"{cell.peak_memory_bytes / 2**20:.0f} MiB",
        _coloured(cell.parity.verdict.replace("_", " "), key=cell.parity.verdict),
        _coloured(signed(cell.status), key=cell.status) + ("" if cell.is_stable is not False else ", unstable"),
    ]


def _provider(cell: Cell) -> str:
    """What was asked, and what ran where that is something else."""
    asked = cell.provider.removesuffix("ExecutionProvider")
    ran = next(iter(cell.active_providers), cell.provider).removesuffix("ExecutionProvider")
    return asked if ran == asked else f"asked {asked}, ran {ran}"


def _show_reasons(cells: Sequence[Cell], *, console: Console) -> None:
    for cell in cells:
        if cell.reason is not None:
            console.print(f"{signed(cell.status)} {cell.id}: {cell.reason.text}", highlight=False, markup=False)


def _comparisons(document: Document) -> Table:
    cells = {cell.id: cell for cell in document.cells}
    table = Table(box=None, pad_edge=False, header_style="dim")
    for head in ("compared", "by", "verdict"):
        table.add_column(head)
    for head in ("change", "interval", "rounds", "could see"):
        table.add_column(head, justify="right", no_wrap=True)
    ordered = sorted(document.comparisons, key=_weight)
    for comparison in ordered[:MOST_COMPARISONS]:
        table.add_row(*_comparison_row(comparison, cells))
    if len(ordered) > MOST_COMPARISONS:
        table.caption = f"{len(ordered) - MOST_COMPARISONS} more: onnxfarm results --json"
    return table


def _comparison_row(comparison: Comparison, cells: dict[str, Cell]) -> list[str]:
    size, interval = "", ""
    if comparison.ratio is not None and comparison.ci_low is not None and comparison.ci_high is not None:
        size, interval = change(comparison.ratio, comparison.ci_low, comparison.ci_high)
    least = comparison.smallest_detectable
    return [
        f"{_label(cells.get(comparison.baseline), comparison)} → {_label(cells.get(comparison.candidate), comparison)}",
        comparison.axis,
        _coloured(signed(comparison.verdict), key=comparison.verdict),
        size,
        interval,
        str(comparison.rounds),
        "" if least is None else f"{100 * least:.2g} %",
    ]


def _label(cell: Cell | None, comparison: Comparison) -> str:
    return f"{cell.id} ({cell.runtime.removeprefix('onnxruntime==')})" if cell is not None else comparison.axis


def _weight(comparison: Comparison) -> tuple[int, float]:
    """Slower first, the larger change before the smaller."""
    order = {"slower": 0, "faster": 1, "undecided": 2, "equal": 3}
    return order.get(comparison.verdict, 4), -abs((comparison.ratio or 1.0) - 1.0)


def _show_operators(document: Document, *, console: Console) -> None:
    """The operators that explain the largest change that was decided."""
    changed = [c for c in document.comparisons if c.verdict in ("slower", "faster") and c.operators]
    if not changed:
        return
    largest = min(changed, key=_weight)
    named = sorted(largest.operators, key=lambda one: -abs(one.candidate_us - one.baseline_us))[:NAMED_OPERATORS]
    console.print(f"\nWhat {largest.baseline} → {largest.candidate} comes from, per inference:", highlight=False)
    for one in named:
        share = "" if one.share is None else f", {percent(one.share)} of the change"
        times = f"{microseconds(one.baseline_us)} → {microseconds(one.candidate_us)} µs"
        console.print(f"  {one.op_type} {one.node}: {times}{share}", highlight=False, markup=False)


def _coloured(text: str, *, key: str) -> str:
    colour = COLOURS.get(key)
    return f"[{colour}]{text}[/]" if colour else text
