"""Creates, changes and closes accounts, teams, tokens, sign-in links and share links.

Each change is written to the audit log, but not those of `create_user`, `note_token_use` and `make_sign_in_link`, of
which only emergency links are. A call that changes nothing, and `create_owner` for an owner who exists, write nothing.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from farm.accounts.models import AuditEvent, Membership, Share, SignInLink, Team, Token, User
from farm.accounts.selectors import (
    can_manage,
    can_write,
    is_link_allowed,
    make_bad_link_refusal,
    make_links_off_refusal,
    team_to_write,
)
from farm.accounts.states import Role, Scope, ShareKind
from farm.base.refusals import Conflict, Gone, Invalid, Missing, NotAllowed
from farm.base.secrecy import HINT_LENGTH, LINK_PREFIX, SHARE_PREFIX, TOKEN_PREFIX, hash_secret, make_secret

TOKEN_DAYS = 365
TOKEN_LIFE = timedelta(days=TOKEN_DAYS)
LINK_LIFE = timedelta(hours=1)
# the name of the first team, to which the person who starts a farm and the node on its machine belong
OWNERS_TEAM = "home"
# `last_used_at` is rewritten at most this often
USE_INTERVAL = timedelta(minutes=1)
SHARE_DAYS = 365
SHARE_OPENED = "share link opened"
# the minutes of a day on a thousand nodes
MAX_DAILY_MINUTES = 1440 * 1000


def create_owner(*, name: str = "owner", team_name: str = OWNERS_TEAM) -> User:
    """Return the administrator of the installation, created with the first team on the first call.

    Each call makes the user of this name an admin of that team again; an account that was there already keeps its other
    rights, so that it may be closed or no administrator.
    """
    with transaction.atomic():
        user, is_new = User.objects.get_or_create(
            username=name, defaults={"is_staff": True, "is_superuser": True, "is_active": True}
        )
        if is_new:
            user.set_unusable_password()
            user.save(update_fields=["password"])
        team, _ = Team.objects.get_or_create(name=team_name)
        Membership.objects.update_or_create(team=team, user=user, defaults={"role": Role.ADMIN})
        if is_new:
            record(verb="owner created", subject=name, actor=user, team=team)
    return user


def create_user(*, name: str) -> User:
    """Create a person without a password and without a team, who needs a sign-in link.

    The name is not checked for its letters. Raises Conflict where it is taken.
    """
    if User.objects.filter(username=name).exists():
        raise Conflict(f"There is already a user “{name}”; choose another name.", code="name_taken")
    user = User(username=name)
    user.set_unusable_password()
    user.save()
    return user


def make_link_for(*, user: User, by: User) -> str:
    """Make a sign-in link for a person who is locked out, and return its URL.

    Raises NotAllowed unless `by` administers the installation or where links are switched off, Conflict for a closed
    account.
    """
    _check_administers(by, "make a sign-in link for somebody else")
    if not settings.LOCAL_SIGN_IN:
        raise make_links_off_refusal()
    if not user.is_active:
        raise Conflict(f"The account of {user.username} is closed; invite them again.", code="closed")
    record(verb="sign-in link made", subject=user.username, actor=by)
    return make_sign_in_link(user)


def close_account(*, user: User, by: User) -> None:
    """Close an account, so that nobody can sign in as this person, and their share links open nothing.

    Their models and runs stay. Tokens and sign-in links are closed for good, even when the account is opened again. An
    account that is closed already is left as it is.
    Raises NotAllowed unless `by` administers the installation, Conflict where `user` is `by`.
    """
    _check_administers(by, "close an account")
    if user == by:
        raise Conflict("This is your own account; let another administrator close it.", code="own_account")
    with transaction.atomic():
        if User.objects.filter(pk=user.pk, is_active=True).update(is_active=False):
            now = timezone.now()
            Token.objects.filter(user=user, revoked_at=None).update(revoked_at=now)
            SignInLink.objects.filter(user=user, used_at=None).update(used_at=now)
            record(verb="account closed", subject=user.username, actor=by)


def create_team(*, name: str, by: User) -> Team:
    """Create a team with `by` as its admin. Spaces around the name are dropped.

    Raises NotAllowed unless `by` administers the installation, Conflict where the name is taken, Invalid for a name
    that is not 1 to 100 printable characters.
    """
    _check_administers(by, "make a team")
    name = name.strip()
    if not name or len(name) > 100 or not name.isprintable():
        raise Invalid("A team's name has 1 to 100 printable characters.", code="bad_name")
    with transaction.atomic():
        team, is_new = Team.objects.get_or_create(name=name)
        if not is_new:
            raise Conflict(f"There is already a team “{name}”; choose another name.", code="name_taken")
        Membership.objects.create(team=team, user=by, role=Role.ADMIN)
        record(verb="team created", subject=name, actor=by, team=team)
    return team


def set_queue_settings(*, team: Team, by: User, **changes: object) -> Team:
    """Change the queue settings that are given, and leave the others. The audit log has them, also where all stay.

    `puts_people_first`: runs that people asked for come first on the team's nodes. `daily_minutes`: how many node
    minutes may be measured for the team a day, None for no limit. Raises NotAllowed unless `by` manages the team,
    Invalid for a wrong number of minutes.
    """
    if not can_manage(by, team=team):
        raise NotAllowed(f"Only an admin of team “{team.name}” says whose turn it is.")
    minutes = changes.get("daily_minutes")
    if minutes is not None and not (isinstance(minutes, int) and 0 <= minutes <= MAX_DAILY_MINUTES):
        raise Invalid(f"A team has 0 to {MAX_DAILY_MINUTES:,} node minutes a day, or no limit.", code="daily_minutes")
    with transaction.atomic():
        for name, value in changes.items():
            setattr(team, name, value)
        team.save(update_fields=[*changes])
        record(verb="turns changed", subject=team.name, actor=by, team=team, facts=changes)
    return team


def issue_token(
    user: User,
    scopes: Iterable[str] = (Scope.READ, Scope.WRITE),
    *,
    name: str = "",
    life: timedelta = TOKEN_LIFE,
    team: str = "",
) -> tuple[Token, str]:
    """Create a token that is valid for `life`, and return it with its secret, which is not stored.

    The audit log says so. `name` is cut to 100 characters. `team` is the name of the team that a token with the scope
    `gate` is for, the user's default team where it is empty.
    Raises Invalid for unknown scopes or none, for `gate` with other scopes, for a team without `gate`, or for a life of
    less than a day or more than a year, and what `team_to_write` raises.
    """
    chosen = sorted(set(scopes))
    unknown = [scope for scope in chosen if scope not in Scope.values]
    if unknown or not chosen:
        raise Invalid(
            f"Unknown scope {', '.join(unknown) or '(none given)'}; use {', '.join(Scope.values)}.",
            code="unknown_scope",
        )
    if not timedelta(days=1) <= life <= TOKEN_LIFE:
        raise Invalid(f"A token is valid for 1 to {TOKEN_DAYS} days.", code="unknown_life")

    is_gate = Scope.GATE in chosen
    if is_gate and len(chosen) > 1:
        raise Invalid(
            f"A token that may gate may do nothing else, and this one was to {', '.join(chosen)}: give gate alone.",
            code="gate_alone",
        )
    if team and not is_gate:
        raise Invalid("Only a token with the scope gate belongs to a team: leave the team out.", code="gate_alone")

    secret = make_secret(TOKEN_PREFIX)
    token = Token.objects.create(
        user=user,
        team=team_to_write(user, name=team) if is_gate else None,
        name=name.replace("\x00", "")[:100],
        hint=secret[:HINT_LENGTH],
        digest=hash_secret(secret),
        scopes=chosen,
        expires_at=timezone.now() + life,
    )
    record(verb="token issued", subject=token.hint, actor=user, facts={"scopes": chosen, "name": token.name})
    return token, secret


def revoke_token(*, token: Token, by: User) -> Token:
    """Revoke a token and return its row as it is now; a second call changes nothing.

    Raises Missing unless it belongs to `by` or they administer the installation.
    """
    if token.user_id != by.pk and not by.is_superuser:
        raise Missing("You have no such token.")
    if Token.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        record(verb="token revoked", subject=token.hint, actor=by)
    token.refresh_from_db()
    return token


def note_token_use(token: Token) -> None:
    """Set the row's `last_used_at` to now, at most once a minute. `token` itself is not changed."""
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > USE_INTERVAL:
        Token.objects.filter(pk=token.pk).update(last_used_at=now)


def make_sign_in_link(user: User, *, life: timedelta = LINK_LIFE, is_emergency: bool = False) -> str:
    """Make a sign-in link and return its URL, a page whose button signs the user in once, before it expires.

    A link with `is_emergency`, for a person at the farm's own machine, also works where links are switched off.
    """
    secret = make_secret(LINK_PREFIX)
    until = timezone.now() + life
    SignInLink.objects.create(user=user, digest=hash_secret(secret), expires_at=until, is_emergency=is_emergency)
    if is_emergency:
        record(verb="emergency link made", subject=user.username)
    return f"{settings.PUBLIC_URL}/sign-in/{secret}/"


def redeem_sign_in_link(secret: str) -> User:
    """Mark a sign-in link as used and its user as signed in, and return the user. Each link works once.

    Raises NotAllowed for a used, expired or unknown link, for any of a closed account, or where links are switched off.
    """
    now = timezone.now()
    link = SignInLink.objects.select_related("user").filter(digest=hash_secret(secret)).first()
    fresh = SignInLink.objects.filter(digest=hash_secret(secret), used_at=None, expires_at__gt=now)
    if link is None or not link.user.is_active:
        raise make_bad_link_refusal()
    if not is_link_allowed(link):
        raise make_links_off_refusal()
    with transaction.atomic():
        # first, so that an invitation that makes another link meanwhile waits or is waited for
        User.objects.filter(pk=link.user_id).update(last_login=now)
        if not fresh.update(used_at=now):
            raise make_bad_link_refusal()
        verb = "signed in by emergency link" if link.is_emergency else "signed in by link"
        record(verb=verb, subject=link.user.username, actor=link.user)
    return link.user


def make_share(*, team: Team, by: User, kind: ShareKind, subject: str, title: str, days: int = 30) -> tuple[Share, str]:
    """Create a public link that works for `days` days, and return it with its URL, which is not stored.

    The caller has checked that the subject exists. Raises NotAllowed for a person who may only view the team, Invalid
    for less than a day or more than a year.
    """
    if not can_write(by, team=team):
        raise NotAllowed(f"You can view team “{team.name}” but not share its pages; ask one of its members.")
    if not 1 <= days <= SHARE_DAYS:
        raise Invalid(f"A share link lasts 1 to {SHARE_DAYS} days, not {days}.", code="days")
    secret = make_secret(SHARE_PREFIX)
    with transaction.atomic():
        share = Share.objects.create(
            team=team, created_by=by, kind=kind, subject=subject, title=title[:200], hint=secret[:HINT_LENGTH],
            digest=hash_secret(secret), expires_at=timezone.now() + timedelta(days=days),
        )  # fmt: skip
        facts = {"share": share.pk, "kind": str(kind), "subject": subject, "days": days}
        record(verb="share link made", subject=share.title, actor=by, team=team, facts=facts)
    return share, f"{settings.PUBLIC_URL}/shared/{secret}/"


def revoke_share(*, share: Share, by: User) -> Share:
    """Revoke a link; a second call changes nothing. Raises NotAllowed unless `by` made it or manages the team."""
    if share.created_by_id != by.pk and not can_manage(by, team=share.team):
        raise NotAllowed(f"Only {share.created_by} or an admin of team “{share.team.name}” may close this link.")
    with transaction.atomic():
        if Share.objects.filter(pk=share.pk, revoked_at=None).update(revoked_at=timezone.now()):
            facts = {"share": share.pk}
            record(verb="share link closed", subject=share.title, actor=by, team=share.team, facts=facts)
    share.refresh_from_db()
    return share


def open_share(secret: str) -> Share:
    """Return the public link with this secret, and record that it was opened.

    The first opening is written to the audit log. Later ones update the row, at most once a minute. Raises Missing for
    an unknown link, Gone for a link that was revoked or has expired, or whose creator's account is closed.
    """
    share = Share.objects.select_related("team", "created_by").filter(digest=hash_secret(secret)).first()
    ask = "Ask the person who sent it for a new one."
    if share is None:
        raise Missing("This share link does not exist.", hint=f"Check that the whole link was copied. {ask}")
    if not share.is_open:
        closed = share.revoked_at is not None or not share.created_by.is_active
        problem = "was revoked" if closed else f"expired on {share.expires_at:%Y-%m-%d at %H:%M} UTC"
        raise Gone(f"This share link {problem}.", hint=ask)
    now = timezone.now()
    if share.last_opened_at is None:
        with transaction.atomic():
            if Share.objects.filter(pk=share.pk, last_opened_at=None).update(last_opened_at=now):
                facts = {"share": share.pk}
                record(verb=SHARE_OPENED, subject=share.title, team=share.team, facts=facts)
    elif now - share.last_opened_at > USE_INTERVAL:
        Share.objects.filter(pk=share.pk).update(last_opened_at=now)
    return share


def record(
    *,
    verb: str,
    subject: str = "",
    actor: User | None = None,
    team: Team | None = None,
    facts: Mapping[str, object] = {},
) -> AuditEvent:
    """Append a line to the audit log, in the transaction of the caller; the subject is cut at 200 characters.

    `actor` is None for what the farm does by itself, `team` for what concerns no team.
    """
    return AuditEvent.objects.create(verb=verb, subject=subject[:200], actor=actor, team=team, facts=dict(facts))


def _check_administers(user: User, activity: str) -> None:
    if not user.is_superuser:
        raise NotAllowed(f"Only an administrator of this farm may {activity}; ask one.")
