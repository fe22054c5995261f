"""What labelled data say of a run at once: which precisions keep the accuracy of the upload, and how sure that is."""

import pytest

from farm.contract.document_cells import Accuracy
from farm.rules.presenting.accuracy_answers import answer_accuracy
from farm.rules.presenting.answers import MAX_WORDS
from tests.documents import make_cell, make_comparison

NAMES = ("int8-dynamic", "int8-static", "int8-entropy", "fp16-all", "bf16-all", "int4-all", "int4-block", "fp8-all")


def judged(name, value, difference=None, *, p=1.0, **more):
    bounds = {} if difference is None else {"difference_low": difference - 0.01, "difference_high": difference + 0.01}
    known = {"metric": "top1", "n": 360, "value": value, "ci_low": value - 0.015, "ci_high": value + 0.01, "p": p}
    return make_cell(name, precision=name, accuracy=Accuracy(**{**known, **bounds, "difference": difference, **more}))


FP32 = judged("fp32", 0.98)
CASES = {
    "a precision without a shown loss": (
        (FP32, judged("fp16", 0.979, -0.001)),
        "encoder: fp16 keeps the accuracy of the upload",
    ),
    "a precision with one": (
        (FP32, judged("int8", 0.5, -0.48, p=0.0)),
        "encoder: int8 loses accuracy: top-1 98.0 → 50.0 %",
    ),
    "both": (
        (FP32, judged("fp16", 0.979, -0.001), judged("int8", 0.5, -0.48, p=0.0), judged("int4", 0.4, -0.58, p=0.0)),
        "encoder: fp16 keeps accuracy, int8 and int4 lose it",
    ),
    "more than a headline holds": (
        (
            FP32,
            *(judged(name, 0.98, 0.0) for name in NAMES),
            *(judged(name, 0.5, -0.48, p=0.0) for name in ("int8", "int4", "int2", "int1")),
        ),
        "encoder: 8 of 12 precisions keep accuracy",
    ),
    "the upload alone": ((FP32,), "encoder: fp32 reaches 98.0 % top-1"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_headline_says_which_precisions_keep_accuracy(case: str) -> None:
    cells, headline = CASES[case]
    found = answer_accuracy(cells)
    assert found.headline == headline
    assert len(headline.split(" ")) <= MAX_WORDS


@pytest.mark.parametrize(
    ("cells", "headline"),
    [
        (
            (FP32, judged("fp16", 0.98, 0.0), judged("int8", 0.98, 0.0)),
            "encoder: fp16 and int8 keep accuracy; int8 is 5.2× slower",
        ),
        (
            (FP32, *(judged(name, 0.98, 0.0) for name in (*NAMES, "int8"))),
            "encoder: int8-dynamic, int8-static and 7 more keep accuracy; int8 is 5.2× slower",
        ),
        ((FP32, judged("int8", 0.5, -0.48, p=0.0)), "encoder: int8 loses accuracy: top-1 98.0 → 50.0 %"),
    ],
)  # fmt: skip
def test_what_keeps_accuracy_and_is_slower_is_not_praised_alone(cells, headline: str) -> None:
    """int8-dynamic kept the accuracy, and took five times as long."""
    sizes = {"int8": 5.2, "fp16": 1.1, "gone": 9.0}
    pairs = [
        make_comparison(
            baseline="fp32", candidate=name, axis="precision", ratio=size, ci_low=size - 0.2, ci_high=size + 0.2
        )
        for name, size in sizes.items()
    ]
    assert answer_accuracy(cells, pairs).headline == headline


def test_the_line_below_says_on_what_accuracy_was_judged() -> None:
    assert answer_accuracy([FP32, judged("fp16", 0.979, -0.001)]).because == "top-1 of 360 samples"


def test_the_worst_cell_of_a_precision_stands_for_it_whichever_way_is_better() -> None:
    better, worse = judged("int8", 12.0, 0.1), judged("int8", 19.0, 7.0, p=0.0)
    rates = [
        cell.model_copy(
            update={"id": f"c{number}", "accuracy": cell.accuracy.model_copy(update={"higher_is_better": False})}
        )
        for number, cell in enumerate((better, worse))
    ]
    assert answer_accuracy([FP32, *rates]).headline.startswith("encoder: int8 loses accuracy")


def test_nothing_is_said_of_cells_without_labelled_data() -> None:
    twin = judged("fp16", 0.9, -0.08).model_copy(update={"twin_of": "fp32"})
    assert (
        answer_accuracy(
            [make_cell("fp32"), judged("int8", 0.9).model_copy(update={"accuracy": Accuracy(metric="top1")}), twin]
        )
        is None
    )
