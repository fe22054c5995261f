"""The tables that pages and figures hand to one template: heads with units, and cells with the values to sort by."""

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
    """The header of a column. `is_number` aligns its cells right, `is_text` lets them wrap; `note` is shown on hover.

    `order` is the key by which the server sorts; empty where the browser sorts.
    """

    text: str
    is_number: bool = False
    is_text: bool = False
    note: str = ""
    order: str = ""


@dataclass(frozen=True)
class Sparkline:
    """A small line chart in an SVG of 120 × 24: the points of its line, and the height of its reference line."""

    points: str
    level: str


@dataclass(frozen=True)
class Button:
    """A button in a row that posts the table's form to `address`.

    `key` is its keyboard shortcut, and `description` its accessible name.
    """

    label: str
    address: str
    description: str
    key: str = ""


@dataclass(frozen=True)
class Entry:
    """One cell of a table. It is sorted by `value` and links to `href`; `share`, from 0 to 1, draws a bar before it.

    `at` is shown as a time, `title` on hover, `soft` in a lighter tone, and `signs` one below the other.
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
    spark: Sparkline | None = None
    button: Button | None = None
    signs: Sequence[Sign] = ()

    @property
    def bar(self) -> str:
        """The bar's length in percent, for an SVG attribute."""
        return f"{max(0.0, min(1.0, self.share or 0.0)) * 100:.1f}"


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table that is made of `Row`s: its head, and the entry of each row in it.

    `unordered` is the same column without the key by which the server sorts.
    """

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
    """A table whose `id` stands in the address with the chosen order. The first entry of a row names it.

    `keys` identify the rows in addresses and forms. `box` is the form field for the keys of selected rows; empty where
    rows cannot be selected. `shared` says what all rows have in common.
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
        """Whether the server, and not the browser, can sort the table by one of its columns."""
        return any(head.order for head in self.heads)

    def with_row_keys(self, keys: Iterable[object], *, box: str = "") -> "Table":
        return replace(self, keys=[str(key) for key in keys], box=box)

    def without_unmeasured(self) -> "Table":
        """Return the table without the columns that are empty or `not measured` in every row."""
        empty = (Entry(), Entry(numbers.NOT_MEASURED))
        filled = [
            index
            for index in range(len(self.heads))
            if not self.rows or any(row[index] not in empty for row in self.rows)
        ]
        rows = [[row[index] for index in filled] for row in self.rows]
        return replace(self, heads=[self.heads[index] for index in filled], rows=rows)

    def first(self, count: int) -> "Table":
        """Return the table with its first `count` rows and their keys; the caption says so where rows were left out."""
        if len(self.rows) <= count:
            return self
        caption = f"{self.caption}: the first {count} of {len(self.rows)}"
        return replace(self, caption=caption, rows=self.rows[:count], keys=self.keys[:count])


def move_shared_note(table: Table, name: str = "Note") -> tuple[Table, str]:
    """Move the sentences that the notes of all rows share out of the table; return the table and these sentences.

    A column of notes that is then empty is removed. A table of fewer than two rows, or without a column of this name,
    is returned as it is, with an empty text.
    """
    index = next((index for index, head in enumerate(table.heads) if head.text == name), None)
    if index is None or len(table.rows) < 2:
        return table, ""
    notes = [SENTENCES.split(row[index].text) for row in table.rows]
    shared = [sentence for sentence in notes[0] if all(sentence in note for note in notes)]
    texts = [" ".join(sentence for sentence in note if sentence not in shared) for note in notes]
    rows = []
    for row, text in zip(table.rows, texts, strict=True):
        note = [replace(row[index], text=text)] if any(texts) else []
        rows.append((*row[:index], *note, *row[index + 1 :]))
    heads = [head for head in table.heads if head.text != name or any(texts)]
    return replace(table, heads=heads, rows=rows), " ".join(shared)


def verdict_entry(verdict: str, soft: str = "") -> Entry:
    sign = sign_of(verdict)
    return Entry(sign=sign, value=sign.word, soft=soft)


def as_number(value: float | None, write: Callable[[float | None], str] = numbers.plain) -> Entry:
    return Entry(write(value), value)


def as_count(number: int) -> Entry:
    return Entry(str(number), number)


def as_time(at: datetime | None) -> Entry:
    return Entry("not yet") if at is None else Entry(f"{at:%Y-%m-%d %H:%M} UTC", at.timestamp(), at=at)
