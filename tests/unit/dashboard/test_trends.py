"""Long series: thinned with their extremes, level shifts and alerts marked, over time and over releases."""

import json
import random
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from dashboard.figures.figure import thin_places
from dashboard.figures.trends import COLOURED, describe_shift, draw_trend
from dashboard.reading import trends as reading
from dashboard.reading.watched_series import find_slowest_series

START = datetime(2026, 11, 1, tzinfo=UTC)
WATCH: Any = SimpleNamespace(distribution="onnxruntime", reference="1.29.0")
LABEL = "encoder, CPU, {}, batch 1"


def rows(values: list[float], *, series: str = "s1", label: str = "fp32", versions: list[str] | None = None) -> Any:
    """Plain rows as the selector gives them."""
    for place, ratio in enumerate(values):
        new = versions[place] if versions else "1.31.1"
        at = START + timedelta(hours=place)
        yield (series, LABEL.format(label), "bench-1", f"onnxruntime=={new}", new, ratio, ratio * 0.98, ratio * 1.02,
               at, place, 100 + place, "quiet")  # fmt: skip


def stepped(count: int, *, at: int) -> list[float]:
    """Ratios that step from 1.0 to 1.24, with noise from a seed."""
    noise = random.Random(5)
    return [(1.24 if place >= at else 1.0) * (1 + noise.gauss(0, 0.004)) for place in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2, 39, 40])
def test_short_lines_are_not_thinned(count: int) -> None:
    assert thin_places([1.0] * count, most=40) == list(range(count))


@pytest.mark.parametrize("count", [41, 99, 1000, 9999])
def test_thinning_keeps_the_ends_and_every_extreme(count: int) -> None:
    noise = random.Random(count)
    values = [noise.gauss(1, 0.1) for _ in range(count)]
    spikes = {count // 3: 9.0, count // 2: -9.0}
    for place, value in spikes.items():
        values[place] = value
    places = thin_places(values, most=40)
    assert len(places) <= 40
    assert places == sorted(set(places))
    assert {0, count - 1, *spikes} <= {*places}


def test_a_line_is_the_new_release_of_each_round_and_knows_its_level_shift() -> None:
    values = stepped(60, at=40)
    versions = ["1.30.0"] * 40 + ["1.31.1"] * 20
    others = [(*row[:3], "onnxruntime==1.28.0", *row[4:]) for row in rows(values)]
    (line,) = reading.lines_over_time(WATCH, [*rows(values, versions=versions), *others])
    assert len(line.points) == 60
    assert [shift.index for shift in line.shifts] == [40]
    assert line.shifts[0].ratio == pytest.approx(1.24, rel=0.01)
    assert describe_shift(line, line.shifts[0]) == "24 % slower with 1.31.1"


@pytest.mark.parametrize(("count", "at"), [(1000, 600), (1000, 602), (10_000, 8_123), (201, 100)])
def test_a_long_line_knows_the_very_value_its_level_shifted_with(count: int, at: int) -> None:
    (line,) = reading.lines_over_time(WATCH, rows(stepped(count, at=at)))
    assert [shift.index for shift in line.shifts] == [at]
    assert line.shifts[0].ratio == pytest.approx(1.24, rel=0.01)


def test_an_alert_is_marked_where_its_round_stands() -> None:
    alert = SimpleNamespace(
        node="bench-1", round_id=7, pk=3, state="open", symptoms=_Rows([SimpleNamespace(series="s1", kind="slower")])
    )
    elsewhere = SimpleNamespace(node="pi", round_id=7, pk=4, state="open", symptoms=alert.symptoms)
    (line,) = reading.lines_over_time(WATCH, rows([1.0] * 10), [alert, elsewhere])
    assert [(mark.index, mark.alert) for mark in line.marks] == [(7, 3)]
    figure = draw_trend([line], reference="1.29.0", table=reading.make_table([line], watch=1))
    marks = next(one for one in figure.data if one["mode"] == "markers+text")
    assert marks["customdata"] == ["/alerts/3/"]
    assert marks["text"] == ["alert 3"]
    points = next(one for one in figure.data if one["mode"] == "lines+markers")
    assert points["customdata"][6:8] == ["/runs/106/", "/alerts/3/"]


class _Rows(list[Any]):
    def all(self) -> list[Any]:
        return self


def test_over_releases_each_has_its_newest_value_in_release_order() -> None:
    versions = ["1.9.0", "1.31.1", "1.30.0", "1.31.1"]
    (line,) = reading.lines_over_releases(WATCH, rows([1.0, 1.5, 1.1, 1.2], versions=versions))
    assert [(point.version, point.ratio) for point in line.points] == [
        ("1.9.0", 1.0),
        ("1.29.0", 1.0),
        ("1.30.0", 1.1),
        ("1.31.1", 1.2),
    ]
    table = reading.make_table([line], watch=1)
    figure = draw_trend([line], reference="1.29.0", table=table, releases=["1.9.0", "1.29.0", "1.30.0", "1.31.1"])
    assert figure.layout["xaxis"]["categoryarray"] == ["1.9.0", "1.29.0", "1.30.0", "1.31.1"]


def test_what_its_round_left_undecided_is_told_as_undecided_where_no_verdict_stands_beside_it() -> None:
    """ "19 % slower" stood as a heading over a value of which nothing was decided."""
    undecided = [(*row[:-1], "undecided") for row in rows([1.19, 1.19])]
    lines = reading.lines_over_time(WATCH, undecided)
    table = reading.make_table(lines, watch=1)
    headings = [draw_trend(shown, reference="1.29.0", table=table).title for shown in (lines, [*lines, *lines])]
    assert headings == [
        "1.31.1 against 1.29.0: 19 % slower, undecided",
        "2 series against 1.29.0, the last values from 19 % slower to 19 % slower; 2 undecided",
    ]
    values = [(7, 1, "onnxruntime", "1.29.0", *undecided[0][:1], "bench-1", "fp32", "1.31.1", 1.19, 1.17, 1.21, word)
              for word in ("undecided", "alert")]  # fmt: skip
    assert [find_slowest_series([value])[7].last for value in values] == [
        "19 % slower, undecided",
        "19 % slower",
    ]


def test_a_release_that_was_not_measured_is_a_gap_and_no_line_joins_its_neighbours() -> None:
    lines = reading.lines_over_releases(WATCH, rows([1.0, 1.2], versions=["1.30.0", "1.31.1"]))
    releases = reading.list_releases(WATCH, lines)
    assert releases == ["1.29.0", "1.30.0", "1.31.0", "1.31.1"]
    figure = draw_trend(lines, reference="1.29.0", table=reading.make_table(lines, watch=1), releases=releases)
    (drawn,) = figure.data
    assert (drawn["x"], drawn["y"], drawn["connectgaps"]) == (releases, [1.0, 1.0, None, 1.2], False)
    assert drawn["customdata"][2] == drawn["text"][2] == ""
    assert len(drawn["error_y"]["array"]) == 4
    other: Any = SimpleNamespace(distribution="ort-nightly", reference="1.29.0")
    assert reading.list_releases(other, lines) == ["1.29.0", "1.30.0", "1.31.1"]


def test_a_round_in_which_a_series_was_not_measured_breaks_its_line_once() -> None:
    whole, other = list(rows([1.0] * 9)), list(rows([1.1] * 9, series="s2", label="int8"))
    lines = reading.lines_over_time(WATCH, [*whole, *other[:3], *other[6:]])
    figure = draw_trend(lines, reference="1.29.0", table=reading.make_table(lines, watch=1))
    values = {line["name"]: line["y"] for line in figure.data}
    assert values["fp32"] == [1.0] * 9
    assert values["int8"] == [1.1] * 3 + [None] + [1.1] * 3


def test_the_axis_reaches_the_whiskers_of_every_value() -> None:
    lines = reading.lines_over_time(WATCH, [(*row[:6], 0.8, 1.9, *row[8:]) for row in rows([1.0, 1.1, 1.0])])
    axis = draw_trend(lines, reference="1.29.0", table=reading.make_table(lines, watch=1)).layout["yaxis"]
    assert min(axis["tickvals"]) <= 0.8
    assert max(axis["tickvals"]) >= 1.9


def test_series_whose_names_begin_alike_have_colours_of_their_own() -> None:
    named = [row for end in "abc" for row in rows([1.0], series=f"watched-series-{end}", label=f"batch {end}")]
    lines = reading.lines_over_time(WATCH, named)
    drawn = draw_trend(lines, reference="1.29.0", table=reading.make_table(lines, watch=1)).data
    assert len({one["line"]["color"] for one in drawn}) == 3


def test_a_series_keeps_its_colour_when_it_is_chosen() -> None:
    wanted = [row for number in range(9) for row in rows([1.0], series=f"s{number}", label=f"batch {number}")]
    lines = reading.lines_over_time(WATCH, wanted)
    every, chosen, ninth = (
        {one["name"]: one["line"]["color"] for one in figure.data}
        for figure in (
            draw_trend(lines, reference="1.29.0", table=reading.make_table(lines, watch=1), chosen=key)
            for key in ("", lines[4].key, lines[8].key)
        )
    )
    assert every[lines[4].name] == chosen[lines[4].name] == "@series-5"
    assert set(chosen.values()) == {"@series-5", "@series-other"}
    assert every[lines[8].name] == "@series-other"
    assert ninth[lines[8].name] == "@accent"


def test_names_leave_out_what_all_series_share() -> None:
    both = [*rows([1.0], label="fp32"), *rows([1.0], series="s2", label="int8-dynamic")]
    assert [line.name for line in reading.lines_over_time(WATCH, both)] == ["fp32", "int8-dynamic"]
    assert reading.lines_over_time(WATCH, rows([1.0]))[0].name == "encoder, CPU, fp32, batch 1"
    elsewhere = [tuple("pi" if part == "bench-1" else part for part in row) for row in rows([1.0])]
    assert [line.name for line in reading.lines_over_time(WATCH, [*rows([1.0]), *elsewhere])] == ["bench-1", "pi"]
    assert [line.name for line in reading.lines_over_time(WATCH, [*both, *elsewhere])] == [
        *("fp32 on bench-1", "fp32 on pi", "int8-dynamic on bench-1")
    ]


def test_the_title_says_where_the_last_values_stand() -> None:
    one = reading.lines_over_time(WATCH, rows(stepped(60, at=40)))
    table = reading.make_table(one, watch=1)
    assert draw_trend(one, reference="1.29.0", table=table).title.startswith("1.31.1 against 1.29.0: 2")
    assert draw_trend(one, reference="1.29.0", table=table).title.endswith("; 1 level shift")
    two = reading.lines_over_time(WATCH, [*rows([0.9]), *rows([1.2], series="s2", label="int8")])
    assert (
        draw_trend(two, reference="1.29.0", table=table).title
        == "2 series against 1.29.0, the last values from 10 % faster to 20 % slower"
    )
    assert draw_trend([], reference="1.29.0", table=table).empty.startswith("No data yet")


@pytest.mark.parametrize(
    ("alert", "title"),
    [
        ({"state": "open"}, "1.32.0 is still 57 % slower than 1.29.0"),
        ({"state": "resolved"}, "1.32.0 against 1.29.0: 57 % slower"),
        ({"state": "open", "bad": "1.32.0"}, "1.32.0 against 1.29.0: 57 % slower"),
    ],
)
def test_the_title_of_a_line_with_an_alert_says_that_it_is_still_slower(alert: dict[str, str], title: str) -> None:
    """ "1.32.0 against 1.29.0: 57 % slower" stood below the headline "1.30.0 … 56.5 % slower" without any relation."""
    symptoms = _Rows([SimpleNamespace(series="s1", kind="slower")])
    opened = SimpleNamespace(**{"node": "bench-1", "bad": "1.30.0", "pk": 3, "symptoms": symptoms, **alert})
    lines = reading.lines_over_releases(WATCH, rows([1.565, 1.57], versions=["1.30.0", "1.32.0"]), [opened])
    assert draw_trend(lines, reference="1.29.0", table=reading.make_table(lines, watch=1)).title == title


def test_ten_long_lines_stay_small_with_seven_in_colour() -> None:
    found = []
    for number in range(10):
        found += rows(stepped(1000, at=600), series=f"s{number}", label=f"batch {number}")
    lines = reading.lines_over_time(WATCH, found)
    figure = draw_trend(lines, reference="1.29.0", table=reading.make_table(lines, watch=1))
    assert len(figure.json) < 300_000
    drawn = [one for one in figure.data if one["mode"] == "lines+markers"]
    assert sum(one["line"]["color"] != "@series-other" for one in drawn) == COLOURED
    chosen = draw_trend(lines, reference="1.29.0", table=figure.table, chosen=lines[4].key)
    coloured = [one for one in chosen.data if one["mode"] == "lines+markers" and one["line"]["color"] == "@series-5"]
    assert [one["name"] for one in coloured] == [lines[4].name]
    assert json.loads(figure.json)["layout"]["yaxis"]["type"] == "log"
