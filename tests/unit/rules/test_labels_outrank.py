"""Labelled data say more of a cell's outputs than parity does, where they leave out that it lost anything."""

import pytest

from farm.contract.document_cells import Accuracy, Cell, EngineParity, Parity, ParityOutput
from farm.rules.presenting import parities
from farm.rules.presenting.best import _is_right
from farm.rules.presenting.hardware import Limits, find_fault
from farm.rules.presenting.headlines import explain_wrong
from farm.rules.presenting.lines import is_wrong, why_wrong
from farm.rules.presenting.sentences import describe_wrong_cells
from tests.documents import make_cell

FAILS = Parity(verdict="fail", text="Output 'y' is beyond.")


def judged(**figures: object) -> Accuracy:
    known = {"metric": "top1", "value": 0.9, "difference": 0.0, "difference_low": -0.01, "difference_high": 0.01}
    return Accuracy.model_validate({**known, **figures})


@pytest.mark.parametrize(
    ("accuracy", "is_right"),
    [
        (None, False),
        (judged(), True),
        (judged(difference_low=-0.03), False),
        (judged(difference=None), False),
        (judged(metric="mse", higher_is_better=False, value=1.0, difference_high=0.015), True),
        (judged(metric="mse", higher_is_better=False, value=1.0, difference_high=0.025), False),
    ],
)
def test_what_labelled_data_find_as_right_as_before_is_not_wrong(accuracy: Accuracy | None, is_right: bool) -> None:
    cell: Cell = make_cell("c1", parity=FAILS, accuracy=accuracy, p50_ms=1.0)
    assert (is_wrong(cell), find_fault(cell), _is_right(cell)) == (
        not is_right,
        None if is_right else "wrong",
        is_right,
    )


@pytest.mark.parametrize(
    ("accuracy", "is_shown"),
    [
        (None, False),
        (judged(value=None), False),
        (judged(difference_high=None), False),
        (judged(difference=-0.05, difference_low=-0.08, difference_high=-0.021), True),
        (judged(difference=-0.05, difference_low=-0.08, difference_high=-0.019), False),
        (
            judged(
                metric="mse",
                higher_is_better=False,
                value=1.1,
                difference=0.1,
                difference_low=0.05,
                difference_high=0.15,
            ),
            True,
        ),
        # where nothing was wrong before, no part of it can be lost
        (judged(metric="mse", higher_is_better=False, value=1.0, difference=1.0, difference_low=1.0), False),
        # a rate of errors is a share too: its loss is in points
        (judged(metric="wer", higher_is_better=False, value=0.053, difference=0.003, difference_low=0.002), False),
        # of a metric of the user's own, a loss is relative to what the baseline reached
        (judged(metric="psnr", value=39.9, difference=-0.1, difference_low=-0.2, difference_high=-0.05), False),
        (judged(metric="psnr", value=30.0, difference=-10.0, difference_low=-11.0, difference_high=-9.0), True),
    ],
)
def test_outputs_that_labelled_data_surely_show_to_be_worse_are_wrong_although_parity_passes(
    accuracy: Accuracy | None, is_shown: bool
) -> None:
    assert is_wrong(make_cell("c1", parity=Parity(verdict="pass"), accuracy=accuracy)) == is_shown


@pytest.mark.parametrize(
    ("accuracy", "engines", "why"),
    [
        (None, [], FAILS.text),
        (judged(), [EngineParity(cell="c0", verdict="fail", text="other shapes")], "other shapes"),
        (judged(difference=-0.5, difference_low=-0.6, difference_high=-0.4, text="lower"), [], FAILS.text),
        (judged(), [], ""),
    ],
)
def test_wrong_outputs_say_what_shows_it(accuracy: Accuracy | None, engines: list[EngineParity], why: str) -> None:
    assert why_wrong(make_cell("c1", parity=FAILS, accuracy=accuracy, engines=engines)) == why


def far(cell_id: str, max_abs: float | None, **settings: object) -> Cell:
    output = ParityOutput(name="y", max_abs=max_abs, violations=4)
    return make_cell(cell_id, parity=Parity(verdict="fail", text=f"{max_abs} off.", outputs=[output]), **settings)


def test_of_several_wrong_cells_the_one_furthest_off_says_why_by_its_name() -> None:
    """Of fp16 and int8-dynamic the first one's difference, a fifth of the largest, stood as the largest."""
    half, int8 = far("c1", 9.87e-05, precision="fp16"), far("c2", 0.000518, precision="int8-dynamic")
    lost = judged(value=0.5, difference=-0.4, difference_low=-0.5, difference_high=-0.3, text="lower")
    lossy = make_cell("c3", precision="int4", accuracy=lost)
    assert explain_wrong([half, lossy, int8]) == "int8-dynamic: 0.000518 off."
    assert explain_wrong([half, int8, far("c4", None, precision="bf16")]) == "bf16: None off."
    assert explain_wrong([half, half]) == "9.87e-05 off."
    less = make_cell("c4", accuracy=judged(value=0.8, difference=-0.1, difference_low=-0.15, difference_high=-0.05))
    assert describe_wrong_cells([less, lossy], "", measured=2).endswith(
        "2 of 2 cells lose accuracy, worst top-1 90.0 → 50.0 %"
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"reference": "onnxruntime==1.31.1 CPU, no optimisations"}, "same as unoptimised 1.31.1"),
        ({"reference": "onnxruntime==1.31.1 CPU, no optimisations", "atol": None}, "close to unoptimised 1.31.1"),
        ({"reference": "expected"}, "same as expected"),
        ({"reference": None}, ""),
        ({"reference": "expected", "verdict": "fail"}, ""),
    ],
)
def test_what_passes_says_what_it_is_held_against(found: dict[str, object], words: str) -> None:
    known = {"verdict": "pass", "atol": 1e-5}
    assert parities.describe_reference(Parity.model_validate({**known, **found})) == words


def test_a_loss_that_was_asked_for_is_no_fault() -> None:
    lossy = make_cell("c1", accuracy=judged(difference=-0.05, difference_low=-0.08, difference_high=-0.03), p50_ms=1.0)
    assert (find_fault(lossy), find_fault(lossy, Limits(max_loss=0.1))) == ("wrong", None)
