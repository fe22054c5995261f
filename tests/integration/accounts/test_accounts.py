"""People, teams, tokens and sign-in links."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from farm.accounts import memberships, selectors, services
from farm.accounts.models import AuditEvent, SignInLink, Team, Token, User
from farm.accounts.states import Role, Scope
from farm.base.refusals import Conflict, Invalid, Missing, NotAllowed


def test_the_owner_is_created_once_and_manages_the_first_team(db: None) -> None:
    owner = services.create_owner()
    again = services.create_owner()
    assert owner == again
    assert (owner.is_superuser, owner.has_usable_password()) == (True, False)
    assert [team.name for team in Team.objects.managed_by(owner)] == ["home"]
    assert AuditEvent.objects.filter(verb="owner created").count() == 1


def test_a_token_opens_until_it_is_revoked_and_only_its_digest_is_kept(member: User) -> None:
    token, secret = services.issue_token(member, [Scope.READ], name="ci")
    assert secret.startswith("ofk_")
    assert len(secret) >= 40
    assert secret not in json.dumps(list(Token.objects.values()), default=str)
    assert selectors.valid_token(secret) == token
    services.revoke_token(token=token, by=member)
    services.revoke_token(token=token, by=member)
    assert selectors.valid_token(secret) is None
    assert AuditEvent.objects.filter(verb="token revoked").count() == 1


def test_a_token_ends_with_its_time_and_with_its_person(member: User) -> None:
    token, secret = services.issue_token(member)
    Token.objects.filter(pk=token.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert selectors.valid_token(secret) is None
    Token.objects.filter(pk=token.pk).update(expires_at=timezone.now() + timedelta(hours=1))
    assert selectors.valid_token(secret) is not None
    User.objects.filter(pk=member.pk).update(is_active=False)
    assert selectors.valid_token(secret) is None


@pytest.mark.parametrize("scopes", [[], ["everything"], ["read", "root"]])
def test_a_token_with_an_unknown_scope_is_refused(member: User, scopes: list[str]) -> None:
    with pytest.raises(Invalid, match="read, write, nodes, admin"):
        services.issue_token(member, scopes)


def test_somebody_elses_token_cannot_be_revoked(member: User, stranger: User) -> None:
    token, _ = services.issue_token(member)
    with pytest.raises(Missing):
        services.revoke_token(token=token, by=stranger)
    token.refresh_from_db()
    assert token.revoked_at is None


def test_a_tokens_last_use_is_noted_at_most_once_a_minute(member: User) -> None:
    token, _ = services.issue_token(member)
    services.note_token_use(token)
    token.refresh_from_db()
    first = token.last_used_at
    services.note_token_use(token)
    token.refresh_from_db()
    assert first is not None
    assert token.last_used_at == first


def test_a_sign_in_link_works_once(member: User) -> None:
    secret = services.make_sign_in_link(member).rstrip("/").rsplit("/", 1)[1]
    assert services.redeem_sign_in_link(secret) == member
    with pytest.raises(NotAllowed):
        services.redeem_sign_in_link(secret)


def test_a_late_or_unknown_sign_in_link_or_one_of_a_closed_account_is_refused(member: User) -> None:
    late = services.make_sign_in_link(member, life=timedelta(seconds=-1)).rstrip("/").rsplit("/", 1)[1]
    fresh = services.make_sign_in_link(member).rstrip("/").rsplit("/", 1)[1]
    User.objects.filter(pk=member.pk).update(is_active=False)
    for secret in (late, "ofl_nothing", fresh):
        with pytest.raises(NotAllowed):
            services.redeem_sign_in_link(secret)
    assert not SignInLink.objects.exclude(used_at=None).exists()


def test_only_an_admin_changes_who_belongs_to_a_team(
    team: Team, owner: User, member: User, viewer: User, stranger: User
) -> None:
    memberships.set_role(team=team, user=member, role=Role.VIEWER, by=owner)
    assert not selectors.can_write(member, team=team)
    with pytest.raises(Missing):
        memberships.set_role(team=team, user=stranger, role=Role.VIEWER, by=owner)
    assert not team.memberships.filter(user=stranger).exists()
    memberships.set_role(team=team, user=member, role=Role.MEMBER, by=owner)
    with pytest.raises(NotAllowed):
        memberships.set_role(team=team, user=viewer, role=Role.ADMIN, by=member)
    outsider = User.objects.create(username="outsider")
    with pytest.raises(Missing):
        memberships.set_role(team=team, user=outsider, role=Role.ADMIN, by=outsider)
    with pytest.raises(Invalid, match="viewer, member, admin"):
        memberships.set_role(team=team, user=viewer, role="king", by=owner)


def test_a_team_keeps_an_admin(team: Team, owner: User, member: User) -> None:
    with pytest.raises(Conflict, match="admin"):
        memberships.remove_member(team=team, user=owner, by=owner)
    with pytest.raises(Conflict, match="admin"):
        memberships.set_role(team=team, user=owner, role=Role.VIEWER, by=owner)
    memberships.set_role(team=team, user=member, role=Role.ADMIN, by=owner)
    memberships.remove_member(team=team, user=owner, by=owner)
    assert not Team.objects.visible_to(owner).exists()
    with pytest.raises(Missing):
        memberships.remove_member(team=team, user=owner, by=member)


def test_a_team_has_a_name_of_its_own(root: User) -> None:
    created = services.create_team(name=" audio ", by=root)
    assert (created.name, created.memberships.get().role) == ("audio", Role.ADMIN)
    with pytest.raises(Conflict):
        services.create_team(name="audio", by=root)
    for name in ("", "x" * 101, "a\x00b"):
        with pytest.raises(Invalid):
            services.create_team(name=name, by=root)


def test_a_person_without_a_team_is_told_what_to_do(db: None) -> None:
    with pytest.raises(NotAllowed, match="ask an admin"):
        selectors.team_to_write(User.objects.create(username="alone"))
    with pytest.raises(Conflict):
        services.create_user(name="alone")
    assert services.create_user(name="new").has_usable_password() is False


def test_the_audit_log_is_for_those_who_manage_the_team(team: Team, owner: User, member: User, stranger: User) -> None:
    services.record(verb="something", actor=member, team=team)
    assert selectors.audit_events_visible_to(owner).count() == 1
    assert selectors.audit_events_visible_to(member).count() == 0
    assert selectors.audit_events_visible_to(stranger).count() == 0
    assert selectors.audit_events_visible_to(services.create_owner(name="root")).count() >= 1


def test_a_command_prints_a_sign_in_link_and_a_token(db: None) -> None:
    out = StringIO()
    call_command("sign_in_link", "--token", stdout=out)
    answer = json.loads(out.getvalue())
    assert selectors.valid_token(answer["token"]) is not None
    secret = answer["link"].rstrip("/").rsplit("/", 1)[1]
    assert services.redeem_sign_in_link(secret).username == answer["user"] == "owner"
    with pytest.raises(CommandError, match="no user"):
        call_command("sign_in_link", "nobody")


def test_no_sign_in_link_is_printed_for_a_closed_account(root: User) -> None:
    services.close_account(user=services.create_owner(), by=root)
    for arguments in ([], ["owner"]):
        with pytest.raises(CommandError, match="owner is closed"):
            call_command("sign_in_link", *arguments)
    assert not SignInLink.objects.exists()
