"""Sustained mode: points, throttling, the matrix key, and what a plan makes of it."""

import pytest

from farm.rules.cells import sustained
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from tests.unit.rules.making import make_model

MINUTES = [60.0 * number for number in range(8)]


def said(*p50s: float) -> tuple[float | None, str]:
    found = sustained.find_throttling(MINUTES[: len(p50s)], p50s)
    return (found.after_s if found else None), sustained.describe_curve(found, total_s=60.0 * len(p50s))


@pytest.mark.parametrize(("total_s", "point_s"), [(600.0, 60.0), (360.0, 60.0), (180.0, 30.0), (6.0, 1.0)])
def test_points_are_minutes_and_parts_of_a_short_curve(total_s: float, point_s: float) -> None:
    assert sustained.point_seconds(total_s) == point_s


def test_a_level_that_rises_for_good_is_throttled_from_there_on() -> None:
    assert said(2.0, 2.02, 2.04, 2.5, 2.6, 2.56) == (
        180.0,
        "Throttles after 3 min: p50 stays 28 % above its first point.",
    )


def test_a_steady_curve_is_said_to_be_steady() -> None:
    assert said(2.0, 2.02, 1.98, 2.04) == (None, "Steady for 4 min: p50 stays within 5 % of its first point.")


@pytest.mark.parametrize("p50s", [(2.0, 2.5, 2.0, 2.0), (2.0, 2.0, 2.0, 2.5), (2.0, 1.8, 2.0)])
def test_what_comes_back_or_stood_once_is_no_level(p50s: tuple[float, ...]) -> None:
    after_s, sentence = said(*p50s)
    assert after_s is None
    assert sentence.startswith("No lasting slowdown")


@pytest.mark.parametrize("p50s", [(2.0,), (2.0, 3.0)])
def test_too_few_points_say_so(p50s: tuple[float, ...]) -> None:
    assert said(*p50s)[1].startswith("Too few points")


def test_a_plan_keeps_time_for_the_curves_and_no_more_of_them_than_cells() -> None:
    options = {"runtime": ["1.29.0", "1.31.1"], "batch": 1}
    (short,) = planner.plan(matrix.parse(options), make_model()).blocks
    (long,) = planner.plan(matrix.parse({**options, "sustained": 4}), make_model(), with_null_pair=True).blocks
    assert (short.sustained_s, long.sustained_s) == (0.0, 240.0)
    assert long.minutes == pytest.approx(1.5 * short.minutes + 8.0)
    assert long.block_timeout_s == short.block_timeout_s + 480.0


def test_long_curves_make_small_blocks_within_every_limit() -> None:
    declared = matrix.parse({"runtime": ["1.29.0", "1.31.1"], "batch": [1, 2, 4, 8], "sustained": 30})
    plan = planner.plan(declared, make_model())
    assert {len(block.arms) for block in plan.blocks} == {2}
    assert all(block.block_timeout_s <= 7200 for block in plan.blocks)


@pytest.mark.parametrize("written", [10, 0.5, "10"])
def test_minutes_are_read_and_written_back(written: object) -> None:
    declared = matrix.parse({"runtime": "1.31.1", "sustained": written})
    assert declared.axes["scenario"] == (f"sustained:{written}",)
    assert matrix.parse(declared.as_plain()) == declared


@pytest.mark.parametrize("written", [0, -1, 31, "long", "nan", True, [10], 0.01])
def test_minutes_that_are_none_are_refused_in_a_sentence(written: object) -> None:
    with pytest.raises(MatrixProblem, match=r"^sustained is .*: write minutes from 0.05 to 30"):
        matrix.parse({"runtime": "1.31.1", "sustained": written})
