"""The pages of teams: people, roles, invitations."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import Membership, Team, User
from farm.accounts.services import create_owner
from farm.accounts.states import Role, Scope
from tests.conftest import ApiOf


def test_an_admin_invites_somebody_and_the_link_is_shown_once(signed_in: Client, team: Team, owner: User) -> None:
    page = signed_in.post(f"/settings/teams/{team.pk}/", {"username": "ada", "role": "viewer"}).content.decode()
    assert "/sign-in/" in page
    assert "within seven days" in page
    again = signed_in.get(f"/settings/teams/{team.pk}/").content.decode()
    assert "ada" in again
    assert "/sign-in/" not in again.replace("/sign-in/?", "")


def test_a_role_is_changed_and_a_person_taken_out(signed_in: Client, team: Team, owner: User, member: User) -> None:
    base = f"/settings/teams/{team.pk}/{member.username}/"
    page = signed_in.post(f"{base}role/", {"role": "viewer"}, follow=True).content.decode()
    assert f"{member.username} is viewer now." in page
    page = signed_in.post(f"{base}remove/", follow=True).content.decode()
    assert f"{member.username} is no longer in team {team.name}." in page
    assert not Membership.objects.filter(user=member).exists()


def test_inviting_again_whoever_never_came_shows_another_link(signed_in: Client, team: Team) -> None:
    pages = [signed_in.post(f"/settings/teams/{team.pk}/", {"username": "ada", "role": "viewer"}) for _ in ("lost", "")]
    links = [re.findall(r"/sign-in/([\w-]+)/", page.content.decode()) for page in pages]
    assert ([page.status_code for page in pages], links[0] == links[1], all(links)) == ([200, 200], False, True)


def test_inviting_a_member_again_is_refused_with_their_role(signed_in: Client, team: Team, member: User) -> None:
    User.objects.filter(pk=member.pk).update(last_login=timezone.now())
    refused = signed_in.post(f"/settings/teams/{team.pk}/", {"username": member.username, "role": "admin"})
    page = refused.content.decode()
    assert (refused.status_code, "as member" in page, f"users role {member.username} ROLE" in page) == (409, True, True)
    # on the team's page, with what was typed
    assert all(part in page for part in ('id="members"', 'id="invite-error"', f'value="{member.username}" autofocus'))
    assert '<option value="admin" selected>' in page.partition('id="invite"')[2]
    assert Membership.objects.get(user=member).role == Role.MEMBER


def test_the_last_admin_stays_and_is_told_why(signed_in: Client, team: Team, owner: User) -> None:
    for what, sent in (("role", {"role": "viewer"}), ("remove", {})):
        page = signed_in.post(f"/settings/teams/{team.pk}/{owner.username}/{what}/", sent, follow=True).content.decode()
        assert "A team needs at least one admin" in page
    assert Membership.objects.get(user=owner).role == Role.ADMIN


def test_a_name_full_of_markup_is_text(signed_in: Client, team: Team, owner: User) -> None:
    page = signed_in.post(f"/settings/teams/{team.pk}/", {"username": "<b>x</b>", "role": "member"})
    assert page.status_code == 400
    assert 'id="invite-error"' in page.content.decode()
    assert "&lt;b&gt;" in page.content.decode()
    assert "<b>x" not in page.content.decode()


def test_an_administrator_makes_a_team(client: Client, db: None) -> None:
    client.force_login(create_owner(name="root", team_name="home"))
    page = client.post("/settings/teams/", {"name": "audio"}, follow=True).content.decode()
    assert "Team audio" in page
    taken = client.post("/settings/teams/", {"name": "audio"})
    page = taken.content.decode()
    assert (taken.status_code, "already a team" in page, 'value="audio" autofocus' in page) == (409, True, True)


def test_an_admin_says_whose_turn_it_is(signed_in: Client, team: Team, owner: User) -> None:
    turns = f"/settings/teams/{team.pk}/turns/"
    page = signed_in.post(turns, {"order": "arrival", "daily_minutes": "90"}, follow=True).content.decode()
    assert "of 90 minutes for it today" in page
    team.refresh_from_db()
    assert (team.puts_people_first, team.daily_minutes) == (False, 90)
    signed_in.post(turns, {"order": "people", "daily_minutes": ""})
    team.refresh_from_db()
    assert (team.puts_people_first, team.daily_minutes) == (True, None)


@pytest.mark.parametrize("minutes", ["x", "-1", "1.5", "٣", "99999999", "1440001"])
def test_what_is_no_number_of_minutes_changes_nothing(signed_in: Client, team: Team, minutes: str) -> None:
    signed_in.post(f"/settings/teams/{team.pk}/turns/", {"order": "arrival", "daily_minutes": minutes})
    team.refresh_from_db()
    assert (team.puts_people_first, team.daily_minutes) == (True, None)


def test_turns_are_set_by_an_admin_s_token_and_what_is_left_out_stays(
    api_of: ApiOf, team: Team, owner: User, member: User
) -> None:
    address, as_json = f"/api/v1/teams/{team.pk}", {"content_type": "application/json"}
    admin = api_of(owner, Scope.ADMIN)
    said = admin.patch(address, {"daily_minutes": 30}, **as_json).json()
    assert (said["puts_people_first"], said["daily_minutes"], said["minutes_today"]) == (True, 30, 0.0)
    assert admin.patch(address, {"puts_people_first": False}, **as_json).json()["daily_minutes"] == 30
    for body in ({"daily_minutes": -1}, {"daily_minutes": "30"}, {"puts_people_first": "no"}, {"minutes": 1}):
        assert admin.patch(address, body, **as_json).status_code in (400, 422), body
    assert api_of(member, Scope.ADMIN).patch(address, {"daily_minutes": 1}, **as_json).status_code == 403
    team.refresh_from_db()
    assert (team.puts_people_first, team.daily_minutes) == (False, 30)
