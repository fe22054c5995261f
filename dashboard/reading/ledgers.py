"""What waits for a node's machine, and what it did for whom, as tables."""

from collections.abc import Sequence

from django.urls import reverse

from farm.rules.planning.time_left import format_about
from farm.rules.presenting.tables import Column, Entry, Number, Table, counted
from farm.rules.wording import numbers
from farm.runs.selectors.ledger import Work
from farm.runs.selectors.queues import Next

UNFORESEEN = "when its machine is free"


def waiting_table(waiting: Sequence[Next]) -> Table:
    columns: tuple[Column[Next], ...] = (
        Column("Run", _run),
        Column("Begins", lambda row: Entry(describe_start(row), row.begins_in_minutes)),
        Number("takes", _takes, note="by its plan and the machine’s pace"),
    )
    return Table.of("next", "What waits for this node", columns, waiting)


def work_table(work: Sequence[Work]) -> Table:
    columns: tuple[Column[Work], ...] = (
        Column("For", lambda row: Entry(row.person or "a former user", soft=row.team, is_name=True)),
        Column("Why", lambda row: Entry(row.reason or "asked for")),
        Number("runs", lambda row: counted(row.runs)),
        Number("blocks", lambda row: counted(row.blocks)),
        Number("time", lambda row: Entry(_minutes(row.minutes), row.minutes)),
    )
    return Table.of("ledger", "What this node did, and for whom", columns, work)


def describe_start(row: Next) -> str:
    """`in about 12 min`, `next` where nothing comes before it."""
    if row.begins_in_minutes is None:
        return UNFORESEEN
    return f"in {format_about(60.0 * row.begins_in_minutes)}" if row.begins_in_minutes else "next"


def _takes(row: Next) -> Entry:
    return Entry() if row.minutes is None else Entry(_minutes(row.minutes), row.minutes)


def _run(row: Next) -> Entry:
    if row.run is None:
        return Entry(f"a run of {row.team}")
    return Entry(f"run {row.run}", row.run, href=reverse("dashboard:run", args=[row.run]))


def _minutes(minutes: float) -> str:
    return numbers.duration(round(60.0 * minutes))
