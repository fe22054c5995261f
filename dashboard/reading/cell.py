"""What the page of a cell shows: metrics, placement, inputs, parity and generated tokens, in words and tables."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from dashboard import axes
from dashboard.figures import cell_bars, figure
from dashboard.figures.figure import Address
from dashboard.metrics import metric_text
from farm.contract.cells import NO_POLICY
from farm.contract.document import Document
from farm.contract.document_cells import Cell, Input, ParityOutput
from farm.contract.reasons import CellStatus
from farm.contract.reports import Sample
from farm.rules.cells.identity import document_fields
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import METRICS
from farm.rules.generation import streams
from farm.rules.planning.plans import Arm, PlannedBlock
from farm.rules.presenting import prefills
from farm.rules.presenting.headlines import lost_providers
from farm.rules.presenting.lines import PROCESSOR
from farm.rules.presenting.tables import Column, Entry, Head, Number, Prose, Table, as_count, as_number, verdict_entry
from farm.rules.presenting.times import Times
from farm.rules.reporting.records import RunRecord
from farm.rules.runtimes.models import ModelFacts
from farm.rules.wording import numbers, titles
from farm.runs.states import activity_of

METRIC_HEADS = (Head("Metric"), Head("value", is_number=True), Head("Unit"), Head("Note", is_text=True))
PARITY_COLUMNS: tuple[Column[ParityOutput], ...] = (
    Column("Output", lambda output: Entry(output.name, is_name=True)),
    Number("max abs", lambda output: as_number(output.max_abs, numbers.scientific)),
    Number("max rel", lambda output: as_number(output.max_rel, numbers.scientific)),
    Number("RMSE", lambda output: as_number(output.rmse, numbers.scientific)),
    Number("cosine", lambda output: as_number(output.cosine, _format_cosine)),
    Number("top-1 agreement", lambda output: as_number(output.top1_agreement, _format_agreement)),
    Number("not numbers", lambda output: as_count(output.nan_count)),
    Number("infinite", lambda output: as_count(output.inf_count)),
    Number("beyond tolerance", lambda output: Entry(numbers.fixed(output.violations, 0), output.violations)),
)
INPUT_COLUMNS: tuple[Column[Input], ...] = (
    Column("Input", lambda fed: Entry(fed.name, is_name=True)),
    Column("Type", lambda fed: Entry(fed.dtype)),
    Column("Shape", lambda fed: Entry(" × ".join(map(str, fed.shape)) or "scalar")),
    Prose("Values", lambda fed: Entry(fed.made_by)),
)


@dataclass(frozen=True)
class Placement:
    """The requested providers and those that ran, in words. `sentence`: what differs; empty where every requested
    provider started and no other ran, where nothing ran, and for a policy, under which ONNX Runtime chooses."""

    requested: str
    active: str
    sentence: str = ""


def describe_placement(cell: Cell) -> Placement:
    """Compare the requested providers with those that ran. The sentence names the requested providers that did not
    start. Only where all started, it names the others that ran, for a traced cell with their share of the time."""
    if cell.policy != NO_POLICY:
        # a policy lets ONNX Runtime choose, so every choice is as requested
        traced = sorted(cell.providers, key=lambda part: -part.time_share)
        chosen = [part.name for part in traced] or cell.active_providers
        active = _join_providers(chosen) if cell.active_providers else numbers.NOT_MEASURED
        return Placement(f"policy {cell.policy}", active)
    requested, ran = cell.requested_providers or [cell.provider], cell.active_providers
    if not ran:
        return Placement(_join_providers(requested), numbers.NOT_MEASURED)
    sentence = ""
    extra = [name for name in ran if name not in requested]
    if missing := lost_providers(cell):
        figures_from = _join_providers(ran)
        sentence = f"{_list_names(missing)} was requested but did not start: the numbers below are from {figures_from}."
    elif extra:
        shares = [part.time_share for part in cell.providers if part.name in extra]
        time = f" and has {numbers.share(sum(shares))} of the time" if shares else ""
        sentence = f"{_list_names(requested)} was requested; {_list_names(extra)} also ran{time}."
    return Placement(_join_providers(requested), _join_providers(ran), sentence)


def _join_providers(names: Sequence[str]) -> str:
    return " → ".join(map(titles.provider, names))


def describe_time_elsewhere(cell: Cell) -> str:
    """Say which share of the traced time other providers than the cell's own take; empty where they take none or the
    cell was not traced."""
    others = [part for part in cell.providers if part.name != cell.provider and part.time_share > 0]
    if not others:
        return ""
    share, names = sum(part.time_share for part in others), _list_names([part.name for part in others])
    return f"{numbers.share(share)} of the time is spent outside {titles.provider(cell.provider)}: {names}."


def _list_names(providers: Sequence[str]) -> str:
    return numbers.listed([titles.provider(name) for name in providers])


def metric_table(cell: Cell) -> Table:
    """Make the table of metrics with unit and note. A missing figure is shown as “not measured”, except that metrics
    which most cells lack are left out. A cell without a latency lists only the metrics that are known and not 0."""
    rows = []
    for metric in METRICS:
        if metric.title and not _is_left_out(metric, cell):
            text = metric_text(metric, cell)
            unit = metric.unit if text != numbers.NOT_MEASURED and metric.reads != "memory" else ""
            rows.append((Entry(metric.title), Entry(text), Entry(unit), Entry(_write_note(metric, cell))))
    if cell.p50_ms is None:
        rows = [row for row in rows if row[1].text not in (numbers.NOT_MEASURED, "0")]
    return Table("metrics", "Metrics of this cell", METRIC_HEADS, rows)


def fold_metrics(table: Table, *, is_by_processor: bool) -> tuple[Table, Table]:
    """Split the table of metrics in two: one with p50 and processor time, one with all others. With `is_by_processor`
    the headline rests on processor time, which then comes before p50."""
    first = [PROCESSOR, "p50"] if is_by_processor else ["p50", PROCESSOR]
    leading = sorted((row for row in table.rows if row[0].text in first), key=lambda row: first.index(row[0].text))
    others = [row for row in table.rows if row[0].text not in first]
    return replace(table, rows=leading), replace(table, id="more-metrics", rows=others)


def _is_left_out(metric: Metric, cell: Cell) -> bool:
    """Whether most cells lack the metric, and this cell lacks it too."""
    if metric.absent and cell.cpu_p50_ms is not None:
        return False
    return metric.value(cell) is None and (metric.is_under_metrics or metric.name == "with_copies_p50_ms")


def _write_note(metric: Metric, cell: Cell) -> str:
    """Write the note next to a figure: its interval and launches, why it is missing, or how it was measured."""
    if metric.name == "p50_ms":
        launches = numbers.counted(len(cell.samples_ms), "launch", "launches") if cell.samples_ms else ""
        spread = numbers.plus_minus(cell.p50_ms, cell.p50_ci_ms)
        return f"{spread} ms, 95 % interval over {launches}" if spread else launches
    if metric.unit == "items/s" and prefills.is_generated(cell):
        return f"{prefills.ITEMS_NOTE}; {metric.note}"
    if metric.name == "energy_mj":
        return cell.energy_text or ("the node has energy readings disabled" if cell.p50_ms is not None else "")
    if metric.from_timings and metric.value(cell) is None:
        return f"shown from {metric.from_timings} timings on"
    return metric.absent if metric.absent and metric.value(cell) is None else metric.note


def input_table(cell: Cell) -> Table:
    return Table.of("inputs", "Inputs of this cell", INPUT_COLUMNS, cell.inputs)


def provider_table(cell: Cell) -> Table:
    """Make the table of providers with their share of the traced time, the largest first; no rows without a trace."""
    parts = sorted(cell.providers, key=lambda part: -part.time_share)
    return Table.of("placement", "Where the time goes", cell_bars.PROVIDER_COLUMNS, parts)


def parity_table(cell: Cell) -> Table:
    return Table.of("parity", "Outputs against the reference", PARITY_COLUMNS, cell.parity.outputs)


def _format_agreement(value: float | None) -> str:
    return "not a score" if value is None else numbers.share(value)


def _format_cosine(value: float | None) -> str:
    """Format a cosine with six digits; one just below 1 becomes 0.999999 and is not rounded up to 1."""
    if value is None:
        return numbers.NOT_MEASURED
    return "1" if value >= 1 else f"{min(value, 0.999999):.6f}"


def sibling_table(document: Document, cell: Cell, address: Address) -> Table:
    """Make the table of the other cells of the block, including A/A twins, with links, latencies and states."""
    times = Times.of(document.cells, document.comparisons)
    block = [times.with_compared_time(other) for other in document.cells if other.block == cell.block]
    along = axes.varying_axes(block)
    shown: tuple[Column[Cell], ...] = (
        Column(
            "Cell",
            lambda other: Entry(
                axes.name_of(other, along), href=address(other.id), soft="A/A twin" if other.twin_of else ""
            ),
        ),
        figure.p50_column(times, block),
        Column("State", lambda other: verdict_entry(other.status.value)),
    )
    return Table.of("siblings", "Measured in the same block", shown, [other for other in block if other.id != cell.id])


# how many tokens are shown before the first difference, from the first difference on, and of equal streams
BEFORE, FROM, SHOWN = 12, 12, 24


@dataclass(frozen=True)
class Line:
    """The shown tokens of one cell. `alike`: the tokens before the first difference; `other`: the token that differs,
    empty where none does; `after`: the tokens that follow."""

    name: str
    href: str
    alike: str
    other: str
    after: str


@dataclass(frozen=True)
class Generated:
    """The tokens of a cell next to those of the first cell of its block that generated any. `text`: the result of the
    cell's scenario in words; `place`: the number of the first token that differs, counted from 1, None where all are
    equal; `shown`: which tokens are shown, in words."""

    text: str
    lines: tuple[Line, ...]
    place: int | None
    shown: str


def compare_generated(cells: Sequence[Cell], cell: Cell, address: Address) -> Generated | None:
    """Compare the tokens that a cell generated with those of the first cell of its block that generated any, and show
    the tokens around the first difference; None where the cell generated nothing. There is one line where the cell is
    itself that first cell, else two."""
    if not cell.tokens:
        return None
    first = next((other for other in cells if other.block == cell.block and other.tokens), cell)
    place = streams.find_first_difference(first.tokens, cell.tokens)
    sides = [cell] if first.id == cell.id else [first, cell]
    start = 0 if place is None else max(0, place - 1 - BEFORE)
    end = SHOWN if place is None else place - 1 + FROM
    shown = f"Tokens {start + 1} to {min(end, len(cell.tokens))} of {len(cell.tokens)}"
    return Generated(
        text=cell.scenario_text,
        lines=tuple(_make_line(side, address, start=start, end=end, place=place) for side in sides),
        place=place,
        shown=shown,
    )


def _make_line(cell: Cell, address: Address, *, start: int, end: int, place: int | None) -> Line:
    at = end if place is None else place - 1
    return Line(
        name=cell.id,
        href=address(cell.id),
        alike=_write_tokens(cell.tokens[start:at]),
        other=_write_tokens(cell.tokens[at : at + 1]) if place is not None else "",
        after=_write_tokens(cell.tokens[at + 1 : end]),
    )


def _write_tokens(tokens: Sequence[int]) -> str:
    return " ".join(map(str, tokens))


def list_open_cells(
    blocks: Iterable[tuple[str, PlannedBlock]],
    *,
    known: Collection[str],
    models: Sequence[ModelFacts],
    so_far: Mapping[str, list[Sample]] | None = None,
) -> tuple[list[Cell], dict[str, str]]:
    """List the cells that have not ended, with the median of their launches so far. The second value maps each cell's
    id to the activity of its block: `measuring`, `queued` or `preparing`.

    `blocks`: the open blocks, each with its state; `known`: the ids of cells that have ended; `models`: the run's own
    model first, then the others that it measures; `so_far`: the launches of each cell until now, by the cell's id.
    """
    cells: list[Cell] = []
    states: dict[str, str] = {}
    for state, block in blocks:
        record = RunRecord(models[0], other_models=models[1:])
        for arm in block.arms:
            if arm.id not in known:
                cells.append(_make_planned_cell(arm, block, record, (so_far or {}).get(arm.id, [])))
                states[arm.id] = activity_of([state])
    return cells, states


def _make_planned_cell(arm: Arm, block: PlannedBlock, record: RunRecord, launches: list[Sample]) -> Cell:
    """Make the cell of a planned arm. Its status is a placeholder that is never shown."""
    spec, model = arm.spec, record.model_of(arm.spec)
    by_clock, by_processor = [launch.p50_ms for launch in launches], [launch.cpu_p50_ms for launch in launches]
    known_ms = [value for value in by_processor if value is not None]
    known = {
        "id": arm.id,
        "block": block.id,
        "model": model.name,
        "model_sha256": model.main_sha256,
        "twin_of": None if arm.twin_of is None else block.arms[arm.twin_of].id,
        "status": CellStatus.CANCELLED,
        "p50_ms": median(by_clock) if by_clock else None,
        "samples_ms": by_clock,
        "cpu_p50_ms": median(known_ms) if known_ms else None,
        "cpu_samples_ms": known_ms,
        "disturbed_samples": sum(launch.is_disturbed for launch in launches),
    }
    session = arm.labels.get("session", "default")
    return Cell.model_validate(known | document_fields(spec, opset=model.opset, session=session))
