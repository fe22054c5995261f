"""Attribution: whichever operator regressed is named, joined by the model's own nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.rules.tracing import attribution
from farm.rules.tracing.attribution import attribute_traces
from tests.unit.rules.making import make_operator, make_trace

OPERATORS = ("Gemm", "Softmax", "LayerNorm", "Resize", "SomethingNew")


def traces(arm, operators, count=5):
    """Traces of an arm from a function of the trace round."""
    return [make_trace(arm, operators(number), trace_round=number) for number in range(count)]


def model_of(slow=None, factor=1.0):
    return lambda number: [
        make_operator(f"node_{name}", 100.0 * (1 + 0.01 * number) * (factor if name == slow else 1.0), op_type=name)
        for name in OPERATORS
    ]


@pytest.mark.parametrize("slow", OPERATORS)
def test_the_operator_that_became_slower_explains_the_change_whatever_it_is(slow):
    found = attribute_traces(traces(0, model_of()), traces(1, model_of(slow, 3.0)))
    first = found.nodes[0]
    assert (first.node, first.op_type) == (f"node_{slow}", slow)
    assert first.share == pytest.approx(1.0)
    assert first.change_low_us <= first.moved_us <= first.change_high_us
    assert found.traces == 5
    assert attribution.group_by_type(found.nodes)[0].op_type == slow


def test_a_share_may_be_negative_or_more_than_all():
    old = traces(0, lambda _: [make_operator("a", 100.0), make_operator("b", 100.0, op_type="Add")])
    new = traces(1, lambda _: [make_operator("a", 180.0), make_operator("b", 60.0, op_type="Add")])
    shares = {change.node: change.share for change in attribute_traces(old, new).nodes}
    assert shares == {"a": pytest.approx(2.0), "b": pytest.approx(-1.0)}


def test_nodes_that_one_release_fuses_and_the_other_does_not_are_compared_as_one():
    fused = [make_operator("add_1", 50.0, op_type="SkipThing", covers=["norm_1"]), make_operator("mm", 10.0)]
    apart = [
        make_operator("add_1", 30.0, op_type="Add"),
        make_operator("norm_1", 60.0, op_type="Norm"),
        make_operator("mm", 10.0),
    ]
    changes = attribute_traces(traces(0, lambda _: fused), traces(1, lambda _: apart)).nodes
    assert [change.node for change in changes] == ["norm_1", "mm"]
    assert (changes[0].covers, changes[0].op_type) == (("add_1",), "Norm")
    assert (changes[0].baseline_us, changes[0].candidate_us) == (50.0, 90.0)


def test_overlapping_fusions_of_both_sides_become_one_group():
    old = [make_operator("a", 1.0, covers=["b"]), make_operator("c", 1.0)]
    new = [make_operator("a", 1.0), make_operator("b", 3.0, covers=["c"])]
    (change,) = attribute_traces(traces(0, lambda _: old), traces(1, lambda _: new)).nodes
    assert (change.baseline_us, change.candidate_us) == (2.0, 4.0)
    assert {change.node, *change.covers} == {"a", "b", "c"}


def test_an_operator_that_is_gone_or_new_counts_from_zero():
    old = traces(0, lambda _: [make_operator("a", 100.0), make_operator("cast", 20.0)])
    new = traces(1, lambda _: [make_operator("a", 100.0), make_operator("reorder", 60.0)])
    changes = {c.node: (c.baseline_us, c.candidate_us) for c in attribute_traces(old, new).nodes}
    assert changes == {"a": (100.0, 100.0), "cast": (20.0, 0.0), "reorder": (0.0, 60.0)}


def test_several_executed_operators_of_one_node_are_added_up():
    new = [make_operator("a", 10.0), make_operator("a", 5.0, op_type="Reorder")]
    (change,) = attribute_traces(traces(0, lambda _: [make_operator("a", 9.0)]), traces(1, lambda _: new)).nodes
    assert (change.candidate_us, change.op_type) == (15.0, "MatMul")


def test_one_trace_gives_times_but_neither_shares_nor_intervals():
    found = attribute_traces(traces(0, model_of(), count=1), traces(1, model_of("Gemm", 3.0), count=4))
    assert found.traces == 1
    assert found.nodes[0].node == "node_Gemm"
    assert all(change.share is None and change.change_low_us is None for change in found.nodes)
    assert all(change.share is None for change in attribution.group_by_type(found.nodes))


def test_without_traces_there_is_nothing_to_attribute():
    assert attribute_traces([], traces(1, model_of())).traces == 0


def test_a_change_within_the_traces_noise_is_not_shared_out():
    found = attribute_traces(traces(0, model_of()), traces(1, model_of()))
    assert all(change.share is None for change in found.nodes)
    assert found.nodes[0].change_low_us is not None


def test_a_change_smaller_than_what_traces_disagree_about_is_not_shared_out():
    def noisy(number):
        # two MatMul that a busy machine holds up in one trace or the other
        first, second = [(10_800.0, 8_900.0), (8_700.0, 10_400.0)][number % 2]
        return [make_operator("narrow_0", first), make_operator("narrow_1", second)]

    def with_norm(time_us):
        return lambda number: [*noisy(number + (time_us > 200)), make_operator("norm", time_us, op_type="Norm")]

    found = attribute_traces(traces(0, with_norm(170.0)), traces(1, with_norm(680.0))).nodes
    assert all(change.share is None for change in found)
    steady = attribute_traces(traces(0, with_norm(170.0)), traces(1, with_norm(171.0))).nodes
    assert all(change.share is None for change in steady)


def test_one_odd_trace_does_not_move_the_medians():
    def odd(number):
        return model_of("Gemm", 50.0 if number == 2 else 1.0)(number)

    changes = attribute_traces(traces(0, model_of()), traces(1, odd)).nodes
    assert all(abs(change.moved_us) < 3.0 for change in changes)


def test_changes_are_grouped_by_operator_type():
    old = traces(
        0, lambda _: [make_operator("a", 10.0), make_operator("b", 10.0), make_operator("c", 5.0, op_type="X")]
    )
    new = traces(
        1, lambda _: [make_operator("a", 14.0), make_operator("b", 14.0), make_operator("c", 7.0, op_type="X")]
    )
    first, second = attribution.group_by_type(attribute_traces(old, new).nodes)
    assert (first.op_type, first.nodes, first.baseline_us, first.candidate_us) == ("MatMul", 2, 20.0, 28.0)
    assert first.share == pytest.approx(0.8)
    assert (second.op_type, second.share) == ("X", pytest.approx(0.2))


@pytest.mark.parametrize(("count", "inner"), [(5, 0), (7, 0), (8, 1), (12, 2), (20, 5)])
def test_the_interval_takes_the_order_statistics_that_hold_nine_in_ten(count, inner):
    old = traces(0, lambda _: [make_operator("a", 100.0)], count=count)
    new = traces(1, lambda number: [make_operator("a", 200.0 + number)], count=count)
    (change,) = attribute_traces(old, new).nodes
    assert (change.change_low_us, change.change_high_us) == (100.0 + inner, 100.0 + count - 1 - inner)


times = st.floats(0.0, 1e6)


@given(st.lists(st.tuples(times, times), min_size=1, max_size=12), st.integers(5, 9))
def test_shares_add_up_to_the_whole_change(nodes, count):
    old = traces(0, lambda _: [make_operator(f"n{i}", a) for i, (a, _) in enumerate(nodes)], count=count)
    new = traces(1, lambda _: [make_operator(f"n{i}", b) for i, (_, b) in enumerate(nodes)], count=count)
    found = attribute_traces(old, new)
    shares = [change.share for change in found.nodes if change.share is not None]
    assert not shares or sum(shares) == pytest.approx(1.0, abs=1e-4)
    assert len(found.nodes) == len(nodes)


def test_grouping_nothing_gives_nothing():
    assert attribution.group_by_type([]) == []
