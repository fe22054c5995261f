"""The best settings on each machine."""

from dataclasses import replace

from farm.rules.presenting.best import Setting, best_settings, left_out

ONE = Setting(
    run_id=1, cell="c1", node="a", runtime="onnxruntime==1.31.1", provider="CPUExecutionProvider", precision="fp32",
    batch=1, threads=1, p50_ms=2.0, interval_ms=(1.9, 2.1), items_s=500.0, is_right=True,
)  # fmt: skip
EIGHT = replace(ONE, cell="c2", batch=8, p50_ms=8.0, interval_ms=(7.5, 8.5), items_s=1000.0)
OTHER = replace(ONE, cell="c3", node="b", p50_ms=30.0, interval_ms=None, items_s=33.0)


def test_without_a_budget_each_machine_has_its_most_items_and_its_lowest_latency() -> None:
    first, second = best_settings([ONE, EIGHT, OTHER], budget_ms=None)
    assert (first.node, first.most, first.fastest, first.settings) == ("a", EIGHT, ONE, 2)
    assert (second.node, second.most, second.fastest) == ("b", OTHER, OTHER)


def test_a_budget_is_kept_by_the_upper_end_of_the_interval() -> None:
    assert best_settings([ONE, EIGHT], budget_ms=8.5)[0].most == EIGHT
    assert best_settings([ONE, EIGHT], budget_ms=8.2)[0].most == ONE
    assert best_settings([OTHER], budget_ms=30.0)[0].most == OTHER


def test_where_nothing_is_within_the_budget_the_fastest_still_stands() -> None:
    (found,) = best_settings([ONE, EIGHT], budget_ms=1.0)
    assert (found.most, found.fastest) == (None, ONE)


def test_wrong_outputs_are_never_recommended_and_unknown_ones_are() -> None:
    wrong = replace(ONE, is_right=False)
    assert best_settings([wrong], budget_ms=None) == []
    unknown = replace(EIGHT, is_right=None)
    assert best_settings([wrong, unknown], budget_ms=None)[0].fastest == unknown


def test_a_cell_whose_throughput_is_unknown_is_not_the_most() -> None:
    assert best_settings([replace(ONE, items_s=None)], budget_ms=None)[0].most is None


def test_what_was_left_out_is_counted_and_the_fastest_of_it_named() -> None:
    wrong, worse = replace(ONE, is_right=False), replace(EIGHT, is_right=False)
    found = left_out([ONE, worse, wrong, replace(OTHER, is_right=None)])
    assert (found.count, found.fastest) == (2, wrong)
    assert left_out([ONE, replace(OTHER, is_right=None)]) is None
