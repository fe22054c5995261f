"""A database of before migrations were one an app is refused before anything in it changes."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from farm.backups.database import OUTDATED


@pytest.mark.parametrize("options", [{}, {"check_unapplied": True}, {"plan": True}])
def test_a_database_of_before_is_refused_in_a_sentence(db: None, options: dict[str, bool]) -> None:
    recorder = MigrationRecorder(connection)
    recorder.migration_qs.filter(app__in=["accounts", "runs"]).delete()
    recorder.record_applied(*OUTDATED)
    with pytest.raises(CommandError, match=r"before 25 November 2026.*empty database"):
        call_command("migrate", verbosity=0, **options)
    assert set(recorder.applied_migrations()) & {("accounts", "0001_tables"), ("runs", "0001_tables")} == set()
