"""Rows that cost most of a second to make, made once in a process and written again by whoever wants the same.

What was there before has to be the same too, or they are made anew: nothing is guessed. Moments stay those of the
first time, so it is made anew now and then. Only where tests run on SQLite, whose numbers of rows begin again with
each test that is rolled back.
"""

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.apps import apps
from django.db import connection

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
            found[table] = {row[0]: tuple(map(_plain, row[1:])) for row in cursor.fetchall()}
        cursor.execute("SELECT rowid, * FROM sqlite_sequence")
        found["sqlite_sequence"] = {row[0]: row[1:] for row in cursor.fetchall()}
    return found


def _plain(value: object) -> object:
    """As SQLite keeps it."""
    return value.isoformat(" ") if isinstance(value, datetime) else value


def _digest(rows: Rows, how: object) -> str:
    told = hashlib.sha256(repr(how).encode())
    for table, known in rows.items():
        told.update(table.encode())
        if table not in RANDOM:
            told.update(MOMENT.sub("", repr(sorted(known.items(), key=lambda item: item[0]))).encode())
    return told.hexdigest()


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
    with connection.cursor() as cursor:
        for table, numbers in what.gone.items():
            for number in numbers:
                cursor.execute(f'DELETE FROM "{table}" WHERE rowid = %s', [number])
        for table, rows in what.new.items():
            for row in rows:
                cursor.execute(f'INSERT INTO "{table}" VALUES ({", ".join(["%s"] * len(row))})', row)
        for table, changes in what.changed.items():
            columns = _columns(table) if changes else []
            for number, place, value in changes:
                cursor.execute(f'UPDATE "{table}" SET "{columns[place]}" = %s WHERE rowid = %s', [value, number])


def _columns(table: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{table}" LIMIT 0')
        return [column[0] for column in cursor.description]
