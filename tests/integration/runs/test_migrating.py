"""Migrating beside a farm that goes on working, on PostgreSQL; tests/integration/test_postgres.py runs it there."""

import threading

import pytest
from django.core.management.base import CommandError
from django.db import OperationalError, connection, transaction

from farm.config.management.commands import migrate

pytestmark = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer and no such limits")


def limits() -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout'), current_setting('statement_timeout')")
        found: tuple[str, str] = cursor.fetchone()
    return found


def test_a_migration_waits_briefly_and_holds_nothing_for_long(transactional_db: None) -> None:
    before = limits()
    with migrate.limit_waits("default"):
        assert limits() == ("4s", "5s")
    assert limits() == before


def test_a_lock_of_the_farm_ends_it_in_a_sentence(transactional_db: None) -> None:
    holder = connection.copy()
    try:
        with holder.cursor() as cursor:
            cursor.execute("BEGIN; LOCK TABLE accounts_tick")
        with pytest.raises(CommandError, match="waited 4 s for a lock that the running farm holds"):  # noqa: SIM117
            with migrate.limit_waits("default"), transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '50ms'; ALTER TABLE accounts_tick ADD COLUMN more integer")
    finally:
        holder.close()


def test_a_statement_that_takes_long_ends_it_in_a_sentence(transactional_db: None) -> None:
    with pytest.raises(CommandError, match="took longer than 5 s and was ended"):  # noqa: SIM117
        with migrate.limit_waits("default"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '50ms'; SELECT pg_sleep(5)")


def test_other_problems_of_the_database_stay_as_they_are(transactional_db: None) -> None:
    with pytest.raises(OperationalError, match="gone"), migrate.limit_waits("default"):
        raise OperationalError("gone")


def test_a_migration_begins_again_where_it_and_the_farm_wait_for_each_other(transactional_db: None) -> None:
    farm, tries = connection.copy(), []
    farm.inc_thread_sharing()
    has_first = threading.Event()

    def hold_both() -> None:
        with farm.cursor() as cursor:
            # the farm's session never looks for deadlocks itself, so that PostgreSQL ends the migration
            cursor.execute("SET deadlock_timeout = '1min'; BEGIN; LOCK TABLE accounts_tick")
            has_first.set()
            cursor.execute("LOCK TABLE accounts_team; COMMIT")
        farm.close()

    def apply() -> None:
        tries.append(len(tries))
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL deadlock_timeout = '50ms'; LOCK TABLE accounts_team")
            if len(tries) == 1:
                holder.start()
                has_first.wait(10)
            cursor.execute("LOCK TABLE accounts_tick")

    holder = threading.Thread(target=hold_both)
    migrate.repeat_after_deadlocks(apply)
    holder.join()
    assert tries == [0, 1]
