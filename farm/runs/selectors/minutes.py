"""Counts the minutes that nodes measure for teams, and finds teams that have used up their limit.

A day begins at 00:00 UTC.
"""

from collections.abc import Collection

from django.db.models import Q
from django.utils import timezone

from farm.accounts.models import Team
from farm.runs.models import Attempt, Run
from farm.runs.states import AttemptState


def minutes_by_team(teams: Collection[int]) -> dict[int, float]:
    """Count the minutes that nodes have measured for each of these teams today (UTC), attempts in progress included.

    Teams for which none was measured have 0.
    """
    now = timezone.now()
    since = now.replace(hour=0, minute=0, second=0, microsecond=0)
    recent = Run.objects.filter(Q(finished_at=None) | Q(finished_at__gte=since), team__in=teams)
    attempts = Attempt.objects.filter(Q(ended_at__gte=since) | Q(state=AttemptState.LEASED), block__run__in=recent)
    minutes = dict.fromkeys(teams, 0.0)
    for team, claimed_at, ended_at in attempts.order_by().values_list("block__run__team", "claimed_at", "ended_at"):
        minutes[team] += ((ended_at or now) - max(claimed_at, since)).total_seconds() / 60.0
    return minutes


def minutes_of_run(run: Run) -> float:
    """Count the minutes that nodes have measured for a run, every attempt included."""
    now = timezone.now()
    times = Attempt.objects.filter(block__run=run).values_list("claimed_at", "ended_at")
    return sum(((ended_at or now) - claimed_at).total_seconds() for claimed_at, ended_at in times) / 60.0


def minutes_today(team: Team) -> float:
    return minutes_by_team([team.pk])[team.pk]


def teams_without_minutes() -> list[int]:
    """Return the ids of teams that have used up their daily limit, in no order; teams without a limit are left out."""
    limits = dict(Team.objects.exclude(daily_minutes=None).order_by().values_list("pk", "daily_minutes"))
    if not limits:
        return []
    return [pk for pk, used in minutes_by_team(limits).items() if used >= (limits[pk] or 0)]


def explain_no_minutes(team: Team) -> str:
    """Say that the team has used up its minutes of today, and when its blocks go on; else, or without a limit, ""."""
    if team.daily_minutes is None or (used := minutes_today(team)) < team.daily_minutes:
        return ""
    return (
        f"Team “{team.name}” has used {used:.0f} of its {team.daily_minutes} node minutes of today: its blocks go on "
        "at 00:00 UTC, or when an admin of the team raises the limit."
    )
