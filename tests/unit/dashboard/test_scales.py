"""Axes end on ticks at or beyond every whisker: a table for each kind of axis, and every figure that is drawn."""

from collections.abc import Sequence
from itertools import pairwise
from math import log10
from typing import Any

import pytest

from dashboard.figures import pareto, scales
from dashboard.figures.figure import Figure
from farm.contract.document import Document
from tests.unit.dashboard import test_closer_figures, test_figures, test_pareto
from tests.unit.dashboard.conftest import address

VALUES: tuple[Sequence[float], ...] = (
    (0.9, 1.1), (0.62, 1.02), (1.0, 1.0), (0.34, 0.98), (1.3, 6.8), (1.001, 1.002), (0.17, 15.0), (0.004, 900.0),
    (1.24, 1.26), (0.02, 0.021), (2.0, 2.0), (41.0, 1234.0),
)  # fmt: skip


def ends(axis: Any) -> tuple[float, float]:
    """The outermost ticks, which lie within the axis."""
    low, high = axis["range"]
    is_log = axis.get("type") == "log"
    places = [log10(tick) if is_log else tick for tick in axis["tickvals"]]
    assert low <= min(places)
    assert max(places) <= high
    assert all(after > before for before, after in pairwise(places))
    return min(axis["tickvals"]), max(axis["tickvals"])


@pytest.mark.parametrize("values", VALUES)
def test_equal_steps_reach_from_zero_to_a_tick_beyond_the_largest(values: Sequence[float]) -> None:
    axis = scales.make_linear(values)
    low, high = ends(axis)
    assert low == 0 == axis["range"][0]
    assert max(values) <= high <= 2.5 * max(values)
    assert 2 <= len(axis["tickvals"]) <= 8


@pytest.mark.parametrize("values", VALUES)
def test_equal_steps_close_around_the_values_where_zero_says_nothing(values: Sequence[float]) -> None:
    low, high = ends(scales.make_linear(values, from_zero=False))
    assert low <= min(values)
    assert max(values) <= high


@pytest.mark.parametrize("values", VALUES)
def test_powers_of_ten_end_on_round_numbers_around_the_values(values: Sequence[float]) -> None:
    axis = scales.make_logarithmic(values)
    low, high = ends(axis)
    assert low <= min(values)
    assert max(values) <= high
    assert len(axis["tickvals"]) <= 8
    assert len(axis["ticktext"]) == len(axis["tickvals"])


@pytest.mark.parametrize("values", VALUES)
def test_ratios_have_ticks_at_one_and_beyond_both_ends_and_none_hides_another(values: Sequence[float]) -> None:
    axis = scales.make_ratio(values)
    low, high = ends(axis)
    assert low <= min(1.0, *values)
    assert max(1.0, *values) <= high
    assert 1.0 in axis["tickvals"]
    places = [log10(tick) for tick in axis["tickvals"]]
    assert all(after - before >= 0.1 * (places[-1] - places[0]) for before, after in pairwise(places))
    assert axis["ticktext"][axis["tickvals"].index(1.0)] == "0 %"


def test_no_value_at_all_still_makes_an_axis() -> None:
    assert scales.make_linear([])["range"][1] > 0
    assert scales.make_ratio([])["tickvals"] == [0.98, 1.0, 1.02]
    assert scales.list_reached([None, (1.0, None)], 2.0, float("nan")) == [1.0, 2.0]


def reached(figure: Figure, along: str) -> list[float]:
    """All numbers that a figure draws along x or y: values, ends of bars and of whiskers."""
    numbers: list[float] = []
    for trace in figure.data:
        error: Any = trace.get(f"error_{along}", {})
        values: Any = trace[along]
        ups, downs = error.get("array") or [0] * len(values), error.get("arrayminus") or [0] * len(values)
        bases: Any = trace.get("base") or [0] * len(values)
        for value, up, down, base in zip(values, ups, downs, bases, strict=True):
            if isinstance(value, int | float):
                numbers += [base + value + up, base + value - down]
    return numbers


def test_every_axis_of_every_figure_holds_all_that_is_drawn_with_ticks_at_its_ends(document: Document) -> None:
    figures = [
        *test_figures.all_figures(document),
        *test_closer_figures.figures(document),
        pareto.draw_cells(test_pareto.ALL, address),
    ]
    for figure in figures:
        for along in ("x", "y"):
            axis: Any = figure.layout[f"{along}axis"]
            numbers = reached(figure, along)
            is_free = "tickvals" not in axis or (figure.name in ("placement-map", "timeline") and along == "y")
            if not numbers or is_free:
                continue
            low, high = ends(axis)
            assert low <= min(numbers) * (1 + 1e-6), (figure.name, along)
            assert figure.layout.get("barmode") == "stack" or max(numbers) * (1 - 1e-6) <= high, (figure.name, along)


def test_bars_start_at_zero(document: Document) -> None:
    for figure in [*test_figures.all_figures(document), *test_closer_figures.figures(document)]:
        if all(trace["type"] == "bar" for trace in figure.data):
            assert figure.layout["xaxis"]["range"][0] == 0, figure.name
