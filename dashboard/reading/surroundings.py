"""How quiet a node was before its last blocks: advice to its owner, and the readings it follows from."""

import re
from collections.abc import Callable, Sequence

from dashboard import numbers
from dashboard.tables import Entry, Head, Table
from farm.contract.document import BlockFacts
from farm.contract.reports import Facts
from farm.runs.selectors import Before

# from a run's number to its page
RunAddress = Callable[[int], str]

HEADS = (
    Head("Block"),
    Head("When"),
    Head("load, 1 min", is_number=True),
    Head("other programs", is_number=True, note="their share of the processor"),
    Head("other runners", is_number=True),
    Head("Governor"),
    Head("Turbo"),
    Head("°C", is_number=True),
)
UNREADABLE = "not readable here"


def advice(said: Facts, before: Sequence[Before]) -> list[str]:
    """What the owner could do, each thing once: from the newest blocks, and from the last hello before there are any.

    A sentence names the newest readings; how many of the blocks it stood before is added.
    """
    if not before:
        return list(said.advice)
    counts: dict[str, int] = {}
    newest: dict[str, str] = {}
    for one in before:
        for sentence in one.facts.advice:
            counts[_kind(sentence)] = counts.get(_kind(sentence), 0) + 1
            newest.setdefault(_kind(sentence), sentence)
    return [f"{sentence} {_how_often(counts[kind], len(before))}" for kind, sentence in newest.items()]


def table(before: Sequence[Before], address: RunAddress) -> Table:
    """What was read before each of a node's last blocks."""
    rows = [_row(one, one.facts, address) for one in before]
    return Table("before", "What was read just before each block", HEADS, rows)


def _row(one: Before, facts: BlockFacts, address: RunAddress) -> tuple[Entry, ...]:
    return (
        Entry(f"run {one.run}, {facts.block}", one.run, href=address(one.run)),
        Entry(f"{one.at:%Y-%m-%d %H:%M} UTC", one.at.timestamp()),
        Entry(_number(facts.load_1m, 1), facts.load_1m),
        Entry(UNREADABLE if facts.busy_share is None else numbers.share(facts.busy_share), facts.busy_share),
        Entry(_number(facts.other_runners, 0), facts.other_runners),
        Entry(facts.governor or UNREADABLE),
        Entry(UNREADABLE if facts.turbo is None else "on" if facts.turbo else "off"),
        Entry(_number(facts.temperature_c, 0), facts.temperature_c),
    )


def _number(value: float | None, decimals: int) -> str:
    return UNREADABLE if value is None else numbers.fixed(value, decimals)


def _kind(sentence: str) -> str:
    """What a sentence is about, whichever numbers it has: its first clause without them."""
    return re.sub(r"\d+(\.\d+)?", "#", sentence.partition(":")[0])


def _how_often(count: int, blocks: int) -> str:
    if blocks == 1:
        return "Read before its only block."
    return f"Read before {count} of its last {blocks} blocks."
