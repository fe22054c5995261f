"""Cells of two runs that measured one model file belong together, whatever each run calls it."""

import pytest

from dashboard.reading import judging
from dashboard.views.compared_runs import match_cells, write_headline
from farm.contract.document_cells import Cell, Parity
from farm.rules.comparing.quantities import change_between
from tests.documents import make_cell, make_comparison, make_document

OTHER = "b" * 64


def timed(name: str, model: str, ms: float, **changes: object) -> Cell:
    return make_cell(name, model=model, p50_ms=ms, samples_ms=[ms * (1 + n / 1000) for n in range(8)], **changes)


def test_a_model_that_the_other_run_calls_otherwise_is_matched_by_its_file() -> None:
    """ "clf" against "clf v1" and "clf v2" found no common cell, though the first file was the same."""
    before = make_document(timed("c1", "clf", 1.0))
    after = make_document(timed("c1", "clf v2", 3.0, model_sha256=OTHER), timed("c2", "clf v1", 1.2))
    both, alone = match_cells([before, after])
    assert (both.name, [cell and cell.model for cell in both.cells]) == ("clf", ["clf", "clf v1"])
    assert both.judged[0] is not None
    assert both.judged[0].ratio == pytest.approx(1.2, rel=1e-3)
    assert (alone.name, alone.cells[0]) == ("clf v2", None)
    assert write_headline([1, 2], [both, alone]) == "Only clf is in both runs: 20.0 % longer in run 2"


def test_another_file_of_another_name_stays_another_model() -> None:
    apart = match_cells(
        [make_document(timed("c1", "clf", 1.0)), make_document(timed("c1", "bert", 1.2, model_sha256=OTHER))]
    )
    assert write_headline([1, 2], apart).endswith("different models, shown side by side without a verdict")
    unknown = [timed("c1", model, 1.0, model_sha256="") for model in ("clf", "bert")]
    first, second = (judging.ChosenCell(f"{run}:c1", run, cell, "") for run, cell in enumerate(unknown))
    assert judging.judge_pair(first, second, []).sign.word == "different models"


@pytest.mark.parametrize("other", ["a" * 64, OTHER], ids=["one model", "two models"])
@pytest.mark.parametrize(("wrong", "run"), [((True, False), 7), ((False, True), 1)], ids=["base", "candidate"])
def test_the_headline_says_which_run_has_the_wrong_outputs(wrong: tuple[bool, bool], run: int, other: str) -> None:
    """It read alike whichever of the two was wrong, so that the right one was rejected."""
    fails = [{"parity": Parity(verdict="fail", text="Far off.")} if is_wrong else {} for is_wrong in wrong]
    name = "clf" if other == "a" * 64 else "bert"
    before = make_document(timed("c1", "clf", 1.0, **fails[0]), timed("c2", "clf", 1.0, batch=8))
    after = make_document(
        timed("c1", name, 1.2, model_sha256=other, **fails[1]), timed("c2", name, 1.2, model_sha256=other, batch=8)
    )
    said = write_headline([7, 1], match_cells([before, after]))
    assert said.startswith(f"Run 1 against run 7: wrong outputs of run {run} in 1 of 2 cells; ")


def test_one_file_under_two_names_of_a_run_is_judged() -> None:
    old, new = make_cell(), make_cell("c2", model="clf v1")
    assert change_between(make_comparison(), old, new).word == "slower"
    assert (
        change_between(make_comparison(), old, new.model_copy(update={"model_sha256": OTHER})).word == "not comparable"
    )
