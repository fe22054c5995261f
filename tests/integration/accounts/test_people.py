"""Inviting people, giving them roles, closing accounts; and everything by which one might take over another's."""

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts import memberships, selectors, services
from farm.accounts.models import AuditEvent, LinkedAccount, Membership, Team, User
from farm.accounts.states import Role
from farm.base.refusals import Conflict, Invalid, Missing, NotAllowed


@pytest.fixture
def administrator(team: Team) -> User:
    """Somebody who administers the installation."""
    return services.create_owner(name="root", team_name=team.name)


def secret_in(link: str | None) -> str:
    return str(link).rstrip("/").rsplit("/", 1)[1]


def test_a_new_person_comes_in_by_the_link_of_their_invitation(team: Team, owner: User, client: Client) -> None:
    invited = memberships.invite(team=team, name="ada@example.org", by=owner, role=Role.VIEWER)
    address = invited.link[invited.link.index("/sign-in/") :]
    assert client.post(address).status_code == 302
    assert client.get(f"/settings/teams/{team.pk}/").status_code == 200
    assert (invited.role, invited.invitation, invited.user.has_usable_password()) == (Role.VIEWER, None, False)
    assert AuditEvent.objects.get(verb="person invited").actor == owner


def test_an_admin_of_a_team_gets_no_link_that_signs_in_as_somebody_else(team: Team, owner: User, stranger: User):
    administrator = services.create_owner(name="root", team_name="another")
    for name in (stranger.username, administrator.username):
        invited = memberships.invite(team=team, name=name, by=owner)
        assert (invited.user.username, invited.link) == (name, None)
    with pytest.raises(NotAllowed, match="Only an administrator"):
        services.make_link_for(user=stranger, by=owner)


def test_the_same_name_in_capitals_is_the_same_person(team: Team, owner: User, stranger: User) -> None:
    invited = memberships.invite(team=team, name=stranger.username.upper(), by=owner)
    assert (invited.user, invited.link) == (stranger, None)


@pytest.mark.parametrize("asked", list(Role))
@pytest.mark.parametrize("known", list(Role))
def test_inviting_a_member_again_leaves_their_role_alone(
    team: Team, owner: User, member: User, known: Role, asked: Role
) -> None:
    memberships.set_role(team=team, user=member, role=known, by=owner)
    User.objects.filter(pk=member.pk).update(last_login=timezone.now())
    with pytest.raises(Conflict) as refused:
        memberships.invite(team=team, name=member.username.upper(), by=owner, role=asked)
    assert team.memberships.get(user=member).role == known
    assert f"{member.username} is already in team “{team.name}”, as {known.value}." in str(refused.value)
    assert f"onnxfarm farm users role {member.username} ROLE --team {team.name}" in refused.value.hint


def test_whoever_lost_their_link_is_invited_again_and_the_old_one_ends(team: Team, owner: User, client: Client) -> None:
    lost = memberships.invite(team=team, name="ada", by=owner, role=Role.VIEWER)
    again = memberships.invite(team=team, name="Ada", by=owner, role=Role.ADMIN)
    assert (again.user, again.role, again.invitation) == (lost.user, Role.VIEWER, None)
    with pytest.raises(NotAllowed):
        selectors.find_user_of_link(secret_in(lost.link))
    assert services.redeem_sign_in_link(secret_in(again.link)) == again.user
    assert AuditEvent.objects.get(verb="sign-in link made").actor == owner
    # from now on they come by themselves
    with pytest.raises(Conflict, match="as viewer"):
        memberships.invite(team=team, name="ada", by=owner)


def test_whoever_was_taken_out_before_they_came_gets_a_link_with_their_invitation(team: Team, owner: User) -> None:
    ada = memberships.invite(team=team, name="ada", by=owner).user
    memberships.remove_member(team=team, user=ada, by=owner)
    again = memberships.invite(team=team, name="ada", by=owner)
    assert (again.link is None, again.invitation is None) == (False, False)


@pytest.mark.parametrize(
    "known", ["signed in", "vouched for", "token", "provider", "administrator", "member elsewhere"]
)
def test_nobody_gets_a_link_by_which_they_would_be_somebody_else(
    team: Team, owner: User, stranger: User, known: str
) -> None:
    ada = memberships.invite(team=team, name="ada", by=owner).user
    match known:
        case "signed in":
            User.objects.filter(pk=ada.pk).update(last_login=timezone.now())
        case "vouched for":
            User.objects.filter(pk=ada.pk).update(vouched_at=timezone.now())
        case "token":
            services.issue_token(ada)
        case "provider":
            LinkedAccount.objects.create(provider="openid-1", uid="1", user=ada)
        case "administrator":
            User.objects.filter(pk=ada.pk).update(is_superuser=True)
        case _:
            Membership.objects.create(team=stranger.memberships.get().team, user=ada)
    with pytest.raises(Conflict, match="as member"):
        memberships.invite(team=team, name="ada", by=owner)
    # their own link still works
    assert ada.sign_in_links.filter(used_at=None).count() == 1


def test_an_admin_gets_no_link_of_a_newcomer_of_another_team_or_invited_to_one(
    team: Team, owner: User, stranger: User
) -> None:
    elsewhere = stranger.memberships.get().team
    ada = memberships.invite(team=team, name="ada", by=owner).user
    assert memberships.invite(team=elsewhere, name="ada", by=stranger).link is None
    # what “elsewhere” offers her is not the owner's either
    with pytest.raises(Conflict, match="as member"):
        memberships.invite(team=team, name="ada", by=owner)
    memberships.withdraw_invitation(team=elsewhere, name=ada.username, by=stranger)
    assert memberships.invite(team=team, name="ada", by=owner).link


def test_an_admin_who_invites_themselves_stays_an_admin(team: Team, owner: User) -> None:
    with pytest.raises(Conflict, match="as admin"):
        memberships.invite(team=team, name=owner.username, by=owner, role=Role.VIEWER)
    assert team.memberships.get(user=owner).role == Role.ADMIN


@pytest.mark.parametrize("name", ["", "a b", "<script>", "a" * 151, "a\x00", "ж\n"])
def test_a_name_that_is_none_is_refused_in_words(team: Team, owner: User, name: str) -> None:
    with pytest.raises(Invalid, match="cannot be a person's name"):
        memberships.invite(team=team, name=name, by=owner)


def test_an_unknown_role_leaves_no_account_behind(team: Team, owner: User) -> None:
    with pytest.raises(Invalid, match="not a role"):
        memberships.invite(team=team, name="ada", by=owner, role="king")
    assert not User.objects.filter(username="ada").exists()


def test_only_those_who_manage_a_team_invite_into_it(team: Team, member: User, stranger: User) -> None:
    with pytest.raises(NotAllowed):
        memberships.invite(team=team, name="ada", by=member)
    with pytest.raises(Missing):
        memberships.invite(team=team, name="ada", by=stranger)


def test_a_full_team_takes_nobody(team: Team, owner: User) -> None:
    people = User.objects.bulk_create(User(username=f"m{number}") for number in range(memberships.MAX_MEMBERS - 1))
    Membership.objects.bulk_create(Membership(team=team, user=person, role=Role.MEMBER) for person in people)
    with pytest.raises(Conflict):
        memberships.invite(team=team, name="ada", by=owner)


def test_a_closed_account_opens_nothing_until_an_administrator_invites_it_again(
    team: Team, owner: User, member: User, administrator: User, client: Client
) -> None:
    _, secret = services.issue_token(member)
    early = services.make_sign_in_link(member)
    client.force_login(member)
    services.close_account(user=member, by=administrator)
    services.close_account(user=member, by=administrator)
    assert selectors.valid_token(secret) is None
    assert client.get("/settings/").status_code == 302
    assert AuditEvent.objects.filter(verb="account closed").count() == 1
    with pytest.raises(Conflict, match="is closed"):
        memberships.invite(team=team, name=member.username, by=owner)
    member.refresh_from_db()
    with pytest.raises(Conflict, match="is closed"):
        services.make_link_for(user=member, by=administrator)
    invited = memberships.invite(team=team, name=member.username, by=administrator, role=Role.ADMIN)
    assert (invited.user, invited.role, invited.invitation) == (member, Role.MEMBER, None)
    with pytest.raises(NotAllowed):
        services.redeem_sign_in_link(secret_in(early))
    assert invited.link is not None
    # what was closed with the account stays so
    assert selectors.valid_token(secret) is None


def test_nobody_closes_their_own_account_or_without_administering(owner: User, member: User, administrator: User):
    with pytest.raises(NotAllowed):
        services.close_account(user=member, by=owner)
    with pytest.raises(Conflict, match="your own account"):
        services.close_account(user=administrator, by=administrator)


def test_only_administrators_make_teams(owner: User, administrator: User) -> None:
    with pytest.raises(NotAllowed, match="may make a team"):
        services.create_team(name="another", by=owner)
    assert services.create_team(name="another", by=administrator).memberships.get().user == administrator
