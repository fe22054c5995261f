"""The exit code of what was measured, one rule for every command that measures cells.

0: every planned cell is done, whatever the verdicts and parities say. 1: one failed, timed out, crashed or was
cancelled, or none could be measured. Points that were refused do not count while others are done, unless asked to.
"""

from typing import TYPE_CHECKING

from farm.contract.document import Document
from farm.contract.reasons import CellStatus, ReasonCode
from farm.rules.presenting.cell_counts import list_own
from farm.rules.wording.numbers import counted
from onnxfarm.problems import GateFailed, Infrastructure, Usage

if TYPE_CHECKING:
    from farm.contract.api.runs import RunOut
    from farm.rules.planning.plans import Plan


def judge_cells(document: Document, *, strict: bool) -> None:
    """Raises GateFailed unless every planned cell is done; with `strict`, also where a cell was refused."""
    ended = (CellStatus.DONE, CellStatus.REFUSED)
    cells = list_own(document.cells)
    # an A/A copy is no cell of its own: where it does not end well, its cell has not
    unfinished = {(cell.twin_of or cell.id).partition(".b")[0] for cell in document.cells if cell.status not in ended}
    refused = [cell for cell in cells if cell.status == CellStatus.REFUSED]
    if not cells:
        raise GateFailed("Nothing was planned, so nothing was measured: see the matrix's `exclude`.")
    if not any(cell.status == CellStatus.DONE for cell in cells):
        reason = next((cell.reason.text for cell in cells if cell.reason is not None), "")
        raise GateFailed(f"None of {counted(len(cells), 'cell')} could be measured. {reason}".strip())
    if unfinished:
        raise GateFailed(f"{_share(len(unfinished), len(cells))} did not finish; the reasons are above.")
    if strict and refused:
        were = "was" if len(refused) == 1 else "were"
        raise GateFailed(f"{_share(len(refused), len(cells))} {were} refused (--strict).")


def judge_cells_here(document: Document, *, strict: bool) -> None:
    """Judge cells measured on this machine as `judge_cells` does.

    Raises GateFailed, and Infrastructure where this machine could install no runtime at all.
    """
    codes = {cell.reason.code if cell.reason else None for cell in document.cells if cell.status != CellStatus.DONE}
    is_any_done = any(cell.status == CellStatus.DONE for cell in document.cells)
    if not is_any_done and codes == {ReasonCode.RUNTIME_INSTALL_FAILED}:
        raise Infrastructure("No runtime could be installed; the reasons are above.")
    if document.cells and not is_any_done:
        raise GateFailed(
            f"None of {counted(len(list_own(document.cells)), 'cell')} could be measured; the reasons are above."
        )
    judge_cells(document, strict=strict)


def judge_plan(plan: "Plan") -> None:
    """Raises Usage where a farm would not take the plan, and GateFailed where nothing of it can be measured."""
    if plan.problem:
        raise Usage(plan.problem)
    if not plan.blocks:
        raise GateFailed("Nothing of this can be measured: the reasons are in the plan.")


def judge_run(document: Document, run: "RunOut", *, strict: bool = False) -> None:
    """Judge the cells of a farm's run that has ended. Raises GateFailed, also where somebody cancelled the run."""
    judge_cells(document, strict=strict)
    if run.outcome == "cancelled":
        raise GateFailed(f"Run {run.id} was cancelled before its end.")


def _share(part: int, whole: int) -> str:
    return f"{part} of {counted(whole, 'cell')}"
