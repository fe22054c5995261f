"""Tables as pages and figures hand them to one template: heads with units, cells with the number behind the words."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, TypeVar

from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import Sign, sign_of

Row = TypeVar("Row")
SENTENCES = re.compile(r"(?<=\.) (?=[A-Z0-9])")


@dataclass(frozen=True)
class Head:
    """A column. `is_number` sets figures flush right, `is_text` lets sentences wrap; `note` explains it on hover.

    `order`: by what name the server sorts by it; empty where the browser does.
    """

    text: str
    is_number: bool = False
    is_text: bool = False
    note: str = ""
    order: str = ""


@dataclass(frozen=True)
class Spark:
    """A small line in an SVG of 120 × 24: its points, and the height at which the reference lies."""

    points: str
    level: str


@dataclass(frozen=True)
class Act:
    """A button in a row. It belongs to the table's form of orders and posts that to `address`; `key` presses it."""

    label: str
    address: str
    words: str
    key: str = ""


@dataclass(frozen=True)
class Entry:
    """One cell of a table. `value` sorts it; `href` makes it a link; `share` (0–1) draws a small bar before it.

    `at`: a moment, shown as one; `title`: what is said on hover; `signs`: several, one under the other.
    """

    text: str = ""
    value: float | str | None = None
    href: str = ""
    sign: Sign | None = None
    soft: str = ""
    is_name: bool = False
    share: float | None = None
    at: datetime | None = None
    title: str = ""
    spark: Spark | None = None
    act: Act | None = None
    signs: Sequence[Sign] = ()

    @property
    def bar(self) -> str:
        """The bar's length in percent, for an SVG attribute."""
        return f"{max(0.0, min(1.0, self.share or 0.0)) * 100:.1f}"


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column with what stands in it for each of the rows that a table is made of."""

    text: str
    entry: Callable[[Row], Entry]
    note: str = ""
    order: str = ""

    @property
    def head(self) -> Head:
        return Head(self.text, isinstance(self, Number), isinstance(self, Prose), self.note, self.order)

    @property
    def unordered(self) -> "Column[Row]":
        return replace(self, order="")


class Number(Column[Row]):
    """A column of figures."""


class Prose(Column[Row]):
    """A column of sentences."""


@dataclass(frozen=True)
class Table:
    """`id` keeps the chosen order in the address. The first entry of a row names it.

    `keys`: what each row is called in addresses and forms; empty where rows have no name. `box`: the field that the
    keys of chosen rows are sent as; empty where none can be chosen. `shared`: what all rows have in common.
    """

    id: str
    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Entry]] = field(default_factory=tuple)
    keys: Sequence[str] = ()
    box: str = ""
    shared: str = ""

    @classmethod
    def of(cls, id: str, caption: str, columns: Sequence[Column[Row]], rows: Iterable[Row]) -> "Table":
        lines = [tuple(column.entry(row) for column in columns) for row in rows]
        return cls(id, caption, [column.head for column in columns], lines)

    @property
    def is_ordered(self) -> bool:
        return any(head.order for head in self.heads)

    def keyed(self, keys: Iterable[object], *, box: str = "") -> "Table":
        return replace(self, keys=[str(key) for key in keys], box=box)

    def without_unmeasured(self) -> "Table":
        """Return the table without the columns of which no row has anything."""
        nothing = (Entry(), Entry(numbers.NOT_MEASURED))
        kept = [
            at for at in range(len(self.heads)) if not self.rows or any(row[at] not in nothing for row in self.rows)
        ]
        rows = [[row[at] for at in kept] for row in self.rows]
        return replace(self, heads=[self.heads[at] for at in kept], rows=rows)

    def first(self, most: int) -> "Table":
        """Return the table with at most so many rows, and a caption that says so where rows were left out."""
        if len(self.rows) <= most:
            return self
        return replace(
            self,
            caption=f"{self.caption}: the first {most} of {len(self.rows)}",
            rows=self.rows[:most],
            keys=self.keys[:most],
        )


def move_shared_note(table: Table, name: str = "Note") -> tuple[Table, str]:
    """Move the sentences that the notes of all rows share out of the table; return the table and these sentences.

    A column of notes that is then empty is removed.
    """
    place = next((place for place, head in enumerate(table.heads) if head.text == name), None)
    if place is None or len(table.rows) < 2:
        return table, ""
    notes = [SENTENCES.split(row[place].text) for row in table.rows]
    shared = [said for said in notes[0] if all(said in note for note in notes)]
    own = [" ".join(said for said in note if said not in shared) for note in notes]
    kept = [[replace(row[place], text=text)] if any(own) else [] for row, text in zip(table.rows, own, strict=True)]
    rows = [(*row[:place], *note, *row[place + 1 :]) for row, note in zip(table.rows, kept, strict=True)]
    heads = [head for head in table.heads if head.text != name or any(own)]
    return replace(table, heads=heads, rows=rows), " ".join(shared)


def verdict_entry(verdict: str, soft: str = "") -> Entry:
    sign = sign_of(verdict)
    return Entry(sign=sign, value=sign.word, soft=soft)


def written(value: float | None, write: Callable[[float | None], str] = numbers.plain) -> Entry:
    return Entry(write(value), value)


def counted(number: int) -> Entry:
    return Entry(str(number), number)


def moment(at: datetime | None) -> Entry:
    return Entry("not yet") if at is None else Entry(f"{at:%Y-%m-%d %H:%M} UTC", at.timestamp(), at=at)
