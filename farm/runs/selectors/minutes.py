"""Minutes that nodes measure, by the team they are measured for."""

from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from farm.accounts.models import Team
from farm.runs.models import Attempt, Run
from farm.runs.states import AttemptState


def day_began_at() -> datetime:
    """When the day began whose minutes are counted, UTC."""
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)


def minutes_today(team: Team | int) -> float:
    """Minutes that nodes have measured for a team today, those of attempts in progress included."""
    since, now = day_began_at(), timezone.now()
    recent = Run.objects.filter(Q(finished_at=None) | Q(finished_at__gte=since), team=team)
    attempts = Attempt.objects.filter(Q(ended_at__gte=since) | Q(state=AttemptState.LEASED), block__run__in=recent)
    spans = attempts.order_by().values_list("claimed_at", "ended_at")
    return sum(((ended_at or now) - max(claimed_at, since)).total_seconds() for claimed_at, ended_at in spans) / 60.0


def teams_without_minutes() -> list[int]:
    """Teams that have had all of their minutes today."""
    limited = Team.objects.exclude(daily_minutes=None).order_by().values_list("pk", "daily_minutes")
    return [pk for pk, most in limited if most is not None and minutes_today(pk) >= most]


def why_no_minutes(team: Team) -> str:
    """In one sentence for a team that has had its minutes of today; empty for any other."""
    if team.daily_minutes is None or (spent := minutes_today(team)) < team.daily_minutes:
        return ""
    return (
        f"Team “{team.name}” has used {spent:.0f} of its {team.daily_minutes} node minutes of today: its blocks go on "
        "at 00:00 UTC, or when an admin of the team raises the limit."
    )
