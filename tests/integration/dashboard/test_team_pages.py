"""The pages of teams: people, roles, invitations."""

from django.test import Client

from farm.accounts.models import Membership, Team, User
from farm.accounts.services import create_owner
from farm.accounts.states import Role


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


def test_inviting_a_member_again_is_refused_with_their_role(signed_in: Client, team: Team, member: User) -> None:
    refused = signed_in.post(f"/settings/teams/{team.pk}/", {"username": member.username, "role": "admin"})
    page = refused.content.decode()
    assert (refused.status_code, "as member" in page, f"users role {member.username} ROLE" in page) == (409, True, True)
    assert Membership.objects.get(user=member).role == Role.MEMBER


def test_the_last_admin_stays_and_is_told_why(signed_in: Client, team: Team, owner: User) -> None:
    for what, sent in (("role", {"role": "viewer"}), ("remove", {})):
        page = signed_in.post(f"/settings/teams/{team.pk}/{owner.username}/{what}/", sent, follow=True).content.decode()
        assert "A team needs at least one admin" in page
    assert Membership.objects.get(user=owner).role == Role.ADMIN


def test_a_name_full_of_markup_is_text(signed_in: Client, team: Team, owner: User) -> None:
    page = signed_in.post(f"/settings/teams/{team.pk}/", {"username": "<b>x</b>", "role": "member"})
    assert page.status_code == 400
    assert "&lt;b&gt;" in page.content.decode()
    assert "<b>x" not in page.content.decode()


def test_an_administrator_makes_a_team(client: Client, db: None) -> None:
    client.force_login(create_owner(name="root", team_name="home"))
    page = client.post("/settings/teams/", {"name": "audio"}, follow=True).content.decode()
    assert "Team audio" in page
    taken = client.post("/settings/teams/", {"name": "audio"})
    assert (taken.status_code, "already a team" in taken.content.decode()) == (409, True)
