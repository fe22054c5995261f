"""Decides the exit code of commands that measure cells.

0: every planned cell is done, whatever its verdicts and parities. 1: a cell failed, timed out, crashed or was
cancelled, or no cell was measured. Refused points count only with --strict, or if no cell is done.
"""

from typing import TYPE_CHECKING

from farm.contract.document import Document
from farm.contract.reasons import CellStatus, ReasonCode
from farm.rules.presenting.cell_counts import list_planned_cells
from farm.rules.wording.numbers import counted
from onnxfarm.problems import GateFailed, Infrastructure, Usage

if TYPE_CHECKING:
    from farm.contract.api.runs import RunOut
    from farm.rules.planning.plans import Plan


def judge_cells(document: Document, *, strict: bool) -> None:
    """Raise GateFailed if a cell of the document did not finish, if none is done, or if there are no cells.

    Refused cells are allowed if at least one other is done, unless `strict`. A cell whose A/A copy did not finish did
    not finish either.
    """
    ended = (CellStatus.DONE, CellStatus.REFUSED)
    cells = list_planned_cells(document.cells)
    # an A/A copy counts as its cell: if the copy is unfinished, so is the cell
    unfinished = {(cell.twin_of or cell.id).partition(".b")[0] for cell in document.cells if cell.status not in ended}
    refused = [cell for cell in cells if cell.status == CellStatus.REFUSED]
    if not cells:
        raise GateFailed("Nothing was planned, so nothing was measured: see the matrix's `exclude`.")
    if not any(cell.status == CellStatus.DONE for cell in cells):
        reason = next((cell.reason.text for cell in cells if cell.reason is not None), "")
        raise GateFailed(f"None of {counted(len(cells), 'cell')} could be measured. {reason}".strip())
    if unfinished:
        raise GateFailed(f"{_count_of(len(unfinished), len(cells))} did not finish; the reasons are above.")
    if strict and refused:
        verb = "was" if len(refused) == 1 else "were"
        raise GateFailed(f"{_count_of(len(refused), len(cells))} {verb} refused (--strict).")


def judge_cells_here(document: Document, *, strict: bool) -> None:
    """Judge cells that were measured on this machine, as `judge_cells` does. Raises GateFailed.

    Raises Infrastructure if every cell failed because its runtime could not be installed.
    """
    codes = {cell.reason.code if cell.reason else None for cell in document.cells if cell.status != CellStatus.DONE}
    is_any_done = any(cell.status == CellStatus.DONE for cell in document.cells)
    if not is_any_done and codes == {ReasonCode.RUNTIME_INSTALL_FAILED}:
        raise Infrastructure("No runtime could be installed; the reasons are above.")
    if document.cells and not is_any_done:
        cells = counted(len(list_planned_cells(document.cells)), "cell")
        raise GateFailed(f"None of {cells} could be measured; the reasons are above.")
    judge_cells(document, strict=strict)


def judge_plan(plan: "Plan") -> None:
    """Raise Usage if a farm would refuse the plan, and GateFailed if nothing in it can be measured."""
    if plan.problem:
        raise Usage(plan.problem)
    if not plan.blocks:
        raise GateFailed("Nothing of this can be measured: the reasons are in the plan.")


def judge_run(document: Document, run: "RunOut", *, strict: bool = False) -> None:
    """Judge the cells of a farm's run that has ended, as `judge_cells` does. Raises GateFailed.

    A cancelled run raises it too, even if all its cells are done.
    """
    judge_cells(document, strict=strict)
    if run.outcome == "cancelled":
        raise GateFailed(f"Run {run.id} was cancelled before its end.")


def _count_of(part: int, whole: int) -> str:
    return f"{part} of {counted(whole, 'cell')}"
