"""Lists as pages: the page, search, filters, order and selected rows that an address asks for, and the same rows as a
file in CSV, JSON or Parquet. Of searched words the first 100 characters count, and parameters without a value are
dropped."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from itertools import islice
from typing import Any, Generic, TypeVar

from django.core.paginator import Page, Paginator
from django.db.models import F, Model, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.utils.functional import cached_property

from farm.contract.numbers import is_row_number
from farm.rules.presenting import spreadsheets
from farm.rules.presenting.tables import Table
from farm.runs.selectors.files import MEDIA_TYPE, make_parquet

PER_PAGE = 25
# an action may change at most so many rows of a list
MAX_CHOSEN = 100
# a list counts at most so many rows, so that a page does not wait until all rows are counted
MAX_COUNTED = 1000
MAX_PAGES = 10**6
Row = TypeVar("Row", bound=Model)
FORMATS = ("csv", "json", "parquet")
MAX_ROWS = 10_000
Value = str | int | float | bool | datetime | None
FileRow = Mapping[str, Value]
Listed = TypeVar("Listed")


def make_page(request: HttpRequest, rows: QuerySet[Row]) -> Page[Row]:
    """Return the page of PER_PAGE rows that `?page=` names, the first where it is no number, and the last for a number
    without a page, also below 1. The database sorts only primary keys and then loads the rows of the page."""
    page = make_page_in_order(request, rows)
    start = max(0, page.start_index() - 1)
    page.object_list = _load_rows(rows, rows.values_list("pk", flat=True)[start : page.end_index()])
    return page


def make_page_in_order(request: HttpRequest, rows: QuerySet[Row]) -> Page[Row]:
    """Return the same page as make_page, but in a single query. Use it for rows that a database index sorts."""
    asked = request.GET.get("page")
    return Counting(rows, asked).get_page(asked)


class Counting(Paginator):  # type: ignore[type-arg]  # it takes none when the program runs
    """A paginator that stops counting rows at `most`, or where the page `asked` needs more, at the end of that page.
    `count_words` is the count in words: `26`, or `more than 1,000` where counting stopped."""

    def __init__(
        self, rows: QuerySet[Any], asked: str | None, *, per_page: int = PER_PAGE, most: int = MAX_COUNTED
    ) -> None:
        super().__init__(rows, per_page)
        self._rows = rows
        number = int(asked) if asked is not None and is_row_number(asked) else 1
        self._most = max(most, min(number, MAX_PAGES) * per_page)

    @cached_property
    def count(self) -> int:
        """Count the rows, but stop at one more than the limit, so that there is a next page after the limit."""
        return self._rows.order_by()[: self._most + 1].count()

    @property
    def count_words(self) -> str:
        return f"{self.count:,}" if self.count <= self._most else f"more than {self._most:,}"


def first_rows(rows: QuerySet[Row], most: int) -> list[Row]:
    return _load_rows(rows, rows.values_list("pk", flat=True)[:most])


def _load_rows(rows: QuerySet[Row], numbers: Iterable[int]) -> list[Row]:
    wanted = list(numbers)
    return list(rows.filter(pk__in=wanted)) if wanted else []


def read_part_number(request: HttpRequest) -> int:
    """Read from `?rows=` the number of the part of a large heat map; 1 where it cannot be read. 0 is possible."""
    typed = request.GET.get("rows", "")
    return int(typed) if typed.isdecimal() and len(typed) < 7 else 1


def read_row_numbers(given: QueryDict, name: str, *, most: int) -> list[int]:
    """Read the primary keys of the ticked checkboxes with this name, each once, at most the first `most`. Values that
    are no key are skipped."""
    return [int(number) for number in dict.fromkeys(given.getlist(name)) if is_row_number(number)][:most]


def read_search_words(request: HttpRequest, name: str = "q") -> str:
    return request.GET.get(name, "").replace("\x00", "").strip()[:100]


def read_parameters(request: HttpRequest, names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, value) for name in names for value in request.GET.getlist(name) if value]


# the orders of a list: the name of each in the address, and the fields by which it sorts
Orders = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Filter:
    """A filter of a list. `name`: its parameter in the address; `choices`: each value with its label; `value`: the
    chosen value, which filters nothing where it is empty."""

    name: str
    label: str
    choices: Sequence[tuple[str, str]]
    value: str = ""


@dataclass(frozen=True)
class Together:
    """A button that sends the selected rows of a list to `address`. `key`: its keyboard shortcut."""

    label: str
    address: str
    key: str = ""


@dataclass(frozen=True)
class Listing(Generic[Row]):
    """A page of a list. `words`: the searched words; `searches`: the label of the search field; `together`: buttons for
    selected rows; `is_posted`: these send a POST; `kept`: parameters of the address that the filters keep;
    `is_narrowed`: a search or a filter is set; `has_acts`: any row has a button."""

    table: Table
    page: Page[Row]
    filters: Sequence[Filter] = ()
    words: str = ""
    searches: str = "Search"
    together: Sequence[Together] = ()
    is_posted: bool = False
    kept: Sequence[tuple[str, str]] = ()

    @property
    def is_narrowed(self) -> bool:
        return bool(self.words) or any(filter_.value for filter_ in self.filters)

    @property
    def has_acts(self) -> bool:
        return any(entry.button is not None for row in self.table.rows for entry in row)


def read_filter(
    request: HttpRequest, name: str, label: str, choices: Iterable[tuple[str, str]], *, nothing: str = "all"
) -> Filter:
    """Read a filter with its value from the address; the caller must filter the rows. An unknown value is read as
    empty. `nothing`: the label of the empty value."""
    known = [("", nothing), *choices]
    value = request.GET.get(name, "")
    return Filter(name, label, known, value if value in dict(known) else "")


def sort_rows(request: HttpRequest, rows: QuerySet[Row], orders: Orders) -> QuerySet[Row]:
    """Sort the rows by the order that `?sort=` names, descending with a leading `-`. Equal rows are sorted by the
    newest first, and rows without a value come last in both directions. Without a known order, `rows` is returned as it
    is."""
    wanted = request.GET.get("sort", "")
    fields = orders.get(wanted.removeprefix("-"))
    if fields is None:
        return rows
    is_down = wanted.startswith("-")
    order = [F(field).desc(nulls_last=True) if is_down else F(field).asc(nulls_last=True) for field in fields]
    return rows.order_by(*order, "-pk")


def wants_file(request: HttpRequest) -> bool:
    """Whether the address asks for a file: `as=csv`, `as=json` or `as=parquet`."""
    return request.GET.get("as") in FORMATS


def render_file(
    request: HttpRequest, name: str, rows: Iterable[Listed], read: Callable[[Listed], FileRow]
) -> HttpResponse:
    """Make a download of the first MAX_ROWS rows in the format that the address asks for, else CSV. Formulas in CSV are
    escaped. `name`: the name of the file without its ending; `read`: returns the values of a row by column."""
    lines = [read(row) for row in islice(rows, MAX_ROWS)]
    if request.GET.get("as") == "json":
        response: HttpResponse = JsonResponse([_format_times(row) for row in lines], safe=False)
        kind = "json"
    elif request.GET.get("as") == "parquet":
        response, kind = HttpResponse(make_parquet(lines), content_type=MEDIA_TYPE), "parquet"
    else:
        response, kind = HttpResponse(_write_table(lines), content_type="text/csv; charset=utf-8"), "csv"
    response["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return response


def _write_table(rows: Sequence[FileRow]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    writer.writerows([spreadsheets.escape_formula(value) for value in _format_times(row).values()] for row in rows)
    return text.getvalue()


def _format_times(row: FileRow) -> dict[str, Value]:
    """Replace the times of a row by texts in ISO 8601, in UTC and whole seconds."""
    return {
        key: value.astimezone(UTC).isoformat(timespec="seconds") if isinstance(value, datetime) else value
        for key, value in row.items()
    }
