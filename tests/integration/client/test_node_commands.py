"""`onnxfarm node pause|resume|limits` against a farm over real HTTP."""

import pytest

from farm.accounts.models import User
from farm.accounts.services import issue_token
from farm.accounts.states import ALL_OF_A_PERSON, Scope
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth
from onnxfarm.remote.account import Account
from tests.integration.client.conftest import Command
from tests.integration.dashboard.rows import make_node

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(owner: User) -> Node:
    return make_node(owner.memberships.get().team, owner)


@pytest.fixture
def as_owner(node: Node, owner: User, account: Account, onnxfarm: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("ONNXFARM_TOKEN", issue_token(owner, [Scope.NODES])[1])
    return onnxfarm


def test_a_node_is_paused_and_resumed_by_its_name(as_owner: Command, node: Node) -> None:
    assert as_owner("node", "pause", node.name).stdout == f"{node.name} is active. Paused by its owner.\n"
    assert as_owner("node", "resume", node.name).stdout == f"{node.name} is active.\n"
    again = as_owner("node", "resume", node.name)
    assert (again.exit_code, f"{node.name} is active already." in again.stderr) == (2, True)


def test_a_retired_node_is_no_longer_paused(as_owner: Command, node: Node) -> None:
    as_owner("node", "pause", node.name)
    assert as_owner("node", "revoke", node.name).stdout == f"{node.name} is retired.\n"


def test_resuming_ends_a_pause_and_a_drain_together(as_owner: Command, node: Node) -> None:
    as_owner("node", "pause", node.pk)
    assert as_owner("node", "drain", node.pk).stdout == f"{node.name} is draining. Paused by its owner.\n"
    assert as_owner("node", "resume", node.pk).stdout == f"{node.name} is active.\n"


def test_limits_are_shown_changed_and_ended(as_owner: Command, node: Node) -> None:
    changes = ("--hours", "20:00-06:00 Europe/Vienna", "--max-block", 5, "--max-temperature", 85, "--model-cache", 2)
    said = " ".join(as_owner("node", "limits", node.name, *changes, "--tags", "lab-3, quiet").stdout.split())
    for part in ("hours 20:00-06:00 Europe/Vienna", "longest block 5 min", "highest temperature 85 °C"):
        assert part in said
    assert "model cache 2 GiB runtime cache 20 GiB tags of its owner lab-3, quiet" in said
    logged = node.events.order_by("-pk")[0].text
    assert logged == (
        f"Settings of {node.name} were changed: hours, timezone, max block s, max temperature c, cache bytes, tags."
    )
    ended = as_owner("node", "limits", node.name, "--hours", "always", "--max-temperature", "any", "--tags", "")
    said = " ".join(ended.stdout.split())
    assert "hours always longest block 5 min highest temperature any" in said
    assert "tags of its owner none" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--hours", "8 to 5 and so on"), "--hours is '8 to 5 and so on': write it like"),
        (("--hours", "25:00-26:00"), "“25:00-26:00” are not hours of a day. Write them like 20:00-06:00"),
        (("--hours", "20:00-06:00 Mars/Olympus"), "“Mars/Olympus” is not a known time zone."),
        (("--hours", "20:00-06:00 ../../etc/passwd"), "timezone"),
        (("--max-block", "nan"), "'--max-block'"),
        (("--max-block", "0"), "'--max-block': Input should be greater than or equal to 0.5"),
        (("--model-cache", "inf"), "'--model-cache'"),
        (("--runtime-cache", "1e30"), "'--runtime-cache': Input should be less than or equal to"),
        (("--max-temperature", "5"), "The setting max_temperature_c of"),
        (("--max-temperature", "hot"), "--max-temperature is 'hot': give a number of degrees, or `any`."),
        (("--max-temperature", "-1e999"), "--max-temperature is -inf: give a number."),
        (("--tags", "a b,<b>"), "is not a valid tag"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_and_changes_nothing(
    as_owner: Command, node: Node, words: tuple[str, ...], sentence: str
) -> None:
    refused = as_owner("node", "limits", node.name, *words)
    assert refused.exit_code == 2, refused.output
    assert sentence in " ".join(refused.stderr.replace("│", " ").split())
    assert Node.objects.get(pk=node.pk).settings_json == {}


@pytest.mark.parametrize("name", ["", "../1", "bench-1/approve", "x\x1b[31m", "💥", "%2e%2e", "1?x=1", "0" * 5000])
def test_a_name_with_odd_signs_is_no_node(as_owner: Command, name: str) -> None:
    refused = as_owner("node", "pause", name)
    assert (refused.exit_code, "There is no node" in refused.stderr) == (2, True)
    assert "\x1b" not in refused.stderr
    assert len(refused.stderr) < 400


def test_a_member_a_token_without_the_scope_and_another_team_order_nothing(
    as_owner: Command, node: Node, member: User, owner: User, stranger: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = (
        issue_token(member, [Scope.NODES]),
        issue_token(owner, [Scope.WRITE]),
        issue_token(stranger, ALL_OF_A_PERSON),
    )
    for _, secret in tokens:
        monkeypatch.setenv("ONNXFARM_TOKEN", secret)
        for words in (("pause", node.pk), ("limits", node.pk, "--max-block", 5)):
            assert as_owner("node", *words).exit_code == 2
    assert Node.objects.get(pk=node.pk).settings_json == {}


def test_a_retired_node_has_no_limits_to_change(as_owner: Command, node: Node) -> None:
    Node.objects.filter(pk=node.pk).update(health=NodeHealth.RETIRED)
    refused = as_owner("node", "pause", node.name)
    assert (refused.exit_code, f"{node.name} is retired: it accepts no blocks" in refused.stderr) == (2, True)
