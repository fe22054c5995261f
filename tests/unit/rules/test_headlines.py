"""What a run opens with: number, sign and interval are those of the document, of the terminal and of the page."""

import io
import re
from dataclasses import dataclass

import pytest
from rich.console import Console

from dashboard.reading import comparisons, side
from farm.contract.document_cells import Cell, Parity
from farm.contract.document_comparisons import Comparison, OperatorChange
from farm.rules.comparing import quantities
from farm.rules.comparing.sides import turned
from farm.rules.presenting import headlines, sentences
from farm.rules.reporting.documents import told
from onnxfarm.screen import show
from tests.documents import make_cell, make_comparison, make_document

WRONG = Parity(verdict="fail", text="Outputs differ.")


def cell(name, **changes):
    measured = {"node": "bench-1", "p50_ms": 0.228, "p50_ci_ms": (0.226, 0.230), "samples_ms": [0.226, 0.228, 0.23]}
    return make_cell(name, **{**measured, **changes})


def compared(candidate="new", **changes):
    known = {"baseline": "base", "ci_low": 1.21, "ci_high": 1.26, "smallest_detectable": 0.029}
    return make_comparison(**{**known, "candidate": candidate, **changes})


BASE = cell("base")
NEW = cell("new", runtime="onnxruntime==1.31.1")
INT8 = cell("int8", precision="int8-dynamic")
EIGHT = cell("eight", batch=8)
BOTH = cell("both", runtime="onnxruntime==1.31.1", precision="int8-dynamic")


def document(*pairs, cells=(BASE, NEW, INT8, EIGHT, BOTH)):
    return told(make_document(*cells, comparisons=list(pairs)))


def terminal(found):
    text = io.StringIO()
    show(found.model_copy(update={"sentence": ""}), console=Console(file=text, width=160, color_system=None))
    return " ".join(text.getvalue().split())


def page_row(found, pair):
    cells = {one.id: one for one in found.cells}
    row = comparisons.table([pair], cells, lambda name: f"/{name}/").rows[0]
    return [f"{entry.sign.mark} {entry.sign.word}" if entry.sign else entry.text for entry in row]


@dataclass(frozen=True)
class Case:
    """One comparison; what its sentence says, and the sign, change and interval of the terminal and of the page."""

    pair: Comparison
    said: str
    terminal: tuple[str, str]
    page: tuple[str, str, str]
    cells: tuple[Cell, ...] = (BASE, NEW, INT8, EIGHT, BOTH)


CASES = {
    "slower": Case(
        compared(),
        "24 % slower than 1.29.0 on bench-1 (95 % interval 21–26 %, 8 rounds).",
        ("▲ 24 % slower", "21–26 %"),
        ("▲ slower", "24 % slower", "21–26 %"),
    ),
    "faster": Case(
        compared("int8", axis="precision", verdict="faster", ratio=0.8, ci_low=0.78, ci_high=0.83),
        "20 % faster than fp32 on bench-1 (95 % interval 17–22 %, 8 rounds).",
        ("▼ 20 % faster", "17–22 %"),
        ("▼ faster", "20 % faster", "17–22 %"),
    ),
    "much faster": Case(
        compared("int8", axis="precision", verdict="faster", ratio=0.17, ci_low=0.16, ci_high=0.18),
        "5.9× faster than fp32 on bench-1 (95 % interval 5.6–6.2×, 8 rounds).",
        ("▼ 5.9× faster", "5.6–6.2×"),
        ("▼ faster", "5.9× faster", "5.6–6.2×"),
    ),
    "undecided below one": Case(
        compared(verdict="undecided", ratio=0.99, ci_low=0.96, ci_high=1.08, rounds_needed=16),
        "is undecided (95 % interval 4 % faster to 8 % slower, 8 rounds). The smallest detectable change is 2.9 %; "
        "about 16 rounds",
        ("? undecided", "4 % faster to 8 % slower"),
        ("? undecided", "1 % faster", "4 % faster to 8 % slower"),
    ),
    "equal": Case(
        compared(verdict="equal", ratio=1.001, ci_low=0.998, ci_high=1.004),
        "as fast as 1.29.0 on bench-1, within ± 2 % (95 % interval 0.2 % faster to 0.4 % slower, 8 rounds).",
        ("= equal", "0.2 % faster to 0.4 % slower"),
        ("= equal", "0.1 % slower", "0.2 % faster to 0.4 % slower"),
    ),
    "more items of a larger batch": Case(
        compared("eight", axis="batch", ratio=7.62, ci_low=7.5, ci_high=7.75),
        "Batch 8 runs encoder (CPU, fp32, 1 thread, ONNX Runtime 1.29.0) with 5 % more items/s than batch 1 on bench-1 "
        "(95 % interval 3–7 %, 8 rounds).",
        ("▲ 5 % more items/s", "3–7 %"),
        ("▲ more items/s", "5 % more items/s", "3–7 %"),
    ),
    "fewer items of a larger batch": Case(
        compared("eight", axis="batch", ratio=8.4, ci_low=8.2, ci_high=8.6),
        "with 5 % fewer items/s than batch 1 on bench-1 (95 % interval 2–7 %, 8 rounds).",
        ("▼ 5 % fewer items/s", "2–7 %"),
        ("▼ fewer items/s", "5 % fewer items/s", "2–7 %"),
    ),
    "as many items": Case(
        compared("eight", axis="batch", ratio=8.0, ci_low=7.96, ci_high=8.04),
        "with as many items/s as batch 1 on bench-1, within ± 2 % (95 % interval 0.5 % fewer to 0.5 % more, 8 rounds).",
        ("= equal", "0.5 % fewer to 0.5 % more"),
        ("= equal", "0.0 % items/s", "0.5 % fewer to 0.5 % more"),
    ),
    "nobody knows how many items": Case(
        compared("eight", axis="batch", ratio=7.8, ci_low=7.4, ci_high=8.2, rounds_needed=8),
        "with more or fewer items/s than batch 1 on bench-1 is undecided (95 % interval 2 % fewer to 8 % more, 8 "
        "rounds). The smallest detectable change is 2.9 %.",
        ("? undecided", "2 % fewer to 8 % more"),
        ("? undecided", "3 % more items/s", "2 % fewer to 8 % more"),
    ),
    "failed parity": Case(
        compared("int8", axis="precision", verdict="faster", ratio=0.8, ci_low=0.78, ci_high=0.83),
        "int8-dynamic is faster but different: the outputs of int8 fail parity, so its speedup does not count. "
        "int8-dynamic runs encoder (CPU, batch 1, 1 thread, ONNX Runtime 1.29.0) 20 % faster than fp32 on bench-1 "
        "(95 % interval 17–22 %, 8 rounds).",
        ("▼ 20 % faster, wrong outputs", "17–22 %"),
        ("▼ faster", "20 % faster", "17–22 %"),
        cells=(BASE, INT8.model_copy(update={"parity": WRONG})),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_number_sign_and_interval_are_the_same_in_sentence_document_terminal_and_page(case):
    found = document(case.pair, cells=case.cells)
    assert case.said in found.sentence
    (pair,) = found.comparisons
    change = quantities.change_of(pair, {one.id: one for one in found.cells})
    if pair.items_verdict is None:
        assert (change.word, change.ratio, change.low, change.high) == (
            pair.verdict, pair.ratio, pair.ci_low, pair.ci_high
        )  # fmt: skip
    else:
        assert pair.items_verdict == change.word
        assert (pair.items_ratio, pair.items_ci_low, pair.items_ci_high) == change.figures
        assert (pair.ratio, pair.verdict) == (case.pair.ratio, case.pair.verdict)
    assert " ".join(case.terminal) in terminal(found)
    assert page_row(found, pair)[2:5] == list(case.page)
    (judged,) = [
        side.judge(side.Chosen("", 1, BASE, ""), side.Chosen("", 1, one, ""), [pair])
        for one in found.cells
        if one.id == pair.candidate
    ]
    assert (judged.change, judged.how.split(",")[0]) == case.page[1:]


def test_the_largest_decided_change_of_any_axis_leads_and_the_releases_come_second_with_their_operator():
    norm = OperatorChange(node="n", op_type="Norm", baseline_us=100.0, candidate_us=196.0, share=0.96)
    found = document(
        compared(operators=[norm]),
        compared("int8", axis="precision", verdict="faster", ratio=0.17, ci_low=0.16, ci_high=0.18),
        compared("both", baseline="int8", verdict="undecided", ratio=1.01, ci_low=0.98, ci_high=1.05),
    )
    assert found.sentence == (
        "int8-dynamic runs encoder (CPU, batch 1, 1 thread, ONNX Runtime 1.29.0) 5.9× faster than fp32 on bench-1 "
        "(95 % interval 5.6–6.2×, 8 rounds). ONNX Runtime 1.31.1 runs it (CPU, fp32, batch 1, 1 thread) 24 % slower "
        "than 1.29.0 (95 % interval 21–26 %, 8 rounds). Norm explains 96 % of it. 1 of 2 comparisons "
        "by runtime are slower. Undecided: 1 of 2 by runtime."
    )


def test_a_decided_change_leads_an_undecided_one_of_the_axis_that_is_asked_for_first():
    found = document(
        compared(verdict="undecided", ratio=0.99, ci_low=0.96, ci_high=1.08),
        compared("int8", axis="precision", verdict="faster", ratio=0.17, ci_low=0.16, ci_high=0.18),
    )
    first, second = found.sentence.split(" (95 % interval")[:2]
    assert first.endswith("5.9× faster than fp32 on bench-1")
    assert "Whether ONNX Runtime 1.31.1 runs it (" in second


def test_of_changes_whose_intervals_overlap_the_releases_lead():
    set_apart = compared("int8", axis="precision", ratio=1.25, ci_low=1.22, ci_high=1.28)
    assert document(set_apart, compared()).sentence.startswith("ONNX Runtime 1.31.1 runs encoder")
    clear = compared("int8", axis="precision", ratio=1.35, ci_low=1.3, ci_high=1.4)
    assert document(clear, compared()).sentence.startswith("int8-dynamic runs encoder")


def test_a_slowdown_between_releases_is_told_beside_a_larger_gain_between_them():
    gain = compared("both", baseline="int8", verdict="faster", ratio=0.5, ci_low=0.48, ci_high=0.52)
    found = document(gain, compared())
    assert re.match(r".* 2.00× faster than 1.29.0 .* 24 % slower than 1.29.0 ", found.sentence)


def test_a_cell_that_fails_parity_is_never_crowned_and_is_named_among_what_was_left_out():
    wrong = [
        one.model_copy(update={"parity": WRONG}) if one.id in ("int8", "both") else one
        for one in (BASE, NEW, INT8, BOTH)
    ]
    fast = {"axis": "precision", "verdict": "faster", "ratio": 0.17, "ci_low": 0.16, "ci_high": 0.18}
    found = document(
        compared(),
        compared("int8", **fast),
        compared("both", baseline="new", **fast),
        compared("both", baseline="int8", ratio=1.4, ci_low=1.3, ci_high=1.5),
        cells=wrong,
    )
    assert found.sentence.startswith("ONNX Runtime 1.31.1 runs encoder (CPU, fp32, batch 1, 1 thread) 24 % slower")
    assert "Left out, because outputs fail parity: 3 comparisons that int8, both won." in found.sentence


def test_where_every_output_is_wrong_the_first_sentence_says_so_and_nothing_more_was_left_out():
    wrong = [one.model_copy(update={"parity": WRONG}) for one in (BASE, NEW, INT8)]
    fast = compared("int8", axis="precision", verdict="faster", ratio=0.17, ci_low=0.16, ci_high=0.18)
    assert document(compared(), fast, cells=wrong).sentence == (
        "ONNX Runtime 1.31.1 runs encoder (CPU, fp32, batch 1, 1 thread) 24 % slower than 1.29.0 on bench-1 (95 % "
        "interval 21–26 %, 8 rounds). The outputs of base and new fail parity."
    )


def test_a_second_sentence_names_its_machine_where_that_is_another_one():
    far = [one.model_copy(update={"node": "pi"}) for one in (cell("b2"), cell("n2", runtime="onnxruntime==1.31.1"))]
    fast = compared("int8", axis="precision", verdict="faster", ratio=0.17, ci_low=0.16, ci_high=0.18)
    found = document(fast, compared("n2", baseline="b2"), cells=(BASE, INT8, *far))
    assert "runs it (CPU, fp32, batch 1, 1 thread) 24 % slower than 1.29.0 on pi (95 %" in found.sentence


def test_of_many_that_were_left_out_three_are_named():
    cells = [BASE, NEW, *(cell(f"c{n}", precision="int8-dynamic", parity=WRONG) for n in range(5))]
    fast = {"axis": "precision", "verdict": "faster", "ratio": 0.5, "ci_low": 0.48, "ci_high": 0.52}
    found = document(compared(), *(compared(f"c{n}", **fast) for n in range(5)), cells=cells)
    assert "Left out, because outputs fail parity: 5 comparisons that c0, c1, c2 and 2 more won." in found.sentence


def test_more_work_at_a_time_never_leads():
    streams = cell("streams", concurrency=4)
    slow = compared("streams", axis="concurrency", ratio=3.9, ci_low=3.8, ci_high=4.0)
    cells = (BASE, NEW, streams)
    assert document(slow, compared(), cells=cells).sentence.startswith("ONNX Runtime 1.31.1 runs")
    assert document(slow, cells=cells).sentence.startswith("4 streams runs encoder")


def test_different_models_that_were_not_measured_as_such_make_no_verdict():
    other = cell("other", model="decoder", batch=8)
    pair = compared("other")
    found = document(pair, cells=(BASE, other))
    assert found.sentence == "2 cells of encoder measured, none to compare."
    said = sentences.comparison_sentence(pair, {"base": BASE, "other": other})
    assert said.startswith("≠ not comparable: ")
    assert said.endswith("They are different models, encoder and decoder.")
    judged = side.judge(side.Chosen("", 1, BASE, ""), side.Chosen("", 2, other, ""), [])
    assert (judged.sign.word, judged.change, judged.ratio) == ("different models", "", None)


def test_axes_have_the_order_in_which_readers_ask_for_them():
    assert headlines.of_first_axis([], {}) is None
    by_batch = compared("eight", axis="batch", ratio=7.0, ci_low=6.9, ci_high=7.1)
    cells = {one.id: one for one in (BASE, NEW, EIGHT)}
    assert headlines.of_first_axis([by_batch, compared(verdict="equal")], cells).axis == "runtime"
    assert headlines.opening_comparison([by_batch, compared(verdict="equal")], cells).axis == "batch"
    assert headlines.opening_comparison([], cells) is None
    assert sorted(["novelty", "batch", "runtime"], key=headlines.axis_rank) == ["runtime", "batch", "novelty"]


def test_a_batch_of_unknown_size_or_a_comparison_without_figures_has_no_items():
    none = cell("none", batch=None)
    assert quantities.items_factor(BASE, none) is None
    lost = compared("eight", axis="batch", verdict="undecided", ratio=None, ci_low=None, ci_high=None)
    assert quantities.change_of(lost, {"base": BASE, "eight": EIGHT}) == quantities.Change("items", "undecided")
    assert quantities.Change("latency", "undecided").size == 0.0
    # without its cells it can be told of latency alone
    assert quantities.change_of(compared(), {}).figures == (1.24, 1.21, 1.26)


def test_items_are_turned_round_with_their_comparison():
    (pair,) = document(compared("eight", axis="batch", ratio=8.4, ci_low=8.2, ci_high=8.6)).comparisons
    back = turned(pair)
    assert back.items_verdict == "more"
    assert (back.items_ci_low, back.items_ratio, back.items_ci_high) == tuple(
        pytest.approx(1 / value) for value in (pair.items_ci_high, pair.items_ratio, pair.items_ci_low)
    )
    assert turned(compared()).items_verdict is None
