"""Accounts of people who sign in through the identity provider, and the rights that their groups give them.

An account belongs to the issuer and subject of a person, and to nothing else: neither a user name nor an e-mail address
makes a person the owner of an account that exists already.
"""

import hashlib
from collections.abc import Collection
from contextlib import nullcontext
from itertools import count

from django.db import IntegrityError, transaction
from django.utils import timezone

from farm.accounts.memberships import keep_default_team
from farm.accounts.models import GroupRole, LinkedAccount, Membership, Team, Token, User
from farm.accounts.openid.claims import Identity
from farm.accounts.openid.registration import Registration
from farm.accounts.services import create_user, record
from farm.accounts.states import WRITING_ROLES, Role
from farm.base.refusals import Conflict, Invalid, Missing, NotAllowed

# roles, the strongest last
ROLES_BY_STRENGTH = (Role.VIEWER, Role.MEMBER, Role.ADMIN)


def issuer_key(issuer: str) -> str:
    # subjects of another issuer are other people
    return "openid-" + hashlib.sha256(issuer.encode()).hexdigest()[:32]


def sign_in_person(identity: Identity, *, registration: Registration) -> tuple[User, bool]:
    """Return the account of a person who signed in at the provider, and whether it is new.

    The first sign-in creates the account, under a name with a number where the name is taken. Each sets `vouched_at`,
    is written to the audit log, and sets the person's roles to what their groups say: in teams that have a rule, and as
    administrator where the farm names a group for that. The browser's session is not touched.

    Raises NotAllowed for a closed account, Invalid where rights depend on groups and the provider sent no such claim.
    """
    try:
        with transaction.atomic():
            user, is_new = _find_or_create_account(identity, registration)
            _apply_group_rules(user, identity.groups, registration, is_new=is_new)
            now = timezone.now()
            User.objects.filter(pk=user.pk).update(vouched_at=now)
            user.refresh_from_db()
            record(verb="signed in by provider", subject=user.username, actor=user, facts={"subject": identity.subject})
    except IntegrityError:
        # the same person signed in for the first time in another window, which was faster
        if not LinkedAccount.objects.filter(provider=issuer_key(registration.issuer), uid=identity.subject).exists():
            raise
        return sign_in_person(identity, registration=registration)
    return user, is_new


def connect_account(*, user: User, subject: str, registration: Registration) -> User | None:
    """Make a person of the provider, by their subject, sign in as this user from now on.

    Close the account that the person had before, revoke its tokens, and return it; None where they had none, or were
    this user already. The audit log says so. Raises Conflict for a user who is connected with another person of the
    provider.
    """
    key = issuer_key(registration.issuer)
    with transaction.atomic():
        own_link = LinkedAccount.objects.filter(provider=key, user=user).first()
        if own_link is not None and own_link.uid != subject:
            raise Conflict(f"{user.username} is the provider's “{own_link.uid}” already.", code="connected")
        link = LinkedAccount.objects.select_related("user").filter(provider=key, uid=subject).first()
        if link is None:
            LinkedAccount.objects.create(provider=key, uid=subject, user=user)
        elif link.user_id != user.pk:
            User.objects.filter(pk=link.user_id).update(is_active=False)
            Token.objects.filter(user=link.user_id, revoked_at=None).update(revoked_at=timezone.now())
            LinkedAccount.objects.filter(pk=link.pk).update(user=user)
        record(verb="account connected", subject=user.username, facts={"subject": subject})
    return link.user if link is not None and link.user_id != user.pk else None


def map_group(*, group: str, team: Team, role: str, by: User) -> GroupRole:
    """Give the people of a group a role in a team. A rule for this group and team is replaced.

    The rule is applied to each person at their next sign-in. Of a person's several groups the one with the strongest
    role counts, and members of the team in none of its mapped groups are removed from it.

    Raises NotAllowed unless `by` administers the installation, Invalid for a wrong group or role.
    """
    _check_administers(by)
    if not 0 < len(group) <= 200 or not group.isprintable():
        raise Invalid("A group's name has 1 to 200 printable characters, as the provider writes it.", code="bad_name")
    if role not in list(Role):
        raise Invalid(f"“{role[:40]}” is not a role; use one of {', '.join(list(Role))}.", code="unknown_role")
    with transaction.atomic():
        rule, _ = GroupRole.objects.update_or_create(group=group, team=team, defaults={"role": role})
        record(verb="group mapped", subject=group, actor=by, team=team, facts={"role": role})
    return rule


def forget_group(*, mapping_id: int, by: User) -> GroupRole:
    """Delete the rule with this id, and return it. The role that it gave ends at each person's next sign-in, unless
    another group gives one.

    Raises NotAllowed unless `by` administers the installation, Missing where there is no such rule.
    """
    _check_administers(by)
    rule = GroupRole.objects.select_related("team").filter(pk=mapping_id).first()
    if rule is None:
        raise Missing(f"There is no group rule {mapping_id}; it may be gone already.")
    with transaction.atomic():
        record(verb="group forgotten", subject=rule.group, actor=by, team=rule.team, facts={"role": rule.role})
        rule.delete()
    return rule


def _find_or_create_account(identity: Identity, registration: Registration) -> tuple[User, bool]:
    key = issuer_key(registration.issuer)
    link = LinkedAccount.objects.select_related("user").filter(provider=key, uid=identity.subject).first()
    if link is None:
        names = (identity.name if number == 1 else f"{identity.name}-{number}" for number in count(1))
        free_name = next(name for name in names if not User.objects.filter(username__iexact=name).exists())
        user = create_user(name=free_name)
        LinkedAccount.objects.create(provider=key, uid=identity.subject, user=user)
        facts = {"subject": identity.subject, "called": identity.name}
        record(verb="account made at first sign-in", subject=user.username, actor=user, facts=facts)
        return user, True
    user = link.user
    if not user.is_active:
        raise NotAllowed(
            f"The account of {user.username} on this farm is closed.",
            code="closed",
            hint="Ask an administrator of the farm to open it again.",
        )
    return user, False


def _apply_group_rules(user: User, groups: frozenset[str] | None, registration: Registration, *, is_new: bool) -> None:
    """Set the person's roles to what their groups say, in every team that has a rule."""
    rules = list(GroupRole.objects.select_related("team"))
    if groups is None and not (rules or registration.admin_group):
        return
    if groups is None:
        raise Invalid(
            f"{registration.name} sent no “{registration.groups_claim}”, by which this farm knows what you may do, so "
            f"nobody was signed in.",
            code="no_groups",
            hint="Ask an administrator to let it send that claim, or to name another in ONNXFARM_OIDC_GROUPS_CLAIM.",
        )
    if registration.admin_group:
        _set_administrator(user, is_administrator=registration.admin_group in groups)

    # the strongest role that the person's groups give them in each team
    roles: dict[int, Role] = {}
    for rule in rules:
        if rule.group in groups:
            other_role = roles.get(rule.team_id, Role.VIEWER)
            roles[rule.team_id] = max(other_role, Role(rule.role), key=ROLES_BY_STRENGTH.index)

    ruled_teams = {rule.team_id: rule.team for rule in rules}
    with keep_default_team(user) if not is_new else nullcontext():
        _remove_from_teams(user, ruled_teams.keys(), kept_ids=roles.keys())
        for team_id, role in roles.items():
            _set_role(user, ruled_teams[team_id], role, is_chosen=is_new and role in WRITING_ROLES)


def _remove_from_teams(user: User, ruled_ids: Collection[int], *, kept_ids: Collection[int]) -> None:
    """Remove the person from every team that has rules, or that a group once put them into.

    They stay in the teams where a group of theirs gives them a role (`kept_ids`).
    """
    for membership in user.memberships.select_related("team").select_for_update(of=("self",)):
        if membership.team_id not in kept_ids and (membership.from_groups or membership.team_id in ruled_ids):
            membership.delete()
            record(verb="member removed", subject=user.username, team=membership.team, facts={"by": "groups"})


def _set_role(user: User, team: Team, role: Role, *, is_chosen: bool) -> None:
    """Set a role that a group gives.

    `is_chosen` is for a new membership alone: a later change by groups must not move the person's default team.
    """
    membership = Membership.objects.filter(user=user, team=team).first()
    if membership is not None and membership.role == role and membership.from_groups:
        return
    fields = {"role": role, "from_groups": True}
    Membership.objects.update_or_create(
        user=user, team=team, defaults=fields, create_defaults={**fields, "is_chosen": is_chosen}
    )
    if membership is None or membership.role != role:
        record(verb="role set", subject=user.username, team=team, facts={"role": role, "by": "groups"})


def _set_administrator(user: User, *, is_administrator: bool) -> None:
    if user.is_superuser == is_administrator == user.is_staff:
        return
    User.objects.filter(pk=user.pk).update(is_superuser=is_administrator, is_staff=is_administrator)
    verb = "made administrator" if is_administrator else "no longer administrator"
    record(verb=verb, subject=user.username, actor=user, facts={"by": "groups"})


def _check_administers(by: User) -> None:
    if not by.is_superuser:
        raise NotAllowed("Only an administrator of this farm may say what a provider's groups mean; ask one.")
