"""The heat map of a run's cells: a table of links, coloured by verdict or by a metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.core.paginator import Page, Paginator

from dashboard import axes
from dashboard.figures.figure import Address
from dashboard.reading.heatmap_fields import BY_NAME, METRICS, OPEN_STATES, Field, Grid, Metric, make_field
from dashboard.reading.heatmap_layout import MIN_ROWS, PART_FIELDS, Layout, LayoutRow
from farm.contract.document_cells import Cell
from farm.rules.presenting import prefills
from farm.rules.presenting.times import clock_title

# a map with at least so many columns is drawn narrow
COMPACT_FROM = 9
CLOCK = "by the clock"


@dataclass(frozen=True)
class Row:
    """A row of the map. `labels`: a label for each row axis; `fields`: a field for each column."""

    labels: tuple[str, ...]
    fields: Sequence[Field]


@dataclass(frozen=True)
class HeatMap:
    """The map as it is drawn. `choices`: the axes that the reader may choose for the columns; `cells`: the cells in the
    shown rows; `part`: of a large map, else None; `ends`: the smallest and the largest value in words, which have
    the lightest and the darkest colour, empty without values and for the metric `verdict`; `so_far`: which kind of time
    the cells show that are still being measured, since their verdicts may rest on another kind; empty where there are
    none; `is_compact`: drawn narrow, from COMPACT_FROM columns on; `shows_items_per_s`: in place of times, in a map by
    verdict whose columns are batches."""

    metric: Metric
    column_axis: axes.Axis
    row_axes: Sequence[axes.Axis]
    columns: Sequence[str]
    rows: Sequence[Row]
    choices: Sequence[axes.Axis] = ()
    cells: Sequence[Cell] = ()
    part: "Page[LayoutRow] | None" = None
    ends: Sequence[str] = ()
    so_far: str = ""

    @property
    def is_compact(self) -> bool:
        return len(self.columns) >= COMPACT_FROM

    @property
    def shows_items_per_s(self) -> bool:
        return self.metric.name == "verdict" and self.column_axis.name == "batch"

    @property
    def tokens_note(self) -> str:
        """Say that the shown times or items are of tokens; empty where no cell generates, and for other metrics."""
        is_timed = self.metric.name in ("verdict", "p50", "throughput")
        if not is_timed or not any(map(prefills.is_generated, self.cells)):
            return ""
        is_rate = self.shows_items_per_s or self.metric.name == "throughput"
        return f"Items are {prefills.ITEMS_NOTE}" if is_rate else "Times are of one new token"


def draw_layout(
    layout: Layout, address: Address, *, metric: str = "", states: Mapping[str, str] | None = None, part: int = 1
) -> HeatMap:
    """Draw the map, coloured by the metric with this name; an unknown name colours it by verdict. `address`: links a
    cell by its id; `states`: the states of cells that have not ended, by id; `part`: the number of the part of a large
    map that is drawn, from 1 on; for a number that does not exist the nearest part is drawn."""
    chosen = BY_NAME.get(metric, METRICS[0])
    if chosen.name != "verdict":
        chosen = replace(chosen, label=layout.times.heading(chosen.label, chosen.of, layout.cells))

    # cells that are still being measured have no verdict yet, so all of them show the same kind of time
    open_ids = {name for name, state in (states or {}).items() if state in OPEN_STATES} - layout.times.medians.keys()
    open_cells = [cell for cell in layout.cells if cell.id in open_ids and cell.samples_ms]
    times = layout.times.with_same_clock(open_cells)
    timed = [times.with_compared_figures(cell) for cell in layout.cells]

    values = [(chosen.read(cell) or 0.0, cell) for cell in timed]
    positive = sorted((pair for pair in values if pair[0] > 0), key=lambda pair: pair[0])
    ends = [positive[0], positive[-1]] if positive else []
    grid = Grid(
        layout=layout,
        metric=chosen,
        states=states or {},
        ends=[value for value, _ in ends],
        address=address,
        times=times,
        timed={cell.id: cell for cell in timed},
    )

    heads = layout.heads
    shown_part: Page[LayoutRow] | None = None
    if layout.is_large:
        parts = Paginator(layout.rows, max(MIN_ROWS, PART_FIELDS // len(heads)))
        shown_part = parts.get_page(max(1, part))
    rows = layout.rows if shown_part is None else shown_part.object_list
    return HeatMap(
        metric=chosen,
        column_axis=layout.column_axis,
        row_axes=layout.row_axes,
        columns=heads,
        rows=[
            Row(labels, [make_field(cells.get(head, ()), grid, heads[0]) for head in heads]) for labels, cells in rows
        ],
        choices=layout.choices,
        cells=[cell for _, groups in rows for cells in groups.values() for cell in cells],
        part=shown_part,
        ends=[chosen.write(cell) for _, cell in ends],
        so_far=clock_title([cell.id in times.by_processor for cell in open_cells], CLOCK) if open_cells else "",
    )
