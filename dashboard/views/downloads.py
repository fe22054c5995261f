"""A list as a file: the same rows that the address chooses, all pages of them, as CSV, JSON or Parquet."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from itertools import islice
from typing import TypeVar

from django.http import HttpRequest, HttpResponse, JsonResponse

from farm.rules.presenting import spreadsheets
from farm.runs.selectors.files import MEDIA_TYPE, parquet_of

FORMATS = ("csv", "json", "parquet")
MOST_ROWS = 10_000
Value = str | int | float | bool | datetime | None
Row = Mapping[str, Value]
Listed = TypeVar("Listed")


def is_wanted(request: HttpRequest) -> bool:
    """Whether the address asks for the list as a file: `as=csv`, `as=json` or `as=parquet`."""
    return request.GET.get("as") in FORMATS


def as_file(request: HttpRequest, name: str, rows: Iterable[Listed], read: Callable[[Listed], Row]) -> HttpResponse:
    """The rows, `read` one by one, as the file `name`.csv, .json or .parquet; at most MOST_ROWS of them."""
    lines = [read(row) for row in islice(rows, MOST_ROWS)]
    if request.GET.get("as") == "json":
        response: HttpResponse = JsonResponse([_timed(row) for row in lines], safe=False)
        kind = "json"
    elif request.GET.get("as") == "parquet":
        response, kind = HttpResponse(parquet_of(lines), content_type=MEDIA_TYPE), "parquet"
    else:
        response, kind = HttpResponse(_table(lines), content_type="text/csv; charset=utf-8"), "csv"
    response["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return response


def _table(rows: Sequence[Row]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    writer.writerows([spreadsheets.safe(value) for value in _timed(row).values()] for row in rows)
    return text.getvalue()


def _timed(row: Row) -> dict[str, Value]:
    """Moments in UTC, as ISO 8601 writes them."""
    return {
        key: value.astimezone(UTC).isoformat(timespec="seconds") if isinstance(value, datetime) else value
        for key, value in row.items()
    }
