"""Whatever tells a waiting time tells the same: of two on a machine none begins before the other ends."""

import random
from datetime import timedelta
from itertools import pairwise

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Block, Report
from farm.runs.selectors.forecasts import Expected, Forecast
from farm.runs.selectors.outlooks import outlook_of
from farm.runs.selectors.queues import online_nodes, queues, upcoming_blocks
from farm.runs.states import BlockState
from tests.conftest import ApiOf
from tests.integration.runs.making import claim, make_node, post
from tests.integration.runs.test_forecasts import plan_minutes
from tests.integration.runs.test_queue_order import HOST, run_of
from tests.unit.rules.making import make_facts, make_round

pytestmark = pytest.mark.django_db
# two answers lie so far apart on a busy machine
SLACK_S = 10.0


def measure_part(node: Node, block: Block, *, rounds: int, each_s: float) -> None:
    """The block is measured and has had so many rounds, at a pace that no plan knew."""
    lease = claim(node, block)
    post(node, lease, make_facts())
    for number in range(rounds):
        post(node, lease, make_round(number, {0: 1.0, 1: 1.0}))
    now = timezone.now()
    Block.objects.filter(pk=block.pk).update(leased_at=now - timedelta(seconds=each_s * (rounds + 1)))
    for place, report in enumerate(Report.objects.filter(attempt__block=block, kind="round").order_by("-pk")):
        Report.objects.filter(pk=report.pk).update(received_at=now - timedelta(seconds=each_s * place))


def expected_of(run: int, forecast: Forecast) -> Expected:
    found = outlook_of(run, forecast=forecast).expected
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(12))
def test_what_waits_behind_a_run_begins_no_earlier_than_the_run_ends(
    seed: int, team: Team, version: Version, member: User
) -> None:
    dice = random.Random(seed)
    # two nodes of one machine, and sometimes one that has its own
    nodes = [make_node(team, name=f"bench-{number}", owner=member, host=HOST) for number in (1, 2)]
    if dice.random() < 0.5:
        nodes.append(make_node(team, name="bench-3", owner=member, host=HOST[::-1]))
    hardware = [*(f"node:{node.name}" for node in nodes), "cpu"]
    first = run_of(version, member, hardware=["node:bench-1"])
    plan_minutes(first, dice.uniform(0.2, 10.0))
    measure_part(nodes[0], first, rounds=dice.randint(0, 8), each_s=dice.uniform(0.1, 60.0))
    for _ in range(dice.randint(2, 8)):
        plan_minutes(run_of(version, member, hardware=[dice.choice(hardware)]), dice.uniform(0.1, 10.0))

    forecast = Forecast()
    leased = forecast.spans[first.pk]
    assert outlook_of(first.run_id, forecast=forecast).left_s == leased.ends_s
    by_device: dict[str, list[Expected]] = {}
    for block in Block.objects.filter(state=BlockState.QUEUED).order_by("run"):
        by_device.setdefault(forecast.spans[block.pk].device, []).append(expected_of(block.run_id, forecast))
    for device, found in by_device.items():
        ahead = [expected_of(first.run_id, forecast)] if device == nodes[0].device else []
        turns = [*ahead, *sorted(found, key=lambda expected: expected.begins_s or 0.0)]
        for before, behind in pairwise(turns):
            assert before.ends_s is not None
            assert behind.begins_s is not None
            assert behind.begins_s >= before.ends_s
    last_begins_s = {
        block.hardware: forecast.spans[block.pk].begins_s
        for block in Block.objects.filter(state=BlockState.QUEUED).order_by("run")
    }
    by_hardware = {queue.hardware: queue for queue in queues(member, online_nodes(member), forecast=forecast)}
    for name, begins_s in last_begins_s.items():
        start_s = by_hardware[name].start_s
        assert start_s is not None
        assert start_s >= begins_s
    for name, queue in by_hardware.items():
        # 2 min 40 s stood beside blocks of 4 min 20 s
        runs = Block.objects.filter(hardware=name).values_list("run", flat=True)
        assert 60.0 * queue.minutes == pytest.approx(sum(expected_of(run, forecast).measured_s for run in runs))


def test_the_running_one_and_the_next_are_told_by_the_same_pace(
    node: Node, version: Version, member: User, api_of: ApiOf
) -> None:
    first, second = run_of(version, member), run_of(version, member)
    # planned for a minute, and three rounds took six: a verdict takes five more
    plan_minutes(first, 1.0)
    measure_part(node, first, rounds=3, each_s=120.0)
    client = api_of(member)
    left = client.get(f"/api/v1/runs/{first.run_id}").json()["progress"]["minutes_left"]
    begins = client.get(f"/api/v1/runs/{second.run_id}").json()["progress"]["begins_in_minutes"]
    assert left == pytest.approx(10.0, abs=SLACK_S / 60.0)
    assert begins == pytest.approx(left, abs=SLACK_S / 60.0)
    listed = {run["id"]: run["progress"] for run in client.get("/api/v1/runs").json()}
    assert listed[second.run_id]["begins_in_minutes"] == listed[first.run_id]["minutes_left"]
    (waiting,) = upcoming_blocks(member, [node])[node.pk]
    assert waiting.begins_in_minutes == pytest.approx(left, abs=SLACK_S / 60.0)


def test_a_block_whose_rounds_are_over_still_has_something_to_do(node: Node, version: Version, member: User) -> None:
    first, second = run_of(version, member), run_of(version, member)
    measure_part(node, first, rounds=first.max_rounds, each_s=10.0)
    forecast = Forecast()
    assert expected_of(first.run_id, forecast).ends_s == expected_of(second.run_id, forecast).begins_s
    assert 5.0 <= (expected_of(first.run_id, forecast).ends_s or 0.0) < 30.0


def test_a_node_is_told_its_own_blocks_and_when_the_machine_has_time_for_them(
    team: Team, version: Version, member: User
) -> None:
    nodes = [make_node(team, name=f"bench-{number}", owner=member, host=HOST) for number in (1, 2)]
    for number, planned in ((1, 4.0), (2, 2.0)):
        plan_minutes(run_of(version, member, hardware=[f"node:bench-{number}"]), planned)
    found = upcoming_blocks(member, nodes)
    assert [[waiting.begins_in_minutes for waiting in found[node.pk]] for node in nodes] == [[0.0], [4.0]]
    page = Client()
    page.force_login(member)
    text = page.get("/fleet/").content.decode()
    assert "in about 0 min" not in text
    assert "in about 4 min" in text
