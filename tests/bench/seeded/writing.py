"""Rows written in bulk under numbers of our own, so that children know their parents before either is written."""

from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any, TypeVar

from django.core.management.color import no_style
from django.db import connection, models, transaction
from django.db.models import Max

Row = TypeVar("Row", bound=models.Model)
CHUNK = 2000


class Writer:
    """Keeps rows until there are enough of a kind, then writes them. `count`: how many of each table so far."""

    def __init__(self) -> None:
        self._waiting: dict[type[models.Model], list[models.Model]] = {}
        self._last: dict[type[models.Model], int] = {}
        self.count: dict[str, int] = {}

    def add(self, row: Row) -> Row:
        """Gives the row its number and takes it."""
        kind = type(row)
        if kind not in self._last:
            self._last[kind] = kind._default_manager.aggregate(last=Max("pk"))["last"] or 0
        self._last[kind] += 1
        row.pk = self._last[kind]
        waiting = self._waiting.setdefault(kind, [])
        waiting.append(row)
        if len(waiting) >= CHUNK:
            self._write(kind)
        return row

    def add_all(self, rows: Iterable[Row]) -> list[Row]:
        return [self.add(row) for row in rows]

    def flush(self) -> None:
        """Writes what waits."""
        for kind in list(self._waiting):
            self._write(kind)

    def set_sequences(self) -> None:
        """Lets the database number further rows after ours."""
        with connection.cursor() as cursor:
            for statement in connection.ops.sequence_reset_sql(no_style(), list(self._last)):
                cursor.execute(statement)

    def _write(self, kind: type[models.Model]) -> None:
        """One prepared statement, or COPY: bulk_create would put an SQL text together for every hundred rows."""
        rows = self._waiting.pop(kind, [])
        fields, quote = kind._meta.concrete_fields, connection.ops.quote_name
        table = f"{quote(kind._meta.db_table)} ({', '.join(quote(field.column) for field in fields)})"
        values = [[field.get_db_prep_save(field.pre_save(row, True), connection) for field in fields] for row in rows]
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                    for one in values:
                        copy.write_row(one)
            else:
                cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(fields))})", values)
        self.count[kind.__name__] = self.count.get(kind.__name__, 0) + len(rows)


@contextmanager
def fast() -> Any:
    """One transaction without foreign keys being looked at row by row; `check` looks at all of them at the end."""
    is_sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA foreign_keys=OFF" if is_sqlite else "SET session_replication_role = replica")
    with transaction.atomic():
        yield
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA foreign_keys=ON" if is_sqlite else "SET session_replication_role = DEFAULT")
        if not is_sqlite:
            # what autovacuum does within a minute of such a change; SQLite has nothing like it
            cursor.execute("ANALYZE")


def check() -> None:
    """Raises IntegrityError where a row names another one that is not there."""
    connection.check_constraints()
