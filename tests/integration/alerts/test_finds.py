"""Searches for the settings to ship on a farm: asked over HTTP, measured by a made-up node, driven by ticks."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.alerts.models import Find
from farm.alerts.services import finds
from farm.base.refusals import Conflict
from farm.contract.cells import CellSpec
from farm.contract.document_find import Found
from farm.contract.reasons import Reason, ReasonCode
from farm.fleet.models import Node
from farm.registry.models import EvaluationData, Version
from farm.runs.models import Run
from farm.runs.services import cancel_run
from farm.runs.services.endings import stop_block
from farm.runs.states import OPEN_BLOCKS, RunReason
from tests.integration.alerts.driving import Lab, make_ready, offer
from tests.integration.dashboard.rows import make_node

pytestmark = pytest.mark.django_db
SPACE = {"batch": 1, "runtime": "1.31.1", "precision": "fp32", "threads": [2, 1], "optimization": ["all", "disable"]}


def p50_ms(spec: CellSpec) -> float:
    return spec.session.threads * (1.0 if spec.session.optimization == "all" else 1.5)


@pytest.fixture
def lab(node: Node) -> Lab:
    offer("1.31.1")
    return Lab(node, p50_ms=p50_ms)


def asked(client: Client, version: Version, *, status: int = 202, **how: Any) -> dict[str, Any]:
    order = {"version": version.pk, "space": SPACE, **how}
    response = client.post("/api/v1/finds", order, content_type="application/json")
    assert response.status_code == status, response.content
    found: dict[str, Any] = response.json()
    return found


def read(client: Client, number: int) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/v1/finds/{number}").json()
    return found


def answer(race: Mapping[str, Any]) -> Found:
    return Found.model_validate(race["answer"])


def test_a_race_ends_with_the_setting_and_how_it_is_set(client: Client, version: Version, lab: Lab) -> None:
    begun = asked(client, version)
    assert begun["is_open"]
    lab.live()
    found = read(client, begun["id"])
    (race,) = found["races"]
    document = answer(race)
    assert (race["state"], found["is_open"]) == ("answered", False)
    assert [each.label for each in document.answer] == ["1 thread"]
    assert document.is_final
    assert "faster than the default, 2 threads" in found["sentence"]
    assert "intra_op_num_threads = 1" in document.python
    assert "--server" in document.gate
    assert race["minutes"] >= 0.0
    assert Run.objects.filter(reason=RunReason.FIND).count() == len(race["runs"]) == 2
    # short rounds of all, then a final block of what is left beside the default
    first, last = (Run.objects.get(pk=run) for run in race["runs"])
    assert [first.blocks.get().arms.count(), last.blocks.get().arms.count()] == [4, 2]
    assert first.blocks.get().rounds == 2


def test_a_farm_names_no_options_of_the_command_where_nobody_can_judge_a_precision(
    client: Client, version: Version, lab: Lab
) -> None:
    begun = asked(client, version, space={**SPACE, "optimization": "all", "precision": ["fp32", "int8-dynamic"]})
    lab.live()
    sentence = read(client, begun["id"])["sentence"]
    assert "add labelled data on the model's page" in sentence
    assert "--" not in sentence


def test_each_kind_of_hardware_has_an_answer_and_what_serves_all_is_named(
    client: Client, version: Version, lab: Lab, team: Team, owner: User
) -> None:
    begun = asked(client, version, hardware=["cpu", "x86"])
    lab.live()
    found = read(client, begun["id"])
    assert [race["hardware"] for race in found["races"]] == ["cpu", "x86"]
    assert found["everywhere"]["threads"] == 1
    assert "within 5 % of the best on all hardware" in found["sentence"]


def test_races_that_were_cancelled_name_no_setting_for_all_hardware(client: Client, version: Version, lab: Lab) -> None:
    number = asked(client, version, hardware=["cpu", "x86"])["id"]
    stopped = client.post(f"/api/v1/finds/{number}/cancel").json()
    assert (stopped["everywhere"], stopped["is_open"]) == (None, False)
    assert stopped["sentence"].startswith("Not every race is decided")


def measure_short_rounds(client: Client, version: Version, lab: Lab) -> int:
    """A search of which the final block is next; its number."""
    number: int = asked(client, version)["id"]
    finds.advance_finds()
    make_ready()
    lab.measure(Run.objects.get())
    finds.advance_finds()
    return number


def test_cancelling_keeps_the_best_so_far(client: Client, version: Version, lab: Lab) -> None:
    number = measure_short_rounds(client, version, lab)
    finds.advance_finds()
    stopped = client.post(f"/api/v1/finds/{number}/cancel").json()
    (race,) = stopped["races"]
    assert race["state"] == "cancelled"
    assert "Stopped before the end. Best so far, not decided: 1 thread" in stopped["sentence"]
    assert answer(race).is_stopped
    assert not Run.objects.exclude(state="finished").exists()
    assert finds.advance_finds() == 0
    again = client.post(f"/api/v1/finds/{number}/cancel").json()
    assert again["sentence"] == stopped["sentence"]


def test_the_team_s_minutes_of_the_day_hold_and_the_race_says_that_it_waits_for_the_next(
    client: Client, version: Version, lab: Lab, team: Team
) -> None:
    number = asked(client, version)["id"]
    assert read(client, number)["races"][0]["doing"] == "waiting for its next run"
    finds.advance_finds()
    make_ready()
    Team.objects.filter(pk=team.pk).update(daily_minutes=0)
    with pytest.raises(Conflict, match="node minutes of today"):
        lab.measure(Run.objects.get())
    (race,) = read(client, number)["races"]
    assert race["doing"].startswith("4 of 4 settings, 2 rounds. Team ")
    assert "its blocks go on at 00:00 UTC" in race["doing"]
    Team.objects.filter(pk=team.pk).update(daily_minutes=60)
    lab.live()
    (race,) = read(client, number)["races"]
    assert (race["state"], race["doing"]) == ("answered", "")


def test_a_search_whose_run_was_removed_ends_with_its_last_answer(client: Client, version: Version, lab: Lab) -> None:
    numbers = [asked(client, version)["id"] for _ in range(2)]
    finds.advance_finds()
    make_ready()
    for run in Run.objects.all():
        lab.measure(run)
    finds.advance_finds()
    before = [read(client, number)["races"][0]["answer"] for number in numbers]
    Run.objects.all().delete()
    (cancelled,) = client.post(f"/api/v1/finds/{numbers[0]}/cancel").json()["races"]
    finds.advance_finds()
    (failed,) = read(client, numbers[1])["races"]
    assert [cancelled["state"], failed["state"]] == ["cancelled", "failed"]
    assert [cancelled["answer"], failed["answer"]] == before
    assert cancelled["sentence"] == f"A run that this search rests on was removed. {before[0]['sentence']}"


def test_a_search_whose_rounds_no_longer_lead_to_its_next_step_ends_with_its_last_answer(
    client: Client, version: Version, lab: Lab
) -> None:
    number = measure_short_rounds(client, version, lab)
    before = read(client, number)["races"][0]["answer"]
    row = Find.objects.get()
    Find.objects.update(steps=[row.steps[0] | {"rounds": 1}])
    finds.advance_finds()
    (race,) = read(client, number)["races"]
    assert (race["state"], race["answer"]) == ("failed", before)
    assert race["sentence"].startswith("The measurements no longer match the next step. Start a new search. Best")


def test_a_run_that_somebody_cancels_ends_its_race_with_what_is_known(
    client: Client, version: Version, lab: Lab, member: User
) -> None:
    number = asked(client, version)["id"]
    finds.advance_finds()
    cancel_run(run=Run.objects.get(), by=member)
    finds.advance_finds()
    (race,) = read(client, number)["races"]
    assert race["state"] == "cancelled"


def lose(run: Run) -> None:
    for block in run.blocks.filter(state__in=OPEN_BLOCKS):
        block.fail(Reason(code=ReasonCode.NODE_LOST, text="The node was lost."))
        stop_block(block, Reason(code=ReasonCode.NODE_LOST, text="The node was lost."))
    Run.objects.filter(pk=run.pk).update(state="finished")


def test_a_run_whose_node_was_lost_runs_again_and_loses_nothing(client: Client, version: Version, lab: Lab) -> None:
    number = asked(client, version)["id"]
    finds.advance_finds()
    lose(Run.objects.get())
    lab.live()
    (race,) = read(client, number)["races"]
    assert [each.label for each in answer(race).answer] == ["1 thread"]
    assert Run.objects.filter(reason=RunReason.FIND).count() == 3


def test_a_node_that_is_lost_each_time_leaves_the_best_so_far(client: Client, version: Version, lab: Lab) -> None:
    number = measure_short_rounds(client, version, lab)
    for _ in range(finds.MAX_TRIES):
        finds.advance_finds()
        lose(Run.objects.latest("pk"))
        finds.advance_finds()
    (race,) = read(client, number)["races"]
    assert race["state"] == "failed"
    assert race["sentence"].startswith("The node was lost. Best so far, not decided: 1 thread")
    assert [each.label for each in answer(race).answer][:1] == ["1 thread"]


def test_cancelling_in_the_middle_of_a_block_keeps_its_rounds(client: Client, version: Version, lab: Lab) -> None:
    number = measure_short_rounds(client, version, lab)
    finds.advance_finds()
    make_ready()
    lab.measure(Run.objects.latest("pk"), most_rounds=5)
    (race,) = client.post(f"/api/v1/finds/{number}/cancel").json()["races"]
    assert answer(race).launches == 4 * 2 + 2 * 5
    assert (race["state"], len(race["runs"])) == ("cancelled", 2)
    assert race["sentence"].startswith("Stopped before the end. Best so far, not decided: 1 thread")


def test_a_second_search_uses_short_rounds_that_are_valid_and_measures_its_final_block(
    client: Client, version: Version, lab: Lab, node: Node
) -> None:
    first = asked(client, version)["id"]
    lab.live()
    runs = read(client, first)["races"][0]["runs"]
    second = asked(client, version, max_p50_ms=50.0)["id"]
    lab.live()
    (race,) = read(client, second)["races"]
    assert race["runs"][0] == runs[0]
    assert race["runs"][1] > runs[1]
    assert "4 settings were measured at " in race["sentence"]
    assert [each.label for each in answer(race).answer] == ["1 thread"]
    # another space, an old block and a node that is gone measure anew
    Run.objects.filter(pk=runs[0]).update(finished_at=timezone.now() - finds.MAX_AGE)
    third = asked(client, version)["id"]
    lab.live()
    assert runs[0] not in read(client, third)["races"][0]["runs"]


@pytest.mark.parametrize("change", ["labels", "busy", "retired"])
def test_rounds_that_no_longer_say_how_it_is_are_not_used_again(
    change: str, client: Client, version: Version, lab: Lab, node: Node
) -> None:
    asked(client, version)
    if change == "busy":
        lab.busy = True
    lab.live()
    run = Run.objects.earliest("pk")
    assert finds._is_reusable(run, "latency") == (change != "busy")
    if change == "retired":
        Node.objects.filter(pk=node.pk).update(health="retired")
    if change == "labels":
        EvaluationData.objects.create(version=version, given=version.artifact.files.first().blob)
    assert not finds._is_reusable(run, "latency")


def test_the_race_that_was_planned_goes_on_whatever_becomes_of_the_fleet(
    client: Client, version: Version, lab: Lab, team: Team, owner: User
) -> None:
    number = asked(client, version)["id"]
    before = Find.objects.get().question
    make_node(team, owner, name="bench-2")
    lab.live()
    assert Find.objects.get().question == before
    assert not read(client, number)["is_open"]


@pytest.mark.parametrize(
    ("how", "status", "code"),
    [
        ({"space": {**SPACE, "threads": [1], "optimization": "all"}}, 400, "space"),
        ({"space": {**SPACE, "provider": "cuda"}}, 400, "space"),
        ({"space": {"thread": [1]}}, 400, "matrix"),
        ({"space": {**SPACE, "scenario": "fresh"}}, 400, "space"),
        ({"min_accuracy": 0.9}, 400, "no_labels"),
        ({"hardware": ["cpu", "cpu"]}, 400, "hardware"),
        ({"providers": ["cpux"], "space": None}, 400, "matrix"),
        ({"minutes": 0}, 422, "invalid"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(
    how: Mapping[str, Any], status: int, code: str, client: Client, version: Version, lab: Lab
) -> None:
    refused = asked(client, version, status=status, **how)
    assert refused["code"] == code, refused
    assert not Find.objects.exists()


def test_the_usual_space_of_a_node_races(client: Client, version: Version, node: Node) -> None:
    offer("1.31.1")
    asked(client, version, space=None, goal="throughput")
    question = Find.objects.get().question
    assert len(question["racing"]) > 4
    assert question["matrix"]["matrix"]["include"][0]["batch"] == 1
