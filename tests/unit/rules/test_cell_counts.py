"""How far the cells of a run are is counted once, by one rule."""

import pytest

from farm.rules.presenting.cell_counts import CellCounts


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
