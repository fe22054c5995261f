"""Migrating beside a farm that goes on working, on PostgreSQL; tests/integration/test_postgres.py runs it there."""

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
    with migrate.briefly("default"):
        assert limits() == ("4s", "5s")
    assert limits() == before


def test_a_lock_of_the_farm_ends_it_in_a_sentence(transactional_db: None) -> None:
    holder = connection.copy()
    try:
        with holder.cursor() as cursor:
            cursor.execute("BEGIN; LOCK TABLE accounts_tick")
        with pytest.raises(CommandError, match="waited 4 s for a lock that the running farm holds"):  # noqa: SIM117
            with migrate.briefly("default"), transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '50ms'; ALTER TABLE accounts_tick ADD COLUMN more integer")
    finally:
        holder.close()


def test_a_statement_that_takes_long_ends_it_in_a_sentence(transactional_db: None) -> None:
    with pytest.raises(CommandError, match="took longer than 5 s and was ended"):  # noqa: SIM117
        with migrate.briefly("default"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '50ms'; SELECT pg_sleep(5)")


def test_other_problems_of_the_database_stay_as_they_are(transactional_db: None) -> None:
    with pytest.raises(OperationalError, match="gone"), migrate.briefly("default"):
        raise OperationalError("gone")
