"""People who come by the farm's identity provider: one that tells the truth, and each way in which it may not."""

import base64
import re
from datetime import timedelta
from html import unescape
from io import StringIO
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from farm.accounts.memberships import invite
from farm.accounts.models import AuditEvent, GroupRole, Membership, Team, User
from farm.accounts.openid.exchange import MAX_PENDING, PENDING
from farm.accounts.openid.people import forget_group, map_group
from farm.accounts.openid.registration import STATE_TTL_S, Registration
from farm.accounts.selectors import team_to_write, valid_token
from farm.accounts.services import close_account, issue_token, make_sign_in_link
from farm.accounts.states import Role
from farm.accounts.visits import delete_expired_sessions
from farm.base.refusals import Conflict, Invalid, NotAllowed
from tests.integration.accounts.issuer import CLIENT, SECRET, Issuer, serving
from tests.integration.accounts.signing_in import press, said, sent_to, sign_in, who


def roles(name: str) -> dict[str, str]:
    return {one.team.name: one.role for one in Membership.objects.filter(user__username=name)}


def test_the_first_sign_in_makes_an_account_without_rights(client: Client, issuer: Issuer, team: Team) -> None:
    answer = sign_in(client, issuer, next="/runs/")
    assert (answer.status_code, answer["Location"]) == (302, "/runs/")
    assert who(client) == "ada"
    ada = User.objects.get(username="ada")
    assert (ada.is_superuser, ada.is_staff, ada.has_usable_password(), roles("ada")) == (False, False, False, {})
    assert "You are in no team yet" in client.get("/settings/tokens/").content.decode()
    made = list(AuditEvent.objects.filter(actor=ada).values_list("verb", flat=True))
    assert made == ["signed in by provider", "account made at first sign-in"]
    assert issuer.asked == ["/.well-known/openid-configuration", "/token", "/keys", "/me"]


def test_the_second_sign_in_is_the_same_person_whatever_they_are_called_now(client: Client, issuer: Issuer) -> None:
    sign_in(client, issuer)
    issuer.claims["preferred_username"] = "countess"
    sign_in(another := Client(), issuer)
    assert who(another) == "ada"
    assert User.objects.count() == 1


def test_the_button_is_on_the_sign_in_page_and_the_way_back_keeps_to_this_farm(client: Client, issuer: Issuer) -> None:
    page = client.get("/sign-in/?next=/runs/").content.decode()
    assert "Sign in with login.example" in page
    assert 'name="next" value="/runs/"' in page
    assert sign_in(client, issuer, next="https://evil.example/")["Location"] == "/"


def test_without_a_provider_there_is_no_button(client: Client, db: None) -> None:
    assert "openid" not in client.get("/sign-in/").content.decode()
    assert press(client).status_code == 404


def test_neither_a_user_name_nor_an_email_address_takes_an_account_over(client: Client, issuer: Issuer, owner: User):
    User.objects.filter(pk=owner.pk).update(email="owner@example.com")
    issuer.claims |= {"preferred_username": "OWNER", "email": "owner@example.com", "email_verified": True}
    sign_in(client, issuer)
    assert who(client) == "OWNER-2"
    assert roles("OWNER-2") == {}
    issuer.claims |= {"sub": "u-2", "preferred_username": "someone"}
    sign_in(another := Client(), issuer)
    assert who(another) == "someone"


def test_another_issuer_s_subject_is_another_person(client: Client, issuer: Issuer, settings: Settings) -> None:
    sign_in(client, issuer)
    with serving() as other:
        settings.OPENID = Registration(issuer=other.url, client_id=CLIENT, secret=SECRET, name="other.example")
        sign_in(another := Client(), other)
    assert who(another) == "ada-2"


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a/b?c", "../../admin", "ada\nroot", "ä b", "x" * 400])
def test_a_name_with_odd_characters_becomes_one_that_may_stand_on_pages(client: Client, issuer: Issuer, name: str):
    issuer.claims["preferred_username"] = name
    sign_in(client, issuer)
    assert re.fullmatch(r"[\w.@+-]{1,100}", str(who(client)))


def test_roles_follow_the_groups_at_each_sign_in(client: Client, issuer: Issuer, root: User, team: Team) -> None:
    other = Team.objects.create(name="speech")
    map_group(group="vision-dev", team=team, role=Role.MEMBER, by=root)
    map_group(group="leads", team=team, role=Role.ADMIN, by=root)
    map_group(group="leads", team=other, role=Role.VIEWER, by=root)
    issuer.claims["groups"] = ["vision-dev", "leads", "unknown"]
    sign_in(client, issuer)
    assert roles("ada") == {"vision": "admin", "speech": "viewer"}
    issuer.claims["groups"] = ["vision-dev"]
    sign_in(Client(), issuer)
    assert roles("ada") == {"vision": "member"}
    issuer.claims["groups"] = []
    sign_in(Client(), issuer)
    assert roles("ada") == {}
    changes = AuditEvent.objects.filter(subject="ada", verb__in=["role set", "member removed"]).order_by("pk")
    assert [one.verb for one in changes] == ["role set", "role set", "member removed", "role set", "member removed"]
    assert all(one.facts["by"] == "groups" for one in changes)


def test_groups_give_rights_and_move_nobody_s_default(client: Client, issuer: Issuer, root: User, team: Team) -> None:
    """The owner of a group is a person too: what ada wrote in “vision” goes there still, or has to name a team."""
    speech = Team.objects.create(name="speech")
    for group, mapped in (("vision-dev", team), ("speech-dev", speech)):
        map_group(group=group, team=mapped, role=Role.MEMBER, by=root)
    issuer.claims["groups"] = ["vision-dev"]
    sign_in(client, issuer)
    ada = User.objects.get(username="ada")
    assert team_to_write(ada) == team
    issuer.claims["groups"] = ["vision-dev", "speech-dev"]
    sign_in(Client(), issuer)
    assert (roles("ada"), team_to_write(ada)) == ({"vision": "member", "speech": "member"}, team)
    issuer.claims["groups"] = ["speech-dev"]
    sign_in(Client(), issuer)
    with pytest.raises(Invalid, match="speech"):
        team_to_write(ada)
    assert team_to_write(ada, name="speech") == speech


def test_groups_decide_in_mapped_teams_alone(client: Client, issuer: Issuer, root: User, team: Team) -> None:
    """Who was invited by hand stays where no group is mapped, and goes where groups decide."""
    sign_in(client, issuer)
    by_hand = Team.objects.create(name="by-hand")
    ada = User.objects.get(username="ada")
    for one in (team, by_hand):
        Membership.objects.create(team=one, user=ada)
    map_group(group="leads", team=team, role=Role.ADMIN, by=root)
    sign_in(Client(), issuer)
    assert roles("ada") == {"by-hand": "member"}
    assert Membership.objects.get(user=ada).from_groups is False


def test_what_a_forgotten_group_gave_goes_at_the_next_sign_in(client: Client, issuer: Issuer, root: User, team: Team):
    made = map_group(group="vision-dev", team=team, role=Role.MEMBER, by=root)
    sign_in(client, issuer)
    forget_group(mapping_id=made.pk, by=root)
    assert roles("ada") == {"vision": "member"}
    sign_in(Client(), issuer)
    assert roles("ada") == {}


def test_a_group_makes_and_unmakes_administrators(client: Client, issuer: Issuer, settings: Settings) -> None:
    settings.OPENID = Registration(
        issuer=issuer.url, client_id=CLIENT, secret=SECRET, name="login.example", admin_group="farm-admins"
    )
    issuer.claims["groups"] = ["farm-admins"]
    sign_in(client, issuer)
    ada = User.objects.get(username="ada")
    assert (ada.is_superuser, ada.is_staff) == (True, True)
    issuer.claims["groups"] = []
    sign_in(Client(), issuer)
    ada.refresh_from_db()
    assert (ada.is_superuser, ada.is_staff) == (False, False)


@pytest.mark.parametrize(
    ("claim", "claims"),
    [
        ("realm_access.roles", {"realm_access": {"roles": ["vision-dev"]}}),
        ("https://farm.example/groups", {"https://farm.example/groups": ["vision-dev"]}),
        ("role", {"role": "vision-dev"}),
    ],
)
def test_groups_are_found_where_providers_put_them(
    client: Client, issuer: Issuer, root: User, team: Team, settings: Settings, claim: str, claims: dict[str, Any]
) -> None:
    settings.OPENID = Registration(
        issuer=issuer.url, client_id=CLIENT, secret=SECRET, name="login.example", groups_claim=claim
    )
    map_group(group="vision-dev", team=team, role=Role.VIEWER, by=root)
    issuer.claims = {"sub": "u-1", "preferred_username": "ada"}
    issuer.userinfo = claims
    sign_in(client, issuer)
    assert roles("ada") == {"vision": "viewer"}


def test_no_groups_at_all_is_said_where_rights_depend_on_them(client: Client, issuer: Issuer, root: User, team: Team):
    map_group(group="vision-dev", team=team, role=Role.MEMBER, by=root)
    sign_in(client, issuer)
    del issuer.claims["groups"]
    answer = sign_in(another := Client(), issuer)
    assert answer.status_code == 400
    assert said(answer).startswith("login.example sent no “groups”")
    assert who(another) is None
    assert roles("ada") == {"vision": "member"}


@pytest.mark.parametrize("groups", [{"a": 1}, [1, 2], [["a"]], 7, ["x"] * 5_001])
def test_groups_that_are_no_names_sign_nobody_in(client: Client, issuer: Issuer, groups: object) -> None:
    del issuer.claims["groups"]
    issuer.userinfo["groups"] = groups
    assert "as something other than a list" in said(sign_in(client, issuer))
    assert User.objects.count() == 0


def test_a_state_works_once_in_the_browser_that_began(client: Client, issuer: Issuer) -> None:
    way_back = issuer.code(sent_to(client))
    answer = Client().get(way_back)
    assert (answer.status_code, said(answer)[:31]) == (403, "This sign-in was used already, ")
    assert client.get(way_back).status_code == 302
    answer = client.get(way_back)
    assert (answer.status_code, said(answer)[:31]) == (403, "This sign-in was used already, ")
    assert User.objects.count() == 1


def test_a_sign_in_that_was_begun_is_over_after_ten_minutes(client: Client, issuer: Issuer) -> None:
    way_back = issuer.code(sent_to(client))
    session = client.session
    [begun] = session[PENDING].values()
    begun["at"] -= STATE_TTL_S + 1
    session.save()
    answer = client.get(way_back)
    assert (answer.status_code, said(answer)[:31]) == (403, "This sign-in was used already, ")
    assert issuer.asked == ["/.well-known/openid-configuration"]


def test_a_browser_may_begin_in_several_windows_and_in_no_more_than_ten(client: Client, issuer: Issuer) -> None:
    ways_back = [issuer.code(sent_to(client)) for _ in range(MAX_PENDING + 1)]
    assert len(client.session[PENDING]) == MAX_PENDING
    assert client.get(ways_back[0]).status_code == 403
    assert client.get(ways_back[1]).status_code == 302


@pytest.mark.parametrize(
    ("methods", "client_id"),
    [(None, None), (["client_secret_basic"], None), (["private_key_jwt", "client_secret_post"], [CLIENT])],
)
def test_the_farm_says_who_it_is_as_the_provider_takes_it(
    client: Client, issuer: Issuer, methods: list[str] | None, client_id: list[str] | None
) -> None:
    issuer.document["token_endpoint_auth_methods_supported"] = methods
    assert sign_in(client, issuer).status_code == 302
    basic = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
    by_form = {"header": "", "form": client_id, "secret": [SECRET]}
    assert issuer.client == (by_form if client_id else {"header": basic, "form": None, "secret": None})


def test_consent_that_was_denied_and_other_errors_are_told_in_a_sentence(client: Client, issuer: Issuer) -> None:
    for error, sentence in [
        ("access_denied", "login.example did not get your consent, so nobody was signed in."),
        ("<b>server_error</b>", "login.example refused the sign-in: “<b>server_error</b>”."),
        ("%0Ax", "login.example refused the sign-in: “x”."),
    ]:
        state = issuer.code(sent_to(client)).rpartition("state=")[2]
        answer = client.get(f"/sign-in/openid/back/?error={error}&state={state}")
        assert said(answer) == sentence
        assert b"<b>" not in answer.content
    assert who(client) is None


def test_a_visitor_who_only_begins_leaves_no_row_for_long(client: Client, issuer: Issuer, owner: User) -> None:
    sent_to(client)
    assert Session.objects.get().expire_date < timezone.now() + timedelta(minutes=11)
    assert delete_expired_sessions() == 0
    client.post(make_sign_in_link(owner).removeprefix("http://testserver"))
    assert Session.objects.get().expire_date > timezone.now() + timedelta(days=10)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert delete_expired_sessions() == 1
    assert not Session.objects.exists()


def test_a_visitor_cannot_ask_the_provider_for_more_than_the_farm_does(client: Client, issuer: Issuer) -> None:
    page = client.post(
        "/sign-in/openid/?scope=offline_access&auth_params=prompt%3Dnone&process=connect",
        content_type="application/x-www-form-urlencoded",
    )
    assert b"offline_access" not in page.content
    assert b"prompt" not in page.content


def test_signing_out_ends_the_provider_s_session_too_where_it_can(client: Client, issuer: Issuer) -> None:
    issuer.document["end_session_endpoint"] = f"{issuer.url}/end"
    sign_in(client, issuer)
    page = unescape(client.post("/sign-out/").content.decode())
    assert f"url={issuer.url}/end?client_id=farm&post_logout_redirect_uri=http%3A%2F%2Ftestserver%2Fsign-in%2F" in page
    assert "id_token_hint=ey" in page
    assert who(client) is None


def test_signing_out_says_where_the_provider_keeps_its_session(client: Client, issuer: Issuer) -> None:
    sign_in(client, issuer)
    page = client.post("/sign-out/", follow=True).content.decode()
    assert "You are signed out here. At login.example you may still be signed in." in page
    assert who(client) is None


def test_a_closed_account_stays_closed(client: Client, issuer: Issuer, root: User) -> None:
    sign_in(client, issuer)
    close_account(user=User.objects.get(username="ada"), by=root)
    answer = sign_in(Client(), issuer)
    assert (answer.status_code, said(answer)) == (403, "The account of ada on this farm is closed.")


def test_tokens_rest_when_nobody_vouches_for_their_person_any_more(
    client: Client, issuer: Issuer, owner: User, settings: Settings
) -> None:
    sign_in(client, issuer)
    ada = User.objects.get(username="ada")
    _, secret = issue_token(ada)
    _, of_a_local_one = issue_token(owner)
    assert valid_token(secret) is not None
    User.objects.filter(pk=ada.pk).update(vouched_at=timezone.now() - timedelta(days=31))
    assert valid_token(secret) is None
    assert "rests until you sign in through" in client.get("/settings/tokens/").content.decode()
    assert valid_token(of_a_local_one) is not None
    sign_in(Client(), issuer)
    assert valid_token(secret) is not None


def test_where_local_sign_in_is_off_links_open_nothing_but_an_emergency_one_does(
    client: Client, issuer: Issuer, owner: User, settings: Settings
) -> None:
    link = make_sign_in_link(owner).removeprefix("http://testserver")
    settings.LOCAL_SIGN_IN = False
    for answer in (client.get(link), client.post(link)):
        assert answer.status_code == 403
        assert said(answer).startswith("One-time links are switched off on this farm")
    assert who(client) is None
    with pytest.raises(CommandError, match="add --emergency"):
        call_command("sign_in_link", "owner")
    call_command("sign_in_link", "owner", "--emergency", stdout=(printed := StringIO()))
    assert client.post(printed.getvalue().strip().removeprefix("http://testserver")).status_code == 302
    assert who(client) == "owner"
    verbs = AuditEvent.objects.filter(subject="owner").values_list("verb", flat=True)
    assert list(verbs)[:2] == ["signed in by emergency link", "emergency link made"]


def test_where_local_sign_in_is_off_people_are_invited_after_their_first_sign_in(
    client: Client, issuer: Issuer, owner: User, team: Team, root: User, settings: Settings
) -> None:
    settings.LOCAL_SIGN_IN = False
    with pytest.raises(Conflict, match="accounts come from its identity provider alone"):
        invite(team=team, name="ada", by=owner)
    sign_in(client, issuer)
    invited = invite(team=team, name="ada", by=owner)
    assert (invited.link, invited.invitation is None) == (None, False)
    assert "One-time link" not in client.get("/sign-in/", follow=True).content.decode()
    assert "no sign-in links of its own" in Client().get("/sign-in/").content.decode()


def test_an_administrator_connects_an_account_by_its_subject(client: Client, issuer: Issuer, owner: User, team: Team):
    issuer.claims["preferred_username"] = "owner"
    sign_in(client, issuer)
    assert who(client) == "owner-2"
    call_command("connect_account", "owner", "u-1", stdout=(printed := StringIO()))
    assert "The account owner-2, which that person had, is closed." in printed.getvalue()
    sign_in(another := Client(), issuer)
    assert who(another) == "owner"
    with pytest.raises(CommandError, match="is the provider's “u-1” already"):
        call_command("connect_account", "owner", "u-9")
    with pytest.raises(CommandError, match="no user “nobody”"):
        call_command("connect_account", "nobody", "u-9")


def test_administrators_map_groups_on_a_page_that_shows_no_secret(
    client: Client, issuer: Issuer, root: User, team: Team
) -> None:
    client.force_login(root)
    page = client.post("/settings/openid/", {"group": "vision-dev", "team": "vision", "role": "admin"}, follow=True)
    text = page.content.decode()
    assert "is admin of vision from their next sign-in" in text
    assert "http://testserver/sign-in/openid/back/" in text
    assert SECRET not in text
    for typed, sentence in [
        ({"group": "", "team": "vision", "role": "admin"}, "A group's name has 1 to 200"),
        ({"group": "g", "team": "none", "role": "admin"}, "There is no team “none”"),
        ({"group": "g", "team": "vision", "role": "king"}, "“king” is not a role"),
    ]:
        assert sentence in unescape(client.post("/settings/openid/", typed, follow=True).content.decode())
    made = GroupRole.objects.get()
    assert "by being in them" not in text
    assert "that their groups give: vision-dev" in client.get(f"/settings/teams/{team.pk}/").content.decode()
    client.post(f"/settings/openid/{made.pk}/forget/")
    assert not GroupRole.objects.exists()
    assert client.post(f"/settings/openid/{made.pk}/forget/").status_code == 404


def test_only_administrators_map_groups(owner: User, team: Team) -> None:
    with pytest.raises(NotAllowed, match="Only an administrator of this farm"):
        map_group(group="g", team=team, role=Role.ADMIN, by=owner)
