"""What a run opens with: number, sign and interval are those of the document, of the terminal and of the page."""

import io
from dataclasses import dataclass

import pytest
from rich.console import Console

from dashboard import axes
from dashboard.figures import figure
from dashboard.reading import comparisons, judging
from farm.contract.document_cells import Cell, Parity
from farm.contract.document_comparisons import Comparison, OperatorChange
from farm.rules.comparing import quantities
from farm.rules.comparing.sides import swap_sides
from farm.rules.presenting import headlines, sentences
from farm.rules.presenting.key_results import find_key_result
from farm.rules.reporting.documents import add_sentence
from onnxfarm.screen import show
from tests.documents import make_cell, make_comparison, make_document
from tests.unit.dashboard.draw_heat_map import make_heat_map

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
    return add_sentence(make_document(*cells, comparisons=list(pairs)))


def terminal(found):
    text = io.StringIO()
    show(found.model_copy(update={"sentence": ""}), console=Console(file=text, width=160, color_system=None))
    return " ".join(text.getvalue().split())


def page_row(found, pair):
    cells = {one.id: one for one in found.cells}
    row = comparisons.make_table([pair], cells, lambda name: f"/{name}/").rows[0]
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
        ("? undecided", "", "4 % faster to 8 % slower"),
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
        ("? undecided", "", "2 % fewer to 8 % more"),
    ),
    "failed parity": Case(
        compared("int8", axis="precision", verdict="faster", ratio=0.8, ci_low=0.78, ci_high=0.83),
        "Wrong outputs of int8-dynamic: 1 of 2 cells fails parity, so 1 change in their favour does not count.",
        ("▼ 20 % faster, wrong outputs", "17–22 %"),
        ("▼ faster", "20 % faster", "17–22 %"),
        cells=(BASE, INT8.model_copy(update={"parity": WRONG})),
    ),
    # `25.1× faster, wrong outputs` read as if the new release brought what it had removed
    "failed parity of the base alone": Case(
        compared("int8", axis="precision", verdict="faster", ratio=0.8, ci_low=0.78, ci_high=0.83),
        "Wrong outputs of fp32: 1 of 2 cells fails parity.",
        ("▼ 20 % faster, base: wrong outputs", "17–22 %"),
        ("▼ faster", "20 % faster", "17–22 %"),
        cells=(BASE.model_copy(update={"parity": WRONG}), INT8),
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
        judging.judge_pair(judging.ChosenCell("", 1, BASE, ""), judging.ChosenCell("", 1, one, ""), [pair])
        for one in found.cells
        if one.id == pair.candidate
    ]
    assert (judged.change, judged.evidence.split(",")[0]) == case.page[1:]


FASTER = {"axis": "precision", "verdict": "faster", "ratio": 0.17, "ci_low": 0.16, "ci_high": 0.18}
GAIN = compared("int8", **FASTER)


def wrong(*cells):
    return [one.model_copy(update={"parity": WRONG}) for one in cells]


def ran_on(cell, *providers, **changes):
    return cell.model_copy(update={"active_providers": list(providers), **changes})


def led(*pairs, cells=(BASE, NEW, INT8, EIGHT, BOTH)):
    """The first words of the sentence, the axis of the page, and the verdict of the row in lists."""
    found = document(*pairs, cells=cells)
    opening = headlines.rank_results(found.comparisons, {one.id: one for one in found.cells})
    return found.sentence, opening.axis, find_key_result(found).verdict


LOST = ran_on(
    cell("lost", provider="CUDAExecutionProvider", batch=8), "CPUExecutionProvider",
    requested_providers=["CUDAExecutionProvider", "CPUExecutionProvider"],
)  # fmt: skip
SLOWER_INT8 = compared("int8", axis="precision", ratio=1.5, ci_low=1.45, ci_high=1.55)
SLOWER_RELEASE = compared(ratio=1.03, ci_low=1.025, ci_high=1.035)
# what leads before what, in the order of the rule: a document has all from one on
EQUAL = compared(verdict="equal", ratio=1.0)
LADDER = (
    ((SLOWER_RELEASE, SLOWER_INT8, GAIN), (*wrong(INT8), LOST), "Wrong outputs of int8", "runtime", "wrong outputs"),
    ((SLOWER_RELEASE, SLOWER_INT8, GAIN), (INT8, LOST), "ONNX Runtime 1.31.1 runs", "runtime", "slower"),
    ((SLOWER_INT8, GAIN), (INT8, LOST), "CUDA did not start, CPU ran", "precision", "placed differently"),
    ((SLOWER_INT8, GAIN), (INT8,), "int8-dynamic runs encoder", "precision", "slower"),
    ((GAIN, EQUAL), (INT8,), "int8-dynamic runs encoder", "precision", "faster"),
    ((EQUAL,), (INT8,), "ONNX Runtime 1.31.1 runs", "runtime", "equal"),
)


@pytest.mark.parametrize(("pairs", "others", "first", "axis", "verdict"), LADDER)
def test_what_leads_has_one_order_for_sentences_pages_and_lists(pairs, others, first, axis, verdict):
    sentence, page, row = led(*pairs, cells=(BASE, NEW, *others))
    assert sentence.startswith(first)
    assert (page, row) == (axis, verdict)


def test_one_axis_is_told_with_its_largest_change_and_its_operator():
    norm = OperatorChange(node="n", op_type="Norm", baseline_us=100.0, candidate_us=196.0, share=0.96)
    found = document(
        compared(operators=[norm]),
        GAIN,
        compared("both", baseline="int8", verdict="undecided", ratio=1.01, ci_low=0.98, ci_high=1.05),
        compared("later", baseline="both", ratio=1.1, ci_low=1.05, ci_high=1.15),
        cells=(BASE, NEW, INT8, BOTH, cell("later", runtime="onnxruntime==1.32.0", precision="int8-dynamic")),
    )
    assert found.sentence == (
        "ONNX Runtime 1.31.1 runs encoder (CPU, fp32, batch 1, 1 thread) 24 % slower than 1.29.0 on bench-1 (95 % "
        "interval 21–26 %, 8 rounds). Norm explains 96 % of the 100 µs. 2 of 3 comparisons by runtime are slower. "
        "Undecided: 1 of 3 by runtime."
    )


def test_no_run_is_called_slower_on_its_page_and_faster_beside_it():
    """Headline, heat map, terminal, table and list were of the axis with the largest change, or of the releases."""
    pairs, cells = (SLOWER_RELEASE, GAIN), (BASE, NEW, INT8)
    sentence, axis, verdict = led(*pairs, cells=cells)
    by_id = {one.id: one for one in cells}
    shown = make_heat_map(cells, pairs, lambda name: f"/{name}/")
    assert "faster" not in sentence
    assert (axis, verdict) == ("runtime", "slower")
    assert shown.column_axis.name == axis
    assert comparisons.select_axis(pairs, "", by_id) == [SLOWER_RELEASE]
    of_precision = make_heat_map(cells[::2], [GAIN], lambda name: f"/{name}/")
    assert of_precision.column_axis.name == "precision"
    printed = terminal(document(*pairs, cells=cells))
    assert printed.index("slower") < printed.index("faster")


def test_outputs_that_are_wrong_are_named_by_their_settings_and_praised_nowhere():
    lost = compared("both", baseline="int8", ratio=1.4, ci_low=1.3, ci_high=1.5)
    pairs = (SLOWER_RELEASE, GAIN, compared("both", **{**FASTER, "baseline": "new"}), lost)
    sentence, _, _ = led(*pairs, cells=(BASE, NEW, *wrong(INT8, BOTH)))
    assert sentence.startswith(
        "Wrong outputs of int8-dynamic: 2 of 4 cells fail parity, so 2 changes in their favour do not count. ONNX "
        # a loss between two that are wrong alike stands
        "Runtime 1.31.1 runs encoder (CPU, int8-dynamic, batch 1, 1 thread) 40 % slower than 1.29.0"
    )
    by_release, _, _ = led(SLOWER_RELEASE, cells=(BASE, *wrong(NEW)))
    assert by_release.startswith("Wrong outputs of ONNX Runtime 1.31.1: 1 of 2 cells fails parity. ONNX Runtime")
    one_of_each, _, _ = led(cells=(BASE, NEW, *wrong(BOTH), INT8))
    assert one_of_each.startswith("Wrong outputs of int8-dynamic · 1.31.1: 1 of 4 cells fails parity. 4 cells of")
    # against a baseline whose outputs are wrong nothing is a loss
    assert led(compared(), cells=(*wrong(BASE), NEW))[0] == (
        "Wrong outputs of ONNX Runtime 1.29.0: 1 of 2 cells fails parity, so 1 change in their favour does not count."
    )
    # what does not count is in no count of those that agree
    half = cell("half", precision="fp16")
    losses = (compared("half", axis="precision", baseline=baseline) for baseline in ("base", "int8"))
    counting, _, _ = led(compared("int8", **{**FASTER, "axis": "precision"}), *losses, cells=(BASE, half, *wrong(INT8)))
    assert "so 2 changes in their favour do not count." in counting
    assert "comparisons by precision" not in counting
    every, _, _ = led(compared(), cells=wrong(BASE, NEW))
    assert every.startswith("Wrong outputs: 2 of 2 cells fail parity. ONNX Runtime 1.31.1 runs encoder")


def test_many_wrong_settings_are_listed_and_counted_and_a_twin_is_none():
    many = [cell(f"c{n}", batch=n, parity=WRONG) for n in range(2, 7)]
    right = cell("c9", runtime="onnxruntime==1.31.1", batch=3)
    twin = cell("t", batch=2, parity=WRONG, twin_of="c2")
    sentence, _, verdict = led(cells=(*many, right, twin))
    assert sentence.startswith("Wrong outputs of ONNX Runtime 1.29.0: 5 of 6 cells fail parity.")
    assert verdict == "wrong outputs"
    sentence, _, _ = led(cells=(BASE, *many))
    assert sentence.startswith("Wrong outputs of batch 2, batch 3 and 3 more: 5 of 6")


def test_a_provider_that_did_not_start_is_told_behind_a_slower_release_and_a_policy_loses_none():
    sentence, _, _ = led(SLOWER_RELEASE, cells=(BASE, NEW, LOST))
    assert sentence.endswith("rounds). CUDA did not start, CPU ran instead (1 of 1 cell: 1.29.0).")
    assert headlines.lost_providers(LOST) == ["CUDAExecutionProvider"]
    assert headlines.lost_providers(ran_on(LOST, "CPUExecutionProvider", policy="PREFER_GPU")) == []
    assert headlines.lost_providers(BASE) == []
    assert headlines.lost_providers(ran_on(BASE, "CPUExecutionProvider")) == []


def test_a_row_of_a_cell_with_wrong_outputs_is_marked_wherever_tables_name_it():
    marked, clean = (figure.name_column([axes.BY_NAME["precision"]], str).entry(one) for one in (*wrong(INT8), BASE))
    assert (marked.text, marked.sign.word) == ("int8-dynamic", "wrong outputs")
    assert clean.sign is None


def test_more_work_at_a_time_never_leads():
    streams = cell("streams", concurrency=4)
    slow = compared("streams", axis="concurrency", ratio=3.9, ci_low=3.8, ci_high=4.0)
    cells = (BASE, NEW, streams)
    assert document(slow, compared(), cells=cells).sentence.startswith("ONNX Runtime 1.31.1 runs")
    assert document(slow, cells=cells).sentence.startswith("4 streams runs encoder")


def test_different_models_that_were_not_measured_as_such_make_no_verdict():
    other = cell("other", model="decoder", model_sha256="b" * 64, batch=8)
    pair = compared("other")
    found = document(pair, cells=(BASE, other))
    assert found.sentence == "2 cells of encoder measured, none to compare."
    said = sentences.comparison_sentence(pair, {"base": BASE, "other": other})
    assert said.startswith("≠ not comparable: ")
    assert said.endswith("They are different models, encoder and decoder.")
    judged = judging.judge_pair(judging.ChosenCell("", 1, BASE, ""), judging.ChosenCell("", 2, other, ""), [])
    assert (judged.sign.word, judged.change, judged.ratio) == ("different models", "", None)


def test_axes_have_the_order_in_which_readers_ask_for_them():
    assert sorted(["novelty", "batch", "runtime"], key=headlines.axis_sort_key) == ["runtime", "batch", "novelty"]
    by_batch = compared("eight", axis="batch", verdict="undecided", ratio=8.0, ci_low=7.4, ci_high=8.6)
    open_ones = [by_batch, compared(verdict="equal", ratio=1.0)]
    assert headlines.rank_results(open_ones, {one.id: one for one in (BASE, NEW, EIGHT)}).axis == "runtime"
    assert headlines.rank_results([], {}).axis == ""


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
    back = swap_sides(pair)
    assert back.items_verdict == "more"
    assert (back.items_ci_low, back.items_ratio, back.items_ci_high) == tuple(
        pytest.approx(1 / value) for value in (pair.items_ci_high, pair.items_ratio, pair.items_ci_low)
    )
    assert swap_sides(compared()).items_verdict is None


def test_what_differs_in_nothing_else_is_named_by_its_node() -> None:
    """One node was "everywhere"."""
    cells = {one.id: one for one in (BASE, NEW)}
    assert comparisons.name_step(compared(), cells, axes.varying_axes(cells.values()))[0] == "bench-1"
    alone = {name: one.model_copy(update={"node": None}) for name, one in cells.items()}
    assert comparisons.name_step(compared(), alone, axes.varying_axes(alone.values()))[0] == "this machine"
