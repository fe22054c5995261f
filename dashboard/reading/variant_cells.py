"""What was measured of a variant: each cell beside the same one of the upload, and the largest change of them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard.figures import accuracies
from farm.rules.comparing.quantities import Change, change_of
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, counted, verdict_entry
from farm.rules.wording import numbers, titles

if TYPE_CHECKING:
    from farm.runs.selectors.variants import Measured

NOT_COMPARED = "not in one block"


def _name(one: "Measured") -> Entry:
    cell = one.cell
    text = ", ".join([titles.runtime(cell.runtime), titles.provider(cell.provider), *_workload(one)])
    return Entry(text, href=reverse("dashboard:cell", args=[one.run.pk, cell.id]))


def _workload(one: "Measured") -> list[str]:
    cell = one.cell
    sizes = [f"{name} {size}" for name, size in cell.shapes.items()]
    return [
        *([f"batch {cell.batch}"] if cell.batch is not None else []),
        *sizes,
        numbers.counted(cell.threads, "thread"),
    ]


def _change(one: "Measured") -> Change | None:
    return change_of(one.against, {}) if one.against is not None else None


def _verdict(one: "Measured") -> Entry:
    change = _change(one)
    return verdict_entry(change.word, soft=f"than {one.upload}") if change else Entry(NOT_COMPARED)


def _size(one: "Measured") -> Entry:
    change = _change(one)
    return Entry(change.text, change.ratio) if change else Entry()


def _interval(one: "Measured") -> Entry:
    change = _change(one)
    if change is None:
        return Entry()
    return Entry(change.interval, change.low)


COLUMNS: tuple[Column["Measured"], ...] = (
    Prose("Measured as", _name),
    Column("Node", lambda one: Entry(one.cell.node or "")),
    Number("p50, ms", lambda one: Entry(numbers.milliseconds(one.cell.p50_ms, one.cell.p50_ci_ms), one.cell.p50_ms)),
    Column("Against the upload", _verdict, "the same cell of the upload as it is, measured in the same block"),
    Number("change", _size, "of p50 latency"),
    Number("95 % interval", _interval),
    Number("rounds", lambda one: counted(one.against.rounds) if one.against else Entry()),
    Column("Parity", lambda one: verdict_entry(one.cell.parity.verdict), "outputs against the upload's reference"),
)
ACCURACY = Number["Measured"]("accuracy", lambda one: accuracies.entry(one.cell), "on labelled data")


def table(measured: Sequence["Measured"]) -> Table:
    """A cell a row. Accuracy stands in it where the model came with labelled data."""
    columns = [*COLUMNS, ACCURACY] if any(one.cell.accuracy is not None for one in measured) else COLUMNS
    return Table.of("measured", "Measured cells of this variant", columns, measured)


def finding(measured: Sequence["Measured"]) -> str:
    """The largest decided change against the upload, and whether outputs hold. A cell whose outputs are wrong is not
    praised."""
    if not measured:
        return ""
    right = [one for one in measured if one.cell.parity.verdict != "fail"]
    decided = [(one, change) for one in right if (change := _change(one)) is not None and change.is_decided]
    if all(one.against is None for one in measured):
        first = "Not measured beside the upload yet."
    elif decided:
        first = _sentence(*max(decided, key=lambda pair: pair[1].size))
    else:
        first = f"No decided change in {numbers.counted(len(right), 'measured cell')}." if right else ""
    return f"{first} {_parity(measured)}".strip()


def _sentence(one: "Measured", change: Change) -> str:
    rounds = numbers.counted(one.against.rounds if one.against else 0, "round")
    how = ", ".join([titles.runtime(one.cell.runtime), titles.provider(one.cell.provider), *_workload(one)])
    sure = f"95 % interval {change.interval}, {rounds}" if change.figures else rounds
    return f"{change.text or change.word} than {one.upload} on {one.cell.node} with {how} ({sure}).".strip()


def _parity(measured: Iterable["Measured"]) -> str:
    verdicts = [one.cell.parity.verdict for one in measured if one.cell.parity.verdict in ("pass", "fail")]
    failed = verdicts.count("fail")
    if not verdicts:
        return ""
    if not failed:
        return f"Outputs pass parity in {_all_of(len(verdicts))}."
    return f"Outputs fail parity in {failed} of {numbers.counted(len(verdicts), 'measured cell')}."


def _all_of(count: int) -> str:
    return "the measured cell" if count == 1 else f"all {count} measured cells"
