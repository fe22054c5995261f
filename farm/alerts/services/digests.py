"""Sends digests: what a team's watches did since the last digest, and how many of the alerts may be false."""

from datetime import datetime, timedelta
from typing import TypedDict

from django.db.models import Sum
from django.utils import timezone

from farm.accounts.models import Team
from farm.alerts.models import Alert, AlertEvent, Channel, WatchRound
from farm.alerts.services.announcements import address_of, queue_message
from farm.alerts.states import AlertEventKind, AlertState, DigestEvery, RoundOutcome, RoundState
from farm.fleet.models import NullEstimate
from farm.rules.changes.watch_rounds import expected_false_alerts
from farm.rules.comparing.margins import count_false_alarms
from farm.rules.wording.numbers import counted

INTERVALS = {DigestEvery.DAY: timedelta(days=1), DigestEvery.WEEK: timedelta(days=7)}
# how many of the newest A/A pairs are counted, and how many are enough to use their share instead of the rule's level
MAX_PAIRS = 2000
ENOUGH_PAIRS = 100
# fewer expected alerts than this are written as "fewer than"
MIN_SHOWN = 0.005


class OpenedAlert(TypedDict):
    """An alert that is new since the last digest."""

    id: int
    sentence: str
    url: str


class Digest(TypedDict):
    """The content of a digest, as webhooks send it.

    `rounds` counts judged rounds by outcome, zeros included; `comparisons` is how many comparisons they made. `open`
    counts the unsettled alerts of now, and `invalid` the alerts that were marked as false positives since then and
    still are. `opened` is sorted from the newest to the oldest. `false_alarm_rate` and `null_pairs` are what
    `estimate_false_alarm_rate` returns.
    """

    since: str
    rounds: dict[str, int]
    comparisons: int
    opened: list[OpenedAlert]
    open: int
    invalid: int
    expected_false_alerts: float
    false_alarm_rate: float
    null_pairs: int


def send_due_digests() -> int:
    """Queue the digests that are due for active channels, and set the time of their next one; return how many.

    A digest reaches back by one interval from the time when it was due.
    """
    count = 0
    for channel in Channel.objects.filter(is_active=True, digest_at__lte=timezone.now()).select_related("team"):
        interval = INTERVALS.get(DigestEvery(channel.digest))
        due_at = channel.digest_at
        if interval is None or due_at is None:
            continue
        # a conditional UPDATE, so that one of several workers sends it
        mine = Channel.objects.filter(pk=channel.pk, digest_at=due_at)
        if mine.update(digest_at=max(due_at + interval, timezone.now())):
            _queue_digest(channel, since=due_at - interval)
            count += 1
    return count


def first_digest_at(digest: str) -> datetime | None:
    """Return when a new channel gets its first digest; None for `never`. Raises ValueError for no DigestEvery."""
    interval = INTERVALS.get(DigestEvery(digest))
    return None if interval is None else timezone.now() + interval


def make_digest(team: Team, *, since: datetime) -> Digest:
    """Count what a team's watches did since a moment, and estimate how many of the alerts are false."""
    rounds = WatchRound.objects.filter(watch__team=team, state=RoundState.JUDGED, judged_at__gte=since)
    compared = rounds.aggregate(all=Sum("compared"))["all"] or 0
    rate, pairs = estimate_false_alarm_rate(team)
    alerts = Alert.objects.filter(team=team, opened_at__gte=since)
    marked_invalid = AlertEvent.objects.filter(
        kind=AlertEventKind.INVALID, at__gte=since, alert__team=team, alert__state=AlertState.INVALID
    )
    return {
        "since": since.isoformat(),
        "rounds": {outcome: rounds.filter(outcome=outcome).count() for outcome in RoundOutcome.values if outcome},
        "comparisons": compared,
        "opened": [{"id": alert.pk, "sentence": alert.sentence, "url": address_of(alert)} for alert in alerts],
        "open": Alert.objects.filter(team=team).open_or_acknowledged().count(),
        "invalid": marked_invalid.values("alert").distinct().count(),
        "expected_false_alerts": expected_false_alerts(compared, rate=rate),
        "false_alarm_rate": rate,
        "null_pairs": pairs,
    }


def estimate_false_alarm_rate(team: Team) -> tuple[float, int]:
    """Return the share (0–1) of the team's A/A pairs that were judged slower or faster, and how many pairs count.

    Only the MAX_PAIRS newest pairs count. With fewer than ENOUGH_PAIRS the share is the rule's level, 0.01. Where no
    pair was judged slower or faster, the upper end of the share's interval is returned.
    """
    verdicts = list(NullEstimate.objects.filter(node__team=team).values_list("verdict", flat=True)[:MAX_PAIRS])
    alarms = count_false_alarms(verdicts)
    if alarms is None or alarms.comparisons < ENOUGH_PAIRS:
        return 0.01, len(verdicts)
    return alarms.rate or alarms.high, alarms.comparisons


def describe_digest(digest: Digest) -> str:
    """Describe a digest in two sentences: what was measured and found, and how many alerts chance alone would bring."""
    expected = digest["expected_false_alerts"]
    shown = f"about {expected:.2g}" if expected >= MIN_SHOWN else f"fewer than {MIN_SHOWN}"
    return (
        f"{counted(sum(digest['rounds'].values()), 'round')} with {counted(digest['comparisons'], 'comparison')}: "
        f"{counted(len(digest['opened']), 'new alert')}, {digest['open']} open, {digest['invalid']} marked as "
        f"false positives. Chance alone would raise {shown} false alerts "
        "in so many comparisons."
    )


def _queue_digest(channel: Channel, *, since: datetime) -> None:
    digest = make_digest(channel.team, since=since)
    line = describe_digest(digest)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in digest["rounds"].items() if count) or "none"
    lines = [line, "", f"Rounds: {outcomes}.", *(f"- {entry['sentence']} {entry['url']}" for entry in digest["opened"])]
    queue_message(
        channel,
        cause=f"digest:{since.date().isoformat()}",
        kind="digest",
        subject=f"onnxfarm digest: {line}",
        text="\n".join(lines) + "\n",
        payload={**digest, "text": line},
    )
