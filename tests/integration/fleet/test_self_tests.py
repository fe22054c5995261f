"""The golden self-test gates a node: right or not at all, and not much slower than it was."""

import pytest

from farm.accounts.models import Team, User
from farm.contract.node import SelfTest
from farm.fleet import services
from farm.fleet.models import Node
from farm.fleet.services.health import explain_failed_self_test
from farm.fleet.states import NodeHealth
from tests.integration.node_api.calls import NodeClient

pytestmark = pytest.mark.django_db


def passed(p50_ms: float = 1.0) -> dict[str, object]:
    return {
        "passed": True,
        "sentence": "It is right.",
        "runtime": "x==1",
        "max_abs": 1e-6,
        "p50_ms": p50_ms,
        "launches": 3,
    }


FAILED = {"passed": False, "sentence": "The golden model is wrong in 3 of 8192 values."}


@pytest.fixture
def machine(team: Team, owner: User) -> NodeClient:
    machine = NodeClient()
    machine.enrol(services.invite(team=team, by=owner, auto_approve=True)[1])
    machine.ask_for_secret()
    return machine


def test_the_first_self_test_is_on_show_before_anybody_approves(team: Team, owner: User) -> None:
    code = services.invite(team=team, by=owner)[1]
    NodeClient().enrol(code, self_test=passed())
    node = Node.objects.get()
    assert node.health == NodeHealth.PENDING
    assert node.self_test.sentence == "It is right."


def test_a_node_that_computes_wrongly_is_put_aside_with_its_reason(machine: NodeClient) -> None:
    welcome = machine.hello(self_test=FAILED).json()
    assert (welcome["health"], welcome["queues"]) == ("quarantined", [])
    assert "wrong in 3 of 8192 values" in welcome["sentence"]


def test_a_node_that_became_much_slower_is_put_aside_and_resuming_takes_its_new_pace(machine: NodeClient, owner: User):
    assert machine.hello(self_test=passed(1.0)).json()["health"] == "active"
    assert machine.hello(self_test=passed(2.9)).json()["health"] == "active"
    slow = machine.hello(self_test=passed(3.5)).json()
    assert (slow["health"], slow["queues"]) == ("quarantined", [])
    assert "3.5 times as long as at first" in slow["sentence"]
    services.resume(node=Node.objects.get(), by=owner)
    assert machine.hello(self_test=passed(3.6)).json()["health"] == "active"
    assert Node.objects.get().self_test_ms == 3.6


def test_the_same_self_test_again_does_not_put_a_resumed_node_aside(machine: NodeClient, owner: User) -> None:
    machine.hello(self_test=passed(1.0))
    machine.hello(self_test=passed(9.0))
    services.resume(node=Node.objects.get(), by=owner)
    assert machine.hello(self_test=passed(9.0)).json()["health"] == "active"


@pytest.mark.parametrize(
    "lie",
    [
        {**passed(), "p50_ms": 0},
        {**passed(), "p50_ms": -1},
        {**passed(), "max_abs": -1},
        {**passed(), "launches": 10**9},
        {**passed(), "sentence": "x" * 1001},
        {**passed(), "surprise": 1},
        "yes",
    ],
)
def test_a_self_test_that_cannot_be_is_refused(machine: NodeClient, lie: object) -> None:
    assert machine.hello(self_test=lie).status_code == 422
    assert Node.objects.get().self_test is None


@pytest.mark.parametrize(("first_ms", "p50_ms", "is_wrong"), [(None, 9.0, False), (1.0, 3.0, False), (1.0, 3.1, True)])
def test_the_band_is_three_times_the_first(first_ms: float | None, p50_ms: float, is_wrong: bool) -> None:
    assert bool(explain_failed_self_test(SelfTest.model_validate(passed(p50_ms)), first_ms=first_ms)) is is_wrong
