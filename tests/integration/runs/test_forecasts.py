"""When a queued run will be measured: what is ahead of it counts, on its machine too, at the machine's pace."""

from datetime import timedelta

import pytest
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs import selectors
from farm.runs.models import Attempt, Block, Report, Run
from farm.runs.selectors.forecasts import Expected, Forecast
from farm.runs.selectors.outlooks import outlook_of
from farm.runs.selectors.queues import online_nodes, queues
from farm.runs.states import RunReason
from tests.conftest import ApiOf
from tests.integration.runs.making import claim, measure, post
from tests.integration.runs.test_queue_order import HOST, neighbours, run_of
from tests.unit.rules.making import make_check, make_round

__all__ = ["neighbours"]
pytestmark = pytest.mark.django_db


def plan_minutes(block: Block, minutes: float) -> None:
    Block.objects.filter(pk=block.pk).update(plan_json={**block.plan_json, "minutes": minutes})


def minutes_of(block: Block) -> tuple[float, float] | None:
    found = Forecast().forecast_run(block.run_id)
    if found is None or found.begins_s is None or found.ends_s is None:
        return None
    return round(found.begins_s / 60.0, 1), round(found.ends_s / 60.0, 1)


def queued(version: Version, member: User, *minutes: float, reason: RunReason = RunReason.ASKED) -> list[Block]:
    blocks = []
    for planned in minutes:
        block = run_of(version, member, reason=reason)
        plan_minutes(block, planned)
        blocks.append(block)
    return blocks


def test_what_came_earlier_is_ahead_and_the_farm_s_own_is_not(node: Node, version: Version, member: User) -> None:
    search, first, last = (
        *queued(version, member, 60.0, reason=RunReason.WATCH),
        *queued(version, member, 4.0, 2.0),
    )
    assert [minutes_of(block) for block in (first, last, search)] == [(0.0, 4.0), (4.0, 6.0), (6.0, 66.0)]


def test_what_is_measured_now_is_ahead_less_what_it_has_had(node: Node, version: Version, member: User) -> None:
    first, last = queued(version, member, 4.0, 2.0)
    claim(node, first)
    assert minutes_of(last) == (4.0, 6.0)
    Block.objects.filter(pk=first.pk).update(leased_at=timezone.now() - timedelta(minutes=3))
    assert minutes_of(last) == (1.0, 3.0)
    # it takes longer than anybody thought, and ends some time
    Block.objects.filter(pk=first.pk).update(leased_at=timezone.now() - timedelta(minutes=30))
    assert minutes_of(last) == (3.0, 5.0)
    assert minutes_of(first) == (0.0, 3.0)


def test_a_first_round_that_stands_since_the_checks_lengthens_what_is_left(
    node: Node, version: Version, member: User
) -> None:
    """3 min were left at 0 of 24 rounds, of which the first had taken 2 min 20 s."""
    (block,) = queued(version, member, 4.0)
    lease = claim(node, block)
    for arm in range(2):
        post(node, lease, make_check(arm))
    begun_at, checked_at = (timezone.now() - timedelta(seconds=ago) for ago in (160, 140))
    first, last = Report.objects.filter(attempt__block=block).order_by("pk")
    for report, received_at in ((first, begun_at), (last, checked_at)):
        Report.objects.filter(pk=report.pk).update(received_at=received_at)
    # until the 15 minutes that the block may take are over
    assert minutes_of(block) == (0.0, 12.3)
    # and as long once it is over: "about 4 min" were 2 three seconds later
    post(node, lease, make_round(0, {0: 1.0, 1: 1.0}))
    assert minutes_of(block) == (0.0, 12.3)


def test_another_node_of_the_machine_has_its_turns_too(
    neighbours: tuple[Node, Node], version: Version, member: User
) -> None:
    theirs = run_of(version, member, hardware=["node:bench-2"])
    plan_minutes(theirs, 10.0)
    mine = run_of(version, member, hardware=["node:bench-1"])
    plan_minutes(mine, 1.0)
    assert minutes_of(mine) == (10.0, 11.0)
    Node.objects.filter(name="bench-2").update(host=HOST[::-1])
    assert minutes_of(mine) == (0.0, 1.0)


def test_a_node_that_waits_for_another_of_its_machine_is_no_node_that_is_away(
    neighbours: tuple[Node, Node], version: Version, member: User
) -> None:
    first, theirs, mine = (run_of(version, member, hardware=[f"node:bench-{number}"]) for number in (1, 2, 1))
    for block, planned in ((first, 4.0), (theirs, 10.0), (mine, 1.0)):
        plan_minutes(block, planned)
    claim(neighbours[0], first)
    Node.objects.filter(name="bench-2").update(doing="bench-1 measures on this machine.")
    assert [minutes_of(block) for block in (theirs, mine)] == [(4.0, 14.0), (14.0, 15.0)]


def test_a_machine_s_pace_is_what_its_newest_blocks_took_by_their_plans(
    node: Node, version: Version, member: User
) -> None:
    for _ in range(3):
        (block,) = queued(version, member, 2.0)
        measure(node, block, [1.0, 1.0])
    ended = timezone.now()
    Attempt.objects.update(claimed_at=ended - timedelta(minutes=3), ended_at=ended)
    (block,) = queued(version, member, 4.0)
    assert minutes_of(block) == (0.0, 6.0)
    # what is said of a run that waits is at that pace too
    assert outlook_of(block.run_id).words_left == "begins in about 5 s, about 6 min of measuring"


@pytest.mark.parametrize("change", [{"state": "offline"}, {"health": "draining"}])
def test_nobody_can_tell_while_no_node_takes_it(
    node: Node, version: Version, member: User, change: dict[str, str]
) -> None:
    (block,) = queued(version, member, 4.0)
    Node.objects.filter(pk=node.pk).update(**change)
    assert minutes_of(block) is None


def test_while_another_program_has_the_machine_what_is_ahead_there_is_a_lower_bound(
    node: Node, version: Version, member: User, api_of: ApiOf
) -> None:
    """Whoever waited had no estimate at all."""
    first, last = queued(version, member, 12.0, 3.0)
    said = "`onnxfarm bench` (process 7) has been measuring on this machine since 07:12:01."
    Node.objects.filter(pk=node.pk).update(doing=said)
    assert minutes_of(last) is None
    assert outlook_of(first.run_id).words_left == "about 12 min once it begins"
    progress = selectors.progress(Run.objects.get(pk=last.run_id))
    assert progress.outlook.idle_reason == f"{node.name}: {said}"
    assert progress.outlook.words_left == "begins in at least about 12 min, about 3 min of measuring"
    told = api_of(member).get(f"/api/v1/runs/{last.run_id}").json()["progress"]
    assert (told["begins_in_minutes"], told["begins_in_minutes_at_least"]) == (None, 12.0)


def test_nobody_can_tell_of_a_team_without_minutes_nor_of_a_node_of_others(
    node: Node, version: Version, member: User, team: Team
) -> None:
    (block,) = queued(version, member, 4.0)
    Team.objects.filter(pk=team.pk).update(daily_minutes=0)
    assert minutes_of(block) is None
    Team.objects.filter(pk=team.pk).update(daily_minutes=None)
    Node.objects.filter(pk=node.pk).update(team=Team.objects.create(name="others"))
    assert minutes_of(block) is None


def test_a_run_that_waits_says_when_it_begins(node: Node, version: Version, member: User, api_of: ApiOf) -> None:
    _, block = queued(version, member, 12.0, 3.0)
    run = Run.objects.get(pk=block.run_id)
    progress = selectors.progress(run)
    assert progress.outlook.expected == Expected(720.0, 900.0, 180.0)
    assert progress.outlook.words_left == "begins in about 12 min, about 3 min of measuring"
    told = api_of(member).get(f"/api/v1/runs/{run.pk}").json()["progress"]
    assert (told["begins_in_minutes"], told["ends_in_minutes"]) == (12.0, 15.0)


def test_a_queue_starts_behind_what_waits_for_other_nodes_of_its_machine(
    neighbours: tuple[Node, Node], version: Version, member: User
) -> None:
    def starts() -> dict[str, float | None]:
        found = queues(member, online_nodes(member), forecast=Forecast())
        return {queue.hardware: queue.start_s and queue.start_s / 60.0 for queue in found}

    for number, planned in ((1, 1.0), (2, 10.0)):
        plan_minutes(run_of(version, member, hardware=[f"node:bench-{number}"]), planned)
    assert starts() == {"node:bench-1": 11.0, "node:bench-2": 11.0}
    Node.objects.filter(name="bench-2").update(host=HOST[::-1])
    assert starts() == {"node:bench-1": 1.0, "node:bench-2": 10.0}
