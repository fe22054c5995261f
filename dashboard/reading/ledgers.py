"""What waits for a node's machine, and what it did for whom, as tables."""

from collections.abc import Sequence

from django.urls import reverse

from farm.rules.planning.time_left import about
from farm.rules.presenting.tables import Column, Entry, Number, Table, counted
from farm.rules.wording import numbers
from farm.runs.selectors.ledger import Work
from farm.runs.selectors.queues import Next

UNFORESEEN = "when its machine is free"


def waiting_table(waiting: Sequence[Next]) -> Table:
    columns: tuple[Column[Next], ...] = (
        Column("Run", _run),
        Column("Begins", lambda one: Entry(describe_start(one), one.begins_in_minutes)),
        Number("takes", _takes, note="by its plan and the machine’s pace"),
    )
    return Table.of("next", "What waits for this node", columns, waiting)


def work_table(work: Sequence[Work]) -> Table:
    columns: tuple[Column[Work], ...] = (
        Column("For", lambda one: Entry(one.person or "a former user", soft=one.team, is_name=True)),
        Column("Why", lambda one: Entry(one.reason or "asked for")),
        Number("runs", lambda one: counted(one.runs)),
        Number("blocks", lambda one: counted(one.blocks)),
        Number("time", lambda one: Entry(_minutes(one.minutes), one.minutes)),
    )
    return Table.of("ledger", "What this node did, and for whom", columns, work)


def describe_start(one: Next) -> str:
    """`in about 12 min`, `next` where nothing comes before it."""
    if one.begins_in_minutes is None:
        return UNFORESEEN
    return f"in {about(60.0 * one.begins_in_minutes)}" if one.begins_in_minutes else "next"


def _takes(one: Next) -> Entry:
    return Entry() if one.minutes is None else Entry(_minutes(one.minutes), one.minutes)


def _run(one: Next) -> Entry:
    if one.run is None:
        return Entry(f"a run of {one.team}")
    return Entry(f"run {one.run}", one.run, href=reverse("dashboard:run", args=[one.run]))


def _minutes(minutes: float) -> str:
    return numbers.duration(60.0 * minutes)
