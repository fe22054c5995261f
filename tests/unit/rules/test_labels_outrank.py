"""Labelled data say more of a cell's outputs than parity does, where they leave out that it lost anything."""

import pytest

from farm.contract.document_cells import Accuracy, Cell, Parity
from farm.rules.presenting import parities
from farm.rules.presenting.best import _is_right
from farm.rules.presenting.hardware import fault_of
from farm.rules.presenting.lines import is_wrong
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
    assert (is_wrong(cell), fault_of(cell), _is_right(cell)) == (not is_right, None if is_right else "wrong", is_right)


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
    assert parities.against(Parity.model_validate({**known, **found})) == words
