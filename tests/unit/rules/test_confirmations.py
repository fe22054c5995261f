"""A watch's confirming block traces its rounds: an alert is explained by operators that have verdicts."""

from typing import Any

from farm.contract.document import Document
from farm.rules.comparing.sides import turned
from farm.rules.presenting import sentences
from farm.rules.searches.confirmation import explained_by
from tests.unit.rules.test_sides import GELU, measured

SLOWER = {"ratio": 1.4, "ci_low": 1.3, "ci_high": 1.5, "verdict": "slower", "rounds": 16}


def confirming(**older: Any) -> Document:
    """A second document of the same comparison, whose operators were judged over 16 rounds."""
    document = measured("slower", 1.2, **older)
    judged = GELU.model_copy(update={"baseline_us": 250.0, "candidate_us": 350.0, **SLOWER})
    update = {"operators": [judged], "traces": 16}
    return document.model_copy(update={"comparisons": [document.comparisons[0].model_copy(update=update)]})


def test_the_explanation_of_a_confirmed_change_is_that_of_the_operators_that_were_judged() -> None:
    first = measured("slower", 1.25)
    (one,) = explained_by(first, confirming()).comparisons
    assert (one.ratio, one.verdict, one.traces) == (1.25, "slower", 16)
    assert one.operators[0].verdict == "slower"
    assert "(1 of 1 significant on their own over 16 rounds)" in (sentences.explanation(one) or "")


def test_a_comparison_that_was_confirmed_from_its_other_side_is_explained_as_well() -> None:
    first = measured("faster", 0.8)
    (other,) = first.comparisons
    (one,) = explained_by(first.model_copy(update={"comparisons": [turned(other)]}), confirming()).comparisons
    assert one.operators[0].verdict == "faster"
    assert (one.operators[0].baseline_us, one.operators[0].candidate_us) == (350.0, 250.0)


def test_a_block_that_was_asked_of_the_very_node_confirms_one_that_was_asked_of_any() -> None:
    again = confirming()
    cells = [cell.model_copy(update={"hardware": f"node:{cell.node}"}) for cell in again.cells]
    (one,) = explained_by(measured("slower", 1.25), again.model_copy(update={"cells": cells})).comparisons
    assert one.operators[0].verdict == "slower"


def test_operators_that_explain_stand_for_those_that_do_not() -> None:
    first = measured("slower", 1.25)
    silent = [GELU.model_copy(update={"share": None})]
    (told,) = first.comparisons
    few = told.model_copy(update={"operators": silent, "traces": 2})
    # no verdicts, and a share that the first block has not
    (one,) = explained_by(first.model_copy(update={"comparisons": [few]}), measured("slower", 1.2)).comparisons
    assert (one.operators[0].share, one.traces) == (0.75, 5)
    (again,) = confirming().comparisons
    doubtful = [change.model_copy(update={"share": None}) for change in again.operators]
    unsure = confirming().model_copy(update={"comparisons": [again.model_copy(update={"operators": doubtful})]})
    assert explained_by(first, unsure) == first


def test_another_cell_or_one_whose_operators_were_not_judged_explains_nothing() -> None:
    first = measured("slower", 1.25)
    assert explained_by(first, confirming(batch=8)) == first
    assert explained_by(first, measured("slower", 1.2)) == first
