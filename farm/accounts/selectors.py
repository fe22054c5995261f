"""Queries of people, teams and tokens. Everything a person sees goes through `visible_to`.

Teams and invitations come in the order of their ids, unless a docstring says otherwise; members by user name; rules of
groups by group; tokens, share links and events of the audit log newest first. People are counted where their account is
open. A token that is revoked, expired or dormant, or of a closed account, is not valid.
"""

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.utils import timezone

from farm.accounts.models import AuditEvent, GroupRole, Invitation, Membership, Share, SignInLink, Team, Token, User
from farm.accounts.states import BACKED_UP
from farm.base.refusals import Invalid, Missing, NotAllowed, require_row
from farm.base.secrecy import hash_secret

Anyone = User | AnonymousUser
# how many teams a sentence names
MAX_NAMES = 20


def teams_visible_to(user: Anyone) -> QuerySet[Team]:
    return Team.objects.visible_to(user)


def teams_writable_by(user: Anyone) -> QuerySet[Team]:
    return Team.objects.writable_by(user)


def team_named(name: str, *, user: Anyone) -> Team:
    """Return the team of that name. Raises Missing where the user may not see it.

    People see the teams that they are in, administrators of the installation all.
    """
    team = Team.objects.visible_to(user).filter(name=name.replace("\x00", "")).first()
    if team is None:
        names = ", ".join(Team.objects.visible_to(user).values_list("name", flat=True)) or "none"
        raise Missing(f"There is no team “{name}” that you belong to.", hint=f"Your teams: {names}.")
    return team


def team_to_write(user: Anyone, *, name: str = "") -> Team:
    """Return the team for something new: the named one, or else the user's default.

    Raises Missing for a team that the user is not in, NotAllowed where they may only view it or may write in none, and
    Invalid, with the teams' names, where they have no default.
    """
    if name:
        team = team_named(name, user=user)
        if not can_write(user, team=team):
            raise NotAllowed(f"You can view team “{name}” but not upload or start runs in it; ask one of its admins.")
        return team
    default = default_team(user)
    if default is None:
        raise _make_no_default_refusal(list(teams_writable_by(user).values_list("name", flat=True)[: MAX_NAMES + 1]))
    return default


def default_team(user: Anyone) -> Team | None:
    """Return the only team that the user joined or chose to write in; None where they have none or several.

    Uploads and runs that name no team go there. Only memberships count, also those of an administrator.
    """
    teams = Team.objects.chosen_by(user)[:2]
    return teams[0] if len(teams) == 1 else None


def can_write(user: Anyone, *, team: Team) -> bool:
    return Team.objects.writable_by(user).filter(pk=team.pk).exists()


def can_manage(user: Anyone, *, team: Team) -> bool:
    return Team.objects.managed_by(user).filter(pk=team.pk).exists()


def team(user: Anyone, team_id: int) -> Team:
    """Return a team by its number. Raises Missing where the user is neither in it nor administers the installation."""
    return require_row(
        Team.objects.visible_to(user).filter(pk=team_id), f"There is no team {team_id} that you belong to."
    )


def person_named(name: str, *, user: User) -> User:
    """Return a person of the user's teams, or anybody for an administrator, by their exact user name.

    Closed accounts are returned too. Raises Missing for anybody else.
    """
    people = User.objects.all()
    if not user.is_superuser:
        people = people.filter(memberships__team__in=Team.objects.visible_to(user))
    return require_row(
        people.filter(username=name.replace("\x00", "")), f"There is no user “{name[:150]}” in your teams."
    )


def member_named(name: str, *, team: Team) -> User:
    """Return a member of the team. Raises Missing for anybody else."""
    membership = memberships_in(team).filter(user__username=name.replace("\x00", "")).first()
    if membership is None:
        raise Missing(f"There is no user “{name[:150]}” in team “{team.name}”.")
    return membership.user


def memberships_in(team: Team) -> QuerySet[Membership]:
    return team.memberships.select_related("user").order_by("user__username")


def open_invitations_of(user: User) -> QuerySet[Invitation]:
    """Return the invitations that the user can still answer; expired and lapsed ones are left out."""
    return user.invitations.answerable().select_related("team", "invited_by")


def open_invitations_into(team: Team) -> QuerySet[Invitation]:
    """Return the team's invitations that can still be answered, by user name; expired and lapsed ones are left out."""
    return team.invitations.answerable().select_related("user", "invited_by").order_by("user__username")


def invitation(user: User, invitation_id: int) -> Invitation:
    """Return an invitation that the user was sent, open, answered or expired. Raises Missing for those of others."""
    return require_row(
        user.invitations.select_related("team", "invited_by").filter(pk=invitation_id),
        f"You have no invitation {invitation_id}.",
        hint="Those that wait for you are under Teams.",
    )


def membership(user: User, team: Team) -> Membership | None:
    return team.memberships.filter(user=user).first()


def tokens_of(user: User) -> QuerySet[Token]:
    """Return all tokens of the user, revoked and expired ones too; the newest first."""
    return user.tokens.select_related("team")


def valid_token(secret: str) -> Token | None:
    token = Token.objects.select_related("user", "team").filter(digest=hash_secret(secret)).first()
    return token if token is not None and token.is_valid else None


def find_user_of_link(secret: str) -> User:
    """Return the user that a link would sign in, without using the link up.

    Raises NotAllowed for a used, expired or unknown link, for any of a closed account, or where links are switched off.
    """
    fresh = SignInLink.objects.select_related("user").filter(used_at=None, expires_at__gt=timezone.now())
    link = fresh.filter(digest=hash_secret(secret), user__is_active=True).first()
    if link is None:
        raise make_bad_link_refusal()
    if not is_link_allowed(link):
        raise make_links_off_refusal()
    return link.user


def is_link_allowed(link: SignInLink) -> bool:
    """Say whether this kind of link may sign people in here: where local sign-in is off, only emergency links may.

    Does not check whether the link was used or has expired.
    """
    return settings.LOCAL_SIGN_IN or link.is_emergency


def make_links_off_refusal() -> NotAllowed:
    """Make the refusal of a one-time link where people sign in through the identity provider alone."""
    return NotAllowed(
        "One-time links are switched off on this farm: people sign in through its identity provider.",
        code="local_off",
        hint="While it is away, the farm's own machine makes links: `python manage.py sign_in_link NAME --emergency`.",
    )


def make_bad_link_refusal() -> NotAllowed:
    """Make the refusal of a wrong link, with the same words whatever is wrong with it."""
    return NotAllowed(
        "This sign-in link was used, has expired or never existed.",
        code="bad_link",
        hint="An administrator makes another: `onnxfarm farm users link NAME`, or `python manage.py sign_in_link`.",
    )


def shares_visible_to(user: Anyone) -> QuerySet[Share]:
    shares = Share.objects.select_related("team", "created_by")
    return shares.filter(team__in=Team.objects.visible_to(user))


def open_shares(user: Anyone) -> QuerySet[Share]:
    """Return the links of all the user's teams that still open (`Share.is_open`); the newest first."""
    is_open = {"revoked_at": None, "expires_at__gt": timezone.now(), "created_by__is_active": True}
    return shares_visible_to(user).filter(**is_open)


def share(user: Anyone, share_id: int) -> Share:
    """Return a share link by its number, also a closed or expired one.

    Raises Missing where the user may see no such link.
    """
    return require_row(
        shares_visible_to(user).filter(pk=share_id),
        f"There is no share link {share_id} of your teams.",
        hint="They are listed under Shares.",
    )


def audit_events_visible_to(user: Anyone) -> QuerySet[AuditEvent]:
    """Return the audit log of the teams that the user manages; all of it for an administrator of the installation.

    Events of no team are for such an administrator alone.
    """
    events = AuditEvent.objects.select_related("actor", "team")
    if user.is_authenticated and user.is_superuser:
        return events
    return events.filter(team__in=Team.objects.managed_by(user))


def last_backup() -> AuditEvent | None:
    return AuditEvent.objects.filter(verb=BACKED_UP).first()


def count_people_who_signed_in() -> int:
    return User.objects.filter(is_active=True, last_login__isnull=False).count()


def group_roles() -> QuerySet[GroupRole]:
    return GroupRole.objects.select_related("team")


def mapped_groups(team: Team) -> list[str]:
    return list(team.group_roles.values_list("group", flat=True))


def _make_no_default_refusal(names: list[str]) -> Invalid | NotAllowed:
    """Make the refusal that says why a team has to be named. `names` are the teams that the user may write in."""
    if not names:
        return NotAllowed("You belong to no team in which you may upload or run; ask an admin to add you to one.")
    shown = ", ".join([*names[:MAX_NAMES], *(["…"] if len(names) > MAX_NAMES else [])])
    return Invalid(
        f"No team was named, and you may write in: {shown}.",
        code="team_not_named",
        hint="Name one: `--team NAME` in a command, `team` in the API, the field “Team” on a page. A team where others "
        "made you a writer has to be named, too, until you say `onnxfarm farm teams choose NAME`.",
    )
