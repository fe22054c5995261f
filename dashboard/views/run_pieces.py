"""All of a run that its page needs and that is the same for every reader, made once for each of its revisions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.http import HttpRequest
from django.template.loader import render_to_string

from dashboard.cache import kept
from dashboard.figures.figure import Address
from dashboard.reading import facts, heatmap, verdict
from dashboard.reading.heatmap import HeatMap, Layout
from dashboard.reading.open_cells import open_cells
from dashboard.views.lists import part_of
from dashboard.views.live_part import TOKEN
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.registry.selectors import model_file_digest
from farm.rules.presenting import sentences
from farm.rules.presenting.headlines import opening_of
from farm.runs import selectors
from farm.runs.selectors import live, pages
from farm.runs.states import RunState, activity_of

if TYPE_CHECKING:
    from farm.runs.models import Run

# of a larger run the tables come when they are scrolled to, and the one of a chart is its beginning
MOST_CELLS = 24


@dataclass(frozen=True)
class Whole:
    """`everything`: cells that have ended, and planned ones; `states`: of those, by id; `told`: the strip of facts;
    `activity`: what goes on in an open run, empty once it has ended."""

    document: Document
    everything: Sequence[Cell]
    states: Mapping[str, str]
    headline: str
    because: str
    warnings: Sequence[str]
    told: Sequence[facts.Fact]
    may_continue: bool
    activity: str
    by_id: Mapping[str, Cell]


def at_revision(row: "Run") -> tuple[object, ...]:
    """What tells a run at one revision from every other."""
    return (row.pk, row.team_id, row.revision, row.state, row.created_at, row.finished_at)


def whole(row: "Run") -> Whole:
    """The run at this revision."""
    return kept("large", "whole", *at_revision(row), make=lambda: _whole(row))


def _whole(row: "Run") -> Whole:
    document = with_opening_operators(row)
    opened, states, activity = _open(row, document)
    by_id = {cell.id: cell for cell in document.cells}
    # of a cell that is measured the document may tell what is known so far
    everything = [*document.cells, *(cell for cell in opened if cell.id not in by_id)]
    planned = len({cell.digest for cell in everything if cell.twin_of is None})
    ended = len({cell.digest for cell in document.cells if cell.twin_of is None and cell.id not in states})
    model = str(row.version.model)
    headline, because = verdict.opening(document, model=model, planned=planned, ended=ended, activity=activity)
    return Whole(
        document=document,
        everything=everything,
        states=states,
        headline=headline,
        because=because,
        warnings=verdict.warnings(document.cells),
        told=facts.of_run(document.model_copy(update={"cells": everything})),
        may_continue=any(cell.status == "done" for cell in document.cells),
        activity=activity,
        by_id=by_id,
    )


def with_opening_operators(row: "Run") -> Document:
    """The run's document. Operators are read of the comparison alone that its first sentences explain."""
    document = selectors.document(row, with_operators=False)
    lead = opening_of(document.comparisons, {cell.id: cell for cell in document.cells}).lead
    if lead is None or not lead.change.is_decided or lead.comparison.operators:
        return document
    wanted = lead.comparison
    explained = [pages.with_operators(row, one) if one is wanted else one for one in document.comparisons]
    told = document.model_copy(update={"comparisons": explained})
    return told.model_copy(update={"sentence": _sentence(row, told)})


def _sentence(row: "Run", told: Document) -> str:
    """What the run opens with; where it is kept, as the whole document says, which knows every cell's operators."""
    line = sentences.verdict_line(told)
    return row.headline if row.headline.startswith(line) else sentences.opening(told)


def _open(row: "Run", document: Document) -> tuple[list[Cell], dict[str, str], str]:
    """Cells that have not ended, the state of each by its id, and what goes on in the run."""
    if row.state == RunState.FINISHED:
        return [], {}, ""
    known = {cell.id for cell in document.cells} - pages.unended_cells(row)
    so_far = pages.launches_so_far(row)
    blocks = pages.open_blocks(row)
    opened, states = open_cells(
        blocks,
        known=known,
        model=str(row.version.model),
        model_sha256=model_file_digest(row.version),
        so_far=so_far,
    )
    return opened, states, activity_of([state for state, _ in blocks])


def map_of(request: HttpRequest, row: "Run", whole_run: Whole, *, address: Address, part: str) -> tuple[HeatMap, str]:
    """The map that the address asks for, and its piece of the page, the same for every reader of this revision."""
    columns, metric = request.GET.get("columns", ""), request.GET.get("metric", "")

    def laid() -> Layout:
        return heatmap.layout(whole_run.everything, whole_run.document.comparisons, columns=columns)

    def make() -> tuple[HeatMap, str]:
        made = heatmap.drawn(
            kept("large", "layout", *at_revision(row), columns, make=laid),
            address,
            metric=metric,
            states=whole_run.states,
            part=part_of(request),
        )
        title = "Cells" if row.state == RunState.FINISHED else "Cells, filling in"
        shown = {"map": made, "map_title": title, "metrics": heatmap.METRICS, "address": address, "part": part}
        return made, render_to_string("dashboard/parts/run_map.html", shown, request)

    return kept("pieces", "map", *at_revision(row), request.GET.urlencode(), part, make=make)


def head_of(
    request: HttpRequest,
    row: "Run",
    tell: Callable[[], Mapping[str, object]],
    *,
    may_write: bool,
    still: live.Standstill | None,
) -> str:
    """The head of the page, made once for all who may do the same with this revision, with TOKEN in its forms. `still`:
    what the run waits for, which no revision of its own tells of."""

    def make() -> str:
        return render_to_string("dashboard/parts/run_head.html", {**tell(), "csrf_token": TOKEN}, request)

    return kept("pieces", "head", *at_revision(row), may_write, still, request.GET.urlencode(), make=make)


def around(whole_run: Whole, shown: HeatMap) -> Document:
    """Of a large run: the document of the cells in the map's rows, with what they were compared with."""
    if shown.part is None:
        return whole_run.document
    named = {cell.id for cell in shown.cells}
    compared: list[Comparison] = [
        comparison for comparison in whole_run.document.comparisons if comparison.candidate in named
    ]
    wanted = named | {comparison.baseline for comparison in compared}
    kept = [cell for cell in whole_run.document.cells if cell.id in wanted]
    return whole_run.document.model_copy(update={"cells": kept, "comparisons": compared})
