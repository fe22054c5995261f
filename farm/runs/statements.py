"""What each message of a node writes, as SQL: conditional statements, whose count of rows says whether they held.

Django would put them together anew for each message, which takes longer than the database takes to carry them out.
"""

from datetime import datetime
from typing import Final

from django.db import connections, router
from django.utils import timezone

from farm.runs.models import Report, Run

Value = int | float | str | datetime | None

MARK_RUN: Final = "UPDATE runs_run SET revision = revision + 1 WHERE id = %s"
# a report counts while its attempt holds the block: the attempt number is the fence
COUNT_REPORT: Final = """
    UPDATE runs_attempt SET timed_s = timed_s + %s, reported_bytes = reported_bytes + %s
    WHERE id = %s AND state = 'leased' AND EXISTS (
        SELECT 1 FROM runs_block AS block WHERE block.id = runs_attempt.block_id AND block.state = 'leased'
        AND block.attempt = runs_attempt.number AND block.node_id = runs_attempt.node_id)"""
KEEP_REPORT: Final = """
    INSERT INTO runs_report (attempt_id, kind, arm, round, digest, body, reply, received_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"""
NOTE_ROUND: Final = "UPDATE runs_block SET rounds = %s WHERE id = %s"
REPORTED: Final = "SELECT kind, arm, round, digest, reply FROM runs_report WHERE attempt_id = %s"


def changed(statement: str, *parameters: Value) -> int:
    """Carries the statement out; how many rows it changed."""
    with connections[router.db_for_write(Run)].cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


def found(statement: str, *parameters: Value) -> list[tuple[object, ...]]:
    """The rows that a statement asks for."""
    with connections[router.db_for_write(Run)].cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def keep_report(report: Report) -> None:
    """Writes a report's row. Raises IntegrityError where its place is taken."""
    received_at = connections[router.db_for_write(Run)].ops.adapt_datetimefield_value(timezone.now())
    place = (report.attempt_id, report.kind, report.arm, report.round)
    changed(KEEP_REPORT, *place, report.digest, report.body, report.reply, received_at)
