"""What the page of one cell shows of it: metrics, placement, operators, parity, in words and tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard import axes, numbers, words
from dashboard.figures.figure import Address
from dashboard.metrics import metric_text
from dashboard.tables import Entry, Head, Table, verdict_entry
from farm.contract.document import Cell, ParityOutput
from farm.rules.cells.metrics import METRICS, Metric

METRIC_HEADS = (Head("Metric"), Head("value", is_number=True), Head("Unit"), Head("Note", is_text=True))
OPERATOR_HEADS = (
    Head("Operator", note="the model's own node"),
    Head("Type", note="as executed"),
    Head("Provider"),
    Head("µs per inference", is_number=True),
    Head("share", is_number=True),
    Head("Covers", is_text=True, note="own nodes fused into it"),
)
PARITY_HEADS = (
    Head("Output"),
    Head("max abs", is_number=True),
    Head("max rel", is_number=True),
    Head("RMSE", is_number=True),
    Head("cosine", is_number=True),
    Head("top-1 agreement", is_number=True),
    Head("not numbers", is_number=True),
    Head("infinite", is_number=True),
    Head("beyond tolerance", is_number=True),
)
INPUT_HEADS = (Head("Input"), Head("Type"), Head("Shape"), Head("Values", is_text=True))
PROVIDER_HEADS = (Head("Provider"), Head("share of time", is_number=True), Head("executed nodes", is_number=True))


@dataclass(frozen=True)
class Placement:
    """Requested against active providers. `is_as_asked`: nothing else had to take part."""

    requested: str
    active: str
    is_as_asked: bool
    sentence: str


def placement(cell: Cell) -> Placement:
    """What was asked for and what ran; a difference in words, by time where a trace tells it."""
    requested = cell.requested_providers or [cell.provider]
    asked, ran = (" → ".join(map(words.provider, names)) for names in (requested, cell.active_providers))
    if not cell.active_providers:
        return Placement(asked, numbers.NOT_MEASURED, True, "")
    missing = [name for name in requested if name not in cell.active_providers]
    extra = [name for name in cell.active_providers if name not in requested]
    if missing:
        sentence = f"{_names(missing)} was asked for but did not start: the numbers below are of {ran}."
    elif extra:
        sentence = f"{_names(requested)} was asked for; {_names(extra)} took part as well{_time_of(cell, extra)}."
    else:
        sentence = ""
    return Placement(asked, ran, not sentence, sentence)


def time_elsewhere(cell: Cell) -> str:
    """How much of the time providers other than the one asked for have, in a sentence; empty for none."""
    others = [part for part in cell.providers if part.name != cell.provider and part.time_share > 0]
    if not others:
        return ""
    share = numbers.share(sum(part.time_share for part in others))
    return f"{share} of the time is spent outside {words.provider(cell.provider)}: {_names([p.name for p in others])}."


def _names(providers: Sequence[str]) -> str:
    return numbers.listed([words.provider(name) for name in providers])


def _time_of(cell: Cell, providers: Sequence[str]) -> str:
    shares = [part.time_share for part in cell.providers if part.name in providers]
    return f" and has {numbers.share(sum(shares))} of the time" if shares else ""


def metrics(cell: Cell) -> Table:
    """Every metric with its unit; what so few timings cannot tell says so. Of an untimed cell those that are known."""
    rows = [_metric(one, cell) for one in METRICS if one.title and not _is_left_out(one, cell)]
    if cell.p50_ms is None:
        rows = [row for row in rows if row[1].text not in (numbers.NOT_MEASURED, "0")]
    return Table("metrics", "Metrics of this cell", METRIC_HEADS, rows)


def _is_left_out(metric: Metric, cell: Cell) -> bool:
    """What most cells do not have is not said of those that have none."""
    return metric.value(cell) is None and (metric.is_carried or metric.name == "with_copies_p50_ms")


def _metric(metric: Metric, cell: Cell) -> tuple[Entry, ...]:
    text = metric_text(metric, cell)
    shown = metric.unit if text != numbers.NOT_MEASURED and metric.reads != "memory" else ""
    return (Entry(metric.title), Entry(text), Entry(shown), Entry(_note(metric, cell)))


def _note(metric: Metric, cell: Cell) -> str:
    """What stands beside a figure: of how many launches it is, why there is none, which meter counted."""
    if metric.name == "p50_ms":
        return _interval_note(cell)
    if metric.name == "energy_mj":
        return cell.energy_text or ("the node looks for no meter" if cell.p50_ms is not None else "")
    if metric.from_timings and metric.value(cell) is None:
        return f"shown from {metric.from_timings} timings on"
    return metric.note


def _interval_note(cell: Cell) -> str:
    launches = numbers.count(len(cell.samples_ms), "launch", "launches")
    spread = numbers.plus_minus(cell.p50_ms, cell.p50_ci_ms)
    return f"{spread} ms, 95 % interval over {launches}" if spread else launches if cell.samples_ms else ""


def inputs(cell: Cell) -> Table:
    """What the cell was fed."""
    rows = [
        (
            Entry(one.name, is_name=True),
            Entry(one.dtype),
            Entry(" × ".join(map(str, one.shape)) or "scalar"),
            Entry(one.made_by),
        )
        for one in cell.inputs
    ]
    return Table("inputs", "Inputs of this cell", INPUT_HEADS, rows)


def providers(cell: Cell) -> Table:
    """Executed nodes per provider, by time and by count."""
    rows = [
        (
            Entry(part.name, is_name=True),
            Entry(numbers.share(part.time_share), part.time_share, share=part.time_share),
            Entry(str(part.nodes), part.nodes),
        )
        for part in sorted(cell.providers, key=lambda part: -part.time_share)
    ]
    return Table("placement", "Where the time goes", PROVIDER_HEADS, rows)


def whole_us(cell: Cell) -> float:
    """What shares of an inference are of: all its operators, and what none of them has."""
    return sum(one.time_us for one in cell.operators) + (cell.unaccounted_us or 0.0)


def operators(cell: Cell) -> Table:
    """The executed operators by time, each with the model's own node, and the time that none of them has."""
    whole = whole_us(cell)
    rows = [
        (
            Entry(one.node, is_name=True),
            Entry(one.op_type),
            Entry(words.provider(one.provider)),
            *_time_and_share(one.time_us, whole),
            Entry(numbers.listed(one.covers, most=6), is_name=True),
        )
        for one in sorted(cell.operators, key=lambda one: -one.time_us)
    ]
    if rows and cell.unaccounted_us is not None:
        left = _time_and_share(cell.unaccounted_us, whole)
        rows.append(
            (Entry("in no operator"), Entry(""), Entry(""), *left, Entry("between them, and the profiler's own"))
        )
    return Table("operators", "Executed operators, from a trace", OPERATOR_HEADS, rows)


def _time_and_share(time_us: float, whole: float) -> tuple[Entry, Entry]:
    share = time_us / whole if whole else None
    return Entry(numbers.plain(time_us), time_us), Entry(numbers.share(share), time_us, share=share or 0.0)


def parity(cell: Cell) -> Table:
    """Each output against the reference."""
    return Table("parity", "Outputs against the reference", PARITY_HEADS, [_output(one) for one in cell.parity.outputs])


def _output(one: ParityOutput) -> tuple[Entry, ...]:
    return (
        Entry(one.name, is_name=True),
        Entry(numbers.scientific(one.max_abs), one.max_abs),
        Entry(numbers.scientific(one.max_rel), one.max_rel),
        Entry(numbers.scientific(one.rmse), one.rmse),
        Entry(_cosine(one.cosine), one.cosine),
        Entry(
            numbers.share(one.top1_agreement) if one.top1_agreement is not None else "not a score", one.top1_agreement
        ),
        Entry(str(one.nan_count), one.nan_count),
        Entry(str(one.inf_count), one.inf_count),
        Entry(numbers.fixed(one.violations, 0), one.violations),
    )


def _cosine(value: float | None) -> str:
    """Cosine with as many nines as there are: 0.99998, and 1 only when it is."""
    if value is None:
        return numbers.NOT_MEASURED
    return "1" if value >= 1 else f"{min(value, 0.999999):.6f}"


def siblings(cells: Sequence[Cell], cell: Cell, address: Address) -> Table:
    """The other cells of the block, for a step to the side."""
    heads = (Head("Cell"), Head("p50, ms", is_number=True), Head("State"))
    block = [one for one in cells if one.block == cell.block]
    along = axes.varying(block)
    rows = [
        (
            Entry(axes.name_of(one, along), href=address(one.id), soft="A/A twin" if one.twin_of else ""),
            Entry(numbers.milliseconds(one.p50_ms, one.p50_ci_ms), one.p50_ms),
            verdict_entry(one.status.value),
        )
        for one in block
        if one.id != cell.id
    ]
    return Table("siblings", "Measured in the same block", heads, rows)
