"""A provider nobody has proven: asked for, allowed by the node's owner, tried, remembered; and the run that waits."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.accounts.states import Role, Scope
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.contract import node as messages
from farm.contract.node import TRIALS
from farm.contract.reasons import ReasonCode
from farm.contract.reports import Facts
from farm.fleet import services
from farm.fleet.models import Node, Trial
from farm.fleet.services import end_late_trials
from farm.fleet.states import Trials, TrialState
from farm.registry.models import Version
from farm.runs.models import Run
from farm.runs.selectors.outlooks import outlook_of
from farm.runs.services import conclude_runs, plan_run, release_ready_blocks
from farm.runs.services.run_plans import check_plan
from farm.runs.states import BlockState
from tests.conftest import ApiOf, make_user
from tests.integration.dashboard import rows

pytestmark = pytest.mark.django_db
OPENVINO = "OpenVINOExecutionProvider"
# cpu cells are measured whatever comes of the trial
MATRIX = {"budget": "quick", "matrix": {"runtime": ["onnxruntime-openvino==1.24.1"], "provider": ["cpu", "openvino"]}}


@pytest.fixture
def node(team: Team, owner: User) -> Node:
    node = rows.make_node(team, owner)
    Node.objects.filter(pk=node.pk).update(understands_trials=True)
    node.refresh_from_db()
    return node


@pytest.fixture
def version(team: Team, owner: User) -> Version:
    return rows.make_version(team, owner)


@pytest.fixture
def guest(team: Team) -> User:
    """Somebody who may start runs in the team and manages no node."""
    return make_user("guest", team=team, role=Role.MEMBER)


def hello(node: Node, *, understands: frozenset[str] = frozenset({TRIALS}), **said: object) -> messages.Welcome:
    node.refresh_from_db()
    facts = Facts.model_validate(node.facts_json)
    known = {"contract_version": 1, "facts": facts, "tags": node.tags, "providers": node.providers}
    return services.record_hello(node=node, hello=messages.Hello.model_validate(known | said), understands=understands)


def prove(node: Node, order: messages.Trial) -> None:
    hello(
        node,
        tags={**node.tags, "openvino": "a trace"},
        providers=[*node.providers, OPENVINO],
        tried=messages.Tried(id=order.id),
    )


def refusals_of(version: Version) -> list[tuple[str, str]]:
    plan = plan_run(version=version, matrix=MATRIX)
    return [(point.reason.code, point.way_out.label if point.way_out else "") for point in plan.refused]


def test_a_refusal_asks_the_owner_whose_word_lets_the_next_run_wait_for_the_trial(
    node: Node, version: Version, owner: User, guest: User
) -> None:
    assert refusals_of(version) == [(ReasonCode.NO_NODE, "Ask the owner of bench-1 to try OpenVINO")]
    trial = services.ask_for_trial(node=node, provider="openvino", by=guest)
    assert trial.state == TrialState.ASKED
    assert services.ask_for_trial(node=node, provider="openvino", by=guest) == trial
    assert hello(node).trial is None
    with pytest.raises(NotAllowed):
        services.allow_trial(trial=trial, by=guest)
    services.allow_trial(trial=trial, by=owner)
    assert refusals_of(version) == []
    run = rows.begin_run(version, guest, matrix=MATRIX)
    assert [block.state for block in run.blocks.all()] == [BlockState.WAITING]
    order = hello(node).trial
    assert order == messages.Trial(id=str(trial.pk), provider="openvino")
    assert "is installing OpenVINO to try it" in outlook_of(run.pk).idle_reason
    prove(node, order)
    trial.refresh_from_db()
    assert trial.state == TrialState.READY
    assert release_ready_blocks() == 1
    rows.MadeUpNode(Node.objects.get(pk=node.pk)).measure(run)
    conclude_runs()
    assert {cell.status for cell in run.cells.all()} == {"done"}
    kinds = [event.text for event in node.events.filter(kind="trial").order_by("pk")]
    assert [text.split(" ")[0] for text in kinds] == ["guest", "bench-1", "bench-1", "bench-1"]


def test_a_trial_that_fails_refuses_its_cells_in_its_own_words_and_the_others_are_measured(
    node: Node, version: Version, owner: User
) -> None:
    services.change_settings(node=node, by=owner, trials="allow")
    run = rows.begin_run(version, owner, matrix=MATRIX)
    order = hello(node).trial
    assert order is not None
    hello(node, tried=messages.Tried(id=order.id, problem="It takes an Intel device."))
    assert release_ready_blocks() == 1
    rows.MadeUpNode(Node.objects.get(pk=node.pk)).measure(run)
    conclude_runs()
    found = {cell.provider: (cell.status, cell.reason_text) for cell in run.cells.all()}
    assert found["CPUExecutionProvider"] == ("done", "")
    assert found[OPENVINO][0] == "refused"
    assert "It takes an Intel device." in found[OPENVINO][1]


def test_a_failed_trial_is_not_repeated_within_a_day_but_by_the_owner(
    node: Node, version: Version, owner: User, guest: User
) -> None:
    services.change_settings(node=node, by=owner, trials="allow")
    Trial.objects.create(node=node, provider=OPENVINO, state=TrialState.FAILED, ended_at=timezone.now(), problem="No.")
    assert "Ask" not in refusals_of(version)[0][1]
    with pytest.raises(Conflict, match="does not run there: No"):
        services.ask_for_trial(node=node, provider="openvino", by=guest)
    Trial.objects.update(ended_at=timezone.now() - timedelta(days=2))
    assert refusals_of(version) == []
    Trial.objects.update(ended_at=timezone.now())
    assert services.ask_for_trial(node=node, provider="openvino", by=owner).state == TrialState.PENDING


def test_one_trial_at_a_time_the_one_allowed_first(node: Node, owner: User) -> None:
    first = services.ask_for_trial(node=node, provider="openvino", by=owner)
    services.ask_for_trial(node=node, provider="cuda", by=owner)
    assert [hello(node).trial for _ in range(2)] == [messages.Trial(id=str(first.pk), provider="openvino")] * 2
    hello(node, tried=messages.Tried(id=str(first.pk), problem="No."))
    following = hello(node).trial
    assert following is not None
    assert following.provider == "cuda"


@pytest.mark.parametrize(
    ("changes", "provider", "refusal"),
    [
        ({"understands_trials": False}, "openvino", Conflict),
        ({"trials_allowed": Trials.NEVER}, "openvino", Conflict),
        ({"sandbox": "browser"}, "openvino", Conflict),
        ({"health": "retired"}, "openvino", Conflict),
        ({"providers": [OPENVINO]}, "openvino", Conflict),
        ({}, "xnnpack", Invalid),
        ({}, "cpu", Invalid),
        ({}, "no-such-provider", Invalid),
    ],
)
def test_what_cannot_be_tried_is_refused(
    node: Node, guest: User, changes: dict[str, object], provider: str, refusal: type[Exception]
) -> None:
    Node.objects.filter(pk=node.pk).update(**changes)
    with pytest.raises(refusal):
        services.ask_for_trial(node=Node.objects.get(pk=node.pk), provider=provider, by=guest)
    assert not Trial.objects.exists()


def test_whoever_may_not_run_on_a_node_asks_for_nothing_there(node: Node, team: Team) -> None:
    other = Team.objects.create(name="lab")
    for by in (make_user("stranger", team=other, role=Role.ADMIN), make_user("looker", team=team, role=Role.VIEWER)):
        with pytest.raises(NotAllowed):
            services.ask_for_trial(node=node, provider="openvino", by=by)


def test_an_old_agent_is_never_asked_nor_offered(node: Node, version: Version, owner: User) -> None:
    services.ask_for_trial(node=node, provider="openvino", by=owner)
    assert hello(node, understands=frozenset()).trial is None
    node.refresh_from_db()
    assert not node.understands_trials
    assert "Ask" not in refusals_of(version)[0][1]


def test_a_trial_that_nobody_comes_for_or_ends_fails_in_words(node: Node, owner: User) -> None:
    trial = services.ask_for_trial(node=node, provider="openvino", by=owner)
    assert end_late_trials() == 0
    Trial.objects.update(allowed_at=timezone.now() - timedelta(hours=2))
    assert end_late_trials() == 1
    trial.refresh_from_db()
    assert (trial.state, "within 60 minutes" in trial.problem) == (TrialState.FAILED, True)
    Trial.objects.update(state=TrialState.PENDING, begun_at=timezone.now() - timedelta(hours=1))
    assert end_late_trials() == 1


def test_a_node_does_not_speak_for_trials_of_others(node: Node, team: Team, owner: User) -> None:
    trial = services.ask_for_trial(node=node, provider="openvino", by=owner)
    other = rows.make_node(team, owner, name="bench-2")
    for word in (str(trial.pk), "x", "99999999999999999999"[:20]):
        hello(other, tried=messages.Tried(id=word, problem="I say no."))
    trial.refresh_from_db()
    assert trial.state == TrialState.PENDING
    # nor claims to have proven what its hello does not show
    hello(node, tried=messages.Tried(id=str(trial.pk)))
    trial.refresh_from_db()
    assert trial.state == TrialState.FAILED


def test_a_token_for_nodes_asks_and_its_owner_s_allows(node: Node, owner: User, guest: User, api_of: ApiOf) -> None:
    asking, nodes = api_of(guest, Scope.READ, Scope.NODES), api_of(owner, Scope.READ, Scope.NODES)
    how, address = {"content_type": "application/json"}, f"/api/v1/nodes/{node.pk}"
    asked = asking.post(f"{address}/trials", {"provider": "openvino"}, **how)
    assert (asked.status_code, asked.json()["state"]) == (201, "asked")
    number = asked.json()["id"]
    assert asking.post(f"/api/v1/trials/{number}/allow", **how).status_code == 403
    assert api_of(owner).post(f"/api/v1/trials/{number}/allow", **how).status_code == 403
    assert nodes.post(f"/api/v1/trials/{number}/allow", **how).json()["state"] == "pending"
    assert [row["id"] for row in asking.get("/api/v1/trials").json()] == [number]
    assert nodes.patch(address, {"trials": "never"}, **how).json()["trials_allowed"] == "never"
    assert nodes.patch(address, {"trials": "maybe"}, **how).status_code == 422
    assert nodes.post(f"/api/v1/trials/{number}/decline", **how).json()["state"] == "declined"


def test_the_owner_answers_on_the_node_s_page_and_whoever_asked_reads_it(
    node: Node, version: Version, owner: User, guest: User
) -> None:
    asking, owning = Client(), Client()
    asking.force_login(guest)
    owning.force_login(owner)
    planned = asking.post(
        "/runs/plan/",
        {"version": version.pk, "matrix": "provider: [openvino]\nruntime: [onnxruntime-openvino==1.24.1]"},
    )
    assert f'formaction="/fleet/{node.pk}/trials/"' in planned.content.decode()
    assert (
        "asks that bench-1 tries OpenVINO"
        in asking.post(f"/fleet/{node.pk}/trials/", {"provider": "openvino"}, follow=True).content.decode()
    )
    trial = Trial.objects.get()
    for page in ("/fleet/", f"/fleet/{node.pk}/"):
        shown = owning.get(page).content.decode()
        assert 'data-trial="asked"' in shown
        assert f"/fleet/trials/{trial.pk}/allow/" in shown
    assert f"/fleet/trials/{trial.pk}/allow/" not in asking.get(f"/fleet/{node.pk}/").content.decode()
    owning.post(f"/fleet/trials/{trial.pk}/decline/")
    assert 'data-trial="declined"' in asking.get(f"/fleet/{node.pk}/").content.decode()
    assert owning.post(f"/fleet/trials/{trial.pk}/perhaps/").status_code == 404


def test_a_run_of_nothing_but_a_provider_on_trial_is_meant(node: Node, version: Version, owner: User) -> None:
    services.change_settings(node=node, by=owner, trials="allow")
    matrix = {"matrix": {"runtime": ["onnxruntime-openvino==1.24.1"], "provider": ["openvino"]}}
    plan = plan_run(version=version, matrix=matrix)
    check_plan(plan)
    assert [arm.trial for block in plan.blocks for arm in block.arms if arm.twin_of is None] == [str(node.pk)]
    run = rows.begin_run(version, owner, matrix=matrix)
    trial = Trial.objects.get()
    services.decline_trial(trial=trial, by=owner)
    release_ready_blocks()
    conclude_runs()
    assert Run.objects.get(pk=run.pk).state == "finished"
    assert run.blocks.get().state == BlockState.FAILED
