"""How quiet a node was before its last blocks: advice to its owner, and the readings it follows from."""

import re
from collections.abc import Callable, Sequence

from farm.contract.reports import Facts
from farm.rules.presenting.tables import Column, Entry, Number, Table, moment
from farm.rules.wording import numbers
from farm.runs.selectors import Before

# from a run's number to its page
RunAddress = Callable[[int], str]

UNREADABLE = "not readable here"
TURBO = {None: UNREADABLE, True: "on", False: "off"}


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
    columns: tuple[Column[Before], ...] = (
        Column("Block", lambda one: Entry(f"run {one.run}, {one.facts.block}", one.run, href=address(one.run))),
        Column("When", lambda one: moment(one.at)),
        Number("load, 1 min", lambda one: _number(one.facts.load_1m, 1)),
        Number("other programs", lambda one: _share(one.facts.busy_share), "their share of the processor"),
        Number("other runners", lambda one: _number(one.facts.other_runners, 0)),
        Column("Governor", lambda one: Entry(one.facts.governor or UNREADABLE)),
        Column("Turbo", lambda one: Entry(TURBO[one.facts.turbo])),
        Number("°C", lambda one: _number(one.facts.temperature_c, 0)),
    )
    return Table.of("before", "What was read just before each block", columns, before)


def _share(value: float | None) -> Entry:
    return Entry(UNREADABLE if value is None else numbers.share(value), value)


def _number(value: float | None, decimals: int) -> Entry:
    return Entry(UNREADABLE if value is None else numbers.fixed(value, decimals), value)


def _kind(sentence: str) -> str:
    """What a sentence is about, whichever numbers it has: its first clause without them."""
    first = sentence.partition(":")[0].replace("Another runner", "1 other runners")
    return re.sub(r"\d+(\.\d+)?", "#", first)


def _how_often(count: int, blocks: int) -> str:
    if blocks == 1:
        return "Read before its only block."
    return f"Read before {count} of its last {blocks} blocks."
