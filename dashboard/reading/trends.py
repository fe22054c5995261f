"""Long series: each watched cell as a ratio to the pinned release of the same block, with its level shifts."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from dashboard.figures.lines import Line, Mark, Shift, Spot, shift_words
from farm.rules.cells.metric import TIME, Metric, Words
from farm.rules.cells.metrics import BY_NAME, METRICS
from farm.rules.comparing.changepoints import find_changepoints
from farm.rules.presenting.tables import Column, Entry, Number, Table, counted, verdict_entry
from farm.rules.runtimes.distributions import DEFAULT_DISTRIBUTION
from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.releases import ONNXRUNTIME
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.alerts.models import Alert, Watch
    from farm.alerts.selectors.pages import PointRow

# so many values are searched for level shifts; of a longer line, the medians of so many stretches
SEARCHED = 200
# from a series, its node and values to its level shifts and alerts
Marking = Callable[[str, str, Sequence[Spot]], tuple[Sequence[Shift], Sequence[Mark]]]


def lines(
    watch: "Watch", points: Iterable["PointRow"], alerts: Iterable["Alert"] = (), *, words: Words = TIME
) -> list[Line]:
    """A watch's lines over time: of each round the new release. `points` as farm.alerts.selectors.pages.points."""
    prefix = f"{watch.distribution}=="
    series_spots: dict[tuple[str, str], tuple[str, list[Spot]]] = {}
    for series, label, node, runtime, new, ratio, low, high, at, round_id, run_id in points:
        if runtime == prefix + new:
            spots = series_spots.setdefault((series, node), (label, []))[1]
            spots.append(Spot(at, new, ratio, low, high, round_id, run_id))
    raised = list(alerts)
    return _lines(
        series_spots, lambda series, node, spots: (_shifts(spots), _marks(raised, series, node, spots)), words
    )


def by_release(
    watch: "Watch", points: Iterable["PointRow"], alerts: Iterable["Alert"] = (), *, words: Words = TIME
) -> list[Line]:
    """The same lines over releases: the newest value that each release has; the pinned one is 1 by itself."""
    series_spots: dict[tuple[str, str], tuple[str, dict[str, Spot]]] = {}
    pinned = watch.reference
    for series, label, node, runtime, _, ratio, low, high, at, round_id, run_id in points:
        version = runtime.removeprefix(f"{watch.distribution}==")
        spots = series_spots.setdefault((series, node), (label, {pinned: Spot(at, pinned, 1.0, None, None, 0)}))[1]
        spots[version] = Spot(at, version, ratio, low, high, round_id, run_id)
    ordered = {
        key: (label, sorted(spots.values(), key=lambda spot: release_order(spot.version)))
        for key, (label, spots) in series_spots.items()
    }
    raised = list(alerts)
    return _lines(
        ordered, lambda series, node, spots: ((), _marks(raised, series, node, spots, by_version=True)), words
    )


def metrics_of(names: Iterable[str]) -> list[Metric]:
    """The metrics of these names that a chart may be about, in the order of the table."""
    known = set(names)
    return [metric for metric in METRICS if metric.name in known]


def releases_of(watch: "Watch", lines: Sequence[Line]) -> list[str]:
    """The releases that lines over releases stand on: those measured, and those between that are known and were not."""
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
        name = _name(label, labels) if len(nodes) == 1 else f"{_name(label, labels)} on {node}"
        # what differs in the node alone is told apart by it
        name = node if len(nodes) > 1 and len(set(labels)) == 1 else name
        made.append(Line(series, node, label, name, spots, shifts, marked, words))
    return sorted(made, key=lambda line: (line.label, line.node))


def _name(label: str, labels: Sequence[str]) -> str:
    """A label without the parts that all labels share; whole where nothing would be left."""
    shared = set.intersection(*(set(label.split(", ")) for label in labels))
    return ", ".join(part for part in label.split(", ") if part not in shared) or label


def _shifts(spots: Sequence[Spot]) -> list[Shift]:
    values = [spot.ratio for spot in spots]
    stretch = ceil(len(values) / SEARCHED) or 1
    medians = [median(values[start : start + stretch]) for start in range(0, len(values), stretch)]
    changepoints = find_changepoints(medians)
    return [
        Shift(_sharpest(values, one.index * stretch, stretch - 1), 1 + (one.magnitude or 0.0)) for one in changepoints
    ]


def _sharpest(values: Sequence[float], place: int, reach: int) -> int:
    """Where within `reach` of a place the means before and after differ most, weighted by how many there are."""
    start, stop = max(0, place - 2 * reach), min(len(values), place + 2 * reach)

    def jump(cut: int) -> float:
        before, after = values[start:cut], values[cut:stop]
        return abs(fmean(before) - fmean(after)) * sqrt(len(before) * len(after))

    return max(range(max(start + 1, place - reach), min(stop, place + reach + 1)), key=jump, default=place)


def _marks(
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
    named = [(places.get(one.bad if by_version else one.round_id), one) for one in mine]
    return [Mark(place, one.pk, one.state) for place, one in named if place is not None]


def words_of(metric: str) -> Words:
    """What is said of more of a metric, and of less; of the p50 for no name."""
    judging = BY_NAME[metric].judging if metric in BY_NAME else None
    return TIME if judging is None else judging.words


def table(lines: Sequence[Line], *, watch: int, words: Words = TIME) -> Table:
    """Every line with its last value, its level shifts and its alerts; a name leads to that line alone."""
    columns: tuple[Column[Line], ...] = (
        Column("Series", lambda line: Entry(line.label, href=href_of(watch, line.key))),
        Column("Node", lambda line: Entry(line.node)),
        Number("points", lambda line: counted(len(line.spots))),
        Column("Last release", lambda line: Entry(line.spots[-1].version, is_name=True)),
        Column(
            "Change",
            lambda line: _direction(line, words),
            "whether the 95 % interval of the last value excludes no change; not a verdict",
        ),
        Number("last", lambda line: last_change(line), "against the pinned release, in the same block"),
        Number("95 % interval", lambda line: Entry(last_interval(line), line.spots[-1].low)),
        Column("Level shifts", lambda line: Entry(shifts_words(line, most=3))),
        Column("Status", lambda line: verdict_entry(line.marks[-1].state if line.marks else "quiet")),
        Column("Alerts", lambda line: Entry(_alerts(line))),
    )
    return Table.of("trends", "Long series against the pinned release", columns, lines)


def _direction(line: Line, words: Words) -> Entry:
    last = line.spots[-1]
    if last.low is None or last.high is None or last.low <= 1.0 <= last.high:
        return verdict_entry("undecided")
    return verdict_entry(words[0] if last.low > 1.0 else words[1])


def href_of(watch: int, key: str) -> str:
    return f"/trends/?{urlencode({'watch': watch, 'series': key})}"


def last_change(line: Line) -> Entry:
    last = line.spots[-1]
    return Entry(line.change(last), last.ratio)


def last_interval(line: Line) -> str:
    """Between which changes the newest value lies."""
    return line.interval(line.spots[-1])


def shifts_words(line: Line, *, most: int) -> str:
    """The level shifts, the first ones by name."""
    return numbers.listed([shift_words(line, shift) for shift in line.shifts], most=most) or "none"


def _alerts(line: Line) -> str:
    return numbers.listed([f"alert {mark.alert}" for mark in line.marks], most=4) or "none"
