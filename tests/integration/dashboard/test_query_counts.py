"""How many queries pages take: as many for long lists as for short ones. Times are for tests/bench/pages.py."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from dashboard.cache import ProcessCache
from farm.accounts.models import Team, User
from farm.accounts.services import issue_token
from farm.accounts.states import Scope
from farm.alerts.services.channels import create_channel
from farm.alerts.states import AlertState
from farm.fleet.models import Node
from farm.runs.models import Run
from tests.integration.alerts.driving import make_watch, offer
from tests.integration.dashboard import rows, watching
from tests.integration.fleet.nulls import keep_null_estimate

pytestmark = pytest.mark.django_db

# address: the most queries it may take, sign-in included
LISTS = {
    "/": 24,
    "/models/": 13,
    "/models/?q=model": 13,
    "/runs/": 9,
    "/runs/?state=running": 8,
    "/alerts/": 9,
    "/alerts/?state=all": 9,
    "/watches/": 13,
    "/trends/": 16,
    "/fleet/": 18,  # the form of a node asks which teams there are, and which is the default
    "/fleet/runtimes/": 13,
    "/compare/": 9,
    "/settings/tokens/": 6,
    "/settings/channels/": 12,
    "/watches/new/": 12,
    "/runs/new/": 24,
}


def fill(team: Team, owner: User, names: range) -> None:
    """For each name a model, a version, a node with an A/A pair, an open run, a watch with a round and an alert."""
    for name in names:
        version = rows.make_version(team, owner, name=f"model-{name}")
        node = rows.make_node(team, owner, name=f"bench-{name}")
        keep_null_estimate(
            node=node, cell_class="CPUExecutionProvider fp32 ×1", block=name, arms=(0, 1), rounds=8, estimate=0.001,
            verdict="equal", log_ratios=[0.001] * 8,
        )  # fmt: skip
        run = rows.begin_run(version, owner)
        rows.MadeUpNode(node).measure(run, most_blocks=1, most_rounds=1)
        watch = make_watch(version, owner, name=f"watch {name}")
        watching.bare_round(watch, version, key=f"call:{name}")
        watching.long_series(watch, version, 3, step_at=2)
        watching.bare_alert(watch, version, node=node.name)
        watching.bare_alert(watch, version, node=node.name, bad="1.31.1", state=AlertState.RESOLVED)
        create_channel(team=team, by=owner, name=f"mail {name}", kind="mail", target=f"person-{name}@example.org")
        issue_token(owner, [Scope.READ], name=f"token {name}")


def queries_of(client: Client) -> dict[str, int]:
    """How many queries each of the lists takes once everything that a process learns once is known."""
    found = {}
    for address in LISTS:
        assert client.get(address).status_code == 200, address
        with CaptureQueriesContext(connection) as captured:
            client.get(address)
        found[address] = len(captured)
    return found


def test_lists_take_as_many_queries_for_many_rows_as_for_few(
    signed_in: Client, team: Team, owner: User, settings: Settings
) -> None:
    settings.HAS_MAIL = True
    offer("1.29.0", "1.30.0", "1.31.1")
    fill(team, owner, range(2))
    few = queries_of(signed_in)
    fill(team, owner, range(2, 5))
    assert queries_of(signed_in) == few
    assert {address: count for address, count in few.items() if count > LISTS[address]} == {}


def test_what_a_node_s_pairs_come_to_is_written_with_each_pair(node: Node) -> None:
    def keep(block: int, verdict: str) -> None:
        keep_null_estimate(
            node=node, cell_class="CPUExecutionProvider fp32 ×1", block=block, arms=(0, 1), rounds=8, estimate=0.0,
            verdict=verdict, log_ratios=[0.0] * 8,
        )  # fmt: skip
        node.refresh_from_db()

    keep(1, "equal")
    keep(2, "slower")
    assert (node.null_pairs, node.null_alarms) == (2, 1)
    # a block that went on replaces its own pair
    keep(2, "equal")
    assert (node.null_pairs, node.null_alarms, node.null_block) == (2, 0, 2)
    assert node.null_margin is not None


def test_a_finished_run_and_its_cells_are_compared_with_few_queries(signed_in: Client, run: Run) -> None:
    for address, most in (
        (f"/runs/{run.pk}/", 13),
        (f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5", 19),
        (f"/runs/{run.pk}/cells/c5/", 23),
    ):
        signed_in.get(address)
        with CaptureQueriesContext(connection) as captured:
            assert signed_in.get(address).status_code == 200
        assert len(captured) <= most, (address, len(captured))


def test_what_is_kept_is_made_once_for_a_key_and_the_oldest_goes() -> None:
    made: list[int] = []

    def make(number: int) -> int:
        made.append(number)
        return 10 * number

    kept = ProcessCache("of this test", {"OPTIONS": {"MAX_ENTRIES": 2}})
    asked = ("1", "2", "1", "3", "1", "2")
    assert [kept.get_or_set(key, lambda key=key: make(int(key))) for key in asked] == [10, 20, 10, 30, 10, 20]
    assert made == [1, 2, 3, 2]


def test_what_could_not_be_made_is_tried_again() -> None:
    kept = ProcessCache("of that test", {})
    with pytest.raises(ZeroDivisionError):
        kept.get_or_set("key", lambda: 1 // 0)
    assert kept.get_or_set("key", lambda: 7) == 7


def test_many_threads_that_ask_at_once_make_one_value() -> None:
    made: list[int] = []

    def slowly() -> int:
        time.sleep(0.05)
        made.append(1)
        return 7

    def ask(_: int) -> object:
        return ProcessCache("of threads", {}).get_or_set("key", slowly)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(8))) == [7] * 8
    assert made == [1]


def test_a_further_cell_of_the_same_run_is_compared_for_one_query_more(signed_in: Client, run: Run) -> None:
    def asked(*cells: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            response = signed_in.get("/compare/", {"cells": [f"{run.pk}:{cell}" for cell in cells]})
        assert response.status_code == 200
        assert all(f"{run.pk}:{cell}" in response.content.decode() for cell in cells)
        return len(captured)

    two = asked("c1", "c2")
    assert two <= 15
    assert asked("c1", "c2", "c3", "c4") == two + 2
