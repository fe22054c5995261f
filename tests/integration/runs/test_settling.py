"""A block's last report is answered at once; what it comes to is settled afterwards, once, whoever asks how often."""

import pytest

from farm.fleet.models import Node, NullEstimate
from farm.runs.models import Block, CellDocument, Comparison, Run
from farm.runs.selectors.evidence import counted_reports, judge_of
from farm.runs.services.settlement import settle_block
from tests.integration.runs.making import first_block, measure

pytestmark = pytest.mark.django_db


def settled_rows(block: Block) -> list[object]:
    """All that settling writes, without the rows' numbers."""
    documents = CellDocument.objects.filter(arm__block=block).order_by("arm__number")
    comparisons = block.comparisons.order_by("baseline__number", "candidate__number")
    return [
        *documents.values_list("arm__name", "body", "operators"),
        *comparisons.values_list("baseline__name", "candidate__name", "verdict", "body", "operators"),
        *block.arms.values_list("name", "status", "is_evaluated", "cell__status"),
        *NullEstimate.objects.filter(block=block.pk).values_list("arm", "twin", "estimate", "verdict"),
    ]


def test_settling_twice_writes_the_same_rows_once(run: Run, node: Node) -> None:
    measure(node, first_block(run), [1.0, 1.2, 1.0])
    block = Block.objects.select_related("node", "run").get(run=run)
    once = settled_rows(block)
    reports = counted_reports(block)
    settle_block(block, judge_of(block, reports=reports), reports)
    assert settled_rows(block) == once
    assert (CellDocument.objects.count(), Comparison.objects.count()) == (3, 2)
