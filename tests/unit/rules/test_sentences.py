"""What a document says in sentences."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.contract.document import Document
from farm.contract.document_comparisons import OperatorChange
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.presenting import changed_operators, sentences
from farm.rules.presenting.explanations import explain_change, find_causing_type
from farm.rules.wording import numbers
from farm.rules.wording.numbers import THIN
from tests.documents import make_cell, make_comparison, make_document


def cell(name="c1", **changes):
    measured = {"node": "bench-1", "p50_ms": 0.228, "p50_ci_ms": (0.226, 0.230), "samples_ms": [0.228] * 8}
    return make_cell(name, **{**measured, **changes})


def compared(**changes):
    return make_comparison(**{"ci_low": 1.21, "ci_high": 1.26, "smallest_detectable": 0.029, **changes})


def changed(op_type, baseline_us, candidate_us, share):
    return OperatorChange(
        node=f"{op_type}_1", op_type=op_type, baseline_us=baseline_us, candidate_us=candidate_us, share=share
    )


NEW = cell("c2", runtime="onnxruntime==1.31.1")
CELLS = {"c1": cell(), "c2": NEW}


def document(comparisons, cells=None):
    return make_document(*(cells or CELLS).values(), comparisons=comparisons)


def test_the_verdict_line_says_who_is_slower_by_how_much_how_sure_and_why():
    operators = [changed("Normalize", 100.0, 196.0, 0.96), changed("MatMul", 700.0, 704.0, 0.04)]
    assert sentences.verdict_line(document([compared(operators=operators)])) == (
        "ONNX Runtime 1.31.1 runs encoder (CPU, fp32, batch 1, 1 thread) 24 % slower than 1.29.0 on bench-1 "
        "(95 % interval 21–26 %, 8 rounds). Normalize explains 96 % of the 100 µs."
    )


def test_the_headline_takes_the_largest_slowdown_and_counts_the_others():
    more = [compared(), compared(ratio=1.5, ci_low=1.4, ci_high=1.6), compared(ratio=0.5, verdict="faster")]
    line = sentences.verdict_line(document(more))
    assert "50 % slower" in line
    assert line.endswith("2 of 3 comparisons by runtime are slower, 1 the other way.")


def test_comparisons_by_runtime_come_first_where_nothing_was_decided():
    by_batch = compared(axis="threads", ratio=1.0, ci_low=0.98, ci_high=1.02, verdict="undecided")
    line = sentences.verdict_line(document([by_batch, compared(verdict="equal", ratio=1.0, ci_low=0.99, ci_high=1.01)]))
    assert line.startswith(
        "ONNX Runtime 1.31.1 runs encoder (CPU, fp32, batch 1, 1 thread) as fast as 1.29.0 on bench-1"
    )
    assert line.endswith("Undecided: 1 of 1 by threads.")


def test_twins_and_what_cannot_be_compared_make_no_headline():
    line = sentences.verdict_line(document([compared(axis="twin"), compared(verdict="not comparable")]))
    assert line == "2 cells of encoder measured, none to compare."


def test_one_cell_alone_is_its_own_headline():
    line = sentences.verdict_line(document([], {"c1": cell()}))
    assert line == (
        "encoder on onnxruntime==1.29.0, CPU, fp32, batch 1, 1 thread: 0.228 ms ± 0.002 at the median of 8 launches."
    )


def test_cells_that_did_not_finish_are_counted_in_the_headline():
    lost = cell("c2", status="crashed", reason=Reason(code=ReasonCode.CRASHED, text="SIGSEGV."), model="")
    assert sentences.verdict_line(document([], {"c1": cell(model=""), "c2": lost})) == (
        "1 cell of the model measured; 1 did not finish, none to compare."
    )


def test_when_nothing_was_measured_the_first_reason_is_told():
    refused = cell(status="refused", reason=Reason(code=ReasonCode.OPSET_TOO_NEW, text="opset 30 is too new."))
    assert sentences.verdict_line(document([], {"c1": refused})) == "None of 1 cell was measured. opset 30 is too new."
    assert sentences.verdict_line(Document(machine={}, seed=0)) == "Nothing was planned."


def test_an_operator_that_explains_little_is_not_named():
    operators = [changed("A", 1.0, 2.0, 0.05), changed("B", 1.0, 1.5, 0.04)]
    assert "explains" not in sentences.verdict_line(document([compared(operators=operators)]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "▲ slower: ONNX Runtime 1.31.1 runs encoder"),
        ({"verdict": "faster", "ratio": 0.8, "ci_low": 0.78, "ci_high": 0.83}, "▼ faster: .* 20 % faster .*17–22 %"),
        ({"verdict": "faster", "ratio": 0.4, "ci_low": 0.38, "ci_high": 0.42}, "2.5× faster .*2.4–2.6×"),
        ({"ratio": 3.4, "ci_low": 3.2, "ci_high": 3.6}, "3.4× slower .*3.2–3.6×"),
        (
            {"verdict": "equal", "ratio": 1.001, "ci_low": 0.998, "ci_high": 1.004},
            "= equal: .*0.2 % faster to 0.4 % slower",
        ),
        (
            {"verdict": "undecided", "ratio": 1.01, "ci_low": 0.98, "ci_high": 1.05, "rounds_needed": 16},
            r"\? undecided: Whether .* is undecided .* The smallest detectable change is 2.9 %; about 16 rounds",
        ),
        ({"verdict": "undecided", "smallest_detectable": None}, r"8 rounds\).$"),
        (
            {"verdict": "undecided", "smallest_detectable": None, "rounds": 6, "reason": "6 rounds decide nothing."},
            r"6 rounds\). 6 rounds decide nothing.$",
        ),
        (
            {"verdict": "not comparable", "reason": "The node is emulated."},
            "≠ not comparable: .* The node is emulated.",
        ),
        (
            {"verdict": "undecided", "ratio": None, "reason": "Too few."},
            r"1.31.1 \(0.228 ms ± 0.002\) and 1.29.0 \(0.228 ms ± 0.002\) were measured but could not be compared.",
        ),
    ],
)
def test_every_verdict_has_its_sign_and_its_sentence(changes, words):
    text = sentences.comparison_sentence(compared(**changes), CELLS)
    assert re.search(words, text), text


def test_only_a_pair_of_which_one_side_was_not_measured_has_no_figures_to_compare():
    lost = cell("c2", status="crashed", p50_ms=None, p50_ci_ms=None, runtime="onnxruntime==1.31.1")
    text = sentences.comparison_sentence(
        compared(verdict="undecided", ratio=None, reason="It died."), {**CELLS, "c2": lost}
    )
    assert "ONNX Runtime 1.31.1 and 1.29.0 have no figures to compare. It died." in text


def test_a_time_of_a_pair_without_a_ratio_is_the_one_that_the_table_of_cells_tells():
    """One disturbed launch was "11.0 ms" in the headline and "2.63 CPU time" in the table below it."""
    busy = cell("c2", runtime="onnxruntime==1.31.1", p50_ms=11.0, p50_ci_ms=None, samples_ms=[11.0])
    busy = busy.model_copy(update={"cpu_p50_ms": 2.63, "cpu_samples_ms": [2.63], "disturbed_samples": 1})
    text = sentences.comparison_sentence(compared(verdict="undecided", ratio=None), {**CELLS, "c2": busy})
    assert "1.31.1 (2.63 ms of CPU time) and 1.29.0 (0.228 ms ± 0.002) were measured" in text


@pytest.mark.parametrize(
    ("axis", "changes", "words"),
    [
        (
            "runtime",
            {"runtime": "onnxruntime-openvino==1.24.1"},
            r"ONNX Runtime 1.24.1 \(onnxruntime-openvino\) runs .* ONNX Runtime 1.29.0",
        ),
        ("provider", {"provider": "OpenVINOExecutionProvider"}, "OpenVINO runs .* than CPU"),
        ("precision", {"precision": "int8-dynamic"}, "int8-dynamic runs encoder .CPU, batch 1, 1 thread. .* than fp32"),
        ("batch", {"batch": 8}, "batch 8 runs .* than batch 1"),
        ("threads", {"threads": 4}, "4 threads runs .* than 1 thread"),
        ("opset", {"opset": 21}, "opset 21 runs"),
        ("concurrency", {"concurrency": 4}, "4 streams runs .* than 1 stream"),
        ("optimization", {"optimization": "disable"}, "optimization disable runs .* than optimization all"),
        ("session", {"session": {"name": "quiet"}}, "session quiet runs .* than session default"),
        ("shapes", {"shapes": {"sequence": 8}}, "sequence=8 runs .* than default shapes"),
        ("hardware", {"hardware": "arm"}, "arm runs .* than cpu"),
        ("twin", {}, r"c2 \(the same cell\)"),
        ("novelty", {}, "c2 runs"),
    ],
)
def test_a_side_is_named_by_what_differs(axis, changes, words):
    text = sentences.comparison_sentence(compared(axis=axis), {"c1": cell(), "c2": cell("c2", **changes)})
    assert re.search(words, text), text


def test_an_explanation_says_nodes_times_and_share():
    operators = [changed("Norm", 500.0, 1500.0, 0.9), changed("Norm", 500.0, 610.0, 0.1), changed("X", 9.0, 9.0, 0.0)]
    assert explain_change(compared(operators=operators)) == (
        f"Norm: 2 nodes, 1{THIN}000 → 2{THIN}110 µs, explains 100 % of the 1{THIN}110 µs"
    )


def test_an_explanation_on_a_busy_machine_says_so():
    operators = [changed("Norm", 500.0, 1500.0, 1.0)]
    busy = compared(operators=operators).model_copy(update={"verdict_from": "processor"})
    assert explain_change(busy) == (
        f"Norm: 1 node, 500 → 1{THIN}500 µs, explains 100 % of the 1{THIN}000 µs "
        "(traced while other programs kept the machine busy)"
    )


def judged(verdict, rounds=16):
    return {"verdict": verdict, "ratio": 1.1, "ci_low": 1.08, "ci_high": 1.12, "rounds": rounds}


@pytest.mark.parametrize(
    ("verdicts", "sure"),
    [
        (("slower", "undecided"), " (1 of its 2 nodes significant on their own over 16 rounds)"),
        (("equal", "undecided"), " (none of its nodes significant on its own over 16 rounds)"),
        ((None, None), ""),
    ],
)
def test_an_explanation_says_how_sure_it_is_where_rounds_were_traced(verdicts, sure):
    operators = [
        changed("Norm", 500.0, 1000.0, 0.5).model_copy(update=judged(verdict) if verdict else {})
        for verdict in verdicts
    ]
    assert explain_change(compared(operators=operators)) == (
        f"Norm: 2 nodes, 1{THIN}000 → 2{THIN}000 µs, explains 100 % of the 1{THIN}000 µs{sure}"
    )


def test_operators_that_are_called_come_by_their_change_and_say_how_large_it_is():
    small = changed("Norm", 60.0, 66.0, None).model_copy(update=judged("slower"))
    large = changed("Gemm", 600.0, 500.0, None).model_copy(update=judged("faster"))
    other = changed("Relu", 9.0, 9.0, None)
    assert changed_operators.list_changed_operators(compared(operators=[small, other, large])) == [large, small]
    assert changed_operators.format_operator_change(small) == "10 % slower (8–12 %)"
    assert changed_operators.format_operator_change(other) == ""


def test_what_costs_more_than_the_change_explains_all_of_it():
    operators = [changed("Norm", 500.0, 1500.0, 1.6), changed("X", 900.0, 600.0, -0.6)]
    known = [compared(operators=operators)]
    assert f"Norm changed by +1{THIN}000 µs, the whole by +625 µs." in sentences.verdict_line(document(known))
    assert (
        explain_change(known[0])
        == f"Norm: 1 node, 500 → 1{THIN}500 µs, changed by +1{THIN}000 µs, the whole by +625 µs"
    )


@pytest.mark.parametrize(
    ("changes", "of"),
    [
        ({"verdict_from": "processor"}, " of this busy machine"),
        ({}, ""),
        ({"traces": 4}, None),
        ({"verdict": "equal"}, None),
    ],
)
def test_traces_that_do_not_add_up_explain_nothing_and_say_so(changes, of):
    operators = [changed("MatMul", 10_798.0, 8_710.0, None), changed("MatMul", 8_904.0, 10_370.0, None)]
    pair = compared(operators=operators, **{"traces": 5, **changes})
    figures = f"(1{THIN}466 µs more in some operators, 2{THIN}088 less in others)"
    assert explain_change(pair) == (None if of is None else f"The traces{of} do not add up {figures}")
    assert "explains" not in sentences.verdict_line(document([pair]))


@pytest.mark.parametrize(
    ("share", "traces", "words"),
    [(1.0, 5, "What explains"), (None, 5, "The traces do not add up"), (None, 1, "Too few traces")],
)
def test_a_list_of_operators_is_headed_by_what_it_shows(share, traces, words):
    pair = compared(operators=[changed("Norm", 1.0, 5.0, share)], traces=traces)
    assert changed_operators.make_operators_heading(pair, "1.29.0 → 1.31.1").startswith(words)


@pytest.mark.parametrize(
    ("verdict", "shares"),
    [("slower", [0.8, 0.5, 0.4, -0.7]), ("faster", [-0.7, 0.4, 0.5, 0.8]), ("equal", [0.8, -0.7, 0.5, 0.4])],
)
def test_operators_are_listed_by_what_they_add_whatever_their_type(verdict, shares):
    """Nodes of the type that explains most stood before larger ones of another."""
    operators = [
        changed("MatMul", 9.0, 2.0, -0.7), changed("MatMul", 1.0, 5.0, 0.4), changed("MatMul", 1.0, 6.0, 0.5),
        changed("Norm", 1.0, 9.0, 0.8),
    ]  # fmt: skip
    listed = changed_operators.sort_operators(compared(verdict=verdict, operators=operators))
    assert [change.share for change in listed] == shares


def test_too_few_traces_explain_nothing():
    assert explain_change(compared(operators=[changed("Norm", 1.0, 2.0, None)])) is None
    assert explain_change(compared()) is None


def test_too_few_traces_still_name_what_changed_most_the_way_the_latency_did():
    operators = [changed("Norm", 100.0, 300.0, None), changed("Gemm", 900.0, 400.0, None), changed("X", 1.0, 2.0, 0.1)]
    slower = compared(operators=operators)
    assert changed_operators.describe_largest_type(slower) == (
        "Norm: 1 node, 100 → 300 µs, changes most; too few traces for its share"
    )
    faster = slower.model_copy(update={"verdict": "faster"})
    assert changed_operators.describe_largest_type(faster).startswith("Gemm: 1 node, 900 → 400 µs")
    assert changed_operators.describe_largest_type(slower.model_copy(update={"verdict": "undecided"})) == ""
    assert changed_operators.describe_largest_type(compared()) == ""
    assert changed_operators.describe_largest_type(compared(operators=[changed("Gemm", 9.0, 4.0, None)])) == ""


def test_cells_without_a_batch_or_a_node_or_a_reason_are_still_sentences():
    bare = cell(batch=None, node=None, model="", shapes={"time": 9}, p50_ms=None)
    assert sentences.cell_sentence(bare) == (
        "done: The model on onnxruntime==1.29.0, CPU, fp32, time=9, 1 thread: it was not measured."
    )
    text = sentences.comparison_sentence(compared(), {"c1": bare, "c2": bare})
    assert "the model" in text
    assert " on " not in text


@pytest.mark.parametrize(
    ("value", "interval", "shown"),
    [
        (0.22793, (0.226, 0.230), "0.228 ms ± 0.002"),
        (12.3456, (12.0, 13.0), "12.3 ms ± 0.5"),
        (123.456, (100.0, 150.0), "123 ms ± 25"),
        (12.3456, None, "12.3 ms"),
        (0.0001234, None, "0.000123 ms"),
        (12.3456, (12.0, 12.0), "12.3 ms"),
        (0.0, None, "0 ms"),
        (0.5, (0.49999999, 0.5), "0.500000 ms ± 0.000000"),
    ],
)
def test_digits_end_where_the_interval_starts(value, interval, shown):
    assert numbers.latency(value, interval) == shown


def test_no_uncertainty_is_written_with_the_most_decimals():
    assert numbers.decimals_within(0.0) == numbers.MAX_DECIMALS


def test_a_range_never_starts_at_minus_nothing():
    assert numbers.change_interval(0.9999, 1.45, ratio=1.2) == "0–45 %"


@given(st.floats(1e-6, 1e6), st.floats(1.0, 3.0), st.floats(1.0, 3.0))
def test_any_change_can_be_said(ratio, below, above):
    size = numbers.change(ratio, ratio / below, ratio * above)
    interval = numbers.change_interval(ratio / below, ratio * above, ratio=ratio)
    assert size
    assert interval
    assert "nan" not in size + interval


@given(st.floats(1e-9, 1e9), st.floats(0.0, 10.0))
def test_any_latency_can_be_said(value, relative):
    assert numbers.latency(value, (value * (1 - relative), value * (1 + relative))).startswith(("0", *"123456789"))


@pytest.mark.parametrize(
    ("interval", "times"),
    [
        ({}, "37.0 → 88.0 µs"),
        ({"ci_low": 2.3, "ci_high": 2.5}, "37.0 → 88.0 µs"),
        ({"ci_low": 1.1, "ci_high": 1.2}, ""),
    ],
)
def test_times_of_an_operator_are_left_out_where_they_do_not_give_its_change(interval, times):
    assert (
        changed_operators.format_operator_times(changed("Norm", 37.0, 88.0, None).model_copy(update=interval)) == times
    )


@pytest.mark.parametrize(
    ("operators", "operator"),
    [([changed("Norm", 100.0, 196.0, 0.96)], "Norm"), ([changed("Norm", 100.0, 105.0, 0.05)], ""), ([], "")],
)
def test_the_cause_of_a_change_is_the_operator_that_explains_a_part_worth_naming(operators, operator):
    assert find_causing_type(compared(operators=operators)) == operator
