"""`onnxfarm farm …` against a farm over real HTTP."""

import json
import re
from collections.abc import Callable

import pytest
from django.utils import timezone
from pytest_django import Settings
from typer.testing import Result

from farm.accounts.models import Membership, Team, Token, User
from farm.accounts.services import create_owner, issue_token
from farm.accounts.states import ALL_OF_A_PERSON, Role
from farm.fleet.enrolment import make_wheel_link
from onnxfarm.remote.account import Account

Command = Callable[..., Result]


@pytest.fixture
def as_administrator(onnxfarm: Command, account: Account, team: Team, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command of an administrator of the farm."""
    root = create_owner(name="root", team_name=team.name)
    monkeypatch.setenv("ONNXFARM_TOKEN", issue_token(root, ALL_OF_A_PERSON)[1])
    return onnxfarm


def test_people_come_change_and_go(as_administrator: Command, team: Team) -> None:
    invited = as_administrator("farm", "users", "invite", "ada")
    assert invited.exit_code == 0, invited.output
    assert "/sign-in/" in invited.stdout
    assert "ada has the role member in team vision." in invited.stderr
    assert (
        "ada now has the role admin in team vision." in as_administrator("farm", "users", "role", "ada", "admin").stdout
    )
    listed = json.loads(as_administrator("farm", "users", "list", "--json").stdout)
    assert {one["username"]: one["role"] for one in listed[0]["members"]}["ada"] == "admin"
    assert "never" in as_administrator("farm", "users", "list").stdout
    assert "/sign-in/" in as_administrator("farm", "users", "link", "ada").stdout
    assert "no longer" in as_administrator("farm", "users", "remove", "ada", "--team", "vision").stdout
    assert "is closed" in as_administrator("farm", "users", "close", "ada").stdout
    assert not User.objects.get(username="ada").is_active


def test_a_member_is_told_what_they_may_not(onnxfarm: Command, team: Team) -> None:
    refused = onnxfarm("farm", "users", "invite", "ada")
    assert (refused.exit_code, "You manage no team; your teams: vision." in refused.stderr) == (2, True)
    refused = onnxfarm("farm", "teams", "create", "another")
    assert (refused.exit_code, "Only an administrator of this farm may make a team" in refused.stderr) == (2, True)


def test_inviting_a_member_says_their_role_and_the_command_that_changes_it(as_administrator: Command) -> None:
    assert as_administrator("farm", "users", "invite", "ada", "--role", "admin").exit_code == 0
    assert "/sign-in/" in as_administrator("farm", "users", "invite", "ada").stdout
    User.objects.filter(username="ada").update(last_login=timezone.now())
    refused = as_administrator("farm", "users", "invite", "ada")
    assert (refused.exit_code, "ada is already in team “vision”, as admin." in refused.stderr) == (2, True)
    [command] = re.findall(r"with: onnxfarm (.*)", refused.stderr)
    assert (
        "ada now has the role viewer in team vision."
        in as_administrator(*command.replace("ROLE", "viewer").split()).stdout
    )


def test_a_person_that_nobody_knows_is_told_apart_from_a_role_that_is_none(as_administrator: Command) -> None:
    refused = as_administrator("farm", "users", "role", "nobody", "viewer")
    assert (refused.exit_code, "There is no user “nobody” in team “vision”." in refused.stderr) == (2, True)
    assert as_administrator("farm", "users", "role", "root", "king").exit_code == 2


def test_teams_and_tokens_are_made_listed_and_closed(as_administrator: Command) -> None:
    assert "Team audio is created" in as_administrator("farm", "teams", "create", "audio").stdout
    assert "audio" in as_administrator("farm", "teams", "list").stdout
    assert Membership.objects.get(team__name="audio").role == Role.ADMIN
    made = as_administrator("farm", "tokens", "make", "ci", "--scope", "read", "--days", "30")
    assert made.stdout.startswith("ofk_")
    gate = as_administrator("farm", "tokens", "make", "pr", "--scope", "gate", "--team", "audio")
    assert (gate.stdout.startswith("ofk_"), "gate models of audio" in gate.stderr) == (True, True)
    assert Token.objects.get(name="pr").team == Membership.objects.get(team__name="audio").team
    assert as_administrator("farm", "tokens", "make", "--scope", "gate", "--scope", "read").exit_code == 2
    number = next(
        one["id"]
        for one in json.loads(as_administrator("farm", "tokens", "list", "--json").stdout)
        if one["name"] == "ci"
    )
    assert 29 <= (Token.objects.get(pk=number).expires_at - timezone.now()).days <= 30
    assert "was revoked" in as_administrator("farm", "tokens", "close", number).stdout
    assert "closed" in as_administrator("farm", "tokens", "list").stdout


def test_an_invitation_prints_how_to_install_and_to_join_and_warns_of_a_local_address(
    as_administrator: Command, settings: Settings
) -> None:
    settings.PUBLIC_URL = settings.GATEWAY_URL = "http://127.0.0.1:8000"
    made = as_administrator("node", "invite")
    assert made.stdout.startswith("onnxfarm node enroll http://127.0.0.1:8000 --token ofe_")
    assert make_wheel_link() in made.stderr
    assert "Other machines cannot reach http://127.0.0.1:8000" in made.stderr
    settings.PUBLIC_URL = settings.GATEWAY_URL = "https://farm.example"
    assert "Other machines" not in as_administrator("node", "invite").stderr


def test_an_invitation_is_listed_accepted_and_withdrawn(
    as_administrator: Command, team: Team, stranger: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.filter(pk=stranger.pk).update(last_login=timezone.now())
    sent = as_administrator("farm", "users", "invite", "stranger")
    assert (sent.exit_code, sent.stdout, "has seven days to accept" in sent.stderr) == (0, "", True)
    assert "invited" in as_administrator("farm", "users", "list").stdout
    assert as_administrator("farm", "users", "withdraw", "stranger").exit_code == 0
    assert as_administrator("farm", "users", "withdraw", "stranger").exit_code == 2
    as_administrator("farm", "users", "invite", "stranger")
    number = team.invitations.get(state="open").pk
    assert as_administrator("farm", "invitations", "accept", number).exit_code == 2
    monkeypatch.setenv("ONNXFARM_TOKEN", issue_token(stranger, ALL_OF_A_PERSON)[1])
    assert "vision" in as_administrator("farm", "invitations", "list").stdout
    assert as_administrator("farm", "invitations", "accept", number).exit_code == 0
    assert as_administrator("farm", "invitations", "decline", number).exit_code == 2
    assert Membership.objects.filter(user=stranger).count() == 2
    refused = as_administrator("farm", "users", "invite", "ada")
    assert (refused.exit_code, "you manage elsewhere" in refused.stderr) == (2, True)
    assert as_administrator("farm", "teams", "choose", "vision").exit_code == 0
