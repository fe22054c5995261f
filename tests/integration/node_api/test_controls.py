"""Signs that are no text, which JSON allows, PostgreSQL does not store and terminals obey."""

import pytest
from django.test import Client

from farm.accounts.models import Team, User
from farm.contract.texts import replace_controls_in_json
from farm.fleet.models import Node
from farm.fleet.services import invite
from farm.sandbox.ending import Ending
from tests.integration.node_api.calls import NodeClient

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (rb'"a\u0000\u0000b"', rb'"a\ufffd\ufffdb"'),
        (rb'"a backslash, then u0000: \\u0000"', rb'"a backslash, then u0000: \\u0000"'),
        (rb'"both: \\\u0000"', rb'"both: \\\ufffd"'),
        (rb'"\\u00001"', rb'"\\u00001"'),
    ],
)
def test_only_escaped_nuls_are_replaced(text: bytes, clean: bytes) -> None:
    assert replace_controls_in_json(text) == clean


def test_a_node_may_have_nuls_in_its_log(team: Team, owner: User) -> None:
    client = NodeClient()
    client.enrol(invite(team=team, by=owner, auto_approve=True)[1])
    client.ask_for_secret()
    assert client.hello(log_tail="killed:\0 by signal").status_code == 200
    assert Node.objects.get().log_tail == "killed:\ufffd by signal"


def test_a_node_has_no_escape_sequences_in_its_log(team: Team, owner: User) -> None:
    client = NodeClient()
    client.enrol(invite(team=team, by=owner, auto_approve=True)[1])
    client.ask_for_secret()
    assert client.hello(log_tail="\x1b]0;root\x07 done\n").status_code == 200
    assert Node.objects.get().log_tail == "\ufffd]0;root\ufffd done\n"


def test_what_the_sandboxed_child_says_of_a_model_holds_no_nul() -> None:
    assert Ending(kind="done", reply=rb'{"producer": "\u0000"}').parse_reply() == {"producer": "\ufffd"}
    assert Ending(kind="exited", stderr_tail="bad name \0\x1b[2J").describe().isprintable()


@pytest.mark.parametrize("address", ["/models/?q=%00", "/api/v1/models?name=%00", "/runs/%00"])
def test_an_address_with_a_nul_is_a_bad_request(address: str, client: Client, owner: User) -> None:
    client.force_login(owner)
    assert client.get(address).status_code == 400


@pytest.mark.parametrize("address", ["/api/node/v1/blocks/%00/claim", "/api/v1/runs/%00", "/api/v1/models?name=%00"])
def test_an_api_refuses_an_address_with_a_nul_in_a_sentence(address: str, client: Client, db: None) -> None:
    answer = client.get(address)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    assert answer.json()["detail"].endswith(".")
