"""The best settings on each machine."""

import pytest

from dashboard.reading.best_settings import make_panel
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.comparing.signed_ranks import explain_too_few_launches
from farm.rules.presenting import hardware_words
from farm.rules.presenting.best import find_best_settings, find_left_out
from farm.rules.presenting.hardware import MeasuredSetting, find_targets, with_comparable_times, with_verdicts
from farm.rules.presenting.hardware_words import format_distinct_settings, format_setting
from farm.rules.presenting.lines import BUSY


def measured(name: str = "c1", *, node: str = "a", **changes: object) -> MeasuredSetting:
    known = {
        "id": name, "digest": name, "model_sha256": "s", "runtime": "onnxruntime==1.31.1", "status": "done",
        "provider": "CPUExecutionProvider", "precision": "fp32", "batch": 1, "threads": 1, "p50_ms": 2.0,
        "p50_ci_ms": (1.9, 2.1), "throughput": 500.0, "parity": {"verdict": "pass"},
    }  # fmt: skip
    cell = Cell.model_validate({**known, **changes})
    return MeasuredSetting(run=1, version=1, node=node, machine="", at=None, cell=cell)


ONE = measured()
EIGHT = measured("c2", batch=8, p50_ms=8.0, p50_ci_ms=(7.5, 8.5), throughput=1000.0)
OTHER = measured("c3", node="b", p50_ms=30.0, p50_ci_ms=None, throughput=33.0)


def test_without_a_budget_each_machine_has_its_most_items_and_its_lowest_latency() -> None:
    first, second = find_best_settings([ONE, EIGHT, OTHER], budget_ms=None)
    assert (first.node, first.most_items.settings, first.fastest.settings, first.settings) == ("a", [EIGHT], [ONE], 2)
    assert (second.node, second.most_items.settings, second.fastest.settings) == ("b", [OTHER], [OTHER])


def test_a_budget_is_kept_by_the_upper_end_of_the_interval() -> None:
    assert find_best_settings([ONE, EIGHT], budget_ms=8.5)[0].most_items.settings == [EIGHT]
    assert find_best_settings([ONE, EIGHT], budget_ms=8.2)[0].most_items.settings == [ONE]
    assert find_best_settings([OTHER], budget_ms=30.0)[0].most_items.settings == [OTHER]


def test_where_nothing_is_within_the_budget_the_fastest_still_stands() -> None:
    (found,) = find_best_settings([ONE, EIGHT], budget_ms=1.0)
    assert (found.most_items.settings, found.fastest.settings) == ((), [ONE])


@pytest.mark.parametrize("verdict", ["fail", "not_measured"])
def test_outputs_that_do_not_pass_are_never_recommended(verdict: str) -> None:
    wrong = measured("c0", p50_ms=1.0, p50_ci_ms=(0.9, 1.1), parity={"verdict": verdict})
    assert find_best_settings([wrong], budget_ms=None) == []
    assert find_best_settings([wrong, ONE], budget_ms=None)[0].fastest.settings == [ONE]


def test_what_ran_elsewhere_than_asked_is_not_the_setting_that_it_is_called() -> None:
    asked = measured("c0", provider="CUDAExecutionProvider", active_providers=["CPUExecutionProvider"])
    assert find_best_settings([asked], budget_ms=None) == []


def test_a_shorter_input_is_no_better_setting() -> None:
    """0.19 ms of a sequence of 4 stood as the best of a model that was measured with 64."""
    short = measured("c0", p50_ms=0.2, p50_ci_ms=(0.19, 0.21), throughput=5000.0, shapes={"sequence": 4})
    usual = [measured(name, threads=threads, shapes={"sequence": 64}) for name, threads in (("c1", 1), ("c2", 2))]
    (found,) = find_best_settings([short, *usual], budget_ms=None)
    assert {point.cell.id for top in (found.fastest, found.most_items) for point in top.settings} == {"c1", "c2"}
    panel = make_panel(1, [short, *usual], "")
    assert panel is not None
    assert panel.left_out == "Without 1 setting fed inputs of another size than most."
    (target,) = find_targets([short, *usual])
    assert target.left_out == {"input": 1}


def test_a_cell_whose_throughput_is_unknown_is_not_the_most() -> None:
    assert find_best_settings([measured(throughput=None)], budget_ms=None)[0].most_items.settings == ()


def test_settings_that_launches_do_not_tell_apart_stand_beside_the_best_one() -> None:
    near = measured("c4", p50_ms=2.05, p50_ci_ms=(2.0, 2.1), threads=2, throughput=488.0)
    apart = measured("c5", p50_ms=2.3, p50_ci_ms=(2.2, 2.4), threads=4, throughput=435.0)
    (found,) = find_best_settings([apart, near, ONE], budget_ms=None)
    assert found.fastest.settings == found.most_items.settings == [ONE, near]


def paired(baseline: MeasuredSetting, candidate: MeasuredSetting, ratio: float, **changes: object) -> Comparison:
    verdict = "faster" if ratio < 1 else "slower"
    known = {"baseline": baseline.cell.id, "candidate": candidate.cell.id, "axis": "runtime", "verdict": verdict}
    figures = {"ratio": ratio, "ci_low": 0.97 * ratio, "ci_high": 1.03 * ratio, "margin": 0.02, "rounds": 8}
    return Comparison.model_validate({**known, **figures, **changes})


NEAR = measured("c4", p50_ms=2.05, p50_ci_ms=(1.8, 2.3), threads=2, throughput=488.0)


@pytest.mark.parametrize(
    ("pair", "best"),
    [
        (paired(ONE, NEAR, 1.18), [ONE]),
        (paired(NEAR, ONE, 0.85), [ONE]),
        # its own launches were quicker, its pairs were not
        (paired(ONE, NEAR, 0.85), [NEAR]),
        (paired(ONE, NEAR, 1.18, verdict="undecided"), [ONE, NEAR]),
        (paired(ONE, NEAR, 1.18, verdict_from="rate"), [ONE, NEAR]),
        (paired(ONE, OTHER, 1.18), [ONE, NEAR]),
    ],
)
def test_a_paired_verdict_tells_settings_apart_that_launches_do_not(
    pair: Comparison, best: list[MeasuredSetting]
) -> None:
    """1.31.1 was "one of 2 that launches do not tell apart" on a page that called it 18 % slower than the other."""
    (found,) = find_best_settings(with_verdicts([NEAR, ONE], {1: [pair]}), budget_ms=None)
    assert [setting.cell for setting in found.fastest.settings] == [setting.cell for setting in best]
    assert found.most_items == found.fastest


def test_a_batch_of_fewer_items_by_its_pairs_is_not_among_those_of_most() -> None:
    """Batch 1 was not told apart from batch 8, which had "6 % more items/s, 3–9 %"."""
    eight = measured("c2", batch=8, p50_ms=15.0, p50_ci_ms=(13.0, 17.0), throughput=533.0)
    (apart,) = find_best_settings(with_verdicts([ONE, eight], {1: [paired(ONE, eight, 7.5)]}), budget_ms=None)
    tops = (apart.most_items, apart.fastest)
    assert [[setting.cell.id for setting in top.settings] for top in tops] == [["c2"], ["c1"]]
    assert len(find_best_settings([ONE, eight], budget_ms=None)[0].most_items.settings) == 2


def test_hardware_names_the_setting_that_won_by_pairs_and_one_where_each_lost_to_another() -> None:
    won = [paired(ONE, NEAR, 0.85)]
    (target,) = find_targets(with_verdicts([ONE, NEAR], {1: won}))
    assert target.best is not None
    assert target.best.cell == NEAR.cell
    around = [*won, paired(ONE, NEAR, 1.2)]
    assert [target.best and target.best.cell for target in find_targets(with_verdicts([ONE, NEAR], {1: around}))] == [
        ONE.cell
    ]


def test_optimization_and_session_options_are_part_of_a_settings_name() -> None:
    basic = measured("c4", optimization="basic")
    spinning = measured("c5", session={"name": "no spinning", "session.intra_op.allow_spinning": "0"})
    names = [format_setting(one) for one in (ONE, basic, spinning)]
    assert len(set(names)) == 3
    assert "basic" in names[1]
    assert "no spinning" in names[2]


def test_settings_of_the_same_words_are_told_apart_by_the_axis_on_which_they_differ() -> None:
    newer, older = measured("c4", opset=26), measured("c5", opset=17)
    names = format_distinct_settings([newer, older, EIGHT])
    assert names == [f"{format_setting(ONE)}, opset 26", f"{format_setting(ONE)}, opset 17", format_setting(EIGHT)]
    found = make_panel(1, [newer, older], "")
    assert found is not None
    assert {row[2].text for row in found.table.rows} == set(names[:2])
    # which is not told apart stands once a row, and not in each of them
    wanted = [row[1].text for row in found.table.rows]
    assert wanted == ["most items/s and lowest latency", "as fast within the intervals"]
    assert found.because.endswith(" · 1 other is as fast within the intervals.")
    assert "within the intervals" not in found.sentence


def test_what_was_left_out_is_counted_and_the_fastest_of_it_named() -> None:
    wrong, worse, unknown = (
        measured(name, p50_ms=p50, parity={"verdict": verdict})
        for name, p50, verdict in (("w", 2.0, "fail"), ("x", 8.0, "fail"), ("u", 9.0, "not_measured"))
    )
    untimed = measured("t", p50_ms=None, p50_ci_ms=None, throughput=None, parity={"verdict": "fail"})
    found = find_left_out([ONE, worse, untimed, wrong, unknown])
    assert (found.count, found.fastest) == (3, wrong)
    assert find_left_out([ONE, untimed]) is None


def test_of_too_few_launches_nothing_is_claimed_and_it_says_how_many_would_tell() -> None:
    """Settings of two launches each were "one of 3 that launches do not tell apart", and so was one at 100 ms."""
    twice = measured("c4", p50_ms=1.0, p50_ci_ms=None, samples_ms=[0.9, 1.1], throughput=1000.0)
    (found,) = find_best_settings([twice, ONE, EIGHT], budget_ms=None)
    assert (found.fastest.settings, found.fastest.unclear) == ([twice], 2)
    assert found.fastest.doubt == "2 launches decide nothing: an interval takes at least 6."
    once = measured("c5", p50_ms=100.0, p50_ci_ms=None, samples_ms=[100.0], throughput=10.0)
    (found,) = find_best_settings([once, ONE], budget_ms=None)
    assert (found.fastest.settings, found.fastest.unclear) == ([ONE], 1)
    assert found.fastest.doubt == "Of 1 other there are too few launches to tell: an interval takes at least 6."
    (alone,) = find_best_settings([once], budget_ms=None)
    assert (alone.fastest.settings, alone.fastest.doubt) == ([once], "")
    assert explain_too_few_launches(1) == "1 launch decides nothing: an interval takes at least 6."


def busy(name: str, cpu_ms: float, **changes: object) -> MeasuredSetting:
    """A setting whose clock ran 40 times as long as its thread."""
    launches = {"samples_ms": [40 * cpu_ms] * 8, "cpu_samples_ms": [cpu_ms] * 8, "disturbed_samples": 8}
    known = {"p50_ms": 40 * cpu_ms, "p50_ci_ms": (30 * cpu_ms, 50 * cpu_ms), "throughput": 25 / cpu_ms}
    return measured(name, cpu_p50_ms=cpu_ms, **{**known, **launches, **changes})


def test_on_a_busy_machine_settings_are_compared_by_processor_time_as_far_as_they_have_it() -> None:
    quiet = measured("c4", cpu_p50_ms=1.95, cpu_samples_ms=[1.95] * 8)
    two_threads = measured("c5", threads=2, p50_ms=9.0, p50_ci_ms=(8.0, 10.0))
    elsewhere = measured("c6", node="b", cpu_p50_ms=1.5)
    asked = [busy("c7", 1.2), quiet, two_threads, elsewhere]
    told = with_comparable_times(asked, [0])
    assert [(one.is_processor, one.cell.p50_ms) for one in told] == [
        (True, 1.2), (True, 1.95), (False, 9.0), (False, 2.0)
    ]  # fmt: skip
    assert [best.fastest.settings[0].cell.id for best in find_best_settings(told, budget_ms=None)] == ["c7", "c6"]
    assert told[0].cell.throughput == pytest.approx(1000 / 1.2)
    assert find_left_out(told) is None
    assert hardware_words.explain_processor_time(told) == (
        f"{BUSY}; 1 setting by the clock, as it has no processor time of one thread"
    )
    assert hardware_words.explain_processor_time(told[:2]) == BUSY
    assert hardware_words.format_latency(told[0]).endswith(" of CPU time")
    assert hardware_words.items_heading(told[:2]) == "items/s, processor time"
    assert hardware_words.items_heading(told) == "items/s by the clock or processor time"
    assert hardware_words.items_heading([ONE]) == "items/s"
    panel = make_panel(1, told[:2], "", lambda setting: setting.cell.id)
    assert panel is not None
    assert "items/s, processor time" in [head.text for head in panel.table.heads]


def test_on_a_quiet_machine_settings_are_compared_by_the_clock() -> None:
    assert with_comparable_times([ONE, EIGHT], []) == [ONE, EIGHT]
    assert hardware_words.explain_processor_time([ONE]) == ""


def test_a_setting_that_labelled_data_show_to_be_wrong_is_not_recommended_although_parity_passes() -> None:
    lost = {"metric": "top1", "value": 0.006, "difference": -0.974, "difference_low": -0.98, "difference_high": -0.96}
    wrong = measured("c0", p50_ms=1.0, p50_ci_ms=(0.9, 1.1), accuracy=lost)
    assert find_best_settings([wrong, ONE], budget_ms=None)[0].fastest.settings == [ONE]
    assert find_left_out([wrong, ONE]).fastest == wrong
