"""The key of a figure stands above it, never over data: what it names, in which colour and with which mark."""

import json
import re

from dashboard import markup
from dashboard.figures import cell_bars, latency, throughput, trends
from dashboard.figures.figure import Figure, list_series
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.wording.vocabulary import VERDICTS
from tests.unit.dashboard import test_figures
from tests.unit.dashboard.conftest import address


def test_no_chart_draws_a_key_of_its_own_and_each_has_one_on_the_page(document: Document) -> None:
    for figure in test_figures.all_figures(document):
        assert json.loads(figure.json)["layout"]["showlegend"] is False, figure.name
        named = [one.name for one in figure.key]
        assert len(named) == len(set(named))
        assert bool(named) == bool(figure.layout["showlegend"])


def test_a_key_has_the_colour_and_the_mark_of_its_series(by_id: dict[str, Cell]) -> None:
    first, second = latency.draw_latency([by_id["b1-a0"], by_id["b1-a1"]], [], address).key
    assert (first.name, first.colour, first.dashes) == ("1.29.0", "series-1", None)
    assert first.shape != second.shape
    line = throughput.draw_throughput([by_id["b1-a0"], by_id["b1-a1"]], address).key[0]
    assert line.dashes is not None
    assert 'fill="var(--series-1)"' in markup.series_mark(first)
    assert "<path d=" in markup.series_mark(line)
    assert cell_bars.draw_memory([by_id["b1-a0"]], address).key == []


def test_of_more_series_than_colours_the_grey_ones_stand_apart(by_id: dict[str, Cell]) -> None:
    many = [
        by_id["b1-a0"].model_copy(update={"id": f"c{n}", "runtime": Runtime.of(f"onnxruntime==1.{n}.0")})
        for n in range(15, 31)
    ]
    figure = latency.draw_latency(many, [], address)
    assert len(figure.key) == 16
    assert [one.name for one in figure.greys] == [f"1.{minor}.0" for minor in range(16, 25)]
    assert latency.draw_latency(many[:7], [], address).greys == []


def test_lines_that_are_drawn_last_are_named_first_where_the_layout_says_so(by_id: dict[str, Cell]) -> None:
    data: list[dict[str, object]] = [{"type": "scatter", "mode": "lines", "name": name} for name in ("a", "b")]
    table = latency.draw_latency([by_id["b1-a0"]], [], address).table
    layout: dict[str, object] = {"showlegend": True, "legend": {"traceorder": "reversed"}}
    assert [one.name for one in Figure("x", "t", "s.", data, layout, table).key] == ["b", "a"]
    assert trends.NAME


def test_every_mark_and_dash_of_the_theme_has_a_drawing() -> None:
    from dashboard.figures import theme

    for symbol in {*theme.MARKS, *map(theme.verdict_mark, VERDICTS)}:
        (entry,) = list_series([{"type": "scatter", "name": "x", "marker": {"symbol": symbol}}], {"showlegend": True})
        plain = symbol.removesuffix("-open")
        assert (
            plain == "circle"
            or entry.shape != list_series([{"type": "scatter", "name": "x"}], {"showlegend": True})[0].shape
        ), symbol
    for dash in theme.DASHES:
        (entry,) = list_series(
            [{"type": "scatter", "mode": "lines", "name": "x", "line": {"dash": dash}}], {"showlegend": True}
        )
        assert re.fullmatch(r"[\d. ]*", entry.dashes or "")
        assert bool(entry.dashes) == (dash != "solid")
