"""How quiet a node was before its blocks: on its page as advice, on a cell's page, in the document."""

import pytest
from django.test import Client

from farm.accounts.models import Team, User
from farm.contract.reports import Facts
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs import selectors
from farm.runs.models import Run
from tests.integration.dashboard import rows
from tests.integration.dashboard.pages import assert_is_page
from worker.agent.machine import facts

pytestmark = pytest.mark.django_db


def set_facts(
    node: Node, *, load: float, governor: str | None = "powersave", busy: float = 0.31, runners: int = 1
) -> None:
    """What the made-up node says before its next blocks, with the advice that an agent draws from it."""
    seen = facts.MachineState(load_1m=load, logical_cores=2, busy_share=busy, governor=governor, other_runners=runners)
    plain = {
        **node.facts_json,
        "governor": governor,
        "turbo": True,
        "load_1m": load,
        "advice": list(facts.list_warnings(seen)),
        "more": {"load": {"busy_share": busy, "other_runners": runners}},
    }
    node.facts_json = Facts.model_validate(plain).model_dump(mode="json")
    node.save()


@pytest.fixture
def restless_run(version: Version, node: Node, owner: User) -> Run:
    set_facts(node, load=3.5)
    return rows.finished_run(version, node, owner)


def test_a_nodes_page_advises_from_what_was_read_before_its_blocks(signed_in: Client, restless_run: Run, node: Node):
    # the hello that came since knows nothing of it
    node.facts_json = {**node.facts_json, "advice": []}
    node.save()
    words = assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))
    assert "The governor is powersave: expect slower and noisier results" in words
    assert "Another runner measured on this machine just before the block" in words
    assert "Other programs used 31 % of the processor just before the block" in words
    blocks = restless_run.blocks.count()
    assert f"Seen before each of the last {blocks} blocks." in words or "Seen before its only block." in words
    assert "Machine load before recent blocks" in words
    assert f"run {restless_run.pk}, b1" in words
    assert "3.5" in words


def test_advice_is_said_once_with_how_often_it_held(
    signed_in: Client, restless_run: Run, version: Version, node: Node, owner: User
) -> None:
    set_facts(node, load=0.1, governor="performance", busy=0.0, runners=2)
    later = rows.finished_run(version, node, owner)
    words = assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))
    before, after = restless_run.blocks.count(), later.blocks.count()
    assert words.count("The governor is powersave") == 1
    # one other runner and two are the same advice
    assert "2 other runners measured on this machine" in words
    assert "Another runner measured" not in words
    assert f"Seen before {before} of the last {before + after} blocks." in words
    assert f"Seen before each of the last {before + after} blocks." in words


def test_advice_gives_the_range_of_what_was_read(
    signed_in: Client, restless_run: Run, version: Version, node: Node, owner: User
) -> None:
    """The page said "the load was 2.1 … before each of the last 10 blocks" above loads from 1.4 to 2.4."""
    set_facts(node, load=4.25, busy=0.42)
    rows.finished_run(version, node, owner)
    words = assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))
    assert "Other programs used 31–42 % of the processor" in words
    assert "The load was 3.5–4.2 over the last minute on" in words


def test_a_node_that_cannot_read_something_says_so(signed_in: Client, run: Run, node: Node) -> None:
    assert "Not readable here: " in assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))


def test_a_node_without_blocks_says_what_will_be_read(signed_in: Client, node: Node) -> None:
    assert "No blocks measured yet" in assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))


def test_a_cells_page_and_the_document_have_the_facts_of_its_block(signed_in: Client, restless_run: Run) -> None:
    words = assert_is_page(signed_in.get(f"/runs/{restless_run.pk}/cells/c1/"))
    assert "The governor is powersave" in words
    assert "Other programs 31 %" in words
    document = selectors.document(restless_run)
    assert [one.block for one in document.blocks] == [f"b{n + 1}" for n in range(restless_run.blocks.count())]
    first = document.blocks[0]
    assert (first.node, first.governor, first.load_1m, first.busy_share, first.other_runners) == (
        "bench-1", "powersave", 3.5, 0.31, 1,
    )  # fmt: skip


def test_facts_that_make_no_sense_are_left_out(version: Version, node: Node, owner: User, team: Team) -> None:
    node.facts_json = {**node.facts_json, "more": {"load": {"busy_share": "much", "other_runners": -3}}}
    node.save()
    run = rows.finished_run(version, node, owner)
    (first, *_) = selectors.document(run).blocks
    assert (first.busy_share, first.other_runners) == (None, None)
    (before, *_) = selectors.recent_node_states(node, limit=5)
    assert before.facts == first
