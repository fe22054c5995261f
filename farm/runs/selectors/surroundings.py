"""How quiet nodes were just before their blocks, from the facts that they report first."""

from dataclasses import dataclass
from datetime import datetime

from farm.contract import document as doc
from farm.contract.reports import FactsReport
from farm.fleet.models import Node
from farm.rules.reporting.documents import block_facts
from farm.runs.models import Attempt, Report, Run
from farm.runs.selectors.evidence import COUNTED


@dataclass(frozen=True, slots=True)
class Before:
    """A node's state before one of its blocks, and which block that was."""

    run: int
    at: datetime
    facts: doc.BlockFacts


def last_blocks_of(node: Node, *, most: int) -> list[Before]:
    """The state of a node before its newest blocks, the newest first. Two queries."""
    attempts = list(Attempt.objects.filter(node=node).order_by("-pk").values_list("pk", flat=True)[:most])
    rows = Report.objects.filter(attempt__in=attempts, kind="facts").order_by("-pk").select_related("attempt__block")
    return [Before(row.attempt.block.run_id, row.received_at, _read(row, node.name)) for row in rows]


def of_run(run: Run) -> list[doc.BlockFacts]:
    """The state of the nodes before each block of a run, by its number. One query."""
    rows = Report.objects.filter(attempt__block__run=run, attempt__state__in=COUNTED, kind="facts")
    # plans are long, and nothing of them is shown here
    light = rows.select_related("attempt__block", "attempt__node").defer("attempt__block__plan_json")
    # a block that went on has facts of each attempt: the newest stand for it
    newest = {row.attempt.block_id: row for row in light.order_by("pk")}
    found = [_read(row, row.attempt.node.name if row.attempt.node else None) for row in newest.values()]
    return sorted(found, key=lambda one: (len(one.block), one.block))


def _read(row: Report, node: str | None) -> doc.BlockFacts:
    facts = FactsReport.model_validate_json(row.body).facts
    return block_facts(facts, block=f"b{row.attempt.block.number}", node=node)
