"""`--budget glance`: numbers at once, with nothing compared, and the sentence that turns them into a comparison."""

import pytest

from farm.contract.cells import Budget
from farm.rules.judging.block_verdicts import BlockJudge
from farm.rules.matrices.matrix import parse
from farm.rules.matrices.points import explain_unpairable
from farm.rules.planning.planner import plan
from farm.rules.presenting import sentences
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from tests.unit.rules.making import make_block, make_check, make_model, make_round

TWO = {"budget": "glance", "runtime": ["1.29.0", "1.31.1"], "wish": "5 %"}


def test_a_glance_plans_one_round_no_comparison_and_no_twin():
    found = plan(parse({"budget": "glance", "runtime": ["1.29.0", "1.31.1"]}), make_model())
    (block,) = found.blocks
    assert (block.min_rounds, block.max_rounds, block.comparisons) == (1, 1, ())
    assert [arm.twin_of for arm in block.arms] == [None, None]
    assert 60 * block.minutes < 6


def test_a_glance_ends_after_its_one_round():
    judge = BlockJudge(make_block(budget="glance"))
    assert not judge.take(make_round(0, {0: 1.0, 1: 2.0})).go_on
    assert judge.comparisons() == []


def test_a_glance_says_that_it_is_one_and_what_turns_it_into_a_comparison():
    block = make_block(budget="glance")
    reports = (make_check(0), make_check(1), make_round(0, {0: 1.0, 1: 2.0}))
    record = RunRecord(model=make_model(), blocks=[BlockRecord(block=block, reports=reports)], budget=Budget.GLANCE)
    found = assemble(record)
    assert (found.budget, found.comparisons) == ("glance", [])
    assert [cell.status for cell in found.cells] == ["done", "done"]
    assert [len(cell.samples_ms) for cell in found.cells] == [1, 1]
    assert "This is a glance: one launch of each cell" in found.sentence
    assert "`--budget quick` measures eight in turn and compares them" in found.sentence


def test_a_glance_that_measured_nothing_does_not_say_how_far_to_trust_it():
    block = make_block(budget="glance")
    record = RunRecord(model=make_model(), blocks=[BlockRecord(block=block, reports=())], budget=Budget.GLANCE)
    assert sentences.GLANCE not in assemble(record).sentence


def test_the_sentence_of_a_glance_stands_under_no_other_budget():
    block = make_block()
    reports = (make_check(0), make_check(1), make_round(0, {0: 1.0, 1: 2.0}))
    assert (
        "glance"
        not in assemble(RunRecord(model=make_model(), blocks=[BlockRecord(block=block, reports=reports)])).sentence
    )


@pytest.mark.parametrize("budget", ["quick", "standard", "precise"])
def test_what_compares_releases_refuses_a_glance(budget):
    assert "compares nothing" in (explain_unpairable(parse({"budget": "glance", "batch": 1})) or "")
    assert explain_unpairable(parse({"budget": budget, "batch": 1})) is None


def test_a_wish_beside_a_glance_is_answered_by_the_first_budget_that_compares():
    (block,) = plan(parse(TWO), make_model()).blocks
    assert block.wish.budget in (Budget.QUICK, Budget.STANDARD, Budget.PRECISE, None)
