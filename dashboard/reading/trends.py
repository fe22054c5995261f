"""Long series: each watched cell as a ratio to the pinned release of the same block, with its level shifts; how a model
stands by them, as small lines; and the badge that tells of it elsewhere."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from dashboard.cache import cached
from dashboard.figures.figure import thin_places
from dashboard.figures.trends import Line, Mark, Shift, Spot, describe_shift, mark_undecided, series_key
from farm.alerts.selectors import badges, pages
from farm.rules.cells.metric import TIME, Metric, Words
from farm.rules.cells.metrics import BY_NAME, METRICS
from farm.rules.comparing.changepoints import find_changepoints
from farm.rules.comparing.quantities import judge_series_value
from farm.rules.presenting.tables import Column, Entry, Number, Sparkline, Table, as_count, verdict_entry
from farm.rules.runtimes.distributions import DEFAULT_DISTRIBUTION
from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.releases import ONNXRUNTIME
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.alerts.models import Alert, Watch
    from farm.alerts.selectors.pages import PointRow, ValueRow
    from farm.registry.models import Model


# so many values are searched for level shifts; of a longer line, the medians of so many stretches
SEARCHED = 200
# from a series, its node and values to its level shifts and alerts
Marking = Callable[[str, str, Sequence[Spot]], tuple[Sequence[Shift], Sequence[Mark]]]


def lines_over_time(
    watch: "Watch", points: Iterable["PointRow"], alerts: Iterable["Alert"] = (), *, words: Words = TIME
) -> list[Line]:
    """Make a watch's lines over time, one for each series on a node, with level shifts and alerts. Of each round
    only the value of the new release counts. `points` as farm.alerts.selectors.pages.points; `words`: what more and
    less of the metric are called."""
    prefix = f"{watch.distribution}=="
    series_spots: dict[tuple[str, str], tuple[str, list[Spot]]] = {}
    for series, label, node, runtime, new, ratio, low, high, at, round_id, run_id, outcome in points:
        if runtime == prefix + new:
            spots = series_spots.setdefault((series, node), (label, []))[1]
            spots.append(Spot(at, new, ratio, low, high, round_id, run_id, outcome))
    raised = list(alerts)
    return _lines(
        series_spots, lambda series, node, spots: (_find_shifts(spots), _make_marks(raised, series, node, spots)), words
    )


def lines_over_releases(
    watch: "Watch", points: Iterable["PointRow"], alerts: Iterable["Alert"] = (), *, words: Words = TIME
) -> list[Line]:
    """Make the same lines over releases: the last of `points` that each release has; the pinned one is 1 by itself.
    They have alerts, at the release that is bad, and no level shifts."""
    series_spots: dict[tuple[str, str], tuple[str, dict[str, Spot]]] = {}
    pinned = watch.reference
    for series, label, node, runtime, _, ratio, low, high, at, round_id, run_id, outcome in points:
        version = runtime.removeprefix(f"{watch.distribution}==")
        spots = series_spots.setdefault((series, node), (label, {pinned: Spot(at, pinned, 1.0, None, None, 0)}))[1]
        spots[version] = Spot(at, version, ratio, low, high, round_id, run_id, outcome)
    ordered = {
        key: (label, sorted(spots.values(), key=lambda spot: release_order(spot.version)))
        for key, (label, spots) in series_spots.items()
    }
    raised = list(alerts)
    return _lines(
        ordered, lambda series, node, spots: ((), _make_marks(raised, series, node, spots, by_version=True)), words
    )


def find_metrics(names: Iterable[str]) -> list[Metric]:
    known = set(names)
    return [metric for metric in METRICS if metric.name in known]


def list_releases(watch: "Watch", lines: Sequence[Line]) -> list[str]:
    """List the releases that lines over releases stand on, in their order: those measured, and of ONNX Runtime's own
    package also the known ones between them that were not."""
    measured = {spot.version for line in lines for spot in line.spots}
    ends = sorted(map(release_order, measured))
    known = ONNXRUNTIME if watch.distribution == DEFAULT_DISTRIBUTION and ends else ()
    between = {version for version in known if ends[0] < release_order(version) < ends[-1]}
    return sorted(measured | between, key=release_order)


def _lines(series_spots: dict[tuple[str, str], tuple[str, list[Spot]]], marks: Marking, words: Words) -> list[Line]:
    labels = [label for label, _ in series_spots.values()]
    nodes = {node for _, node in series_spots}
    made = []
    for (series, node), (label, spots) in series_spots.items():
        shifts, marked = marks(series, node, spots)
        name = _shorten_label(label, labels) if len(nodes) == 1 else f"{_shorten_label(label, labels)} on {node}"
        # what differs in the node alone is told apart by it
        name = node if len(nodes) > 1 and len(set(labels)) == 1 else name
        made.append(Line(series, node, label, name, spots, shifts, marked, words))
    return sorted(made, key=lambda line: (line.label, line.node))


def _shorten_label(label: str, labels: Sequence[str]) -> str:
    shared = set.intersection(*(set(label.split(", ")) for label in labels))
    return ", ".join(part for part in label.split(", ") if part not in shared) or label


def _find_shifts(spots: Sequence[Spot]) -> list[Shift]:
    values = [spot.ratio for spot in spots]
    stretch = ceil(len(values) / SEARCHED) or 1
    medians = [median(values[start : start + stretch]) for start in range(0, len(values), stretch)]
    changepoints = find_changepoints(medians)
    return [
        Shift(_find_sharpest_jump(values, change.index * stretch, stretch - 1), 1 + (change.magnitude or 0.0))
        for change in changepoints
    ]


def _find_sharpest_jump(values: Sequence[float], place: int, reach: int) -> int:
    """Where within `reach` of a place the means before and after differ most, weighted by how many there are."""
    start, stop = max(0, place - 2 * reach), min(len(values), place + 2 * reach)

    def jump(cut: int) -> float:
        before, after = values[start:cut], values[cut:stop]
        return abs(fmean(before) - fmean(after)) * sqrt(len(before) * len(after))

    return max(range(max(start + 1, place - reach), min(stop, place + reach + 1)), key=jump, default=place)


def _make_marks(
    alerts: Sequence["Alert"], series: str, node: str, spots: Sequence[Spot], *, by_version: bool = False
) -> list[Mark]:
    mine = [
        alert for alert in alerts if alert.node == node and any(each.series == series for each in alert.symptoms.all())
    ]
    if not mine:
        return []
    # the first value of a release or round stands for it
    places: dict[str | int | None, int] = {}
    for place, spot in enumerate(spots):
        places.setdefault(spot.version if by_version else spot.round, place)
    named = [(places.get(alert.bad if by_version else alert.round_id), alert) for alert in mine]
    return [Mark(place, alert.pk, alert.state) for place, alert in named if place is not None]


def find_words(metric: str) -> Words:
    """Find what more of a metric is called, and less; the words of latency for an unknown name and for a metric that
    is not judged."""
    judging = BY_NAME[metric].judging if metric in BY_NAME else None
    return TIME if judging is None else judging.words


def make_table(lines: Sequence[Line], *, watch: int, distribution: str = DEFAULT_DISTRIBUTION) -> Table:
    """Make the table of lines, each with its last value, its level shifts and its alerts; a name leads to that line
    alone. `watch`: the number of the watch."""
    columns: tuple[Column[Line], ...] = (
        Column("Series", lambda line: Entry(line.label, href=series_address(watch, line.key))),
        Column("Node", lambda line: Entry(line.node)),
        Number("rounds", lambda line: as_count(len(line.spots))),
        Column(
            "Last release",
            lambda line: Entry(
                line.last.version,
                is_name=True,
                href=reverse("dashboard:release", args=[distribution, line.last.version]),
            ),
        ),
        Column(
            "Change",
            lambda line: verdict_entry(line.verdict(line.last)),
            "what the 95 % interval of the last value says; undecided where its round is",
        ),
        Number(
            "last",
            lambda line: Entry(line.change(line.last), line.last.ratio),
            "against the pinned release, in the same block",
        ),
        Number("95 % interval", lambda line: Entry(line.interval(line.last), line.last.low)),
        Column("Level shifts", lambda line: Entry(describe_shifts(line, most=3))),
        Column(
            "Status", lambda line: verdict_entry(line.marks[-1].state if line.marks else line.last.outcome or "quiet")
        ),
        Column(
            "Alerts",
            lambda line: Entry(numbers.listed([f"alert {mark.alert}" for mark in line.marks], most=4) or "none"),
        ),
    )
    return Table.of("trends", "Long series against the pinned release", columns, lines)


def series_address(watch: int, key: str) -> str:
    return f"/trends/?{urlencode({'watch': watch, 'series': key})}"


def describe_shifts(line: Line, *, most: int) -> str:
    return numbers.listed([describe_shift(line, shift) for shift in line.shifts], most=most) or "none"


WIDTH, HEIGHT, ROOM = 120.0, 24.0, 3.0
MAX_SPOTS = 60
# what a small line reaches at least, so that noise looks like noise
MIN_REACH = 0.05
WATCHES_SHOWN = 10
# values of a small line in a list
SPOTS = 40


@dataclass(frozen=True)
class Series:
    """One series of a watch."""

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
class Standing:
    """How a model stands by that of its series that stands worst. `words`: which series, against what."""

    spark: Sparkline
    ratio: float
    last: str
    interval: str
    release: str
    words: str
    href: str


def make_standings(values: Iterable["ValueRow"]) -> dict[int, Standing]:
    """Make the standing of each model that has values, by the model's number: that of its series whose last value is
    the slowest. `values` as farm.alerts.selectors.pages.newest_values, the oldest first."""
    models: dict[int, dict[tuple[int, str, str], list[ValueRow]]] = {}
    for row in values:
        model, watch, _, _, series, node, *_ = row
        models.setdefault(model, {}).setdefault((watch, series, node), []).append(row)
    return {model: _make_standing(list(lines.values())) for model, lines in models.items()}


def _make_standing(lines: Sequence[Sequence["ValueRow"]]) -> Standing:
    slowest = max(lines, key=lambda line: line[-1][8])
    _, watch, distribution, reference, series, node, label, release, ratio, low, high, outcome = slowest[-1]
    verdict = judge_series_value(ratio, low, high, is_undecided=outcome == "undecided", words=TIME)
    of = f", of {len(lines)} series the slowest" if len(lines) > 1 else ""
    return Standing(
        spark=draw_spark([row[8] for row in slowest]),
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
        spark=draw_spark([spot.ratio for spot in line.spots]),
        last=line.describe(line.last),
        interval=line.interval(line.last),
        release=line.last.version,
        shifts=describe_shifts(line, most=2),
        alerts=[(mark.alert, f"/alerts/{mark.alert}/") for mark in line.marks],
    )


def draw_spark(ratios: Sequence[float]) -> Sparkline:
    """Draw ratios as a small line, logarithmic, the reference in it; a single value is a level dash. Of more than
    MAX_SPOTS values the extremes are kept. Ratios must be above zero."""
    values = [log(ratio) for ratio in ratios]
    low, high = min(0.0, *values), max(0.0, *values)
    if high - low < MIN_REACH:
        low, high = low - MIN_REACH / 2, high + MIN_REACH / 2
    places = thin_places(values, most=MAX_SPOTS)
    step = (WIDTH - 2 * ROOM) / max(1, len(places) - 1)

    def height(value: float) -> float:
        return HEIGHT - ROOM - (value - low) / (high - low) * (HEIGHT - 2 * ROOM)

    spots = [(ROOM + number * step, height(values[place])) for number, place in enumerate(places)]
    if len(spots) == 1:
        spots = [spots[0], (WIDTH - ROOM, spots[0][1])]
    return Sparkline(" ".join(f"{x:.1f},{y:.1f}" for x, y in spots), f"{height(0.0):.1f}")


def describe_model(model: "Model") -> dict[str, object]:
    """Make what the model's page shows of its watches: its series by watch (of at most WATCHES_SHOWN watches), its
    badge, and the Markdown that shows the badge elsewhere. `watch_command` is empty where a watch has the model
    already."""
    watches = pages.watches_of_model(model)
    shown = []
    for watch in watches[:WATCHES_SHOWN]:
        alerts = pages.alerts_of_watch(watch).filter(model=model)
        series = lines_over_time(watch, pages.points_of_model(watch, model), alerts)
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


def load_standings(models: Iterable["Model"]) -> dict[int, Standing]:
    """Load how each of these models stands by its watches, by its number; models without long series are left out.
    The answer is cached until any long series gets a value."""
    numbers = tuple(model.pk for model in models)
    return cached(
        "pieces",
        "standings",
        pages.fingerprint_points(),
        numbers,
        make=lambda: make_standings(pages.newest_values(numbers, most=SPOTS)),
    )
