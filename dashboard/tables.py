"""Tables as pages and figures hand them to one template: heads with units, cells with the number behind the words."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, TypeVar

from dashboard import numbers
from dashboard.words import Sign, sign_of

Row = TypeVar("Row")


@dataclass(frozen=True)
class Head:
    """A column. `is_number` sets figures flush right, `is_text` lets sentences wrap; `note` explains it on hover."""

    text: str
    is_number: bool = False
    is_text: bool = False
    note: str = ""


@dataclass(frozen=True)
class Entry:
    """One cell of a table. `value` sorts it; `href` makes it a link; `share` (0–1) draws a small bar before it."""

    text: str = ""
    value: float | str | None = None
    href: str = ""
    sign: Sign | None = None
    soft: str = ""
    is_name: bool = False
    share: float | None = None

    @property
    def bar(self) -> str:
        """The bar's length in hundredths, for an SVG attribute."""
        return f"{max(0.0, min(1.0, self.share or 0.0)) * 100:.1f}"


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column with what stands in it for each of the rows that a table is made of."""

    text: str
    entry: Callable[[Row], Entry]
    note: str = ""

    @property
    def head(self) -> Head:
        """As the table shows it."""
        return Head(self.text, isinstance(self, Number), isinstance(self, Prose), self.note)


class Number(Column[Row]):
    """A column of figures."""


class Prose(Column[Row]):
    """A column of sentences."""


@dataclass(frozen=True)
class Table:
    """`id` keeps the chosen order in the address. The first entry of a row names it."""

    id: str
    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Entry]] = field(default_factory=tuple)

    @classmethod
    def of(cls, id: str, caption: str, columns: Sequence[Column[Row]], rows: Iterable[Row]) -> "Table":
        """A table of rows of any kind, by its columns."""
        lines = [tuple(column.entry(row) for column in columns) for row in rows]
        return cls(id, caption, [column.head for column in columns], lines)

    def first(self, most: int) -> "Table":
        """The table with its first rows alone, and a caption that says so; itself where there are no more."""
        if len(self.rows) <= most:
            return self
        return replace(self, caption=f"{self.caption}: the first {most} of {len(self.rows)}", rows=self.rows[:most])


def verdict_entry(verdict: str, soft: str = "") -> Entry:
    """A verdict or state with its sign, sortable by its word."""
    sign = sign_of(verdict)
    return Entry(sign=sign, value=sign.word, soft=soft)


def written(value: float | None, write: Callable[[float | None], str] = numbers.plain) -> Entry:
    """A figure in words, sortable by itself."""
    return Entry(write(value), value)


def counted(number: int) -> Entry:
    """A whole number as it is."""
    return Entry(str(number), number)


def moment(at: datetime | None) -> Entry:
    """A moment in UTC; `not yet` for none."""
    return Entry("not yet") if at is None else Entry(f"{at:%Y-%m-%d %H:%M} UTC", at.timestamp())
