"""Judging a block: while it is measured, and again from its stored reports."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.contract.cells import CellSpec
from farm.contract.divergence import DivergenceReport
from farm.contract.evaluation import AccuracyReport
from farm.contract.reasons import ReasonCode
from farm.contract.reports import EndReport
from farm.contract.sustained import CurvePoint, CurveReport
from farm.rules.comparing.pooled import pool_rounds
from farm.rules.judging import block_verdicts
from farm.rules.judging.block_verdicts import BlockJudge
from farm.rules.judging.evidence import Evidence
from farm.rules.matrices.matrix import parse
from farm.rules.planning.planner import plan
from farm.rules.planning.plans import max_rounds_to_order
from tests.unit.rules.making import (
    make_block,
    make_check,
    make_facts,
    make_model,
    make_operator,
    make_reason,
    make_reports,
    make_round,
    make_rounds,
    make_sample,
    make_trace,
)

SLOWER = {0: 1.0, 1: 1.25}
EQUAL = {0: 1.0, 1: 1.0}


def fed(block, reports, **how):
    """The judge and its answers to these reports."""
    judge = BlockJudge(block, **how)
    return judge, [judge.take(report) for report in reports]


@pytest.mark.parametrize(("rounds", "left_out"), [(8, ""), (9, "1 round after"), (11, "3 rounds after")])
def test_rounds_after_the_last_look_are_said_to_be_left_out(rounds: int, left_out: str) -> None:
    """A block had 9 launches of a cell and its verdict 8 rounds, and nothing said why."""
    pairs = [(1.0, 1.3 + 0.001 * number) for number in range(rounds)]
    (judged, *_) = BlockJudge(
        make_block(), reports=[make_round(number, {0: old, 1: new}) for number, (old, new) in enumerate(pairs)]
    ).comparisons()
    assert judged.rounds == 8
    assert ("left out" in judged.reason) is bool(left_out)
    assert left_out in judged.reason


def test_everything_before_the_rounds_is_answered_with_go_on():
    _, replies = fed(make_block(), [make_facts(), make_check(0), make_check(1), make_trace(0, []), make_trace(1, [])])
    assert all(reply.go_on and not reply.trace_arms for reply in replies)


def test_a_quick_block_measures_exactly_eight_rounds():
    _, replies = fed(make_block(), make_rounds(8, SLOWER))
    assert [reply.go_on for reply in replies] == [True] * 7 + [False]


@pytest.mark.parametrize("budget", ["quick", "standard", "precise"])
@pytest.mark.parametrize("broken", [None, 0, 3])
@pytest.mark.parametrize("max_rounds", [4, 24])
def test_whoever_surely_goes_on_is_told_so_by_the_whole_evidence(budget, broken, max_rounds):
    block = make_block(budget=budget)
    rounds = [make_round(n, {0: 1.0, 1: make_reason() if n == broken else 1.25}) for n in range(20)]
    reports = [make_facts(), make_check(0), make_check(1), *rounds, EndReport()]
    _, replies = fed(block, reports, max_rounds=max_rounds)
    sure = [block_verdicts.goes_on_in_any_case(report, block, max_rounds=max_rounds) for report in reports]
    assert all(reply.go_on for reply, is_sure in zip(replies, sure, strict=True) if is_sure)
    assert sum(sure) == 3 + min(block.min_rounds, max_rounds_to_order(max_rounds)) - 1


def test_a_round_in_which_every_arm_broke_is_judged_by_the_whole_evidence():
    block = make_block()
    assert not block_verdicts.goes_on_in_any_case(
        make_round(0, {0: make_reason(), 1: make_reason()}), block, max_rounds=8
    )


def _disturbed_rounds(count, *, disturbed):
    shaken = {0: 1.0, 1: make_sample(1.25, is_disturbed=True)}
    return [make_round(number, shaken if number in disturbed else SLOWER) for number in range(count)]


def test_a_round_whose_pair_was_dropped_is_measured_again():
    judge, replies = fed(make_block(), _disturbed_rounds(10, disturbed={2, 5}))
    assert [reply.go_on for reply in replies] == [True] * 9 + [False]
    assert judge.comparisons()[0].verdict == "slower"


def test_a_block_that_was_told_how_many_rounds_measures_no_more_of_them():
    block = make_block().model_copy(update={"is_replacing": False})
    judge, replies = fed(block, _disturbed_rounds(8, disturbed={2, 5}))
    assert ([reply.go_on for reply in replies], judge.round_count) == ([True] * 7 + [False], 8)
    assert block_verdicts.rounds_to_order(block) == 8
    assert block_verdicts.rounds_to_order(make_block()) == 12


def test_at_most_half_as_many_rounds_replace_dropped_ones():
    _, replies = fed(make_block(), _disturbed_rounds(12, disturbed=set(range(12))))
    assert [reply.go_on for reply in replies] == [True] * 11 + [False]
    assert [max_rounds_to_order(rounds) for rounds in (8, 24, 96)] == [12, 36, 96]


def test_arms_that_were_called_slower_are_traced_again_four_times():
    _, replies = fed(make_block(), make_rounds(8, SLOWER))
    assert (replies[-1].trace_arms, replies[-1].trace_rounds) == ((0, 1), 4)


def test_the_arms_of_the_change_that_a_run_opens_with_are_named_first():
    block = make_block(runtime="1.29.0,1.31.1", batch="1,8")
    places = {(arm.spec.runtime.version, arm.spec.workload.batch): arm.arm for arm in block.arms}
    factors = {("1.29.0", 1): 1.0, ("1.31.1", 1): 1.15, ("1.29.0", 8): 8.0, ("1.31.1", 8): 12.0}
    _, replies = fed(block, make_rounds(8, {places[known]: factor for known, factor in factors.items()}))
    assert replies[-1].trace_arms[:2] == (places["1.29.0", 8], places["1.31.1", 8])
    assert sorted(replies[-1].trace_arms) == sorted(places.values())


def test_arms_to_trace_stand_by_comparison_whatever_is_undecided_beside_them():
    block = make_block(runtime="1.29.0,1.30.0,1.31.1", batch="1,8")
    places = {(arm.spec.runtime.version, arm.spec.workload.batch): arm.arm for arm in block.arms}
    known = {("1.29.0", 1): 1.0, ("1.31.1", 1): 0.9, ("1.29.0", 8): 8.0, ("1.30.0", 8): 5.6, ("1.31.1", 8): 5.6}
    steady = {places[one]: factor for one, factor in known.items()}
    wild = places["1.30.0", 1]
    judge, replies = fed(block, [make_round(r, {**steady, wild: 1.0 if r % 2 else 4.0}) for r in range(8)])
    verdicts = {(one.planned.baseline, one.planned.candidate): one.verdict for one in judge.comparisons()}
    assert verdicts[places["1.29.0", 1], wild] == "undecided"
    assert replies[-1].trace_arms[:2] == (places["1.29.0", 8], places["1.30.0", 8])
    assert set(replies[-1].trace_arms) == set(steady)


def test_equal_arms_are_not_traced_again():
    _, replies = fed(make_block(), make_rounds(8, EQUAL))
    assert (replies[-1].go_on, replies[-1].trace_arms, replies[-1].trace_rounds) == (False, (), 0)


def test_arms_that_differ_in_batch_alone_are_not_traced_again():
    _, replies = fed(make_block(runtime="1.31.1", batch="1,8"), make_rounds(8, {0: 1.0, 1: 5.0}))
    assert replies[-1].trace_arms == ()


def test_further_traces_and_the_end_ask_for_nothing_more():
    judge, _ = fed(make_block(), make_rounds(8, SLOWER))
    assert not judge.take(make_trace(0, [make_operator("a", 1.0)], trace_round=1)).go_on
    assert not judge.take(EndReport()).go_on


def test_a_standard_block_stops_at_the_look_that_decides():
    _, replies = fed(make_block(budget="standard"), make_rounds(8, SLOWER))
    assert [reply.go_on for reply in replies] == [True] * 7 + [False]


def test_a_standard_block_goes_on_while_a_comparison_is_open_and_ends_with_its_budget():
    _, replies = fed(make_block(budget="standard"), make_rounds(24, {0: 1.0, 1: 1.02}, noise=0.06))
    assert [reply.go_on for reply in replies] == [True] * 23 + [False]


def test_more_rounds_than_the_budget_can_be_asked_for():
    _, replies = fed(make_block(), make_rounds(12, {0: 1.0, 1: 1.02}, noise=0.06), max_rounds=12)
    assert [reply.go_on for reply in replies] == [True] * 11 + [False]


def test_more_rounds_than_a_farm_measures_are_never_named():
    """64 or 96 pairs would decide it, and each is of two rounds."""
    judge, _ = fed(make_block(budget="precise"), make_rounds(48, {0: 1.0, 1: 1.035}, noise=0.06, seed=13))
    (judged,) = judge.comparisons()
    assert judged.verdict == "undecided"
    assert judged.figures.rounds_needed is not None
    assert 2 * judged.figures.rounds_needed > 96
    assert judged.rounds_needed is None


def test_a_precise_block_joins_two_rounds_to_one_pair():
    judge, replies = fed(make_block(budget="precise"), make_rounds(16, SLOWER))
    (judged,) = judge.comparisons()
    assert [reply.go_on for reply in replies] == [True] * 15 + [False]
    assert (judged.verdict, judged.rounds, judged.rounds_needed) == ("slower", 16, 16)


def test_joined_pairs_are_geometric_means_and_wait_for_their_second_round():
    assert pool_rounds([(1.0, 4.0), (4.0, 1.0), (9.0, 9.0)], per_pair=2) == [(2.0, 2.0)]
    assert pool_rounds([(1.0, 2.0)], per_pair=1) == [(1.0, 2.0)]


def test_a_block_of_one_arm_measures_its_fewest_rounds():
    block = make_block(runtime="1.31.1", budget="standard")
    _, replies = fed(block, make_rounds(8, {0: 1.0}))
    assert [reply.go_on for reply in replies] == [True] * 7 + [False]


def test_the_same_report_twice_changes_nothing():
    reports = make_reports(SLOWER, end=False)
    judge, replies = fed(make_block(), reports)
    again = [judge.take(report) for report in (reports[0], reports[1], reports[-1])]
    assert again == [replies[0], replies[1], replies[-1]]
    assert judge.round_count == 8
    assert len(judge.evidence.facts) == 1


def test_stored_reports_are_judged_like_live_ones():
    reports = make_reports(SLOWER)
    live, _ = fed(make_block(), reports)
    assert BlockJudge(make_block(), reports=reports).comparisons() == live.comparisons()


def test_reports_in_any_order_give_the_same_verdicts():
    reports = make_reports(SLOWER)
    assert (
        BlockJudge(make_block(), reports=reversed(reports)).comparisons()
        == BlockJudge(make_block(), reports=reports).comparisons()
    )


# samples that are missing, disturbed or failed


def test_a_sample_still_disturbed_drops_its_pair():
    rounds = make_rounds(8, SLOWER)
    rounds[3] = make_round(3, {0: make_sample(9.0, is_disturbed=True, remeasured=3), 1: 1.25})
    judge, _ = fed(make_block(), rounds)
    assert len(judge.evidence.pairs(0, 1)) == 7
    (judged,) = judge.comparisons()
    assert (judged.verdict, judged.rounds) == ("undecided", 7)


def test_without_two_whole_rounds_nothing_is_said_of_the_ratio():
    judge, _ = fed(make_block(), make_rounds(1, SLOWER))
    (judged,) = judge.comparisons()
    assert (judged.verdict, judged.figures, judged.is_decided) == ("undecided", None, False)
    assert judged.reason == "1 round decides nothing: a verdict takes at least 8."
    assert judged.smallest_detectable is None


def test_few_rounds_detect_nothing_however_large_the_change():
    judge, _ = fed(make_block(), make_rounds(6, {0: 1.0, 1: 1.34}))
    (judged,) = judge.comparisons()
    assert judged.verdict == "undecided"
    assert judged.figures is not None
    assert judged.smallest_detectable is None
    assert judged.reason.startswith("6 rounds decide nothing: a verdict takes at least 8.")
    precise, _ = fed(make_block(budget="precise"), make_rounds(12, {0: 1.0, 1: 1.34}))
    assert "12 rounds decide nothing: a verdict takes at least 16." in precise.comparisons()[0].reason


def test_disturbed_rounds_are_counted_apart_from_those_that_are_missing():
    disturbed = {0: make_sample(9.0, is_disturbed=True, remeasured=3), 1: 1.25}
    judge, _ = fed(make_block(), [make_round(number, disturbed) for number in range(3)])
    (judged,) = judge.comparisons()
    assert judged.reason == "0 of 3 rounds have both samples undisturbed: a verdict takes at least 8."


def test_an_obstacle_is_not_followed_by_how_many_rounds_are_missing():
    judge, _ = fed(make_block(), [make_check(1, reason=make_reason()), *make_rounds(3, {0: 1.0})])
    assert "takes at least" not in judge.comparisons()[0].reason


def test_an_arm_that_fails_its_check_is_not_compared_and_does_not_stop_the_others():
    block = make_block(runtime="1.29.0,1.30.0,1.31.1")
    crashed = make_check(1, reason=make_reason())
    judge, replies = fed(block, [crashed, *make_rounds(8, {0: 1.0, 2: 1.25})])
    verdicts = {(j.planned.baseline, j.planned.candidate): j for j in judge.comparisons()}
    assert verdicts[0, 2].verdict == "slower"
    assert verdicts[0, 1].verdict == "not comparable"
    assert "c2 has no full set of samples: The runner died of SIGSEGV." in verdicts[0, 1].reason
    assert replies[-1].trace_arms == (0, 2)


def test_an_arm_that_crashes_in_a_round_keeps_its_figures_without_a_verdict():
    rounds = [*make_rounds(8, SLOWER), make_round(8, {0: 1.0, 1: make_reason(ReasonCode.OUT_OF_MEMORY)})]
    judge, _ = fed(make_block(), rounds)
    (judged,) = judge.comparisons()
    assert judged.verdict == "not comparable"
    assert judged.figures is not None
    assert judged.rounds_needed is None


def test_a_block_whose_arms_all_failed_ends():
    dead = [make_check(arm, reason=make_reason()) for arm in (0, 1)]
    _, replies = fed(make_block(), [*dead, make_round(0, {0: make_reason(), 1: make_reason()})])
    assert not replies[-1].go_on


# unlike is not compared


def test_an_arm_that_ran_on_another_provider_is_not_compared():
    elsewhere = make_check(1, active_providers=("OtherExecutionProvider",))
    judge, _ = fed(make_block(), [make_check(0), elsewhere, *make_rounds(8, SLOWER)])
    (judged,) = judge.comparisons()
    assert judged.verdict == "not comparable"
    assert judged.reason == "c2 asked for CPUExecutionProvider and ran on OtherExecutionProvider."


def test_a_check_that_names_no_providers_is_no_evidence_against_an_arm():
    judge, _ = fed(make_block(), [make_check(1, active_providers=()), *make_rounds(8, SLOWER)])
    assert judge.comparisons()[0].verdict == "slower"


def test_an_emulated_node_compares_nothing():
    judge, _ = fed(make_block(), [make_facts(is_emulated=True), *make_rounds(8, SLOWER)])
    assert "emulated" in judge.comparisons()[0].reason


@pytest.mark.parametrize(
    ("changed", "word"),
    [({"governor": "powersave"}, "governor"), ({"more": {"driver": "560.1"}}, "driver"), ({"gpus": ("B",)}, "gpus")],
)
def test_a_node_that_changed_between_attempts_makes_a_block_not_comparable(changed, word):
    judge, _ = fed(make_block(), [make_facts(), make_facts(**changed), *make_rounds(8, SLOWER)])
    (judged,) = judge.comparisons()
    assert judged.verdict == "not comparable"
    assert "changed between two attempts" in judged.reason
    assert word in judged.reason


def test_a_warmer_and_busier_node_is_the_same_node():
    later = make_facts(load_1m=1.2, temperature_c=70.0, advice=("close the browser",), more={"uptime_s": 3})
    judge, _ = fed(make_block(), [make_facts(), later, *make_rounds(8, SLOWER)])
    assert judge.comparisons()[0].verdict == "slower"


def test_a_package_that_came_along_with_the_runtime_is_said_beside_the_verdict():
    old = make_check(0, packages={"nvidia-cuda-runtime": "12.6", "numpy": "1.26.4"})
    new = make_check(1, packages={"nvidia-cuda-runtime": "13.0", "numpy": "2.4.6"})
    judge, _ = fed(make_block(), [old, new, *make_rounds(8, SLOWER)])
    (judged,) = judge.comparisons()
    assert judged.verdict == "slower"
    assert judged.reason.startswith("Confounded: nvidia-cuda-runtime was 12.6 and is 13.0.")
    assert "numpy" not in judged.reason


# many comparisons and any reports


def test_every_planned_comparison_is_judged_in_order():
    block = make_block(batch="1,8", precision="fp32,int8-dynamic")
    judge, _ = fed(block, make_rounds(8, {arm.arm: 1.0 + arm.arm for arm in block.arms}))
    assert [judged.planned for judged in judge.comparisons()] == list(block.comparisons)


def test_a_planned_twin_is_judged_and_never_explained():
    planned = plan(parse({"runtime": "1.31.1"}), make_model(), with_null_pair=True)
    judge, replies = fed(planned.blocks[0], make_rounds(8, SLOWER))
    assert judge.comparisons()[0].planned.axis == "twin"
    assert replies[-1].trace_arms == ()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=0, max_size=26))
def test_swapping_the_arms_mirrors_the_verdict(pairs):
    block = make_block(budget="standard")
    there = BlockJudge(block, reports=[make_round(n, {0: a, 1: b}) for n, (a, b) in enumerate(pairs)])
    back = BlockJudge(block, reports=[make_round(n, {0: b, 1: a}) for n, (a, b) in enumerate(pairs)])
    (one,), (other,) = there.comparisons(), back.comparisons()
    mirrored = {"slower": "faster", "faster": "slower"}
    assert other.verdict == mirrored.get(one.verdict, one.verdict)
    if one.figures is not None and other.figures is not None:
        assert math.isclose(one.figures.ratio * other.figures.ratio, 1.0, rel_tol=1e-6)


def test_evidence_keeps_the_accuracy_and_the_curve_of_each_arm_and_no_answer_to_another_question():
    point = CurvePoint(at_s=0.0, span_s=1.0, n=10, p50_ms=1.0, p90_ms=1.1)
    curve, accuracy = CurveReport(arm=1, points=(point,)), AccuracyReport(arm=0, n=3)
    evidence = Evidence.of([curve, accuracy, curve, DivergenceReport(arm=0, reason=make_reason())])
    assert (evidence.curves, evidence.accuracies) == ({1: curve}, {0: accuracy})
    assert (evidence.checks, evidence.end) == ({}, None)


def test_a_node_whose_noise_is_known_is_judged_by_it():
    block = make_block().model_copy(update={"noise": 0.004, "is_noise_assumed": False})
    assert BlockJudge(block).noise == (0.004, "node")


def test_the_noise_of_a_block_is_told_for_each_comparison_without_a_digest_of_each_arm(monkeypatch):
    judge, _ = fed(make_block(), make_rounds(8, EQUAL))
    noise = judge.noise
    asked = []
    monkeypatch.setattr(CellSpec, "digest", property(asked.append))
    assert judge.noise == noise
    assert asked == []


def test_what_is_judged_once_is_judged_again_only_after_a_report():
    judge, _ = fed(make_block(), make_rounds(7, SLOWER))
    before = judge.comparisons()
    assert judge.comparisons() is before
    assert judge.judge(judge.block.comparisons) == before
    judge.take(make_rounds(8, SLOWER)[7])
    assert [one.rounds for one in judge.comparisons()] == [one.rounds + 1 for one in before]
