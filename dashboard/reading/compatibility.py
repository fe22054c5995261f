"""Which releases load a model, for its page: a sentence, and neighbouring releases in one row."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, counted
from farm.rules.runtimes import compatibility
from farm.rules.runtimes.compatibility import Row
from farm.rules.wording.vocabulary import Sign, sign_of

# the first and the last release that say the same, and what
Range = tuple[str, str, Row]
COLUMNS: tuple[Column[Range], ...] = (
    Column("ONNX Runtime", lambda each: Entry(_releases(*each[:2]), is_name=True)),
    Column("Loads", lambda each: Entry(sign=_sign(each[2]), value=_sign(each[2]).word)),
    Prose("Why", lambda each: Entry("" if each[2].reason is None and not each[2].differs else each[2].sentence())),
    Number("Nodes run", lambda each: _nodes(each[2]), "as a trace counted them; other fusions, other counts"),
    Column(
        "Known by",
        lambda each: Entry(each[2].basis),
        "measured: a runner of this release was given the model; derived: from the model's stamps",
    ),
)


@dataclass(frozen=True)
class Compatibility:
    """The panel."""

    sentence: str
    table: Table


def compatibility_panel(rows: Sequence[Row]) -> Compatibility:
    """The table of releases, newest first."""
    ranges = compatibility.in_ranges(rows)
    return Compatibility(
        sentence=compatibility.verdict(rows),
        table=Table.of("compatibility", "Which releases of ONNX Runtime load it", COLUMNS, list(reversed(ranges))),
    )


def _releases(first: str, last: str) -> str:
    return first if first == last else f"{first} – {last}"


def _nodes(row: Row) -> Entry:
    return Entry() if row.executed_nodes is None else counted(row.executed_nodes)


def _sign(row: Row) -> Sign:
    if row.reason is not None:
        return sign_of("refused")
    return Sign("≈", "other fusions", "warn") if row.differs else Sign("✓", "loads", "good")
