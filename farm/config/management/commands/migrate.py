"""Django's `migrate` for a farm that is running: on PostgreSQL, it neither waits for locks nor holds them for long.

While an ALTER TABLE waits for a lock, all queries behind it wait too. So it gives up after LOCK_S seconds, and a
statement may take STATEMENT_S seconds. A migration that needs longer, such as for an index that is made CONCURRENTLY,
sets its own `statement_timeout` first. Migrations that were applied stay, and the next `migrate` continues there. After
a deadlock with the farm, the migration is repeated.
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
# SQLSTATEs of PostgreSQL: deadlock_detected here, lock_not_available and query_canceled below
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
    """Call `apply` and return its result. After a deadlock of PostgreSQL, call it again; other errors are raised.

    After MAX_DEADLOCKS deadlocks it is called a last time, and its error is raised.
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
    """Raise CommandError if the database was made by migrations that this code no longer has."""
    if OUTDATED in MigrationRecorder(connections[alias]).applied_migrations():
        raise CommandError(
            "This database was made by onnxfarm before 25 November 2026, and this code cannot migrate it; nothing "
            "was changed. Go on with a checkout of before that day, or begin with an empty database: another "
            "ONNXFARM_HOME, or one without tables in ONNXFARM_DATABASE_URL."
        )


@contextmanager
def limit_waits(alias: str) -> Iterator[None]:
    """Inside the `with`, PostgreSQL waits at most LOCK_S seconds for a lock, and STATEMENT_S for a statement.

    Raises CommandError, with what to do, if one of these limits is reached; other errors are not changed. Other
    databases get no limits.
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
