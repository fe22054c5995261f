"""What the page of one cell shows of it: metrics, placement, operators, parity, in words and tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard import axes, numbers, words
from dashboard.figures.figure import Address
from dashboard.tables import Entry, Head, Table, verdict_entry
from farm.contract.document import Cell, ParityOutput

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
    rows = [
        _metric("p50", numbers.milliseconds(cell.p50_ms, cell.p50_ci_ms), "ms", _interval_note(cell)),
        _metric("mean", numbers.plain(cell.mean_ms), "ms"),
        _metric("standard deviation", numbers.plain(cell.std_ms), "ms"),
        _metric("min", numbers.plain(cell.min_ms), "ms"),
        _metric("max", numbers.plain(cell.max_ms), "ms"),
        _percentile("p90", cell.p90_ms, 64),
        _percentile("p95", cell.p95_ms, 662),
        _percentile("p99", cell.p99_ms, 662),
        _metric("throughput", numbers.plain(cell.throughput), "items/s" if cell.throughput else ""),
        *([_with_copies(cell)] if cell.with_copies_p50_ms is not None else []),
        _metric("energy per inference", *_energy(cell)),
        _metric("import", numbers.plain(cell.import_ms), "ms", "of ONNX Runtime, in a fresh process"),
        _metric("session creation", numbers.plain(cell.session_ms), "ms"),
        _metric("first inference", numbers.plain(cell.first_ms), "ms"),
        _metric("peak memory", numbers.memory(cell.peak_memory_bytes), "", "of the whole process"),
        _metric(
            "copies", "" if cell.copies is None else str(cell.copies), "", "between host and device, per inference"
        ),
        _metric("disturbed launches", str(cell.disturbed_samples), "", "another program took the processor"),
        _metric("stable", _yes(cell.is_stable), "", "timing windows agree within 5 %"),
        _metric("two groups of launches", _yes(cell.is_bimodal)),
        _metric("repeatable", _yes(cell.is_repeatable), "", "the same input twice gives the same bits"),
    ]
    if cell.p50_ms is None:
        rows = [row for row in rows if row[1].text not in (numbers.NOT_MEASURED, "0")]
    return Table("metrics", "Metrics of this cell", METRIC_HEADS, rows)


def _with_copies(cell: Cell) -> tuple[Entry, ...]:
    note = "p50 with inputs and outputs in host memory; the p50 above is of tensors on the device"
    return _metric("with host copies", numbers.milliseconds(cell.with_copies_p50_ms), "ms", note)


def _energy(cell: Cell) -> tuple[str, str, str]:
    """Value, unit and note: which meter counted, or why none did."""
    said = cell.energy_text or ("the node looks for no meter" if cell.p50_ms is not None else "")
    return ("", "", said) if cell.energy_mj is None else (numbers.plain(cell.energy_mj), "mJ", said)


def _metric(name: str, value: str, unit: str = "", note: str = "") -> tuple[Entry, ...]:
    is_known = bool(value) and value != numbers.NOT_MEASURED
    shown = unit if is_known else ""
    return (Entry(name), Entry(value or numbers.NOT_MEASURED), Entry(shown), Entry(note))


def _percentile(name: str, value: float | None, needed: int) -> tuple[Entry, ...]:
    note = "" if value is not None else f"shown from {needed} timings on"
    return _metric(name, numbers.plain(value), "ms", note)


def _interval_note(cell: Cell) -> str:
    launches = numbers.count(len(cell.samples_ms), "launch", "launches")
    spread = numbers.plus_minus(cell.p50_ms, cell.p50_ci_ms)
    return f"{spread} ms, 95 % interval over {launches}" if spread else launches if cell.samples_ms else ""


def _yes(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


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
