"""The panel of a cell's page that asks for the first divergent node and shows the answer."""

import pytest
from django.test import Client

from farm.accounts.models import Team, User
from farm.contract.divergence import DivergenceReport
from farm.contract.reports import EndReport, FactsReport
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Divergence, Run
from farm.runs.services import accept_report, claim_block, settle
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, words_of
from tests.integration.runs.test_divergences import answer

MATRIX = {"matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1], "precision": ["fp32"]}}


@pytest.fixture
def wrong(version: Version, node: Node, owner: User) -> Run:
    """A finished run whose outputs are far from the reference."""
    return rows.finished_run(version, node, owner, matrix=MATRIX, wrong=True)


def test_a_failed_parity_offers_the_question_and_a_passed_one_does_not(
    signed_in: Client, wrong: Run, version: Version, node: Node, owner: User
) -> None:
    assert "divergent" in assert_is_page(signed_in.get(f"/runs/{wrong.pk}/cells/c1/"))
    right = rows.finished_run(version, node, owner, matrix=MATRIX)
    assert "divergent" not in assert_is_page(signed_in.get(f"/runs/{right.pk}/cells/c1/"))


def test_a_question_is_asked_waited_for_and_answered(signed_in: Client, wrong: Run, node: Node) -> None:
    address = f"/runs/{wrong.pk}/cells/c1/"
    sent = signed_in.post(f"{address}divergence/ask/", {"against": ""}, follow=True)
    words = assert_is_page(sent)
    assert "Requested. The node will look for the first divergent operator." in words
    assert "Waiting for the node." in words
    waiting = signed_in.get(f"{address}divergence/")
    assert b'hx-trigger="every 2s"' in waiting.content
    assert b"<button" not in waiting.content
    block = wrong.blocks.get()
    lease = claim_block(node=node, block_id=str(block.pk), attempt=block.attempt)
    for report in (FactsReport(facts=node.facts), DivergenceReport(arm=0, document=answer()), EndReport(wall_s=1.0)):
        accept_report(
            node=node, block_id=lease.order.block, attempt=lease.order.attempt, token=lease.token, report=report
        )
    settle(block_id=block.pk, attempt=block.attempt)
    words = words_of(signed_in.get(f"{address}divergence/"))
    for part in (
        "The first tensor beyond tolerance is c_q.",
        "1 of 4 values are beyond tolerance.",
        "Extracted as a model, these nodes reproduce the difference: conv, quantise",
        "onnxruntime==1.31.1, CPU",
        "Raw data",
    ):
        assert part in words, part
    # what does not exist is not offered
    assert "with inputs" not in words
    assert "Find the first divergent node" in words
    assert_is_page(signed_in.get(address))


def test_a_refusal_is_said_on_the_cells_page(signed_in: Client, wrong: Run) -> None:
    sent = signed_in.post(f"/runs/{wrong.pk}/cells/c1/divergence/ask/", {"against": "c9"}, follow=True)
    assert "has no measured cell 'c9'" in assert_is_page(sent)
    assert Divergence.objects.count() == 0


def test_who_may_only_look_sees_no_button_and_a_stranger_nothing(wrong: Run, viewer: User, stranger: User, team: Team):
    looking = client_of(viewer).get(f"/runs/{wrong.pk}/cells/c1/divergence/")
    assert looking.status_code == 200
    assert b"<button" not in looking.content
    assert client_of(stranger).get(f"/runs/{wrong.pk}/cells/c1/divergence/").status_code == 404
    assert client_of(viewer).get(f"/runs/{wrong.pk}/cells/c9/divergence/").status_code == 404
