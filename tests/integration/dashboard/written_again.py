"""Rows that cost most of a second to make, made once in a process and written again by whoever wants the same.

What was there before has to be the same too, or they are made anew: nothing is guessed. Moments stay those of the
first time, so it is made anew now and then. Only where tests run on SQLite, whose numbers of rows begin again with
each test that is rolled back.
"""

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.apps import apps
from django.db import connection, transaction

# a page says how long ago something was
OLDEST_S = 300.0
MOST_KEPT = 32
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?")
# their rows hold what is random; how many there were is told by sqlite_sequence
RANDOM = ("django_session", "accounts_token")

Row = tuple[object, ...]
# by table and number of the row
Rows = dict[str, dict[int, Row]]


@dataclass(frozen=True)
class _Difference:
    """What is new in each table, what changed by number and place of the column, and what is gone."""

    new: dict[str, list[Row]]
    changed: dict[str, list[tuple[int, int, object]]]
    gone: dict[str, list[int]]


@dataclass(frozen=True)
class _Kept:
    made_at: float
    number: int
    difference: _Difference


_kept: OrderedDict[str, _Kept] = OrderedDict()


def made_once(make: Callable[[], int], *, how: object) -> int:
    """The number that `make` answers, once its rows are there: made, or written again. `how`: all that it depends on
    beside the rows that are there already."""
    if connection.vendor != "sqlite":
        return make()
    before = _all_rows()
    key = _digest(before, how)
    kept = _kept.get(key)
    if kept is not None and time.monotonic() - kept.made_at < OLDEST_S:
        _write(kept.difference)
        return kept.number
    number = make()
    _kept[key] = _Kept(time.monotonic(), number, _difference(before, _all_rows()))
    while len(_kept) > MOST_KEPT:
        _kept.popitem(last=False)
    return number


def _all_rows() -> Rows:
    with connection.cursor() as cursor:
        found: Rows = {}
        for table in sorted({model._meta.db_table for model in apps.get_models(include_auto_created=True)}):
            cursor.execute(f'SELECT rowid, * FROM "{table}"')
            found[table] = {row[0]: row[1:] for row in cursor.fetchall()}
        cursor.execute("SELECT rowid, * FROM sqlite_sequence")
        found["sqlite_sequence"] = {row[0]: row[1:] for row in cursor.fetchall()}
    return found


def _digest(rows: Rows, how: object) -> str:
    told, now = hashlib.sha256(repr(how).encode()), datetime.now(UTC).replace(tzinfo=None)
    for table, known in rows.items():
        told.update(table.encode())
        for number, row in sorted(known.items()) if table not in RANDOM else ():
            aged = [_hours_ago(value, now) if isinstance(value, datetime) else value for value in row]
            told.update(MOMENT.sub("", repr((number, aged))).encode())
    return told.hexdigest()


def _hours_ago(moment: datetime, now: datetime) -> int:
    """What was a minute ago was so the first time too; a day is another matter."""
    return round((now - moment).total_seconds() / 3600)


def _difference(before: Rows, after: Rows) -> _Difference:
    found = _Difference({}, {}, {})
    for table, rows in after.items():
        known = before[table]
        if table == "sqlite_sequence":
            # it follows from the rows that are written
            continue
        found.new[table] = [row for number, row in rows.items() if number not in known]
        found.gone[table] = [number for number in known if number not in rows]
        found.changed[table] = [
            (number, place, value)
            for number, row in rows.items()
            if number in known
            for place, value in enumerate(row)
            if value != known[number][place]
        ]
    return found


def _write(what: _Difference) -> None:
    # references are looked at when all rows are there
    with transaction.atomic(), connection.cursor() as cursor:
        for table, numbers in what.gone.items():
            for number in numbers:
                cursor.execute(f'DELETE FROM "{table}" WHERE rowid = %s', [number])
        for table, rows in what.new.items():
            for row in rows:
                cursor.execute(f'INSERT INTO "{table}" VALUES ({", ".join(["%s"] * len(row))})', _plain(row))
        for table, changes in what.changed.items():
            columns = _columns(table) if changes else []
            for number, place, value in changes:
                statement = f'UPDATE "{table}" SET "{columns[place]}" = %s WHERE rowid = %s'
                cursor.execute(statement, [*_plain([value]), number])


def _plain(row: Iterable[object]) -> list[object]:
    """As SQLite keeps it."""
    return [value.isoformat(" ") if isinstance(value, datetime) else value for value in row]


def _columns(table: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{table}" LIMIT 0')
        return [column[0] for column in cursor.description]
