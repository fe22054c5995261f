"""A heat map in one call, as tests of its fields want it."""

from collections.abc import Iterable, Sequence
from typing import Any

from dashboard.figures.figure import Address
from dashboard.reading.heatmap import HeatMap, draw_layout
from dashboard.reading.heatmap_layout import make_layout
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison


def make_heat_map(
    cells: Iterable[Cell], comparisons: Sequence[Comparison], address: Address, *, columns: str = "", **how: Any
) -> HeatMap:
    return draw_layout(make_layout(cells, comparisons, columns=columns), address, **how)
