"""How many cells of a run have ended: the same numbers on pages, in the API and in the terminal."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from farm.contract.document_cells import Cell
from farm.contract.reasons import CellStatus
from farm.rules.wording.numbers import counted

OPEN = "open"


def list_planned_cells(cells: Iterable[Cell]) -> list[Cell]:
    """List each planned cell once, without A/A copies.

    A further block that repeats a cell appends its number to the cell's id (`c1.b2`). Of such repeats the first that
    was measured is listed, or else the first.
    """
    listed: dict[str, Cell] = {}
    for cell in cells:
        planned_id = cell.id.partition(".b")[0]
        first = listed.get(planned_id)
        is_better = first is None or (first.status != CellStatus.DONE == cell.status)
        if cell.twin_of is None and is_better:
            listed[planned_id] = cell
    return list(listed.values())


@dataclass(frozen=True, slots=True)
class CellCounts:
    """`by_status`: how many cells are in each state, with `open` for those that have not ended.

    `ended` counts neither open nor refused ones.
    """

    by_status: Mapping[str, int]

    @property
    def planned(self) -> int:
        """The number of cells that were not refused; of all cells where all were."""
        total = sum(self.by_status.values())
        return total - self.by_status.get(CellStatus.REFUSED, 0) or total

    @property
    def ended(self) -> int:
        return sum(count for status, count in self.by_status.items() if status not in (OPEN, CellStatus.REFUSED))

    @property
    def words(self) -> str:
        """The counts in words: `1 of 3 cells ended, 5 refused`; once none is open, `2 of 3 cells done, 1 failed, 5
        refused`, and where all were refused, `0 of 5 cells done, 5 refused`."""
        is_over = not self.by_status.get(OPEN)
        number, verb = (self.by_status.get(CellStatus.DONE, 0), "done") if is_over else (self.ended, "ended")
        counts = {status: self.by_status.get(status, 0) for status in CellStatus if status != CellStatus.DONE}
        others = [f"{count} {status}" for status, count in counts.items() if count]
        return ", ".join((f"{number} of {counted(self.planned, 'cell')} {verb}", *others))
