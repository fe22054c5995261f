"""The grid of models and releases: how each release changed each model against the pinned release of its watch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from dashboard import axes
from dashboard.figures.trends import series_key
from dashboard.reading.heatmap import HeatMap, Row
from dashboard.reading.heatmap_fields import METRICS, Field, change_tone
from dashboard.reading.trends import series_address
from farm.rules.comparing.quantities import judge_series_value
from farm.rules.runtimes.order import release_order
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import STATES, WRONG, Sign, is_change, sign_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from farm.alerts.selectors.pages import ReleaseRow

MAX_ROWS, MAX_RELEASES = 100, 10


@dataclass(frozen=True)
class Grid:
    """The grid, with a headline about the newest release and counts that explain it."""

    map: HeatMap
    headline: str
    because: str


def make_grid(values: "Iterable[ReleaseRow]", *, wrong: "Collection[tuple[int, str]]" = ()) -> Grid | None:
    """Make the grid with a row for each model and a column for each release; None without values. Each field shows the
    slowest of the model's series. The grid has the newest MAX_RELEASES releases, the oldest of them first, and at most
    MAX_ROWS models, those that are worst with the newest release first, then by name; headline and counts are of all
    models. `wrong`: pairs of a model's number and a release with which an alert calls the model's outputs wrong."""
    known: dict[int, dict[str, list[ReleaseRow]]] = {}
    names: dict[int, str] = {}
    for row in values:
        names[row.model] = row.name
        known.setdefault(row.model, {}).setdefault(row.release, []).append(row)
    releases = sorted({release for own in known.values() for release in own}, key=release_order)[-MAX_RELEASES:]
    if not releases:
        return None
    places = {
        model: [_make_field(own.get(release, ()), is_wrong=(model, release) in wrong) for release in releases]
        for model, own in known.items()
    }
    ordered = sorted(places, key=lambda model: (_rank_gravity(places[model][-1]), names[model], model))
    rows = [Row((names[model],), places[model]) for model in ordered[:MAX_ROWS]]
    drawn = HeatMap(METRICS[0], axes.BY_NAME["runtime"], [axes.BY_NAME["model"]], releases, rows)
    return Grid(drawn, *_write_headline(names[ordered[0]], [places[model][-1] for model in ordered], releases[-1]))


def _write_headline(first: str, newest: Sequence[Field], release: str) -> tuple[str, str]:
    """Write the headline about the newest release, and a sentence with how many models got worse. `first`: the name of
    the worst model; `newest`: the fields of the newest release, the worst first."""
    bad = [place for place in newest if _rank_gravity(place)[0] < 2]
    undecided = sum(_rank_gravity(place)[0] == 2 for place in newest)
    measured = numbers.counted(sum(bool(place.href) for place in newest), "model")
    open_too = f", {undecided} undecided" if undecided else ""
    because = f"{len(bad)} of {measured} slower or wrong with {release}{open_too}"
    if not bad and undecided:
        return f"Whether {first} is slower with {release} is undecided", f"{undecided} of {measured} undecided"
    if not bad:
        return f"No model is slower with {release}", f"{measured} measured"
    sign = bad[0].sign
    verdict = f"is {sign.word}" if sign is not None and sign.tone == "slower" else f"has {WRONG}"
    return f"{first} {verdict} with {release}", because


def _rank_gravity(field: Field) -> tuple[int, str]:
    """Return the sort key: wrong outputs first, then slower, undecided, and all others. Among slower fields the deepest
    colour comes first."""
    tone = field.sign.tone if field.sign is not None else ""
    if tone == "slower":
        return 1, "".join(chr(255 - ord(letter)) for letter in field.tone)
    is_undecided = field.sign == sign_of("undecided")
    return (0 if tone == "bad" else 2 if is_undecided else 3), ""


def _make_field(rows: "Sequence[ReleaseRow]", *, is_wrong: bool) -> Field:
    if not rows:
        return Field(sign=sign_of("not_measured"), tone="none", title="not measured on that release")
    worst = max(rows, key=lambda row: row.ratio)
    of = f", of {len(rows)} series the slowest" if len(rows) > 1 else ""
    text = numbers.change(worst.ratio, worst.low, worst.high)
    title = f"{worst.label} on {worst.node}, against {worst.reference}{of}: {text}"
    href = series_address(worst.watch, series_key(worst.series, worst.node))
    if is_wrong:
        return Field(href, sign=STATES[WRONG], tone="bad", title=title)
    if worst.release == worst.reference:
        return Field(href, sign=Sign("·", "pinned", "quiet"), tone="", title=title)
    is_open = worst.outcome == "undecided"
    verdict = judge_series_value(worst.ratio, worst.low, worst.high, is_undecided=is_open, words=numbers.TIMES)
    sign = sign_of(verdict)
    if not is_change(verdict):
        return Field(href, sign=sign, tone="", title=title)
    tone = change_tone(abs(log(worst.ratio)), is_gain=worst.ratio < 1.0)
    return Field(href, sign=Sign(sign.mark, text, sign.tone), tone=tone, title=title)
