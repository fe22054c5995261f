"""How many cells of a run have ended: the same numbers on pages, in the API and in the terminal. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from farm.contract.document_cells import Cell
from farm.contract.reasons import CellStatus
from farm.rules.wording.numbers import counted

OPEN = "open"


def list_own(cells: Iterable[Cell]) -> list[Cell]:
    """List the cells that a plan counts, without A/A copies.

    One that a further block repeats, where its id ends in the block's number (`c1.b2`), counts once: the first one
    that was measured, under its own id, or else the first.
    """
    own: dict[str, Cell] = {}
    for cell in cells:
        name = cell.id.partition(".b")[0]
        is_better = name not in own or (own[name].status != CellStatus.DONE == cell.status)
        if cell.twin_of is None and is_better:
            own[name] = cell
    return list(own.values())


@dataclass(frozen=True, slots=True)
class CellCounts:
    """`by_status`: how many cells are in each state, `open` ones too. What was refused stands beside those that are
    measured, unless all were."""

    by_status: Mapping[str, int]

    @property
    def planned(self) -> int:
        asked = sum(self.by_status.values())
        return asked - self.by_status.get(CellStatus.REFUSED, 0) or asked

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
