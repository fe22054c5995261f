"""The exit code of what was measured: 0 when every planned cell is done, 1 when one is not or none was measured."""

import pytest

from farm.contract.document import Document
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from onnxfarm.exit_codes import judge_cells, judge_cells_here, judge_plan
from onnxfarm.problems import GateFailed, Infrastructure, Usage
from tests.unit.client.test_screen import cell, document
from tests.unit.rules.making import make_model, plan_of

REFUSED = {
    "status": CellStatus.REFUSED,
    "reason": Reason(code=ReasonCode.PROVIDER_NOT_IN_BUILD, text="It is not in this build."),
    "p50_ms": None,
}


def measured(*statuses: CellStatus) -> Document:
    """A document of cells that ended so."""
    cells = [cell(f"c{number}", status=status) for number, status in enumerate(statuses, start=1)]
    return document(cells=cells, comparisons=[])


def test_a_document_whose_cells_are_all_done_passes() -> None:
    judge_cells(measured(CellStatus.DONE, CellStatus.DONE), strict=True)


def test_a_plan_of_which_nothing_can_be_measured_does_not_end_with_0() -> None:
    judge_plan(plan_of({"runtime": "1.31.1"}))
    with pytest.raises(GateFailed, match="Nothing of this"):
        judge_plan(plan_of({"runtime": "1.31.1", "batch": "8"}, model=make_model(batch=1)))
    with pytest.raises(Usage, match="does not exist"):
        judge_plan(plan_of({"runtime": "1.31.99"}))


def test_a_parity_that_fails_is_a_result_and_no_failure() -> None:
    judge_cells(document(cells=[cell("c1", parity={"verdict": "fail"})], comparisons=[]), strict=True)


def test_points_that_the_plan_refused_do_not_count_while_others_are_done() -> None:
    found = measured(CellStatus.DONE, CellStatus.REFUSED)
    judge_cells(found, strict=False)
    with pytest.raises(GateFailed, match=r"1 of 2 cells was refused \(--strict\)"):
        judge_cells(found, strict=True)


@pytest.mark.parametrize("status", [CellStatus.FAILED, CellStatus.TIMEOUT, CellStatus.CRASHED, CellStatus.CANCELLED])
def test_a_cell_that_did_not_end_well_fails_whatever_the_others_did(status: CellStatus) -> None:
    with pytest.raises(GateFailed, match=r"1 of 3 cells did not finish"):
        judge_cells(measured(CellStatus.DONE, status, CellStatus.REFUSED), strict=False)


def test_an_a_a_copy_is_counted_as_its_cell() -> None:
    twin = cell("c1.twin", twin_of="c1", status=CellStatus.TIMEOUT)
    with pytest.raises(GateFailed, match=r"1 of 2 cells did not finish"):
        judge_cells(document(cells=[cell("c1"), cell("c2"), twin], comparisons=[]), strict=False)
    lost = [cell(name, status=CellStatus.CANCELLED) for name in ("c1", "c2")]
    with pytest.raises(GateFailed, match=r"None of 2 cells could be measured"):
        judge_cells(document(cells=[*lost, twin], comparisons=[]), strict=False)


def test_nothing_measured_is_a_failure_even_where_every_cell_was_refused() -> None:
    with pytest.raises(GateFailed, match=r"^None of 2 cells could be measured\. It is not in this build\.$"):
        judge_cells(document(cells=[cell("c1", **REFUSED), cell("c2", **REFUSED)], comparisons=[]), strict=False)
    with pytest.raises(GateFailed, match=r"^Nothing was planned"):
        judge_cells(document(cells=[], comparisons=[]), strict=False)


def test_a_machine_that_can_install_no_runtime_is_to_blame_itself() -> None:
    reason = Reason(code=ReasonCode.RUNTIME_INSTALL_FAILED, text="No index.")
    lost = cell("c1", status=CellStatus.FAILED, reason=reason)
    with pytest.raises(Infrastructure, match="No runtime could be installed"):
        judge_cells_here(document(cells=[lost], comparisons=[]), strict=False)
    with pytest.raises(GateFailed, match="1 of 2 cells did not finish"):
        judge_cells_here(document(cells=[lost, cell("c2")], comparisons=[]), strict=False)
