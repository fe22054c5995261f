"""Changes that people make to alerts. Each change is logged with the person who made it, and none is announced.

Every function raises NotAllowed unless `by` may change the team's alerts. Those that change the state raise Conflict
where ALERT_ARROWS has no arrow from the present state.
"""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from farm.accounts.models import User
from farm.accounts.selectors import can_write
from farm.alerts.models import Alert
from farm.alerts.services.watches import check_release
from farm.alerts.states import OPEN_ALERTS, AlertEventKind, AlertState
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.rules.runtimes.order import release_order

# characters of a note or a reason
MAX_NOTE = 4000


def acknowledge(*, alert: Alert, by: User, note: str = "", assignee: User | None = None) -> Alert:
    """Acknowledge an open alert and assign it to `assignee`, or else to `by`. A note replaces the earlier one.

    Raises Conflict unless the alert is open, Invalid for an assignee who may not change it or a note that is too long.
    """
    _check_can_write(alert, by)
    person = assignee or by
    if not can_write(person, team=alert.team):
        raise Invalid(f"{person.username} may not change alerts of team “{alert.team.name}”.", code="assignee")
    text = f"Acknowledged, assigned to {person.username}." + (f" {note}" if note else "")
    changes = {"assignee": person, "note": _clean_note(note) or alert.note}
    return _change_state(alert, AlertState.ACKNOWLEDGED, AlertEventKind.ACKNOWLEDGED, text, by=by, **changes)


def assign(*, alert: Alert, by: User, assignee: User) -> Alert:
    """Assign an alert to a person, which acknowledges an open one.

    Raises Conflict for a closed alert, Invalid for a person who may not change it.
    """
    if alert.state == AlertState.OPEN:
        return acknowledge(alert=alert, by=by, assignee=assignee)
    _check_can_write(alert, by)
    if alert.state not in OPEN_ALERTS:
        raise Conflict(f"Alert {alert.pk} is {alert.state}: reopen it to assign it.", code="closed")
    if not can_write(assignee, team=alert.team):
        raise Invalid(f"{assignee.username} may not change alerts of team “{alert.team.name}”.", code="assignee")
    with transaction.atomic():
        Alert.objects.filter(pk=alert.pk).update(assignee=assignee)
        alert.log(AlertEventKind.ACKNOWLEDGED, f"Assigned to {assignee.username} by {by.username}.", actor=by)
    alert.refresh_from_db()
    return alert


def mark_invalid(*, alert: Alert, by: User, reason: str) -> Alert:
    """Close an alert as a false positive, which digests count; the reason becomes its note, and has to be given.

    Raises Invalid for an empty reason.
    """
    _check_can_write(alert, by)
    reason = _clean_reason(reason)
    text = f"Marked as a false positive by {by.username}: {reason}"
    return _change_state(alert, AlertState.INVALID, AlertEventKind.INVALID, text, by=by, note=reason)


def mark_infra(*, alert: Alert, by: User, reason: str) -> Alert:
    """Close an alert as a fault of the farm or a machine; the reason becomes its note. Raises Invalid without one."""
    _check_can_write(alert, by)
    reason = _clean_reason(reason)
    text = f"Marked as an infrastructure issue by {by.username}: {reason}"
    return _change_state(alert, AlertState.INFRA, AlertEventKind.INFRA, text, by=by, note=reason)


def reopen(*, alert: Alert, by: User, note: str = "") -> Alert:
    """Open a closed or acknowledged alert again; `note` goes to its log alone. Raises Conflict where it is open."""
    _check_can_write(alert, by)
    text = f"Reopened by {by.username}." + (f" {note}" if note else "")
    return _change_state(alert, AlertState.OPEN, AlertEventKind.REOPENED, text, by=by, resolved_in="")


def snooze(*, alert: Alert, by: User, until: datetime | None = None, release: str = "") -> Alert:
    """Announce nothing about an alert until a date, or until a release or a later one is measured.

    This replaces an earlier snooze. The release may not exist yet; a name that begins with a digit is not looked up.
    Raises Invalid unless exactly one of `until` and `release` is given, for a date in the past, and for a release that
    is not later than the bad one. Raises Conflict for a closed alert.
    """
    _check_can_write(alert, by)
    if alert.state not in OPEN_ALERTS:
        raise Conflict(f"Alert {alert.pk} is {alert.state}: it cannot be snoozed.", code="closed")
    release = release.strip()
    if (until is None) == (not release):
        raise Invalid("Give either a date or a release to snooze until, not both.", code="snooze")
    if until is not None and until <= timezone.now():
        raise Invalid(f"{until:%Y-%m-%d %H:%M} is in the past: give a later time.", code="snooze")
    # the release may not exist yet, so it is checked only where it does not begin with a digit
    release = release.removeprefix(f"{alert.distribution}==")
    if release and not release[0].isdigit():
        release = check_release(alert.distribution, release)
    if release and release_order(release) <= release_order(alert.bad):
        text = f"{release[:32]} is not later than {alert.bad}, in which the change was detected: name a later release."
        raise Invalid(text, code="snooze")
    text = f"Snoozed by {by.username} until " + (f"{until:%Y-%m-%d %H:%M} UTC." if until else f"{release}.")
    with transaction.atomic():
        Alert.objects.filter(pk=alert.pk).update(snoozed_until=until, snoozed_for=release[:32])
        alert.log(AlertEventKind.SNOOZED, text, actor=by)
    alert.refresh_from_db()
    return alert


def add_note(*, alert: Alert, by: User, note: str) -> Alert:
    """Write a note to the alert, in place of its earlier one, and to its log.

    Raises Invalid for an empty note, or one longer than MAX_NOTE.
    """
    _check_can_write(alert, by)
    with transaction.atomic():
        Alert.objects.filter(pk=alert.pk).update(note=_clean_note(note))
        alert.log(AlertEventKind.NOTE, f"{by.username}: {_clean_reason(note)}", actor=by)
    alert.refresh_from_db()
    return alert


def _change_state(
    alert: Alert, state: AlertState, kind: AlertEventKind, text: str, *, by: User, **changes: object
) -> Alert:
    with transaction.atomic():
        if not alert.change(state, **changes):
            alert.refresh_from_db()
            words = f"is {state} already" if alert.state == state else f"is {alert.state} and cannot become {state}"
            raise Conflict(f"Alert {alert.pk} {words}.", code="wrong_state")
        alert.log(kind, text, actor=by)
    alert.refresh_from_db()
    return alert


def _check_can_write(alert: Alert, user: User) -> None:
    if not can_write(user, team=alert.team):
        raise NotAllowed(f"You can view alert {alert.pk} but not change it.")


def _clean_reason(text: str) -> str:
    text = _clean_note(text)
    if not text:
        raise Invalid("Give a reason.", code="no_reason")
    return text


def _clean_note(text: str) -> str:
    # PostgreSQL refuses texts with a NUL
    text = text.replace("\x00", "").strip()
    if len(text) > MAX_NOTE:
        raise Invalid(f"The note has {len(text)} characters; at most {MAX_NOTE} are kept.", code="too_long")
    return text
