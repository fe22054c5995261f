"""Members of teams: invitations and their answers, roles, leaving.

Nobody joins a team without agreeing. A new person agrees by following the link that their account is made with, and a
person who has an account by accepting an invitation. Uploads and runs of a person go to no team that they did not name
or choose, whatever others do to their roles.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Final, NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from farm.accounts.models import Invitation, Membership, Team, User
from farm.accounts.selectors import can_manage, can_write, default_team, teams_visible_to
from farm.accounts.services import create_user, make_sign_in_link, record
from farm.accounts.states import WRITING_ROLES, InvitationState, Role
from farm.base.refusals import Conflict, Invalid, Missing, NotAllowed

MAX_MEMBERS: Final = 1000
# how long invitations and links of new people last: the person may be away
INVITATION_LIFE: Final = timedelta(days=7)
LAST_ADMIN: Final = "A team needs at least one admin; make somebody else admin first."


class Invited(NamedTuple):
    """The result of an invitation."""

    user: User
    role: str
    # a one-time sign-in link, for a person who has never signed in or whose account was opened again. None for any
    # other, because the inviter could sign in as them; None also where links are switched off
    link: str | None = None
    # the invitation that the person has to accept; None for a member of the team
    invitation: Invitation | None = None


def invite(*, team: Team, name: str, by: User, role: str = Role.MEMBER) -> Invited:
    """Create an account in the team for a new person, or an invitation for a person who has an account.

    The name of an account counts in any case. A new person is a member at once. A person who has never signed in gets a
    new link, which ends their earlier ones. An open invitation with the same role is returned as it is; one with
    another role is replaced. For an administrator of the installation this also opens a closed account again. A member
    of the team keeps their old role. All but an unchanged invitation is in the audit log, and nobody is mailed.
    Raises Missing for a team that `by` does not see, NotAllowed unless `by` manages it, Invalid for a wrong name or
    role, Conflict for a closed account, a full team, a member without a new link, or a new name where accounts come
    from the identity provider alone.
    """
    _check_may_manage(team, by)
    _check_role(role)
    user = User.objects.filter(username__iexact=name).first()
    with transaction.atomic():
        # locked, so that a team's invitations are made one at a time
        team = Team.objects.select_for_update().get(pk=team.pk)
        if user is None:
            return _create_member(team, name, role, by)
        membership = team.memberships.filter(user=user).first()
        link = _renew_link(user, team, by) if user.is_active else _reopen_account(user, by)
        if membership is None:
            return Invited(user, role, link, _ensure_invitation(team, user, role, by))
        if user.is_active and link is None:
            raise _make_member_conflict(membership)
        return Invited(user, membership.role, link)


def accept_invitation(*, invitation: Invitation, by: User) -> Membership:
    """Accept an invitation (open → accepted) and make `by` a member of the team, in its role. The audit log says so.

    Raises Missing for an invitation of another person or to a removed team, Conflict where it cannot be answered any
    more, where they are a member already, or where the team is full; the invitation then stays as it is.
    """
    with transaction.atomic():
        team = Team.objects.select_for_update().filter(pk=invitation.team_id).first()
        if team is None:
            raise Missing("The team of this invitation was removed.")
        _end_invitation(invitation, InvitationState.ACCEPTED, by)
        membership = team.memberships.filter(user=by).first()
        if membership is not None:
            raise Conflict(f"You are in team “{team.name}” already, as {membership.role}.", code="already_member")
        _check_room(team.memberships.count(), team)
        role = invitation.role
        return Membership.objects.create(team=team, user=by, role=role, is_chosen=role in WRITING_ROLES)


def decline_invitation(*, invitation: Invitation, by: User) -> None:
    """Decline an invitation (open → declined). The audit log says so.

    Raises Missing for an invitation of another person, Conflict where it cannot be answered any more.
    """
    with transaction.atomic():
        # every change of an invitation locks its team first, which prevents deadlocks
        Team.objects.select_for_update().filter(pk=invitation.team_id).first()
        _end_invitation(invitation, InvitationState.DECLINED, by)


def withdraw_invitation(*, team: Team, name: str, by: User) -> None:
    """Withdraw a person's open invitation (open → withdrawn), also one that has expired. The audit log says so.

    `name` is the exact user name. Raises NotAllowed unless `by` manages the team, Missing where there is no such
    invitation or `by` does not see the team.
    """
    _check_may_manage(team, by)
    with transaction.atomic():
        Team.objects.select_for_update().filter(pk=team.pk).first()
        user = User.objects.filter(username=name.replace("\x00", "")).first()
        # without a join, so that the database checks again that it is open once it has waited for a lock
        opened = Invitation.objects.filter(team=team.pk, user=user, state=InvitationState.OPEN)
        if user is None or not opened.update(state=InvitationState.WITHDRAWN):
            raise Missing(f"There is no open invitation of “{name[:150]}” to team “{team.name}”.")
        record(verb="invitation withdrawn", subject=name, actor=by, team=team)


def choose_team(*, team: Team, by: User) -> None:
    """Make a team one that `by` has chosen to write in, which the audit log says; a second call changes nothing.

    A person's only chosen team is their default, where uploads and runs that name no team go. With several chosen
    teams they have no default. Raises NotAllowed unless `by` is a member of the team with a role that may write.
    """
    if not (can_write(by, team=team) and team.memberships.filter(user=by).exists()):
        raise NotAllowed(
            f"You may not upload or start runs in team “{team.name}” as its member; ask one of its admins."
        )
    with transaction.atomic():
        if team.memberships.filter(user=by, is_chosen=False).update(is_chosen=True):
            record(verb="team chosen", subject=by.username, actor=by, team=team)


def set_role(*, team: Team, user: User, role: str, by: User) -> Membership:
    """Change a member's role, and return their membership. The audit log says so, also where the role is the same.

    Raises NotAllowed unless `by` manages the team, Invalid for a wrong role, Missing for a person who is not a member
    or a team that `by` does not see, Conflict for the last admin.
    """
    _check_may_manage(team, by)
    _check_role(role)
    with transaction.atomic(), keep_default_team(user) if user != by else nullcontext():
        if role != Role.ADMIN:
            _check_other_admin(team, without=user)
        if not team.memberships.filter(user=user).update(role=role):
            raise Missing(f"{user.username} is not in team “{team.name}”.")
        record(verb="role set", subject=user.username, actor=by, team=team, facts={"role": role})
        return team.memberships.select_related("user").get(user=user)


def remove_member(*, team: Team, user: User, by: User) -> None:
    """Remove a person from a team; anybody may leave. The audit log says so.

    Raises NotAllowed unless `by` manages the team or leaves it, Missing for a person who is not a member or a team that
    `by` does not see, Conflict for the last admin.
    """
    if user != by:
        _check_may_manage(team, by)
    with transaction.atomic(), keep_default_team(user) if user != by else nullcontext():
        _check_other_admin(team, without=user)
        removed, _ = Membership.objects.filter(team=team, user=user).delete()
        if not removed:
            raise Missing(f"{user.username} is not in team “{team.name}”.")
        record(verb="member removed", subject=user.username, actor=by, team=team)


@contextmanager
def keep_default_team(user: User) -> Iterator[None]:
    """Wrap a change of a person's roles by somebody else, so that it gives them no other default team.

    If a person who had chosen several teams would get another default, they have none until they choose again.
    """
    default_before, chosen_count = default_team(user), user.memberships.filter(is_chosen=True).count()
    yield
    if chosen_count > 1 and default_team(user) not in (None, default_before):
        user.memberships.update(is_chosen=False)


def _create_member(team: Team, name: str, role: str, by: User) -> Invited:
    """Create an account that is a member of the team, and its sign-in link."""
    _check_local_accounts(name)
    _check_room(_count_places(team), team)
    user = create_user(name=_check_name(name))
    Membership.objects.create(team=team, user=user, role=role, is_chosen=role in WRITING_ROLES)
    record(verb="person invited", subject=name, actor=by, team=team, facts={"role": role})
    return Invited(user, role, make_sign_in_link(user, life=INVITATION_LIFE))


def _renew_link(user: User, team: Team, by: User) -> str | None:
    """End the sign-in links of a person who has never signed in, and return a new one.

    None for anybody else, for administrators, and for a person of a team, or invited to one, that `by` does not manage:
    the link would give its rights to `by`.
    """
    teams = Team.objects.filter(Q(memberships__user=user) | Q(invitations__in=user.invitations.answerable()))
    if not settings.LOCAL_SIGN_IN or teams.exclude(pk__in=Team.objects.managed_by(by)).exists():
        return None
    # locked as by whoever follows a link, so that it is certain that they have not signed in
    unknown = {"last_login": None, "vouched_at": None, "is_staff": False, "is_superuser": False}
    newcomer = User.objects.select_for_update(no_key=True).filter(pk=user.pk, **unknown).exclude(pk=by.pk).first()
    if newcomer is None or newcomer.tokens.exists() or newcomer.linked_accounts.exists():
        return None
    newcomer.sign_in_links.all().delete()
    record(verb="sign-in link made", subject=user.username, actor=by, team=team)
    return make_sign_in_link(user, life=INVITATION_LIFE)


def _reopen_account(user: User, by: User) -> str | None:
    """Open a closed account and return its sign-in link. Raises Conflict unless `by` administers the installation."""
    if not by.is_superuser:
        raise Conflict(f"The account of {user.username} is closed: ask an administrator.", code="closed")
    User.objects.filter(pk=user.pk).update(is_active=True)
    record(verb="account opened again", subject=user.username, actor=by)
    return make_sign_in_link(user, life=INVITATION_LIFE) if settings.LOCAL_SIGN_IN else None


def _ensure_invitation(team: Team, user: User, role: str, by: User) -> Invitation:
    """Return the invitation that is open already, or a new one in place of others. Call with the team's row locked."""
    invitations = team.invitations.filter(user=user)
    open_invitation = invitations.answerable().filter(role=role).first()
    if open_invitation is not None:
        return open_invitation
    invitations.delete()
    _check_room(_count_places(team), team)
    record(verb="invitation sent", subject=user.username, actor=by, team=team, facts={"role": role})
    expires_at = timezone.now() + INVITATION_LIFE
    return Invitation.objects.create(team=team, user=user, role=role, invited_by=by, expires_at=expires_at)


def _end_invitation(invitation: Invitation, state: InvitationState, by: User) -> None:
    if invitation.user_id != by.pk:
        raise Missing("You have no such invitation.")
    if not invitation.end(state):
        raise _make_not_open_conflict(invitation)
    facts = {"role": invitation.role}
    record(verb=f"invitation {state}", subject=by.username, actor=by, team=invitation.team, facts=facts)


def _make_not_open_conflict(invitation: Invitation) -> Conflict:
    invitation.refresh_from_db()
    subject = f"The invitation to team “{invitation.team}”"
    if invitation.state != InvitationState.OPEN:
        problem = f"was {invitation.state} already"
    elif invitation.is_expired:
        problem = f"expired on {invitation.expires_at:%Y-%m-%d at %H:%M} UTC"
    else:
        problem = f"has lapsed: {invitation.invited_by} no longer manages the team"
    return Conflict(f"{subject} {problem}.", code="not_open", hint="An admin of the team may send another.")


def _count_places(team: Team) -> int:
    return team.memberships.count() + team.invitations.answerable().count()


def _check_room(places: int, team: Team) -> None:
    if places >= MAX_MEMBERS:
        text = f"Team “{team.name}” has {MAX_MEMBERS} members and invitations, as many as it may."
        raise Conflict(text, code="full")


def _check_may_manage(team: Team, user: User) -> None:
    if not teams_visible_to(user).filter(pk=team.pk).exists():
        raise Missing(f"There is no team “{team.name}” that you belong to.")
    if not can_manage(user, team=team):
        raise NotAllowed(f"Only an admin of team “{team.name}” may change its members.")


def _check_role(role: str) -> None:
    if role not in list(Role):
        raise Invalid(f"“{role}” is not a role; use one of {', '.join(list(Role))}.", code="unknown_role")


def _make_member_conflict(membership: Membership) -> Conflict:
    """Make the refusal of an invitation of a member, with their role and how it is changed."""
    name, team = membership.user.username, membership.team.name
    command = shlex.join(["onnxfarm", "farm", "users", "role", name, "ROLE", "--team", team])
    return Conflict(
        f"{name} is already in team “{team}”, as {membership.role}. An invitation does not change a role.",
        code="already_member",
        hint=f"Change it on the team's page, or with: {command}",
    )


def _check_local_accounts(name: str) -> None:
    """Raise Conflict where accounts come from the identity provider alone."""
    if not settings.LOCAL_SIGN_IN:
        raise Conflict(
            f"There is no account “{name[:150]}” on this farm, and accounts come from its identity provider alone.",
            code="not_here_yet",
            hint="Let them sign in once, then invite them; or map a group of theirs to this team.",
        )


def _check_name(name: str) -> str:
    """Return the name. Raises Invalid where Django does not allow it."""
    field = User._meta.get_field("username")
    try:
        field.clean(name, None)
    except ValidationError as problem:
        raise Invalid(
            f"“{name[:50]}” cannot be a person's name here: letters, digits and @ . + - _ are, 150 at most.",
            code="bad_name",
        ) from problem
    return name


def _check_other_admin(team: Team, *, without: User) -> None:
    """Raise Conflict where nobody else is admin. Call inside a transaction: this locks the team's memberships."""
    admins = list(team.memberships.select_for_update().filter(role=Role.ADMIN).values_list("user_id", flat=True))
    if admins == [without.pk]:
        raise Conflict(LAST_ADMIN, code="last_admin")
