"""How long the fleet's queues are, and when a block that is queued now starts, in words."""

from collections.abc import Sequence

from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, counted
from farm.rules.wording import numbers
from farm.runs.selectors.backlog import Queue

COLUMNS: tuple[Column[Queue], ...] = (
    Column("Hardware", lambda one: Entry(one.hardware, is_name=True)),
    Number("blocks waiting", lambda one: counted(one.waiting)),
    Number("being measured", lambda one: counted(one.measuring)),
    Number("nodes", lambda one: counted(one.nodes), note="online, and taking such blocks now"),
    Number(
        "planned work",
        lambda one: Entry(numbers.duration(60 * one.minutes), one.minutes),
        note="what the plans expect of all of it on one node",
    ),
    Prose("A block queued now starts", lambda one: Entry(start_words(one))),
)


def table(queues: Sequence[Queue]) -> Table:
    return Table.of("queues", "What waits for which hardware", COLUMNS, queues)


def start_words(one: Queue) -> str:
    """When a block queued now may be expected to start."""
    minutes = one.start_minutes
    if minutes is None:
        return "when a node with this hardware comes online"
    return f"in about {numbers.duration(60 * minutes)}" if minutes else "at once"


def headline(*, online: int, nodes: int, queues: Sequence[Queue]) -> str:
    """How many nodes are there, and what waits for them."""
    if not nodes:
        return "No node has joined yet"
    waiting = sum(one.waiting for one in queues)
    measuring = sum(one.measuring for one in queues)
    stuck = sum(one.waiting for one in queues if not one.nodes)
    parts = [f"{numbers.counted(measuring, 'block')} being measured"] if measuring else []
    parts += [f"{waiting} waiting" if measuring else f"{numbers.counted(waiting, 'block')} waiting"] if waiting else []
    parts += [f"{stuck} of them for hardware that no node online has"] if stuck else []
    return f"{online} of {numbers.counted(nodes, 'node')} online; {', '.join(parts) or 'nothing waits'}"
