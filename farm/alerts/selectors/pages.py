"""Reads what only pages need: lists of alerts, long series of watches, and the current rounds of each watch.

Functions that take a `user` leave out what the user may not see. All others take rows that the caller may read. Alerts
are sorted from the newest to the oldest.
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import chain, count
from typing import NamedTuple

from django.db.models import Count, F, Max, OuterRef, Prefetch, Q, QuerySet, Subquery, Value, Window
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Concat, RowNumber
from django.utils import timezone

from farm.accounts.selectors import Anyone
from farm.alerts.models import Alert, IndexLook, Point, Release, Symptom, Watch, WatchRound
from farm.alerts.selectors.alerts import add_has_begun, alerts_visible_to
from farm.alerts.states import OPEN_ALERTS, AlertState, RoundState
from farm.base.grouping import group_by
from farm.registry.models import Model
from farm.rules.findings.kinds import KINDS

Bound = float | None
# series, label, node, runtime, the round's new release, ratio, low, high, time, round, its run and its outcome
PointRow = tuple[str, str, str, str, str, float, Bound, Bound, datetime, int, int | None, str]
# model, watch, its distribution and reference, series, node, label, release, ratio, low, high, and its round's outcome
ValueRow = tuple[int, int, str, str, str, str, str, str, float, Bound, Bound, str]


class NewReleases(NamedTuple):
    """The new releases of a distribution: how many there are, one of their versions, and when the last one was seen.

    `version` is the largest one when versions are compared as texts.
    """

    distribution: str
    release_count: int
    version: str
    last_seen_at: datetime


class ReleaseRow(NamedTuple):
    """A value of a long series: the ratio of a release to the pinned reference, and its round's outcome."""

    # the model's id and name
    model: int
    name: str
    release: str
    # the watch's id
    watch: int
    reference: str
    series: str
    node: str
    label: str
    ratio: float
    low: Bound
    high: Bound
    outcome: str


PARITY = "parity"
_POINT = (
    "series", "label", "node", "runtime", "round__new", "ratio", "low", "high", "at", "round_id", "round__run",
    "round__outcome",
)  # fmt: skip
# the lists of alerts; `open` has unsettled alerts that are not snoozed
LISTS = ("open", "snoozed", "infra", "resolved", "invalid", "all")

# kinds of changes of latency, the main figure
HEADLINES = [key for key, kind in KINDS.items() if kind.is_headline]
# figures of a symptom's comparison, as lists show them
FIGURES = {"ratio": "ratio", "low": "ci_low", "high": "ci_high", "level": "ci_level", "rounds": "rounds"}


def _make_list_filters() -> dict[str, Q]:
    unsettled = Q(state__in=OPEN_ALERTS)
    is_snoozed = ~Q(snoozed_for="") | Q(snoozed_until__gt=timezone.now())
    return {
        "open": unsettled & ~is_snoozed,
        "snoozed": unsettled & is_snoozed,
        "infra": Q(state=AlertState.INFRA),
        "resolved": Q(state=AlertState.RESOLVED),
        "invalid": Q(state=AlertState.INVALID),
        "all": Q(),
    }


def list_alerts(user: Anyone, list_name: str, *, since: datetime | None = None) -> QuerySet[Alert]:
    """List the alerts in one of LISTS, newest first; with `since` only those opened then or later.

    Raises KeyError for another `list_name`.
    """
    listed = alerts_visible_to(user).filter(_make_list_filters()[list_name], _filter_opened(since))
    return _defer_large_columns(listed)


def _defer_large_columns(rows: QuerySet[Alert]) -> QuerySet[Alert]:
    """Defer the large columns that lists do not show: inspections, matrices, and comparisons except for FIGURES."""
    figures = {name: KeyTransform(key, "comparison") for name, key in FIGURES.items()}
    symptoms = Prefetch("symptoms", Symptom.objects.defer("comparison").annotate(**figures))
    deferred = rows.defer("version__inspection", "version__problem", "watch__matrix")
    return deferred.prefetch_related(None).prefetch_related(symptoms)


def add_sizes(alerts: QuerySet[Alert]) -> QuerySet[Alert]:
    """Annotate alerts with `largest`, the largest size among their symptoms of the kinds in HEADLINES, to sort by.

    `largest` is None for an alert without such a symptom. Resolved symptoms count too.
    """
    slower = Symptom.objects.filter(alert=OuterRef("pk"), kind__in=HEADLINES).order_by().values("alert")
    return alerts.annotate(largest=Subquery(slower.annotate(size_of=Max("size")).values("size_of")))


def alert_ids_with_symptom(kind: str) -> QuerySet[Symptom, int]:
    """Return the ids of all alerts with a symptom of this kind, resolved or not, for a subquery; ids may repeat."""
    return Symptom.objects.filter(kind=kind).order_by().values_list("alert", flat=True)


def count_open_alerts(user: Anyone) -> int:
    """Count the alerts that are open and neither acknowledged nor snoozed."""
    return Alert.objects.visible_to(user).filter(_make_list_filters()["open"], state=AlertState.OPEN).count()


def _filter_opened(since: datetime | None) -> Q:
    return Q() if since is None else Q(opened_at__gte=since)


def count_alerts_by_list(user: Anyone, *, since: datetime | None = None) -> dict[str, int]:
    """Count the alerts in each of LISTS in one query; `acknowledged` counts those in the list `open` that somebody has.

    With `since`, only alerts opened then or later count.
    """
    conditions = _make_list_filters()
    conditions["acknowledged"] = conditions["open"] & Q(state=AlertState.ACKNOWLEDGED)
    counts = {name: Count("pk", filter=condition) for name, condition in conditions.items() if name != "all"}
    visible = Alert.objects.visible_to(user).filter(_filter_opened(since))
    return dict(visible.aggregate(**counts, all=Count("pk")))


def alerts_of_watch(watch: Watch) -> QuerySet[Alert]:
    return _list_alerts_of([watch])


def open_alerts_by_watch(watches: Iterable[Watch]) -> dict[int, list[Alert]]:
    """Map each watch's id to its open and acknowledged alerts, the newest first; watches without any are left out."""
    rows = _list_alerts_of(watches).filter(state__in=OPEN_ALERTS)
    return group_by(rows, lambda alert: alert.watch_id)


def _list_alerts_of(watches: Iterable[Watch]) -> QuerySet[Alert]:
    related = ("team", "watch", "model", "version__model", "assignee")
    rows = Alert.objects.filter(watch__in=list(watches)).select_related(*related).order_by("-pk")
    return _defer_large_columns(rows)


def last_rounds(watches: Iterable[Watch]) -> dict[int, list[WatchRound]]:
    """Map each watch's id to the rounds of its current cause, one for each model, in two queries.

    The current cause has an open round. If several have one, it is the one whose round is the most advanced; if none
    has, it is the one that was judged last. Watches without rounds are left out.
    """
    # sorted by name, the states are in reverse order of time: confirming, measuring, waiting
    order = (F("judged_at").desc(nulls_first=True), "state", "pk")
    first = WatchRound.objects.filter(watch=OuterRef("pk")).order_by(*order).values("key")[:1]
    keys = Watch.objects.filter(pk__in=[watch.pk for watch in watches]).annotate(key=Subquery(first))
    current = Q(pk__in=[])
    for watch_id, key in keys.order_by().values_list("pk", "key"):
        current |= Q(watch_id=watch_id, key=key)
    by_watch: dict[int, list[WatchRound]] = {}
    rounds = add_has_begun(WatchRound.objects.filter(current)).select_related("version__model", "watch").order_by("pk")
    for watch_round in rounds.defer("findings", "version__inspection", "watch__matrix"):
        by_watch.setdefault(watch_round.watch_id, []).append(watch_round)
    return by_watch


def count_watching(user: Anyone) -> tuple[int, int]:
    """Return how many active watches the user may see, and how many of their rounds wait for their confirmation."""
    watches = Watch.objects.visible_to(user).filter(is_active=True)
    confirming = WatchRound.objects.filter(watch__in=watches.order_by(), state=RoundState.CONFIRMING)
    return watches.count(), confirming.count()


def list_index_looks() -> dict[str, tuple[datetime | None, str]]:
    """Map each distribution to the time when the package index was last asked for it, and the problem it had then.

    The time is None where the index was not asked yet. The problem is empty where it answered. The key is
    `distribution@NAME` for an added index of that name.
    """
    rows = IndexLook.objects.values_list("distribution", "looked_at", "problem")
    return {name: (looked_at, problem) for name, looked_at, problem in rows}


def points(watch: Watch, **filters: object) -> QuerySet[Point, PointRow]:
    """Return the values of a watch's long series as plain rows, the oldest first. `filters` are Django lookups."""
    return watch.points.filter(**filters).order_by("pk").values_list(*_POINT)


def list_points_of_metric(watch: Watch, metric: str) -> list[PointRow]:
    """Return the values that have a further metric as plain rows, with that metric's ratio, low and high.

    The oldest is first; values without the metric are left out.
    """
    rows = watch.points.filter(metrics__has_key=metric).order_by("pk").values_list(*_POINT, "metrics")
    return [(*row[:5], *row[-1][metric], *row[8:-1]) for row in rows]


def list_further_metrics(watch: Watch) -> list[str]:
    """List by name the further metrics of the watch's newest value; metrics of older values are left out."""
    newest = watch.points.order_by("-pk").values_list("metrics", flat=True).first()
    return sorted(newest or ())


def count_points(watch: Watch) -> tuple[int, int]:
    """Return how many values the watch's long series have, and the id of the newest one (0 where there is none)."""
    points = watch.points.aggregate(count=Count("pk"), last=Max("pk"))
    return points["count"], points["last"] or 0


def first_with_points(watches: Iterable[Watch]) -> Watch | None:
    """Find the first watch that has a long series, or else the first watch; None where there are no watches."""
    candidates = list(watches)
    measured = set(Point.objects.filter(watch__in=candidates).order_by().values_list("watch", flat=True).distinct())
    return next((watch for watch in candidates if watch.pk in measured), candidates[0] if candidates else None)


def fingerprint_points() -> tuple[object, ...]:
    """Return the newest value's id and time, if any, and the number of watches, to tell if a page is stale."""
    newest = Point.objects.order_by("-pk").values_list("pk", "at").first() or ()
    return (*newest, Watch.objects.count())


def newest_values(models: Iterable[int], *, limit: int) -> QuerySet[Point, ValueRow]:
    """Return the last `limit` values of every long series of these models (by id) as plain rows, the oldest first.

    Values of other releases than the new one of their round are left out.
    """
    new = Concat("watch__distribution", Value("=="), "round__new")
    place = Window(
        RowNumber(), partition_by=[F("round__version__model"), F("watch"), F("series"), F("node")],
        order_by=F("pk").desc(),
    )  # fmt: skip
    rows = Point.objects.filter(round__version__model__in=list(models), runtime=new)
    columns = "round__version__model watch watch__distribution watch__reference series node label"
    columns += " round__new ratio low high round__outcome"
    return rows.annotate(place=place).filter(place__lte=limit).order_by("pk").values_list(*columns.split())


def newest_by_release(watches: Iterable[Watch]) -> list[ReleaseRow]:
    """List the last value of every long series of these watches on each release, the oldest first, in one query.

    A series that two nodes measured has a value for each node.
    """
    points_of_watches = Point.objects.filter(watch__in=[watch.pk for watch in watches]).order_by()
    last = points_of_watches.values("watch", "series", "node", "runtime").annotate(last=Max("pk")).values("last")
    columns = ("watch", "watch__reference", "series", "node", "label", "ratio", "low", "high", "round__outcome")
    model_columns = ("round__version__model", "round__version__model__name", "runtime")
    rows = Point.objects.filter(pk__in=last).order_by("pk").values_list(*model_columns, *columns)
    return [ReleaseRow(model, name, runtime.partition("==")[2], *values) for model, name, runtime, *values in rows]


def find_wrong_outputs(watches: Iterable[Watch]) -> set[tuple[int, str]]:
    """Return pairs of a model's id and a release, where open alerts of these watches say that outputs are wrong.

    Acknowledged alerts count too.
    """
    rows = Symptom.objects.filter(alert__watch__in=[watch.pk for watch in watches], kind=PARITY, resolved_in="")
    return set(rows.filter(alert__state__in=OPEN_ALERTS).values_list("alert__model", "alert__bad").order_by())


def watches_of_model(model: Model) -> list[Watch]:
    """Return the watches that name the model or one of its labels, sorted by name, inactive ones too.

    It does not check who may see the watches.
    """
    named = Q(watched=model)
    labelled = Q(team=model.team_id, label__in=[label for label in model.labels if label])
    return list(Watch.objects.filter(named | labelled).distinct().order_by("name", "pk"))


def find_free_name(team_id: int, name: str) -> str:
    """Return the name, or where a watch of the team has it, the name with the first free number: `name-2`, `name-3`…"""
    taken_names = set(Watch.objects.filter(team=team_id, name__startswith=name).values_list("name", flat=True))
    candidates = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(candidate for candidate in candidates if candidate not in taken_names)


def find_watch_of_each(models: Iterable[Model]) -> dict[int, int]:
    """Map the id of each watched model to the id of its oldest watch, active or not, in one query.

    Models that no watch names, directly or by a label, are left out.
    """
    candidates = list(models)
    rows = Watch.objects.filter(Q(watched__in=candidates) | ~Q(label=""))
    watches: dict[int, int] = {}
    # go from the newest to the oldest, so that the oldest watch of a model is kept
    for watch, team, label, watched in rows.order_by("-pk").values_list("pk", "team", "label", "watched"):
        for model in candidates:
            if model.pk == watched or (model.team_id == team and label and label in model.labels):
                watches[model.pk] = watch
    return watches


def releases_since(moment: datetime) -> list[NewReleases]:
    """List by name the distributions of which the index offers stable releases that were first seen since a moment."""
    releases = Release.objects.filter(seen_at__gte=moment, is_gone=False, is_prerelease=False)
    rows = releases.values("distribution").order_by("distribution")
    counted = rows.annotate(count=Count("pk"), last=Max("seen_at"), version=Max("version"))
    return [NewReleases(row["distribution"], row["count"], row["version"], row["last"]) for row in counted]
