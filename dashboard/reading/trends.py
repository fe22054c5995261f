"""The series of a watch: each watched cell as a ratio to the pinned release in the same block, with level shifts and
alerts."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.figures.trends import Line, Mark, Point, Shift, describe_shift
from farm.alerts.states import OPEN_ALERTS
from farm.rules.cells.metric import TIME, Metric, Words
from farm.rules.cells.metrics import BY_NAME, METRICS
from farm.rules.comparing.changepoints import find_changepoints
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_count, verdict_entry
from farm.rules.runtimes.distributions import DEFAULT_DISTRIBUTION
from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.releases import ONNXRUNTIME
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.alerts.models import Alert, Watch
    from farm.alerts.selectors.pages import PointRow


# level shifts are searched among at most so many values; a longer line is reduced to the medians of so many windows
MAX_SEARCHED = 200
# a series and its node
LineKey = tuple[str, str]


def lines_over_time(
    watch: "Watch", points: Iterable["PointRow"], alerts: Iterable["Alert"] = (), *, words: Words = TIME
) -> list[Line]:
    """Make a line over time for each series on a node, with its level shifts and alerts, sorted by label and node. From
    each round only the value of the new release is used. `points`: rows of farm.alerts.selectors.pages.points, the
    oldest first; `words`: what more and less of the metric are called."""
    labels: dict[LineKey, str] = {}
    values: dict[LineKey, list[Point]] = {}
    for series, label, node, runtime, new, ratio, low, high, at, round_id, run_id, outcome in points:
        if runtime == f"{watch.distribution}=={new}":
            labels.setdefault((series, node), label)
            point = Point(at, new, ratio, low, high, round_id, run_id, outcome)
            values.setdefault((series, node), []).append(point)
    return _make_lines(labels, values, list(alerts), words)


def lines_over_releases(
    watch: "Watch", points: Iterable["PointRow"], alerts: Iterable["Alert"] = (), *, words: Words = TIME
) -> list[Line]:
    """Make a line over releases for each series on a node, sorted by label and node. Each release has the last of its
    `points`, and the pinned release has the ratio 1. Alerts stand at their bad release; there are no level shifts. The
    arguments are those of lines_over_time."""
    labels: dict[LineKey, str] = {}
    values: dict[LineKey, dict[str, Point]] = {}
    pinned = watch.reference
    for series, label, node, runtime, _, ratio, low, high, at, round_id, run_id, outcome in points:
        version = runtime.removeprefix(f"{watch.distribution}==")
        labels.setdefault((series, node), label)
        by_version = values.setdefault((series, node), {pinned: Point(at, pinned, 1.0, None, None, 0)})
        by_version[version] = Point(at, version, ratio, low, high, round_id, run_id, outcome)
    ordered = {
        key: sorted(by_version.values(), key=lambda point: release_order(point.version))
        for key, by_version in values.items()
    }
    return _make_lines(labels, ordered, list(alerts), words, by_version=True)


def find_metrics(names: Iterable[str]) -> list[Metric]:
    """Find the metrics with these names, in the order of METRICS; unknown names are skipped."""
    known = set(names)
    return [metric for metric in METRICS if metric.name in known]


def list_releases(watch: "Watch", lines: Sequence[Line]) -> list[str]:
    """List the releases on the axis of lines over releases, the oldest first: the measured releases and, for the
    package onnxruntime, also the known releases between them."""
    measured = {point.version for line in lines for point in line.points}
    ends = sorted(map(release_order, measured))
    known = ONNXRUNTIME if watch.distribution == DEFAULT_DISTRIBUTION and ends else ()
    between = {version for version in known if ends[0] < release_order(version) < ends[-1]}
    return sorted(measured | between, key=release_order)


def _make_lines(
    labels: Mapping[LineKey, str],
    values: Mapping[LineKey, Sequence[Point]],
    alerts: Sequence["Alert"],
    words: Words,
    *,
    by_version: bool = False,
) -> list[Line]:
    """Make the lines, sorted by label and node. `by_version`: the lines are over releases, so alerts stand at their bad
    release and there are no level shifts."""
    every_label = list(labels.values())
    has_several_nodes = len({node for _, node in values}) > 1
    lines = []
    for (series, node), points in values.items():
        label = labels[series, node]
        name = _shorten_label(label, every_label)
        if has_several_nodes:
            name = node if len(set(every_label)) == 1 else f"{name} on {node}"
        shifts = [] if by_version else _find_shifts(points)
        marks = _make_marks(alerts, series, node, points, by_version=by_version)
        lines.append(Line(series, node, label, name, points, shifts, marks, words))
    return sorted(lines, key=lambda line: (line.label, line.node))


def _shorten_label(label: str, labels: Sequence[str]) -> str:
    """Remove from a label the parts that all labels share; return the whole label where nothing would remain."""
    shared = set.intersection(*(set(label.split(", ")) for label in labels))
    return ", ".join(part for part in label.split(", ") if part not in shared) or label


def _find_shifts(points: Sequence[Point]) -> list[Shift]:
    values = [point.ratio for point in points]
    window = ceil(len(values) / MAX_SEARCHED) or 1
    medians = [median(values[start : start + window]) for start in range(0, len(values), window)]
    return [
        Shift(_find_sharpest_jump(values, change.index * window, window - 1), 1 + (change.magnitude or 0.0))
        for change in find_changepoints(medians)
    ]


def _find_sharpest_jump(values: Sequence[float], index: int, reach: int) -> int:
    """Find the index, at most `reach` from `index`, at which the means before and after differ most. The difference is
    weighted by the number of values on each side."""
    start, stop = max(0, index - 2 * reach), min(len(values), index + 2 * reach)

    def jump(cut: int) -> float:
        before, after = values[start:cut], values[cut:stop]
        return abs(fmean(before) - fmean(after)) * sqrt(len(before) * len(after))

    return max(range(max(start + 1, index - reach), min(stop, index + reach + 1)), key=jump, default=index)


def _make_marks(
    alerts: Sequence["Alert"], series: str, node: str, points: Sequence[Point], *, by_version: bool
) -> list[Mark]:
    """Mark the alerts of a line, each at the first point of its bad release or of its round."""
    known = [(alert, {row.kind for row in alert.symptoms.all() if row.series == series}) for alert in alerts]
    own = [(alert, kinds) for alert, kinds in known if kinds and alert.node == node]
    if not own:
        return []
    first: dict[str | int | None, int] = {}
    for index, point in enumerate(points):
        first.setdefault(point.version if by_version else point.round, index)
    places = [(alert, kinds, first.get(alert.bad if by_version else alert.round_id)) for alert, kinds in own]
    return [
        Mark(index, alert.pk, alert.state, is_slower=alert.state in OPEN_ALERTS and "slower" in kinds)
        for alert, kinds, index in places
        if index is not None
    ]


def find_words(metric: str) -> Words:
    """Find the words for more and less of a metric. An unknown name, and a metric without verdicts, gets the words of
    latency."""
    judging = BY_NAME[metric].judging if metric in BY_NAME else None
    return TIME if judging is None else judging.words


def make_table(lines: Sequence[Line], *, watch: int, distribution: str = DEFAULT_DISTRIBUTION) -> Table:
    """Make the table of lines, each with its last value, its level shifts and its alerts. `watch`: the number of the
    watch, which the links to a single line need."""
    columns: tuple[Column[Line], ...] = (
        Column("Series", lambda line: Entry(line.label, href=series_address(watch, line.key))),
        Column("Node", lambda line: Entry(line.node)),
        Number("rounds", lambda line: as_count(len(line.points))),
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
    """List at most `most` level shifts in words and count the others; “none” for a line without level shifts."""
    return numbers.listed([describe_shift(line, shift) for shift in line.shifts], most=most) or "none"
