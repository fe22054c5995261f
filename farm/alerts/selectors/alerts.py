"""Reads watches, rounds, points and alerts. `visible_to` leaves out the rows that the user may not see.

Watches are sorted by name, rounds and alerts from the newest to the oldest, and points from the oldest to the newest.
"""

from collections.abc import Collection
from datetime import datetime

from django.db.models import BigIntegerField, Exists, Max, OuterRef, QuerySet, Subquery
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast

from farm.accounts.models import Team
from farm.accounts.selectors import Anyone
from farm.alerts.models import Alert, AlertEvent, Point, Watch, WatchRound
from farm.alerts.states import AlertEventKind, RoundState
from farm.base.refusals import require_row
from farm.runs.models import Block
from farm.runs.states import BlockState


def watches_visible_to(user: Anyone) -> QuerySet[Watch]:
    rows = Watch.objects.visible_to(user).select_related("team", "created_by")
    return rows.prefetch_related("watched", "channels")


def watch(user: Anyone, watch_id: int) -> Watch:
    """Return a watch by its number. Raises Missing where the user may see no such watch."""
    return require_row(
        watches_visible_to(user).filter(pk=watch_id),
        f"There is no watch {watch_id} that you can access.",
        hint="List yours with `onnxfarm watch list`.",
    )


def rounds_of(watch: Watch) -> QuerySet[WatchRound]:
    rows = add_has_begun(watch.rounds.select_related("version__model", "watch")).order_by("-pk")
    return rows.defer("version__inspection", "version__problem", "watch__matrix")


def add_has_begun(rounds: QuerySet[WatchRound]) -> QuerySet[WatchRound]:
    """Annotate rounds with `has_begun`: whether any block of the round's first run was given to a node."""
    begun = Block.objects.filter(run=OuterRef("run")).exclude(state__in=(BlockState.WAITING, BlockState.QUEUED))
    return rounds.annotate(has_begun=Exists(begun))


def rounds_judged(team: Team, *, since: datetime) -> QuerySet[WatchRound]:
    """Return the rounds of a team's watches that were judged at `since` or later, the last judged first."""
    rows = WatchRound.objects.filter(watch__team=team, state=RoundState.JUDGED, judged_at__gte=since)
    related = rows.select_related("version__model", "watch").order_by("-judged_at")
    return related.defer("version__inspection", "version__problem", "watch__matrix")


def points_of(watch: Watch) -> QuerySet[Point]:
    return watch.points.order_by("pk")


def alerts_visible_to(user: Anyone) -> QuerySet[Alert]:
    related = ("team", "watch", "model", "version__model", "assignee")
    return Alert.objects.visible_to(user).select_related(*related).prefetch_related("symptoms")


def alert(user: Anyone, alert_id: int) -> Alert:
    """Return an alert by its number. Raises Missing where the user may see no such alert."""
    rows = alerts_visible_to(user).select_related("round__run", "round__version__model")
    rows = rows.prefetch_related("investigations__run", "events__actor")
    return require_row(rows.filter(pk=alert_id), f"There is no alert {alert_id} that you can access.")


def list_later_findings(alerts: Collection[int]) -> list[tuple[int, str, int]]:
    """List in which releases rounds found the change of an alert again.

    Each item has the id of the alert, the release, and the id of the newest log entry about it. Entries of removed
    rounds are left out.
    """
    kinds = (AlertEventKind.SEEN_AGAIN, AlertEventKind.REOPENED)
    watch_round = Cast(KeyTransform("round", "facts"), BigIntegerField())
    rows = AlertEvent.objects.filter(alert__in=alerts, kind__in=kinds).annotate(watch_round=watch_round)
    release = WatchRound.objects.filter(pk=OuterRef("watch_round")).values("new")
    rows = rows.annotate(release=Subquery(release)).exclude(release=None).order_by()
    return list(rows.values("alert", "release").annotate(newest=Max("pk")).values_list("alert", "release", "newest"))
