"""How far the cells of a run are is counted once, by one rule."""

import pytest

from farm.rules.presenting import cell_counts, sentences
from farm.rules.presenting.cell_counts import CellCounts
from farm.rules.presenting.key_results import find_key_result
from tests.documents import make_cell, make_document


@pytest.mark.parametrize(
    ("by_status", "numbers", "words"),
    [
        ({"open": 3, "refused": 5}, (0, 3), "0 of 3 cells ended, 5 refused"),
        ({"open": 1, "done": 1, "crashed": 1}, (2, 3), "2 of 3 cells ended, 1 crashed"),
        # "3 of 3 cells ended; 5 refused" stood on the page and "3/8 cells" in the terminal
        ({"done": 3, "refused": 5}, (3, 3), "3 of 3 cells done, 5 refused"),
        ({"done": 1, "cancelled": 1}, (2, 2), "1 of 2 cells done, 1 cancelled"),
        ({"refused": 2}, (0, 2), "0 of 2 cells done, 2 refused"),
    ],
)
def test_what_was_refused_stands_beside_the_cells_that_are_measured(
    by_status: dict[str, int], numbers: tuple[int, int], words: str
) -> None:
    counts = CellCounts(by_status)
    assert ((counts.ended, counts.planned), counts.words) == (numbers, words)


def test_a_cell_that_a_further_block_repeats_counts_once_and_a_copy_of_itself_never() -> None:
    """A cancelled run of 18 cells was said to be of 19 on its page, and of 18 in lists."""
    cells = [
        make_cell("c1", status="cancelled"),
        make_cell("c2", status="cancelled"),
        make_cell("a1", twin_of="c1"),
        make_cell("c1.b2"),
        make_cell("c3", status="cancelled"),
    ]
    assert [cell.id for cell in cell_counts.list_planned_cells(cells)] == ["c1.b2", "c2", "c3"]
    cells[3] = make_cell("c1.b2", status="cancelled")
    assert [cell.id for cell in cell_counts.list_planned_cells(cells)] == ["c1", "c2", "c3"]
    document = make_document(*cells)
    assert find_key_result(document).step == "none of 3 cells measured"
    assert "None of 3 cells was measured" in sentences.verdict_line(document)
