"""A model's standing by its watches: its long series as small lines, and the badge that tells of it elsewhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from django.conf import settings

from dashboard.cache import kept as cached
from dashboard.figures.excerpts import kept
from dashboard.figures.lines import Line, key_of
from dashboard.reading import trends
from farm.alerts.selectors import badges, pages
from farm.rules.presenting.tables import Spark
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.alerts.models import Watch
    from farm.alerts.selectors.pages import ValueRow
    from farm.registry.models import Model


WIDTH, HEIGHT, ROOM = 120.0, 24.0, 3.0
MOST_SPOTS = 60
# what a small line reaches at least, so that noise looks like noise
LEAST_REACH = 0.05
WATCHES_SHOWN = 10
# values of a small line in a list
SPOTS = 40


@dataclass(frozen=True)
class Series:
    """One series of a watch."""

    name: str
    href: str
    spark: Spark
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

    spark: Spark
    ratio: float
    last: str
    interval: str
    release: str
    words: str
    href: str


def standings(values: Iterable["ValueRow"]) -> dict[int, Standing]:
    """A standing for each model that has long series. `values` as farm.alerts.selectors.pages.newest_values."""
    models: dict[int, dict[tuple[int, str, str], list[ValueRow]]] = {}
    for row in values:
        model, watch, _, _, series, node, *_ = row
        models.setdefault(model, {}).setdefault((watch, series, node), []).append(row)
    return {model: _standing(list(lines.values())) for model, lines in models.items()}


def _standing(lines: Sequence[Sequence["ValueRow"]]) -> Standing:
    slowest = max(lines, key=lambda line: line[-1][8])
    _, watch, distribution, reference, series, node, label, release, ratio, low, high = slowest[-1]
    of = f", of {len(lines)} series the slowest" if len(lines) > 1 else ""
    return Standing(
        spark=spark([row[8] for row in slowest]),
        ratio=ratio,
        last=numbers.change(ratio, low, high),
        interval=numbers.change_interval(low, high, ratio=ratio) if low is not None else "",
        release=release,
        words=f"{label} on {node}, against {distribution} {reference}{of}",
        href=trends.href_of(watch, key_of(series, node)),
    )


def watched(watch: "Watch", lines: Iterable[Line]) -> Watched:
    return Watched(watch, [_series(watch, line) for line in lines])


def _series(watch: "Watch", line: Line) -> Series:
    return Series(
        name=f"{line.name} on {line.node}" if line.node not in line.name else line.name,
        href=trends.href_of(watch.pk, line.key),
        spark=spark([spot.ratio for spot in line.spots]),
        last=trends.last_change(line).text,
        interval=trends.last_interval(line),
        release=line.spots[-1].version,
        shifts=trends.shifts_words(line, most=2),
        alerts=[(mark.alert, f"/alerts/{mark.alert}/") for mark in line.marks],
    )


def spark(ratios: Sequence[float]) -> Spark:
    """Ratios as a small line, logarithmic, the reference in it; a single value is a short dash."""
    values = [log(ratio) for ratio in ratios]
    low, high = min(0.0, *values), max(0.0, *values)
    if high - low < LEAST_REACH:
        low, high = low - LEAST_REACH / 2, high + LEAST_REACH / 2
    places = kept(values, most=MOST_SPOTS)
    step = (WIDTH - 2 * ROOM) / max(1, len(places) - 1)

    def height(value: float) -> float:
        return HEIGHT - ROOM - (value - low) / (high - low) * (HEIGHT - 2 * ROOM)

    spots = [(ROOM + number * step, height(values[place])) for number, place in enumerate(places)]
    if len(spots) == 1:
        spots = [spots[0], (WIDTH - ROOM, spots[0][1])]
    return Spark(" ".join(f"{x:.1f},{y:.1f}" for x, y in spots), f"{height(0.0):.1f}")


def of_model(model: "Model") -> dict[str, object]:
    """The model's series by watch, its badge, and the text that shows the badge elsewhere."""
    watches = pages.watches_of_model(model)
    shown = [watched(watch, _lines(watch, model)) for watch in watches[:WATCHES_SHOWN]]
    said = badges.standing_of(model)
    badge = f"/api/v1/badges/{model.pk}/{badges.badge_key(model.pk)}.svg"
    words = f"{said.label}: {said.text}"
    markdown = f"[![{words}]({settings.PUBLIC_URL}{badge})]({settings.PUBLIC_URL}/models/{model.pk}/)"
    return {
        "watched": shown,
        "badge": badge,
        "badge_words": words,
        "markdown": markdown,
        "watch_command": f"onnxfarm watch add upgrades --model {model.pk} --reference 1.29.0",
    }


def _lines(watch: "Watch", model: "Model") -> list[Line]:
    return trends.lines(watch, pages.points_of_model(watch, model), pages.alerts_of_watch(watch).filter(model=model))


def standings_of(models: Iterable["Model"]) -> dict[int, Standing]:
    """How each of these models stands by its watches, by its number; kept until any long series gets a value."""
    numbers = tuple(model.pk for model in models)
    return cached(
        "pieces",
        "standings",
        pages.newest_of_all(),
        numbers,
        make=lambda: standings(pages.newest_values(numbers, most=SPOTS)),
    )
