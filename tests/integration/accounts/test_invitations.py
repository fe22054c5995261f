"""Nobody comes into a team without accepting, and nobody's writing goes anywhere by what others do."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts import memberships, selectors, services
from farm.accounts.models import AuditEvent, Invitation, Membership, Team, User
from farm.accounts.states import ALL_OF_A_PERSON, Role
from farm.base.refusals import Conflict, Invalid, Missing, NotAllowed
from tests.conftest import ApiOf


@pytest.fixture
def invitation(team: Team, owner: User, stranger: User) -> Invitation:
    """Of somebody who writes in “elsewhere” alone, by an admin of “vision”."""
    found = memberships.invite(team=team, name=stranger.username, by=owner).invitation
    assert found is not None
    return found


def verbs() -> list[str]:
    return [event.verb for event in AuditEvent.objects.order_by("pk")]


def test_an_admin_cannot_move_where_somebody_else_writes(team: Team, owner: User, stranger: User, api_of: ApiOf):
    """The attack: put somebody into a team of a lower number, and their next upload lands there."""
    body = json.dumps({"username": stranger.username, "role": "admin"})
    api_of(owner, *ALL_OF_A_PERSON).post(f"/api/v1/teams/{team.pk}/members", body, content_type="application/json")
    assert not team.memberships.filter(user=stranger).exists()
    assert selectors.team_to_write(stranger).name == "elsewhere"
    assert not selectors.teams_visible_to(stranger).filter(pk=team.pk).exists()


def test_whoever_accepts_is_in_and_from_then_on_names_a_team(invitation: Invitation, stranger: User) -> None:
    membership = memberships.accept_invitation(invitation=invitation, by=stranger)
    assert (membership.role, membership.is_chosen) == (Role.MEMBER, True)
    with pytest.raises(Invalid, match="vision, elsewhere"):
        selectors.team_to_write(stranger)
    assert verbs()[-2:] == ["invitation sent", "invitation accepted"]
    assert AuditEvent.objects.get(verb="invitation accepted").team == invitation.team


def test_an_answer_leads_to_the_team_that_was_joined_and_to_all_teams_else(
    invitation: Invitation, team: Team, stranger: User, client: Client
) -> None:
    client.force_login(stranger)
    addresses = [
        client.post(f"/settings/invitations/{invitation.pk}/accept/")["Location"] for _ in ("joined", "in already")
    ]
    assert addresses == [f"/settings/teams/{team.pk}/", "/settings/teams/"]


def test_whoever_declines_stays_out_and_may_be_invited_again(
    invitation: Invitation, team: Team, owner: User, stranger: User
) -> None:
    memberships.decline_invitation(invitation=invitation, by=stranger)
    assert (Membership.objects.filter(user=stranger).count(), verbs()[-1]) == (1, "invitation declined")
    with pytest.raises(Conflict, match="was declined already"):
        memberships.accept_invitation(invitation=invitation, by=stranger)
    again = memberships.invite(team=team, name=stranger.username, by=owner).invitation
    assert (again is None, Invitation.objects.count()) == (False, 1)


def test_inviting_twice_is_one_invitation_and_another_role_is_another(
    invitation: Invitation, team: Team, owner: User, stranger: User
) -> None:
    assert memberships.invite(team=team, name=stranger.username, by=owner).invitation == invitation
    assert verbs().count("invitation sent") == 1
    other = memberships.invite(team=team, name=stranger.username, by=owner, role=Role.VIEWER).invitation
    assert list(Invitation.objects.all()) == [other]
    assert other != invitation
    # what was read is what is accepted: the number of before opens nothing
    with pytest.raises(Missing):
        selectors.invitation(stranger, invitation.pk)


def test_an_invitation_is_accepted_once(invitation: Invitation, stranger: User) -> None:
    late = Invitation.objects.get(pk=invitation.pk)
    memberships.accept_invitation(invitation=invitation, by=stranger)
    with pytest.raises(Conflict, match="was accepted already"):
        memberships.accept_invitation(invitation=late, by=stranger)
    memberships.remove_member(team=invitation.team, user=stranger, by=stranger)
    with pytest.raises(Conflict, match="was accepted already"):
        memberships.accept_invitation(invitation=late, by=stranger)
    assert not invitation.team.memberships.filter(user=stranger).exists()


def test_nobody_answers_for_somebody_else(
    invitation: Invitation, owner: User, member: User, team: Team, api_of: ApiOf, client: Client
) -> None:
    outsider = User.objects.create(username="outsider")
    root = services.create_owner(name="root")
    for other in (owner, member, outsider, root):
        for act in (memberships.accept_invitation, memberships.decline_invitation):
            with pytest.raises(Missing):
                act(invitation=invitation, by=other)
        answer = api_of(other, *ALL_OF_A_PERSON).post(f"/api/v1/invitations/{invitation.pk}/accept")
        assert answer.status_code == 404
    client.force_login(outsider)
    assert client.post(f"/settings/invitations/{invitation.pk}/accept/").status_code == 404
    assert Invitation.objects.get().state == "open"
    assert team.memberships.count() == 2


@pytest.mark.parametrize("how", ["expired", "demoted", "left", "closed", "withdrawn"])
def test_an_invitation_that_stands_no_more_lets_nobody_in(
    how: str, invitation: Invitation, team: Team, owner: User, member: User, stranger: User, api_of: ApiOf
) -> None:
    memberships.set_role(team=team, user=member, role=Role.ADMIN, by=owner)
    match how:
        case "expired":
            Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        case "demoted":
            memberships.set_role(team=team, user=owner, role=Role.MEMBER, by=member)
        case "left":
            memberships.remove_member(team=team, user=owner, by=member)
        case "closed":
            User.objects.filter(pk=owner.pk).update(is_active=False)
        case _:
            memberships.withdraw_invitation(team=team, name=stranger.username, by=member)
    client = api_of(stranger, *ALL_OF_A_PERSON)
    assert client.get("/api/v1/invitations").json() == []
    answer = client.post(f"/api/v1/invitations/{invitation.pk}/accept")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_open")
    assert not team.memberships.filter(user=stranger).exists()
    # another admin invites them anew
    again = memberships.invite(team=team, name=stranger.username, by=member).invitation
    assert again is not None
    memberships.accept_invitation(invitation=again, by=stranger)


def test_an_invitation_to_a_team_that_is_gone_is_gone(invitation: Invitation, team: Team, stranger: User) -> None:
    held = Invitation.objects.get()
    team.delete()
    with pytest.raises(Missing):
        selectors.invitation(stranger, invitation.pk)
    with pytest.raises(Missing):
        memberships.accept_invitation(invitation=held, by=stranger)


def test_only_admins_of_the_team_withdraw_and_a_member_or_nobody_has_none(
    invitation: Invitation, team: Team, owner: User, member: User, stranger: User
) -> None:
    for name in (member.username, "nobody", "a\x00"):
        with pytest.raises(Missing):
            memberships.withdraw_invitation(team=team, name=name, by=owner)
    with pytest.raises(NotAllowed):
        memberships.withdraw_invitation(team=team, name=stranger.username, by=member)
    with pytest.raises(Missing):
        memberships.withdraw_invitation(team=team, name=stranger.username, by=stranger)
    memberships.withdraw_invitation(team=team, name=stranger.username, by=owner)
    assert verbs()[-1] == "invitation withdrawn"


def test_whoever_came_into_the_team_otherwise_accepts_nothing(invitation: Invitation, team: Team, stranger: User):
    Membership.objects.create(team=team, user=stranger, role=Role.ADMIN, from_groups=True)
    with pytest.raises(Conflict, match="already, as admin"):
        memberships.accept_invitation(invitation=invitation, by=stranger)
    assert Invitation.objects.get().state == "open"


def test_a_full_team_counts_those_who_have_not_answered(
    invitation: Invitation, team: Team, owner: User, stranger: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memberships, "MAX_MEMBERS", 2)
    with pytest.raises(Conflict, match="as many as it may"):
        memberships.invite(team=team, name="ada", by=owner)
    assert memberships.invite(team=team, name=stranger.username, by=owner).invitation == invitation
    Membership.objects.create(team=team, user=User.objects.create(username="faster"))
    with pytest.raises(Conflict, match="as many as it may"):
        memberships.accept_invitation(invitation=invitation, by=stranger)


def test_an_admin_learns_no_more_of_an_account_than_before(team: Team, owner: User, stranger: User, api_of: ApiOf):
    """That there is one, which the missing link says; not when they were last here, nor where else they are."""
    User.objects.filter(pk=stranger.pk).update(last_login=timezone.now(), email="s@example.org")
    client = api_of(owner, *ALL_OF_A_PERSON)
    body = json.dumps({"username": stranger.username})
    sent = client.post(f"/api/v1/teams/{team.pk}/members", body, content_type="application/json")
    assert sent.json() == {"username": "stranger", "role": "member", "sign_in_link": None, "has_to_accept": True}
    [found] = [team for team in client.get("/api/v1/teams").json() if team["name"] == "vision"]
    assert [sorted(waiting) for waiting in found["invited"]] == [["by", "expires_at", "role", "username"]]
    assert [member["username"] for member in found["members"]] == ["owner"]


def test_a_viewer_does_not_see_whom_the_team_waits_for(invitation: Invitation, viewer: User, api_of: ApiOf) -> None:
    [found] = api_of(viewer).get("/api/v1/teams").json()
    assert found["invited"] == []


def test_a_closed_account_comes_back_by_its_link_and_into_another_team_by_accepting(team: Team, stranger: User) -> None:
    root = services.create_owner(name="root", team_name=team.name)
    services.close_account(user=stranger, by=root)
    invited = memberships.invite(team=team, name=stranger.username, by=root)
    assert (invited.link is None, invited.invitation is None) == (False, False)
    assert not team.memberships.filter(user=stranger).exists()


def test_who_came_to_look_and_was_promoted_writes_where_they_did_until_they_say_so(
    team: Team, owner: User, stranger: User
) -> None:
    looking = memberships.invite(team=team, name=stranger.username, by=owner, role=Role.VIEWER).invitation
    assert looking is not None
    memberships.accept_invitation(invitation=looking, by=stranger)
    memberships.set_role(team=team, user=stranger, role=Role.ADMIN, by=owner)
    assert selectors.can_write(stranger, team=team)
    assert selectors.team_to_write(stranger).name == "elsewhere"
    # taken out of the team of their own: nothing slides into the other
    Membership.objects.filter(user=stranger, team__name="elsewhere").delete()
    with pytest.raises(Invalid, match="vision"):
        selectors.team_to_write(stranger)
    assert selectors.team_to_write(stranger, name="vision") == team
    memberships.choose_team(team=team, by=stranger)
    memberships.choose_team(team=team, by=stranger)
    assert selectors.team_to_write(stranger) == team
    assert verbs().count("team chosen") == 1


def test_nobody_chooses_a_team_that_they_only_look_at_or_do_not_know(team: Team, viewer: User, stranger: User) -> None:
    root = services.create_owner(name="root")
    for user in (viewer, stranger, root):
        with pytest.raises(NotAllowed):
            memberships.choose_team(team=team, by=user)


def test_being_put_down_and_up_again_changes_no_default(team: Team, owner: User, member: User) -> None:
    memberships.set_role(team=team, user=member, role=Role.VIEWER, by=owner)
    with pytest.raises(NotAllowed):
        selectors.team_to_write(member)
    memberships.set_role(team=team, user=member, role=Role.MEMBER, by=owner)
    assert selectors.team_to_write(member) == team


def test_the_pages_invite_show_withdraw_and_answer(team: Team, owner: User, stranger: User, client: Client) -> None:
    theirs = Client()
    theirs.force_login(stranger)
    client.force_login(owner)
    base = f"/settings/teams/{team.pk}/"
    sent = client.post(base, {"username": "stranger", "role": "member"})
    assert (sent.status_code, "/sign-in/ofl_" in sent.content.decode()) == (200, False)
    assert 'id="invited"' in client.get(base).content.decode()
    client.post(f"{base}invitations/stranger/withdraw/")
    assert 'id="invited"' not in client.get(base).content.decode()
    assert "data-invitation" not in theirs.get("/").content.decode()
    for answer, count in (("decline", 1), ("accept", 2)):
        client.post(base, {"username": "stranger", "role": "member"})
        number = Invitation.objects.get(state="open").pk
        for address in ("/", "/settings/teams/"):
            assert f'data-invitation="{number}"' in theirs.get(address).content.decode()
        theirs.post(f"/settings/invitations/{number}/{answer}/")
        assert Membership.objects.filter(user=stranger).count() == count
        assert theirs.post(f"/settings/invitations/{number}/{answer}/", follow=True).status_code == 200
    assert Membership.objects.filter(user=stranger).count() == 2
    assert theirs.post(f"/settings/invitations/{number}/burn/").status_code == 404


def test_a_promoted_viewer_is_told_and_says_yes_on_the_team_s_page(
    team: Team, owner: User, viewer: User, client: Client
) -> None:
    Membership.objects.filter(user=viewer).update(is_chosen=False)
    client.force_login(viewer)
    base = f"/settings/teams/{team.pk}/"
    assert 'id="must-be-named"' not in client.get(base).content.decode()
    memberships.set_role(team=team, user=viewer, role=Role.MEMBER, by=owner)
    assert 'id="must-be-named"' in client.get(base).content.decode()
    # nobody says it for them
    by_admin = Client()
    by_admin.force_login(owner)
    by_admin.post(f"{base}viewer/choose/")
    assert not Membership.objects.get(user=viewer).is_chosen
    client.post(f"{base}viewer/choose/")
    assert Membership.objects.get(user=viewer).is_chosen


def test_the_admin_s_own_pages_put_nobody_into_a_team(team: Team, client: Client) -> None:
    client.force_login(services.create_owner(name="root"))
    page = client.get(f"/admin/accounts/team/{team.pk}/change/").content.decode()
    assert ("memberships-0-role" in page, "memberships-__prefix__" in page) == (False, False)
