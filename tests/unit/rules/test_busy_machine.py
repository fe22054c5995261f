"""A machine that other programs keep busy: which rounds count, which time speaks, and what is said of it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from farm.contract.reports import Sample
from farm.rules.comparing import sides
from farm.rules.judging import counted_rounds
from farm.rules.judging.block_verdicts import BlockJudge, goes_on_in_any_case
from farm.rules.judging.counted_rounds import Paired
from farm.rules.presenting.times import Times
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from tests.documents import make_cell
from tests.unit.rules.making import make_block, make_check, make_model, make_round, make_sample


def launch(dice, ratio, *, is_disturbed, wall_noise=0.3, cpu_noise=0.02, has_processor_time=True) -> Sample:
    """A launch whose wall time is spoilt by others and whose processor time is not."""
    wall = ratio * 2.0 * math.exp(wall_noise * dice.standard_normal())
    cpu = ratio * math.exp(cpu_noise * dice.standard_normal())
    return make_sample(
        wall,
        is_disturbed=is_disturbed,
        cpu_share=0.5 if is_disturbed else 0.99,
        cpu_p50_ms=cpu if has_processor_time else None,
    )


def judged(*, ratio=1.0, disturbed=range(8), rounds=8, budget="quick", is_last=False, **how):
    dice = np.random.default_rng(7)
    judge = BlockJudge(make_block(budget=budget))
    for number in range(rounds):
        arms = {
            0: launch(dice, 1.0, is_disturbed=number in disturbed, **how),
            1: launch(dice, ratio, is_disturbed=False, **how),
        }
        report = make_round(number, arms).model_copy(update={"is_last": is_last and number == rounds - 1})
        reply = judge.take(report)
    return judge, judge.comparisons()[0], reply


def test_on_a_machine_that_stays_busy_the_verdict_is_that_of_processor_time_and_says_so():
    _, found, _ = judged(ratio=1.15)
    assert (found.verdict, found.verdict_from, found.rounds, found.disturbed) == ("slower", "processor", 8, 8)
    assert found.figures is found.processor
    assert found.figures.ratio == pytest.approx(1.15, rel=0.03)
    assert "disturbed 8 of 8 rounds (the measured processes got 50 % of a core)" in found.reason
    assert "rests on processor time" in found.reason


def test_wall_time_that_is_known_to_no_useful_factor_gets_no_figure():
    paired = Paired([], [], "processor", measured=(0, 1), disturbed=(0, 1))
    wall = judged()[1].wall
    assert "known to no useful factor" in counted_rounds.describe_disturbance(
        paired, wall=replace(wall, ci_low=1e-9, ci_high=1e9)
    )
    # what is known to a twentieth is no reason
    assert counted_rounds.describe_disturbance(paired, wall=replace(wall, ci_low=1.0, ci_high=1.05)).endswith(
        "processor time."
    )
    assert "a factor of 4.00" in counted_rounds.describe_disturbance(
        paired, wall=replace(wall, ci_low=0.5, ci_high=2.0)
    )


def test_a_quiet_machine_is_judged_by_wall_time_and_shows_processor_time_beside_it():
    _, found, _ = judged(ratio=1.15, disturbed=(), wall_noise=0.01)
    assert (found.verdict, found.verdict_from, found.reason) == ("slower", "wall", "")
    assert found.processor.ratio == pytest.approx(1.15, rel=0.03)


def test_the_choice_of_time_looks_at_disturbance_alone():
    for ratio in (0.5, 1.0, 1.02, 3.0):
        assert judged(ratio=ratio)[1].verdict_from == "processor"
        assert judged(ratio=ratio, disturbed=())[1].verdict_from == "wall"


def test_a_quick_block_on_a_busy_machine_ends_after_exactly_eight_rounds():
    _, _, reply = judged(disturbed={1, 5}, rounds=8)
    assert not reply.go_on


@pytest.mark.parametrize(
    ("disturbed", "said"),
    [({2, 5}, "disturbed 2 of 10 rounds"), ({2, 11}, "disturbed 1 of 9 rounds"), ({11}, None)],
)
def test_few_disturbed_rounds_among_many_are_left_out_and_that_is_said(disturbed, said):
    """Of fourteen rounds the verdict rests on the first eight that count: later ones are said nothing of."""
    _, found, _ = judged(ratio=1.3, disturbed=disturbed, rounds=14, budget="standard", wall_noise=0.01)
    assert (found.verdict_from, found.rounds) == ("wall", 8)
    assert found.disturbed == len([number for number in disturbed if number < 10])
    assert said is None or said in found.reason
    assert ("set aside" in found.reason) == (said is not None)


def test_rounds_after_the_last_look_count_neither_in_the_verdict_nor_among_the_disturbed():
    """A block that was continued to ten rounds and judged at eight said "10 of 10 rounds" beside "8 rounds"."""
    _, found, _ = judged(ratio=1.3, disturbed=range(10), rounds=10, budget="standard")
    assert (found.verdict_from, found.rounds, found.disturbed) == ("processor", 8, 8)
    assert "disturbed 8 of 8 rounds" in found.reason


def test_launches_without_processor_time_are_judged_as_before():
    _, found, _ = judged(ratio=1.15, disturbed={0, 1}, has_processor_time=False)
    assert (found.verdict_from, found.rounds, found.processor) == ("wall", 6, None)


def test_a_round_that_was_the_last_to_fit_ends_the_block_and_its_comparison_says_how_far_it_came():
    judge, found, reply = judged(rounds=5, is_last=True)
    assert not reply.go_on
    assert (found.verdict, found.rounds) == ("undecided", 5)
    assert "5 rounds decide nothing: a verdict takes at least 8. Time ran out, which launches" in found.reason
    # somebody asks for more: the next round comes after the last one
    assert judge.take(make_round(5, {0: 1.0, 1: 1.0})).go_on


def test_a_last_round_is_never_answered_without_looking():
    report = make_round(0, {0: 1.0, 1: 1.0})
    assert goes_on_in_any_case(report, make_block(), max_rounds=8)
    assert not goes_on_in_any_case(report.model_copy(update={"is_last": True}), make_block(), max_rounds=8)


def document(**how):
    judge, _, _ = judged(**how)
    reports = [make_check(0), make_check(1), *judge.evidence.rounds.values()]
    block = judge.block
    return assemble(RunRecord(model=make_model(), blocks=[BlockRecord(block=block, reports=tuple(reports))]))


def test_the_document_has_both_times_of_cells_and_comparisons():
    busy = document(ratio=1.15)
    one = busy.comparisons[0]
    assert (one.verdict_from, one.rounds_disturbed) == ("processor", 8)
    assert (one.ratio, one.ci_low, one.ci_high) == (one.cpu_ratio, one.cpu_ci_low, one.cpu_ci_high)
    assert one.wall_ci_high / one.wall_ci_low > 1.3 > 1.1 > one.cpu_ci_high / one.cpu_ci_low
    cell = busy.cells[0]
    assert len(cell.cpu_samples_ms) == 8
    assert cell.cpu_p50_ms == pytest.approx(1.0, rel=0.03)
    assert "CPU time" in busy.sentence
    calm = document(ratio=1.15, disturbed=(), wall_noise=0.01).comparisons[0]
    assert (calm.verdict_from, calm.ratio) == ("wall", calm.wall_ratio)
    assert calm.cpu_ratio == pytest.approx(1.15, rel=0.03)


def test_a_comparison_read_from_its_other_side_turns_both_times():
    one = document(ratio=1.25).comparisons[0]
    turned = sides.swap_sides(one)
    assert turned.verdict == "faster"
    assert (turned.cpu_ratio, turned.cpu_ci_low) == (1 / one.cpu_ratio, 1 / one.cpu_ci_high)
    assert sides.swap_sides(turned).wall_ci_low == pytest.approx(one.wall_ci_low)


def test_cells_that_are_compared_are_told_by_processor_time_as_soon_as_one_is() -> None:
    busy, quiet, clock = (
        make_cell("c1", p50_ms=9.0, cpu_p50_ms=1.0), make_cell("c2", p50_ms=2.0, cpu_p50_ms=1.9), make_cell("c3")
    )  # fmt: skip
    times = Times(frozenset({"c1"}))
    assert times.with_same_clock([busy, quiet, clock]).by_processor == {"c1", "c2"}
    assert times.with_same_clock([quiet, clock]) == times
