"""Django's `migrate` beside a farm that goes on working: on PostgreSQL it waits briefly and holds nothing for long.

An ALTER TABLE that waits for a lock keeps everybody behind it waiting too. So it gives up after LOCK_S, and a statement
that works for more than STATEMENT_S is ended; a migration that needs longer, as it makes an index of a large table
CONCURRENTLY, sets its own `statement_timeout` first. What was applied stays, and a second `migrate` goes on there.
Where a migration of two tables and the farm wait for each other, PostgreSQL ends the migration, and it begins again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.migrations.recorder import MigrationRecorder

from farm.backups.database import OUTDATED

LOCK_S: Final = 4
STATEMENT_S: Final = 5
MAX_DEADLOCKS: Final = 5
# of PostgreSQL: deadlock_detected; lock_not_available, query_canceled
DEADLOCK: Final = "40P01"
SENTENCES: Final = {
    "55P03": f"A migration waited {LOCK_S} s for a lock that the running farm holds; nothing is half done. "
    f"Run `python manage.py migrate` again.",
    "57014": f"A statement of a migration took longer than {STATEMENT_S} s and was ended; nothing is half done. Run "
    f"`python manage.py migrate` again when the farm is quiet, or stop it first.",
}


class Command(migrate.Command):
    """Django's `migrate`, with the same options."""

    def handle(self, *args: object, **options: object) -> None:
        check_is_not_outdated(str(options["database"]))
        with limit_waits(str(options["database"])):
            repeat_after_deadlocks(lambda: super(Command, self).handle(*args, **options))


def repeat_after_deadlocks(apply: Callable[[], object]) -> object:
    """Call `apply` and return its result; call it again where PostgreSQL ended it to resolve a deadlock.

    After MAX_DEADLOCKS such ends it is called a last time, and its error is raised.
    """
    for _ in range(MAX_DEADLOCKS):
        try:
            return apply()
        except OperationalError as problem:
            if read_sqlstate(problem) != DEADLOCK:
                raise
    return apply()


def read_sqlstate(problem: OperationalError) -> str:
    return str(getattr(problem.__cause__, "sqlstate", ""))


def check_is_not_outdated(alias: str) -> None:
    """Raises CommandError for a database whose tables were made by migrations that this code no longer has."""
    if OUTDATED in MigrationRecorder(connections[alias]).applied_migrations():
        raise CommandError(
            "This database was made by onnxfarm of before 25 November 2026, and this code cannot migrate it; nothing "
            "was changed. Go on with a checkout of before that day, or begin with an empty database: another "
            "ONNXFARM_HOME, or one without tables in ONNXFARM_DATABASE_URL."
        )


@contextmanager
def limit_waits(alias: str) -> Iterator[None]:
    """Within this context, PostgreSQL waits at most LOCK_S for a lock and works at most STATEMENT_S on a statement.

    Raises CommandError, with what to do, in place of the database's error for any of these limits; other errors stay.
    Other databases have no limits.
    """
    connection = connections[alias]
    if connection.vendor != "postgresql":
        yield
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{LOCK_S}s'; SET statement_timeout = '{STATEMENT_S}s'")
        yield
    except OperationalError as problem:
        sentence = SENTENCES.get(read_sqlstate(problem))
        if sentence is None:
            raise
        raise CommandError(sentence) from problem
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout; RESET statement_timeout")
