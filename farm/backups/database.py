"""Operations on the whole database, for backups: a snapshot, migrations, counters, and whether it is empty."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.apps import apps
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.models import Model

from farm.accounts.models import LinkedAccount
from farm.backups.problems import BackupError

# tables that Django itself fills when it migrates
MADE_BY_MIGRATING: Final = {"django_migrations", "django_content_type", "auth_permission"}
Migrations = list[tuple[str, str]]
# the apps of django-allauth, which farms had until 26 November 2026; only its rows of linked accounts are kept
GONE_APPS: Final = {"account", "socialaccount"}
OLD_LINKED_LABEL: Final = "socialaccount.socialaccount"
# the first migration until 25 November 2026; today's migrations do not continue it
OUTDATED: Final = ("accounts", "0001_initial")


def list_models() -> list[type[Model]]:
    models = apps.get_models(include_auto_created=True)
    return [model for model in models if model._meta.managed and not model._meta.proxy]


@contextmanager
def read_in_snapshot() -> Iterator[None]:
    """Within this context every read sees the database as it was at the first one; other writers are not blocked.

    Nothing can be written inside it: PostgreSQL refuses it, and SQLite rolls it back.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            # not by `atomic`, which takes the lock of writers at once here
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
            return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


def applied_migrations() -> Migrations:
    """List the migrations of this release that the database has, sorted by app and name.

    Raises BackupError where the last one of an app is missing.
    """
    loader = MigrationLoader(connection)
    waiting = [node for node in loader.graph.leaf_nodes() if node not in loader.applied_migrations]
    if waiting:
        raise BackupError(
            f"The database waits for the migration {'.'.join(waiting[0])}: run `python manage.py migrate` first."
        )
    return sorted(node for node in loader.graph.nodes if node in loader.applied_migrations)


def check_database_is_empty() -> None:
    """Raises BackupError where a table has a row, except for those that Django fills as it migrates."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table in MADE_BY_MIGRATING:
                continue
            cursor.execute(f"SELECT 1 FROM {connection.ops.quote_name(table)} LIMIT 1")
            if cursor.fetchone():
                raise BackupError(
                    f"This farm is not empty: its table {table} has rows. Stop it, and restore into a new folder or "
                    f"database."
                )


def check_migrations_are_known(migrations: Iterable[tuple[str, str]]) -> None:
    """Raises BackupError where this code lacks a migration of the backup, the database has one that the backup lacks,
    or the backup was taken before 25 November 2026."""
    loader = MigrationLoader(connection)
    named = set(migrations)
    if OUTDATED in named:
        raise BackupError(
            "The backup is from a version of onnxfarm before 25 November 2026, whose tables this version cannot make: "
            "restore it with a checkout from before that date."
        )
    unknown = sorted(node for node in named if node not in loader.graph.nodes)
    if unknown:
        raise BackupError(
            f"The backup is of a newer release: it has the migration {'.'.join(unknown[0])[:200]}, which this one does "
            f"not know. Install that release first."
        )
    beyond = sorted(set(loader.applied_migrations) - named)
    if beyond:
        raise BackupError(
            f"The database has the migration {'.'.join(beyond[0])} already, which the backup does not have: restore "
            f"into a database without tables."
        )


def migrate_to(migrations: Iterable[tuple[str, str]]) -> dict[str, type[Model]]:
    """Make the tables as these migrations leave them; return the models of that state by label ("app.model", in lower
    case). The table of linked accounts is made in any case.

    Rows of linked accounts in backups from before 26 November 2026 have today's model under their old label.
    """
    executor = MigrationExecutor(connection)
    named = set(migrations)
    graph = executor.loader.graph
    ends = [node for node in named if not any(child.key in named for child in graph.node_map[node].children)]
    executor.migrate(ends)
    state = MigrationLoader(connection).project_state(ends)
    models = {model._meta.label_lower: model for model in state.apps.get_models(include_auto_created=True)}
    if LinkedAccount._meta.label_lower not in models:
        with connection.schema_editor() as editor:
            editor.create_model(LinkedAccount)
        models[OLD_LINKED_LABEL] = LinkedAccount
    return models


def delete_initial_rows() -> None:
    """Delete the permissions and content types that migrating wrote: the backup brings its own, under its own ids."""
    with connection.cursor() as cursor:
        for table in ("auth_permission", "django_content_type"):
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")


def read_id_counters() -> dict[str, int]:
    """Return the last id that each table gave out, by table name; tables that gave out none are left out."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name, seq FROM sqlite_sequence")
            numbers = dict(cursor.fetchall())
            return {table: numbers[table] for table in _list_id_columns() if numbers.get(table)}
        return {
            table: last
            for table, column in _list_id_columns().items()
            if (last := _read_id_counter(cursor, table, column))
        }


def set_id_counters(last_ids: dict[str, int]) -> None:
    """Set the last id of each table, by table name, so that no id is given out twice after a restore.

    A table stays as it is where `last_ids` does not name it, or has anything but a positive number for it.
    """
    with connection.cursor() as cursor:
        for table, column in _list_id_columns().items():
            number = last_ids.get(table)
            if not isinstance(number, int) or number < 1:
                continue
            if connection.vendor == "sqlite":
                cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table])
                cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table, number])
            else:
                cursor.execute("SELECT setval(pg_get_serial_sequence(%s, %s), %s)", [table, column, number])


def _list_id_columns() -> dict[str, str]:
    fields = [model._meta.auto_field for model in list_models()]
    return {field.model._meta.db_table: str(field.column) for field in fields if field is not None}


def _read_id_counter(cursor: Any, table: str, column: str) -> int:
    cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [table, column])
    [name] = cursor.fetchone()
    cursor.execute(f"SELECT last_value, is_called FROM {name}")
    number, is_called = cursor.fetchone()
    return int(number) if is_called else 0
