"""The first paint of each figure: an SVG whose geometry is that of the figure's own numbers, and nothing but text where
a name is hostile."""

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import log10
from typing import Any
from xml.etree import ElementTree

import pytest

from dashboard.figures import (
    beside,
    cell_bars,
    lanes,
    latency,
    operators,
    pareto,
    ratios,
    samples,
    scales,
    theme,
    traces,
    trends,
)
from dashboard.figures.figure import Figure
from dashboard.figures.frame import NARROW, WIDE, make_frame, text_width
from dashboard.figures.labels import place_labels
from dashboard.figures.picture import SIDE
from dashboard.reading import trends as reading
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.cells.metrics import BY_NAME
from farm.rules.presenting.lines import make_comparison_line
from farm.rules.presenting.tables import Table
from tests.unit.dashboard import test_closer_figures, test_figures, test_pareto, test_trends
from tests.unit.dashboard.conftest import address

HOSTILE = "</text><script>alert(1)</script>&\"'"
EMPTY = Table.of("t", "t", (), ())


def parsed(figure: Figure) -> ElementTree.Element:
    return ElementTree.fromstring(f"<svg>{figure.picture}</svg>")


def trend(count: int = 60, **more: Any) -> Figure:
    lines = reading.lines_over_time(test_trends.WATCH, [*test_trends.rows(test_trends.stepped(count, at=count // 2))])
    return trends.draw_trend(lines, reference="1.29.0", table=EMPTY, **more)


def every_kind(document: Document) -> list[Figure]:
    cells = [cell for cell in document.cells if cell.p50_ms is not None]
    bars = [beside.Bar(f"cell {cell.id}", cell, address(cell.id), "4 % slower") for cell in cells[:3]]
    return [
        *test_figures.all_figures(document), *test_closer_figures.figures(document),
        pareto.draw_cells(test_pareto.ALL, address), trend(), beside.draw_cells(BY_NAME["p50_ms"], bars),
    ]  # fmt: skip


def share(text: str | None) -> float:
    return float((text or "0%").removesuffix("%")) / 100


def spots(figure: Figure) -> list[tuple[float, float]]:
    """Where marks stand: from the left and from above, in parts of the drawing."""
    svg = parsed(figure)
    found = [(share(use.get("x")), share(use.get("y"))) for use in svg.iter("use")]
    for path in svg.iter("path"):
        if path.get("class") == "dot":
            dots = re.findall(r"M(-?\d+) (-?\d+)h0", path.get("d", ""))
            found += [(int(x) / SIDE, int(y) / SIDE) for x, y in dots]
    return found


def lengths(figure: Figure) -> list[float]:
    return [share(rect.get("width")) for rect in parsed(figure).iter("rect")]


def test_every_kind_of_figure_is_a_picture_in_the_colours_of_the_stylesheet(document: Document) -> None:
    known = set(re.findall(r"(--[a-z0-9-]+):", test_figures.STYLESHEET.read_text()))
    for figure in every_kind(document):
        parsed(figure)
        assert set(re.findall(r"var\((--[a-z0-9-]+)\)", figure.picture)) <= known, figure.name
        assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?!-)", figure.picture.replace('href="#', "")), figure.name
        assert "None" not in figure.picture, figure.name
        assert figure.room.startswith(f"--high:{figure.layout['height']}px;"), figure.name


def test_bars_are_as_long_as_their_numbers(document: Document, by_id: dict[str, Cell]) -> None:
    sides = operators.name_sides(by_id["b1-a0"], by_id["b1-a1"])
    for figure in (
        cell_bars.draw_memory(document.cells, address),
        cell_bars.draw_cold_start(document.cells, address),
        operators.draw_operators(document.comparisons[0], sides),
    ):
        values = [value for trace in figure.data for value in trace["x"]]
        drawn, reach = lengths(figure), figure.layout["xaxis"]["range"][1]
        # rectangles of one paint stand together, so that their order is another
        assert sorted(drawn) == pytest.approx(sorted(value / reach for value in values), abs=2e-4), figure.name


def test_parts_of_a_bar_stand_behind_each_other(document: Document) -> None:
    figure = cell_bars.draw_cold_start(document.cells[:1], address)
    rects = [(share(rect.get("x")), share(rect.get("width"))) for rect in parsed(figure).iter("rect")]
    assert len(rects) == 3
    for (x, width), (after, _) in pairwise(rects):
        assert x + width == pytest.approx(after, abs=2e-4)


def test_points_stand_where_their_numbers_say_on_a_logarithmic_axis(document: Document) -> None:
    figure = latency.draw_latency(document.cells, document.comparisons, address)
    low, high = figure.layout["xaxis"]["range"]
    values = [value for trace in figure.data for value in trace["x"]]
    expected = [(log10(value) - low) / (high - low) for value in values]
    assert sorted(x for x, _ in spots(figure)) == pytest.approx(sorted(expected), abs=2e-4)


def test_no_mark_and_no_bar_leaves_its_axes(document: Document) -> None:
    for figure in every_kind(document):
        assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in spots(figure)), figure.name
        rects = [*parsed(figure).iter("rect")]
        assert all(share(rect.get("x")) + share(rect.get("width")) <= 1.0001 for rect in rects), figure.name
        assert spots(figure) or rects or "<path d=" in figure.picture, figure.name


def test_one_outlier_never_flattens_the_others(by_id: dict[str, Cell]) -> None:
    cells = [
        by_id["b1-a0"].model_copy(update={"id": f"c{n}", "batch": n + 1, "p50_ms": p50, "p50_ci_ms": (p50, p50)})
        for n, p50 in enumerate((1.0, 2.0, 900.0))
    ]
    first, second, _ = sorted(x for x, _ in spots(latency.draw_latency(cells, [], address)))
    assert second - first > 0.05


def test_a_line_breaks_where_nothing_was_measured_and_its_whiskers_reach_their_ends() -> None:
    spot = traces.make_points([1, 2, 3, 4], [1.0, None, 3.0, 4.0], mode="lines", line=traces.make_pen("@ink", 1))
    ends = {"error_y": traces.make_whiskers([1.0, 0.0, 3.0, 4.0], [(1, 1), (0, 0), (2, 4), (4, 4)], "@ink")}
    axes = (
        theme.make_axis("x", **scales.make_linear([4.0])),
        theme.make_axis("y", **scales.make_linear([4.0], room=0)),
    )
    layout = theme.make_layout(height=200, xaxis=axes[0], yaxis=axes[1])
    figure = Figure("x", "t", "s.", [{**spot, **ends}], layout, EMPTY)
    line, whisker = [path.get("d", "") for path in parsed(figure).iter("path")][1:]
    assert line.count("M") == 2
    assert re.fullmatch(rf"M\d+ {SIDE // 2}V0", whisker)


@pytest.mark.parametrize("length", [1, 40])
def test_hostile_names_stay_text(by_id: dict[str, Cell], document: Document, length: int) -> None:
    name = HOSTILE * length
    cells = [by_id["b1-a0"].model_copy(update={"id": "c1"})]
    bars = [beside.Bar(name, cells[0], address("c1"), name)]
    traced = test_closer_figures.traced(test_closer_figures.span(1))
    pair = document.comparisons[0]
    for figure in (
        beside.draw_cells(BY_NAME["p50_ms"], bars),
        lanes.draw_lanes([lanes.Traced(name, traced)], {}),
        ratios.draw_ratios([ratios.Named(pair, name, "1.29.0 → 1.31.1", "", make_comparison_line(pair, {}))]),
        trend(releases=["1.29.0", name]),
        pareto.draw_cells([test_pareto.PLAIN.model_copy(update={"precision": name, "id": n}) for n in "ab"], address),
    ):
        svg = parsed(figure)
        assert {part.tag for part in svg.iter()} <= {"svg", "g", "path", "text", "tspan", "use", "defs", "rect"}
        texts = ["".join(text.itertext()) for text in svg.iter("text")]
        assert any("</text><script>" in text for text in texts) or figure.name == "pareto", figure.name
        assert max(map(len, texts)) < 120


def test_on_a_phone_names_of_rows_stand_above_them_and_ticks_have_room(document: Document) -> None:
    for figure in every_kind(document):
        drawn = make_frame(figure.data, figure.layout)
        assert drawn.narrow_height >= (len(drawn.rows) * 28 if drawn.rows else figure.layout["height"])
        narrow = [text for text in parsed(figure).iter("text") if text.get("y") == "100%" and not text.get("class")]
        assert sum(6.6 * len(text.text or "") for text in narrow if not text.get("dy")) <= NARROW, figure.name
        assert json.loads(figure.json)["rows"] == drawn.rows


def test_names_of_points_never_lie_on_each_other() -> None:
    crowd = [
        test_pareto.PLAIN.model_copy(update={"id": f"c{n}", "precision": f"fp{n}", "p50_ms": 1 + n / 500})
        for n in range(8)
    ]
    figure = pareto.draw_cells(crowd, address)
    drawn = make_frame(figure.data, figure.layout)
    shown = {width: [name for some in place_labels(figure.data, drawn, width).values() for name in some if name.text]
             for width in (NARROW, WIDE)}  # fmt: skip
    assert 0 < len(shown[NARROW]) < 8
    assert len({(name.way, name.text) for name in shown[WIDE]}) == len(shown[WIDE])
    wide, narrow = json.loads(figure.json)["names"]
    assert wide.keys() == narrow.keys()
    alone = pareto.draw_cells(test_pareto.ALL, address)
    names = place_labels(alone.data, make_frame(alone.data, alone.layout), WIDE).values()
    assert {name.text for some in names for name in some} == {"fp32", "int8-qdq", "fp16", "int8-dynamic"}


def test_the_name_of_a_point_lies_on_no_other_point_in_a_wide_window() -> None:
    near = [
        test_pareto.cell(name, p50=p50_ms, right=right, size=size, precision=name, p50_ci_ms=None)
        for name, p50_ms, right, size in (
            ("fp32", 0.70, 0.98, 190_000), ("fp16", 0.71, 0.98, 95_000), ("int8-qdq", 0.793, 0.978, 60_000),
            ("int8-qdq, 1st", 0.795, 0.978, 60_000), ("bf16", 0.827, 0.978, 61_000), ("int8", 3.3, 0.98, 50_000),
        )
    ]  # fmt: skip
    figure = pareto.draw_cells(near, address)
    frame = make_frame(figure.data, figure.layout)
    placed = place_labels(figure.data, frame, WIDE)
    points = [(place, number) for place, some in placed.items() for number in range(len(some))]
    for width in (WIDE, 1.5 * WIDE, 2 * WIDE, 2.3 * WIDE):
        spots = {
            (place, number): (
                width * frame.x.within(figure.data[place]["x"][number]),
                frame.drawn * (1 - frame.y.within(figure.data[place]["y"][number])),
            )
            for place, number in points
        }
        for (place, number), (x, y) in spots.items():
            name = placed[place][number]
            if not name.text or name.way not in ("middle right", "middle left"):
                continue
            side = 1 if name.way == "middle right" else -1
            start, end = sorted((x + side * name.away, x + side * (name.away + text_width(name.text))))
            over = [at for at, (dot_x, dot_y) in spots.items() if start - 8 < dot_x < end + 8 and abs(dot_y - y) < 8]
            assert over == [], (name, width)


@pytest.mark.parametrize("span", [timedelta(0), timedelta(minutes=5), timedelta(hours=7), timedelta(days=3),
                                  timedelta(days=40), timedelta(days=400), timedelta(days=3000)])  # fmt: skip
def test_a_time_axis_has_round_moments_within_it(span: timedelta) -> None:
    first = datetime(2026, 11, 3, 7, 12, 34, tzinfo=UTC)
    axis = scales.make_time([first, first + span])
    low, high = axis["range"]
    assert low < f"{first:%Y-%m-%d %H:%M:%S}" < high
    assert all(low <= tick <= high for tick in axis["tickvals"])
    assert (1 if span else 0) <= len(axis["tickvals"]) <= scales.MAX_STEPS + 1
    assert len(axis["ticktext"]) == len({*axis["ticktext"]}) == len(axis["tickvals"])


def test_a_launch_s_place_is_a_whole_number(by_id: dict[str, Cell]) -> None:
    figure = samples.draw_samples(by_id["b1-a0"])
    assert [text.text for text in parsed(figure).iter("text") if text.get("y") == "100%"][:8] == [
        *map(str, range(1, 9))
    ]


def test_the_longest_series_stays_light() -> None:
    figure = trend(9000)
    assert len(figure.picture) < 60_000
