"""Which releases load a model, for its page: a sentence, and neighbouring releases in one row."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.tables import Entry, Head, Table
from dashboard.words import Sign, sign_of
from farm.rules.runtimes import compatibility
from farm.rules.runtimes.compatibility import Row

HEADS = (
    Head("ONNX Runtime"),
    Head("Loads"),
    Head("Why", is_text=True),
    Head("Nodes run", is_number=True, note="as a trace counted them; other fusions, other counts"),
    Head("Known by", note="measured: a runner of this release was given the model; derived: from the model's stamps"),
)


@dataclass(frozen=True)
class Compatibility:
    """The panel."""

    sentence: str
    table: Table


def compatibility_panel(rows: Sequence[Row]) -> Compatibility:
    """The table of releases, newest first."""
    ranges = compatibility.in_ranges(rows)
    lines = [_line(first, last, row) for first, last, row in reversed(ranges)]
    return Compatibility(
        sentence=compatibility.verdict(rows),
        table=Table("compatibility", "Which releases of ONNX Runtime load it", HEADS, lines),
    )


def _line(first: str, last: str, row: Row) -> tuple[Entry, ...]:
    return (
        Entry(first if first == last else f"{first} – {last}", is_name=True),
        Entry(sign=_sign(row), value=_sign(row).word),
        Entry("" if row.reason is None and not row.differs else row.sentence()),
        Entry("" if row.executed_nodes is None else str(row.executed_nodes), row.executed_nodes),
        Entry(row.basis),
    )


def _sign(row: Row) -> Sign:
    if row.reason is not None:
        return sign_of("refused")
    return Sign("≈", "other fusions", "warn") if row.differs else Sign("✓", "loads", "good")
