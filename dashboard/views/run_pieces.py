"""All of a run that its page needs and that is the same for every reader, made once for each of its revisions.

The part that fills in by itself is asked for again and again, and made once for equal rights.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Self, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.template.loader import render_to_string
from django.utils.cache import patch_cache_control
from django.utils.crypto import salted_hmac
from django.views.decorators.http import condition

from dashboard.cache import cached
from dashboard.figures.figure import Address
from dashboard.reading import facts, heatmap
from dashboard.reading import runs as reading
from dashboard.reading.cell import list_open_cells
from dashboard.reading.heatmap import HeatMap, Layout
from dashboard.views.lists import read_part_number
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.reasons import CellStatus
from farm.rules.presenting import sentences
from farm.rules.presenting.answers import Answer
from farm.rules.presenting.cell_counts import list_planned_cells
from farm.rules.presenting.headlines import rank_results
from farm.rules.presenting.stability import may_more_rounds_decide
from farm.runs import selectors
from farm.runs.selectors import pages
from farm.runs.selectors.compared_versions import collect_model_facts
from farm.runs.selectors.outlooks import Outlook, outlook_of
from farm.runs.selectors.pages import Revision, is_unchanged
from farm.runs.selectors.retention import explain_removed_timings
from farm.runs.states import RunState, activity_of

if TYPE_CHECKING:
    from farm.runs.models import Run


Made = TypeVar("Made")

# so often a page is made of a run that changes meanwhile
TRIES = 3
# stands where the forms of a page carry a token, which is the reader's own
TOKEN = "the-token-of-whoever-reads"
# of a larger run the tables come when they are scrolled to, and the one of a chart is its beginning
MAX_CELLS = 24


def find_outlook(seen: Revision) -> Outlook:
    """Read what an open run waits for and what is left of it, once in LIVE_PERIOD_S seconds for all readers; an
    empty outlook for a run that has ended."""
    if seen.state == RunState.FINISHED:
        return Outlook()
    key = (seen.run_id, seen.created_at, seen.revision, int(time.time() / settings.LIVE_PERIOD_S))
    return cached("pieces", "outlook", *key, make=lambda: outlook_of(seen.run_id))


def make_unchanged(fetch: Callable[[], "Run"], make: Callable[["Run"], Made]) -> Made:
    """Make something of a run that did not change meanwhile, so that all parts of a page show one state: fetch and
    make again where it did. After TRIES the last result is returned, changed or not."""
    for _ in range(TRIES):
        row = fetch()
        made = make(row)
        if row.state == RunState.FINISHED or is_unchanged(row):
            break
    return made


def render_live_part(request: HttpRequest, seen: Revision, outlook: Outlook, make: Callable[[], str]) -> HttpResponse:
    """Answer a page that asks what changed: 304 where nothing did, an order to reload the page once the run has
    ended, else what `make` writes, cached, with the reader's own token in its forms. `seen`: the run as this reader
    sees it now; `outlook`: what it waits for."""
    if seen.state == RunState.FINISHED:
        return HttpResponse(headers={"HX-Refresh": "true"})
    response = _render_unless_known(request, seen, outlook, make)
    patch_cache_control(response, private=True, no_cache=True)
    return response


def _make_etag(request: HttpRequest, seen: Revision, outlook: Outlook, make: Callable[[], str]) -> str:
    # of this session alone: the forms carry its token
    return (
        f'"{salted_hmac("dashboard.live_part", f"{request.session.session_key}:{seen}:{outlook.shown}").hexdigest()}"'
    )


@condition(etag_func=_make_etag)
def _render_unless_known(
    request: HttpRequest, seen: Revision, outlook: Outlook, make: Callable[[], str]
) -> HttpResponse:
    text = cached("pieces", "live", *astuple(seen), outlook.shown, request.GET.urlencode(), make=make)
    return HttpResponse(insert_token(request, text))


def insert_token(request: HttpRequest, text: str) -> str:
    return text.replace(TOKEN, get_token(request)) if TOKEN in text else text


TABLES = ("compared", "cells")
# always on the page; the tables of a large run are not, until somebody scrolls to them
ALWAYS = ("charts", "log")
# in the templates of sections, where the digest goes
MARK = 'data-at=""'


@dataclass(frozen=True, slots=True)
class Section:
    """A section as it stands on the page: its element has its name as id, and `at` as `data-at`."""

    name: str
    text: str
    at: str

    @classmethod
    def of(cls, request: HttpRequest, name: str, shown: Mapping[str, object]) -> Self:
        """Render the section `name` by its template, with TOKEN in its forms, and the digest of what it shows."""
        text = render_to_string(f"dashboard/parts/run_{name}.html", {**shown, "csrf_token": TOKEN}, request)
        at = sha256(text.encode()).hexdigest()[:12]
        return cls(name, text.replace(MARK, f'data-at="{at}"', 1), at)

    @property
    def out_of_band(self) -> str:
        return self.text.replace("data-at=", 'hx-swap-oob="true" data-at=', 1)


def read_held_sections(request: HttpRequest) -> dict[str, str]:
    """Read which state of each section the page has, by name: `have=charts.0a1b2c3d4e5f,log.…`; unknown names are
    skipped."""
    pairs = (entry.partition(".") for entry in request.GET.get("have", "").split(","))
    return {name: at for name, _, at in pairs if name in (*ALWAYS, *TABLES)}


def select_changed(sections: Iterable[Section], have: Mapping[str, str]) -> list[Section]:
    return [section for section in sections if have.get(section.name) != section.at]


@dataclass(frozen=True)
class Whole:
    """`everything`: cells that have ended, and planned ones; `states`: of those, by id; `facts`: the strip of facts;
    `activity`: what goes on in an open run, empty once it has ended."""

    document: Document
    everything: Sequence[Cell]
    states: Mapping[str, str]
    answer: Answer
    warnings: Sequence[str]
    facts: Sequence[facts.Fact]
    may_continue: bool
    activity: str
    by_id: Mapping[str, Cell]


def revision_key(row: "Run") -> tuple[object, ...]:
    return (row.pk, row.team_id, row.revision, row.state, row.created_at, row.finished_at)


def load_whole(row: "Run") -> Whole:
    return cached("large", "whole", *revision_key(row), make=lambda: _make_whole(row))


def _make_whole(row: "Run") -> Whole:
    document = load_document(row)
    opened, states, activity = _list_open_cells(row, document)
    by_id = {cell.id: cell for cell in document.cells}
    # of a cell that is measured the document may tell what is known so far
    everything = [*document.cells, *(cell for cell in opened if cell.id not in by_id)]
    to_measure = [cell for cell in list_planned_cells(everything) if cell.status != CellStatus.REFUSED]
    planned, ended = len(to_measure), sum(cell.id not in states for cell in to_measure)
    model = str(row.version.model)
    return Whole(
        document=document,
        everything=everything,
        states=states,
        answer=reading.make_opening(document, model=model, planned=planned, ended=ended, activity=activity),
        warnings=reading.list_warnings(document.cells),
        facts=facts.list_run_facts(document.model_copy(update={"cells": everything})),
        may_continue=any(cell.status == "done" for cell in document.cells)
        and may_more_rounds_decide(document.comparisons)
        and not explain_removed_timings(row),
        activity=activity,
        by_id=by_id,
    )


def load_document(row: "Run") -> Document:
    """Load the run's document, without operators but for the comparison that its first sentences explain."""
    document = selectors.document(row, with_operators=False)
    lead = rank_results(document.comparisons, {cell.id: cell for cell in document.cells}).leading
    if lead is None or not lead.change.is_decided or lead.comparison.operators:
        return document
    wanted = lead.comparison
    explained = [pages.add_operators(row, pair) if pair is wanted else pair for pair in document.comparisons]
    explained_document = document.model_copy(update={"comparisons": explained})
    return explained_document.model_copy(update={"sentence": _choose_sentence(row, explained_document)})


def _choose_sentence(row: "Run", document: Document) -> str:
    """What the run opens with; where it is kept, as the whole document says, which knows every cell's operators."""
    line = sentences.verdict_line(document)
    return row.headline if row.headline.startswith(line) else sentences.describe_run(document)


def _list_open_cells(row: "Run", document: Document) -> tuple[list[Cell], dict[str, str], str]:
    """Cells that have not ended, the state of each by its id, and what goes on in the run."""
    if row.state == RunState.FINISHED:
        return [], {}, ""
    known = {cell.id for cell in document.cells} - pages.open_cell_names(row)
    so_far = pages.launches_so_far(row)
    blocks = pages.unsettled_plans(row)
    opened, states = list_open_cells(
        blocks, known=known, models=collect_model_facts(row.versions) if blocks else (), so_far=so_far
    )
    return opened, states, activity_of([state for state, _ in blocks])


def draw_map(request: HttpRequest, row: "Run", whole_run: Whole, *, address: Address, part: str) -> tuple[HeatMap, str]:
    """Draw the map that the address asks for, and render it to HTML, once for all readers of this revision; returns
    both. `part`: which part of the page asks, empty for the whole page."""
    columns, metric = request.GET.get("columns", ""), request.GET.get("metric", "")

    def laid() -> Layout:
        return heatmap.make_layout(whole_run.everything, whole_run.document.comparisons, columns=columns)

    def make() -> tuple[HeatMap, str]:
        made = heatmap.draw_layout(
            cached("large", "layout", *revision_key(row), columns, make=laid),
            address,
            metric=metric,
            states=whole_run.states,
            part=read_part_number(request),
        )
        title = "Cells" if row.state == RunState.FINISHED else "Cells, filling in"
        shown = {"map": made, "map_title": title, "metrics": heatmap.METRICS, "address": address, "part": part}
        return made, render_to_string("dashboard/parts/run_map.html", shown, request)

    return cached("pieces", "map", *revision_key(row), request.GET.urlencode(), part, make=make)


def render_head(
    request: HttpRequest,
    row: "Run",
    tell: Callable[[], Mapping[str, object]],
    *,
    may_write: bool,
    outlook: Outlook | None,
) -> str:
    """Render the head of the page, once for all readers with the same rights, with TOKEN in its forms. `outlook`: what
    the run waits for, which changes without a new revision."""

    def make() -> str:
        return render_to_string("dashboard/parts/run_head.html", {**tell(), "csrf_token": TOKEN}, request)

    key = (*revision_key(row), may_write, outlook and outlook.shown, request.GET.urlencode())
    return cached("pieces", "head", *key, make=make)


def select_document(whole_run: Whole, shown: HeatMap) -> Document:
    """Cut the document of a large run to the cells in the map's rows and what they were compared with; the whole
    document where the map shows all rows."""
    if shown.part is None:
        return whole_run.document
    named = {cell.id for cell in shown.cells}
    compared: list[Comparison] = [
        comparison for comparison in whole_run.document.comparisons if comparison.candidate in named
    ]
    wanted = named | {comparison.baseline for comparison in compared}
    kept = [cell for cell in whole_run.document.cells if cell.id in wanted]
    return whole_run.document.model_copy(update={"cells": kept, "comparisons": compared})
