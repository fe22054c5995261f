"""The page of trends: the series of a watch, over time or over releases."""

from functools import partial
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.cache import cached
from dashboard.figures.figure import Figure
from dashboard.figures.trends import LATENCY, Line, draw_trend
from dashboard.reading import file_rows
from dashboard.reading import trends as reading
from dashboard.reading import watches as watch_reading
from dashboard.reading.model_releases import Grid, make_grid
from dashboard.views import lists
from dashboard.views.access import page, signed_in_user
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import pages
from farm.contract.numbers import is_row_number
from farm.rules.cells import metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from farm.alerts.models import Watch
    from farm.alerts.selectors.pages import PointRow

WATCHES_OFFERED = 200
AXES = ("time", "release")
# a chart whose longest line has fewer values is over releases unless the address asks for time
MIN_OVER_TIME = 6
# charts of fewer values are not cached
MIN_CACHED = 1000
Lines = tuple[list[Line], list[Line]]


@page
def trends(request: HttpRequest) -> HttpResponse:
    """Show the series of the watch that the address names, else of the first watch that has any, else of the first; an
    unknown watch raises Missing, and an unknown metric is latency. The grid of models and releases is shown unless
    `series` names a single series. `as` asks for a file instead, of all values over time, or those of `series`, but at
    most lists.MAX_ROWS."""
    user = signed_in_user(request)
    watches = list(selectors.watches_visible_to(user)[:WATCHES_OFFERED])
    wanted = request.GET.get("watch", "")
    watch = selectors.watch(user, int(wanted)) if is_row_number(wanted) else pages.first_with_points(watches)
    by = request.GET.get("by", "")
    chosen = request.GET.get("series", "")
    offered = reading.find_metrics(pages.list_further_metrics(watch)) if watch is not None else []
    metric = next((metric.name for metric in offered if metric.name == request.GET.get("metric")), "")
    if lists.wants_file(request):
        lines: list[Line] = []
        if watch is not None:
            lines = reading.lines_over_time(watch, _list_points(watch, metric), words=reading.find_words(metric))
        points = [(line, point) for line in lines if chosen in ("", line.key) for point in line.points]
        return lists.render_file(request, "trends", points, lambda pair: file_rows.point_row(*pair))
    context: dict[str, object] = {"watches": watches, "watch": watch, "axes": AXES, "series": chosen}
    if watch is not None and not chosen:
        context["grid"] = _make_grid([other for other in watches if other.distribution == watch.distribution])
    if watch is not None:
        figure, shown = draw_watch(watch, by=by, chosen=chosen, metric=metric)
        context |= {"figure": figure, "by": shown, "what": watch_reading.describe_watch(watch)}
        context |= {"metrics": offered, "metric": metric}
    return render(request, "dashboard/trends.html", context)


def _make_grid(watches: list["Watch"]) -> Grid | None:
    """Make the grid of models and releases, cached until a series gets a value or the wrong outputs change."""
    wrong = sorted(pages.find_wrong_outputs(watches))
    key = (pages.fingerprint_points(), tuple(watch.pk for watch in watches), tuple(wrong))
    return cached("pieces", "grid", *key, make=lambda: make_grid(pages.newest_by_release(watches), wrong=wrong))


def _list_points(watch: "Watch", metric: str) -> "Iterable[PointRow]":
    return pages.list_points_of_metric(watch, metric) if metric else pages.points(watch)


def draw_watch(watch: "Watch", *, by: str = "", chosen: str = "", metric: str = "") -> tuple[Figure, str]:
    """Draw the chart of a watch's series with its table, and return it with its axis, `time` or `release`. The axis is
    the one in `by`, else time where the longest line has at least MIN_OVER_TIME values. `chosen`: the key of the series
    that is highlighted, and to which the table is limited; `metric`: the name of a metric, empty for latency; an
    unknown name raises KeyError. Charts of at least MIN_CACHED values are cached."""
    alerts = list(pages.alerts_of_watch(watch))
    count, newest = pages.count_points(watch)

    def made() -> Lines:
        points = list(_list_points(watch, metric)) if count else []
        words = reading.find_words(metric)
        over_time = reading.lines_over_time(watch, points, alerts, words=words)
        return over_time, reading.lines_over_releases(watch, points, alerts, words=words)

    draw = partial(_draw, watch, by=by, chosen=chosen, metric=metric)
    if count < MIN_CACHED:
        return draw(made())
    # values and the series of an alert never change; new ones make a new key
    marked = tuple((alert.pk, alert.state, len(alert.symptoms.all())) for alert in alerts)
    key = (metric, watch.pk, watch.created_at, watch.distribution, watch.reference, count, newest, marked)
    return cached("pieces", "trend", *key, by, chosen, make=lambda: draw(cached("large", "lines", *key, make=made)))


def _draw(watch: "Watch", lines: Lines, *, by: str, chosen: str, metric: str) -> tuple[Figure, str]:
    over_time, over_releases = lines
    listed = [line for line in over_time if line.key == chosen] or over_time
    table = reading.make_table(listed, watch=watch.pk, distribution=watch.distribution)
    longest = max((len(line.points) for line in over_time), default=0)
    shown = by if by in AXES else "time" if longest >= MIN_OVER_TIME else "release"
    chart = draw_trend(
        over_releases if shown == "release" else over_time,
        reference=watch.reference,
        table=table,
        releases=reading.list_releases(watch, over_releases) if shown == "release" else (),
        chosen=chosen,
        what=metrics.BY_NAME[metric].title if metric else LATENCY,
    )
    return chart, shown
