"""A wished change: the rounds and minutes that see it, or that none will."""

import pytest

from farm.contract.cells import Budget
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.plans import NodeOffer, Wish
from tests.unit.rules.making import make_model


def wish_of(wish: object, *, noise: float = 0.015, margin: float = 0.02, budget: str = "standard") -> Wish:
    declared = matrix.parse({"runtime": ["1.29.0", "1.31.1"], "batch": 1, "budget": budget, "wish": wish})
    fleet = [NodeOffer(id="a", name="a", noise=noise, margin=margin)]
    (block,) = planner.plan(declared, make_model(), fleet).blocks
    assert block.wish is not None
    return block.wish


def test_a_large_change_takes_the_first_look() -> None:
    wish = wish_of("5%", noise=0.01)
    assert (wish.change, wish.rounds, wish.budget) == (0.05, 8, Budget.STANDARD)
    assert wish.minutes is not None
    assert 0.2 < wish.minutes < 5
    assert wish.text.startswith("5 % is detected in 95 of 100 blocks after 8 rounds, about ")


def test_a_smaller_one_takes_more_rounds_and_minutes() -> None:
    large, small = wish_of("5%"), wish_of("3%")
    assert large.rounds is not None
    assert small.rounds is not None
    assert small.rounds > large.rounds
    assert (small.minutes or 0) > (large.minutes or 0)


def test_a_change_that_the_budget_cannot_see_names_the_one_that_can() -> None:
    wish = wish_of("3%", budget="quick")
    assert wish.budget == Budget.STANDARD
    assert "with `budget: standard`" in wish.text


@pytest.mark.parametrize(("wish", "margin"), [("2%", 0.02), ("3%", 0.04), (0.0001, 0.02)])
def test_a_change_within_the_margin_is_never_seen(wish: object, margin: float) -> None:
    found = wish_of(wish, margin=margin)
    assert (found.rounds, found.minutes) == (None, None)
    assert found.text.startswith("No number of rounds detects ")
    assert f"margin of {100 * margin:g} %" in found.text


def test_a_noisy_node_sees_no_small_change_whatever_the_rounds() -> None:
    found = wish_of("3%", noise=0.09)
    assert found.rounds is None
    assert "identical launches differ by 9 %" in found.text


def test_a_plan_without_a_wish_has_none() -> None:
    declared = matrix.parse({"runtime": ["1.29.0", "1.31.1"]})
    (block,) = planner.plan(declared, make_model()).blocks
    assert block.wish is None
    assert all(one.smallest_detectable for one in block.comparisons)


@pytest.mark.parametrize(
    ("written", "read"), [("3%", 0.03), ("3 %", 0.03), ("0.5%", 0.005), (0.03, 0.03), ("0.03", 0.03)]
)
def test_a_wish_is_read_as_people_write_it_and_written_back(written: object, read: float) -> None:
    declared = matrix.parse({"runtime": "1.31.1", "wish": written})
    assert declared.wish == pytest.approx(read)
    assert matrix.parse(declared.as_plain()) == declared


@pytest.mark.parametrize(
    "written", ["much", "", "%", "-3%", 0, 3, "100%", "nan", "nan%", "inf", True, [3], {"a": 1}, "1e999"]
)
def test_a_wish_that_is_none_is_refused_in_a_sentence(written: object) -> None:
    with pytest.raises(MatrixProblem, match=r"^wish is .*: write the change to be seen, such as 3% or 0.03") as found:
        matrix.parse({"runtime": "1.31.1", "wish": written})
    assert "\n" not in str(found.value)


def test_an_announcement_says_what_a_plan_takes_and_can_see():
    plan = planner.plan(matrix.from_options(runtime="1.29.0,1.31.1"), make_model())
    (block,) = plan.blocks
    known = block.model_copy(update={"max_rounds": 24, "is_noise_assumed": False, "noise": 0.03})
    assumed, measured = (planner.describe_plan(plan.model_copy(update={"blocks": (one,)})) for one in (block, known))
    assert assumed.startswith("1 comparison in about 19 s, ")
    assert "changes from 2.9 % on" in assumed
    assert "its known noise" in measured
    assert planner.describe_plan(plan.model_copy(update={"blocks": ()})) == ""
