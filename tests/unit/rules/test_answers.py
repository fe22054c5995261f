"""What a run answers at once: one headline of few words and one number, with its cause and certainty in a line."""

import re

import pytest

from farm.contract.cells import Runtime
from farm.contract.document_cells import Parity
from farm.contract.document_comparisons import OperatorChange
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.presenting.answers import MAX_WORDS, Answer, make_answer
from farm.rules.reporting.documents import add_sentence
from farm.rules.wording.numbers import unbroken
from tests.documents import make_cell, make_comparison, make_document

WRONG = Parity(verdict="fail", text="Output y is 0.5 off.")


def cell(name, **changes):
    return make_cell(name, **{"node": "bench-1", "p50_ms": 0.5, "p50_ci_ms": (0.49, 0.51), **changes})


def compared(candidate="new", **changes):
    known = {"baseline": "base", "ci_low": 1.21, "ci_high": 1.26, "smallest_detectable": 0.029}
    return make_comparison(**{**known, "candidate": candidate, **changes})


BASE, NEW = cell("base"), cell("new", runtime="onnxruntime==1.31.1")
INT8, EIGHT = cell("int8", precision="int8-dynamic"), cell("eight", batch=8)
NORM = OperatorChange(node="n", op_type="Norm", baseline_us=100.0, candidate_us=196.0, share=0.96)
LOST = cell(
    "lost", provider="CUDAExecutionProvider", batch=8, active_providers=["CPUExecutionProvider"],
    requested_providers=["CUDAExecutionProvider", "CPUExecutionProvider"],
)  # fmt: skip


def answer(*pairs, cells=(BASE, NEW, INT8, EIGHT)):
    return make_answer(add_sentence(make_document(*cells, comparisons=list(pairs))))


CASES = {
    "slower": (compared(), "encoder: ONNX Runtime 1.31.1 is 24 % slower than 1.29.0"),
    "faster": (
        compared("int8", axis="precision", verdict="faster", ratio=0.17, ci_low=0.16, ci_high=0.18),
        "encoder: int8-dynamic is 5.9× faster than fp32",
    ),
    "equal": (compared(verdict="equal", ratio=1.0), "encoder: ONNX Runtime 1.31.1 is as fast as 1.29.0, within ± 2 %"),
    "undecided": (
        compared(verdict="undecided", ratio=1.01, ci_low=0.96, ci_high=1.06),
        "encoder: undecided whether ONNX Runtime 1.31.1 is slower or faster than 1.29.0",
    ),
    "items": (
        compared("eight", axis="batch", ratio=7.62, ci_low=7.5, ci_high=7.75),
        "encoder: batch 8 has 5 % more items/s than batch 1",
    ),
    "rate": (compared(verdict_from="rate"), "encoder: ONNX Runtime 1.31.1 has a 19 % lower rate than 1.29.0"),
}


def test_how_many_cells_were_refused_stands_under_the_headline_once():
    """5 of 8 cells were refused, and the headline was of the other three."""
    gone = [cell(name, status="refused", p50_ms=None) for name in ("g1", "g2")]
    found = answer(compared(), cells=(BASE, NEW, *gone))
    assert found.because.endswith(" · 2 of 4 cells were refused")
    assert "refused" not in found.rest
    assert answer(compared(), cells=(BASE, NEW, gone[0])).because.endswith(" · 1 of 3 cells was refused")
    # what did not finish is named: a run told of neither
    ended = cell("g1", status="crashed", p50_ms=None, precision="fp16")
    assert answer(compared(), cells=(BASE, NEW, ended)).because.endswith(" · 1 of 3 cells did not finish (fp16)")
    # where nothing is compared, what was measured says it
    alone = add_sentence(make_document(BASE, NEW, *gone))
    assert alone.sentence.count("refused") == 1


@pytest.mark.parametrize(("pair", "headline"), CASES.values(), ids=list(CASES))
def test_a_headline_says_who_is_what_than_whom_with_one_number(pair, headline):
    found = answer(pair)
    assert found.headline == headline
    assert len(unbroken(headline).split(" ")) <= MAX_WORDS
    assert re.search(r"95 % interval .*, 8 rounds · .* on bench-1$", found.because)


def test_the_largest_of_several_is_told_as_the_largest_and_of_its_own_model_and_pair_alone():
    """1.31.1 was called 33 % slower: it was that in one of four settings, and 11 % in another."""
    more = cell("more", batch=8, runtime="onnxruntime==1.31.1")
    less = compared("more", baseline="eight", ratio=1.11, ci_low=1.1, ci_high=1.12)
    found = answer(compared(), less, cells=(BASE, NEW, EIGHT, more))
    assert found.headline == "encoder: ONNX Runtime 1.31.1 is up to 24 % slower than 1.29.0"
    for apart in (
        more.model_copy(update={"model": "other"}),
        more.model_copy(update={"runtime": Runtime.of("onnxruntime==1.30.0")}),
    ):
        assert "up to" not in answer(compared(), less, cells=(BASE, NEW, EIGHT, apart)).headline
    assert "up to" not in answer(compared(), compared("gone", baseline="eight", ratio=1.11)).headline


def test_a_name_that_makes_the_headline_long_is_left_out_of_it():
    named = [one.model_copy(update={"model": "a model of four words"}) for one in (BASE, NEW)]
    assert answer(compared(), cells=named).headline == "ONNX Runtime 1.31.1 is 24 % slower than 1.29.0"


def test_the_cause_comes_first_and_what_else_is_known_stands_below():
    found = answer(compared(operators=[NORM]), compared("int8", axis="precision", verdict="equal", ratio=1.0))
    assert found.because.startswith("Norm explains 96 % of the 100 µs · 95 % interval 21–26 %")
    # what is equal or undecided along other axes stands in their tables
    assert found.rest == ""
    others = [compared(verdict=word, ratio=1.01, ci_low=0.98, ci_high=1.05) for word in ("slower", "undecided")]
    told = "2 of 3 comparisons by runtime are slower. Undecided: 1 of 3 by runtime."
    assert answer(compared(operators=[NORM]), *others).rest == told


def test_settings_of_many_words_leave_the_headline_to_their_axis():
    far = cell("far", node=None, model="a name of more words than anybody would read in a headline")
    found = answer(compared("far", axis="model"), cells=(BASE, far))
    assert found.headline == "24 % slower by model"
    assert " beside " in found.because


def test_wrong_outputs_lead_by_their_settings_or_their_count():
    marked = [one.model_copy(update={"parity": WRONG}) for one in (INT8, NEW)]
    one = answer(compared(), cells=(BASE, NEW, marked[0]))
    assert (one.headline, one.because) == ("encoder: wrong outputs of int8-dynamic", WRONG.text)
    assert "ONNX Runtime 1.31.1 is 24 % slower than 1.29.0 (95 % interval" in one.rest
    every = answer(cells=marked)
    assert every.headline == "encoder: wrong outputs in 2 of 2 cells"


def test_a_provider_that_did_not_start_leads_before_a_gain_and_follows_a_slower_release():
    faster = compared("int8", axis="precision", verdict="faster", ratio=0.8, ci_low=0.78, ci_high=0.83)
    first = answer(faster, cells=(BASE, INT8, LOST))
    assert first.headline == "encoder: CUDA did not start in 1 of 1 cell"
    assert "int8-dynamic is 20 % faster than fp32 (95 % interval" in first.rest
    assert "CUDA did not start" in answer(compared(), cells=(BASE, NEW, LOST)).rest


def test_a_cell_alone_leads_with_its_time_and_says_of_which_clock():
    assert answer(cells=(BASE,)).headline == "encoder takes 0.50 ms ± 0.01"
    assert answer(cells=(cell("c", node=None),)).because.endswith("1 thread")
    samples = [0.18, 0.19, 0.2, 0.2, 0.2, 0.2, 0.21, 0.22]
    busy = cell("busy", cpu_p50_ms=0.2, cpu_samples_ms=samples, samples_ms=[0.5] * 8, disturbed_samples=8)
    assert answer(cells=(busy,)).headline.endswith("of processor time")


def test_what_has_no_figures_leads_with_its_first_sentence():
    unknown = compared(verdict="undecided", ratio=None, ci_low=None, ci_high=None)
    assert answer(unknown).headline == "encoder: ONNX Runtime 1.31.1 and 1.29.0 could not be compared"
    assert answer(cells=(BASE, NEW)).headline == "2 cells of encoder measured, none to compare."
    crashed = make_cell("c", status="failed", p50_ms=None, reason=Reason(code=ReasonCode.CRASHED, text="It ended."))
    assert answer(cells=(crashed,)).headline == "None of 1 cell was measured."
    assert Answer.from_sentences("One. Two. Three.").rest == "Two. Three."
