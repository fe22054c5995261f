"""The watched series of models: on a model's page, as sparklines in lists, and as a badge."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from django.conf import settings

from dashboard.cache import cached
from dashboard.figures.figure import thin_places
from dashboard.figures.trends import Line, mark_undecided, series_key
from dashboard.reading.trends import describe_shifts, lines_over_time, series_address
from farm.alerts.selectors import badges, pages
from farm.base.grouping import group_by
from farm.rules.cells.metric import TIME
from farm.rules.comparing.quantities import judge_series_value
from farm.rules.presenting.tables import Sparkline
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.alerts.models import Watch
    from farm.alerts.selectors.pages import ValueRow
    from farm.registry.models import Model

# the size of a sparkline in pixels, and the free room at its edges
WIDTH, HEIGHT, ROOM = 120.0, 24.0, 3.0
MAX_POINTS = 60
# the least range of a sparkline's scale, as a logarithm of ratios, so that noise does not fill the whole height
MIN_HEIGHT = 0.05
WATCHES_SHOWN = 10
# at most so many of the newest values are drawn in a list's sparkline
LIST_POINTS = 40


@dataclass(frozen=True)
class Series:
    """A series of a watch. `last`: its last value in words; `shifts`: its level shifts in words; `alerts`: the number
    and the address of each alert on it."""

    name: str
    href: str
    spark: Sparkline
    last: str
    interval: str
    release: str
    shifts: str
    alerts: Sequence[tuple[int, str]]


@dataclass(frozen=True)
class Watched:
    """A watch of the model with its series."""

    watch: "Watch"
    series: Sequence[Series]


@dataclass(frozen=True)
class SlowestSeries:
    """The watched series of a model whose last value is the slowest. `ratio`: that value; `last` and `interval`: the
    value in words; `words`: names the series and the release that it is compared with."""

    spark: Sparkline
    ratio: float
    last: str
    interval: str
    release: str
    words: str
    href: str


def load_slowest_series(models: Iterable["Model"]) -> dict[int, SlowestSeries]:
    """Load the slowest watched series of each of these models, by the model's number. Models without series are left
    out. The result is cached until any series gets a new value."""
    ids = tuple(model.pk for model in models)
    return cached(
        "pieces",
        "slowest",
        pages.fingerprint_points(),
        ids,
        make=lambda: find_slowest_series(pages.newest_values(ids, limit=LIST_POINTS)),
    )


def find_slowest_series(values: Iterable["ValueRow"]) -> dict[int, SlowestSeries]:
    """Find the slowest series of each model, by the model's number. `values`: rows of
    farm.alerts.selectors.pages.newest_values, the oldest first."""
    found = {}
    for model, rows in group_by(values, lambda row: row[0]).items():
        # watch, key and node together identify a series
        lines = list(group_by(rows, lambda row: (row[1], row[4], row[5])).values())
        found[model] = _make_slowest(lines)
    return found


def _make_slowest(lines: Sequence[Sequence["ValueRow"]]) -> SlowestSeries:
    ratios_of_lines = [[row[8] for row in line] for line in lines]
    slowest = max(range(len(lines)), key=lambda index: ratios_of_lines[index][-1])
    _, watch, distribution, reference, series, node, label, release, ratio, low, high, outcome = lines[slowest][-1]
    verdict = judge_series_value(ratio, low, high, is_undecided=outcome == "undecided", words=TIME)
    of = f", of {len(lines)} series the slowest" if len(lines) > 1 else ""
    return SlowestSeries(
        spark=draw_spark(ratios_of_lines[slowest]),
        ratio=ratio,
        last=mark_undecided(numbers.change(ratio, low, high), verdict),
        interval=numbers.change_interval(low, high, ratio=ratio) if low is not None else "",
        release=release,
        words=f"{label} on {node}, against {distribution} {reference}{of}",
        href=series_address(watch, series_key(series, node)),
    )


def _make_series(watch: "Watch", line: Line) -> Series:
    return Series(
        name=f"{line.name} on {line.node}" if line.node not in line.name else line.name,
        href=series_address(watch.pk, line.key),
        spark=draw_spark([point.ratio for point in line.points]),
        last=line.describe(line.last),
        interval=line.interval(line.last),
        release=line.last.version,
        shifts=describe_shifts(line, most=2),
        alerts=[(mark.alert, f"/alerts/{mark.alert}/") for mark in line.marks],
    )


def draw_spark(ratios: Sequence[float]) -> Sparkline:
    """Draw ratios as a sparkline on a logarithmic scale that includes 1. A single value becomes a horizontal line. More
    than MAX_POINTS values are thinned, and the extremes are kept. There must be a ratio, and all must be above 0."""
    values = [log(ratio) for ratio in ratios]
    low, high = min(0.0, *values), max(0.0, *values)
    if high - low < MIN_HEIGHT:
        low, high = low - MIN_HEIGHT / 2, high + MIN_HEIGHT / 2
    places = thin_places(values, most=MAX_POINTS)
    step = (WIDTH - 2 * ROOM) / max(1, len(places) - 1)

    def y(value: float) -> float:
        return HEIGHT - ROOM - (value - low) / (high - low) * (HEIGHT - 2 * ROOM)

    points = [(ROOM + number * step, y(values[place])) for number, place in enumerate(places)]
    if len(points) == 1:
        points.append((WIDTH - ROOM, points[0][1]))
    return Sparkline(" ".join(f"{across:.1f},{down:.1f}" for across, down in points), f"{y(0.0):.1f}")


def describe_model(model: "Model") -> dict[str, object]:
    """Make the template context with the model's series, grouped by watch for at most WATCHES_SHOWN watches, its badge,
    and the Markdown that shows the badge on other sites. `watch_command` is the command that adds a watch; it is empty
    where the model is watched already."""
    watches = pages.watches_of_model(model)
    shown = []
    for watch in watches[:WATCHES_SHOWN]:
        alerts = pages.alerts_of_watch(watch).filter(model=model)
        series = lines_over_time(watch, pages.points(watch, round__version__model=model), alerts)
        shown.append(Watched(watch, [_make_series(watch, line) for line in series]))
    status = badges.describe_model_status(model)
    badge = f"/api/v1/badges/{model.pk}/{badges.badge_key(model.pk)}.svg"
    words = f"{status.label}: {status.text}"
    markdown = f"[![{words}]({settings.PUBLIC_URL}{badge})]({settings.PUBLIC_URL}/models/{model.pk}/)"
    name = "" if watches else pages.find_free_name(model.team_id, "upgrades")
    return {
        "watched": shown,
        "badge": badge,
        "badge_words": words,
        "markdown": markdown,
        "watch_command": f"onnxfarm watch add {name} --model {model.pk} --reference 1.29.0" if name else "",
    }
