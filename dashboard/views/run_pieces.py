"""The parts of a run's page that are cached by the run's revision, because they are the same for every reader.

The page of an open run polls for changes. Responses to these requests are cached for all readers with equal rights.
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
from dashboard.reading import facts, heatmap, heatmap_fields, heatmap_layout, openings
from dashboard.reading.cell import list_open_cells
from dashboard.reading.heatmap import HeatMap
from dashboard.views.lists import read_part_number
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.presenting import sentences
from farm.rules.presenting.answers import Answer
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

# how often a page is made at most, where its run changes meanwhile
TRIES = 3
# a placeholder in cached forms for the CSRF token, which differs between readers
TOKEN = "csrf-token-placeholder"
# the tables of a run with more cells load when the reader scrolls to them, and the table of its chart is cut
MAX_CELLS = 24


def find_outlook(seen: Revision) -> Outlook:
    """Load what an open run waits for and how long it still takes, cached for up to LIVE_PERIOD_S seconds. A run that
    has ended has an empty outlook. `seen`: the run's revision."""
    if seen.state == RunState.FINISHED:
        return Outlook()
    key = (seen.run_id, seen.created_at, seen.revision, int(time.time() / settings.LIVE_PERIOD_S))
    return cached("pieces", "outlook", *key, make=lambda: outlook_of(seen.run_id))


def make_unchanged(fetch: Callable[[], "Run"], make: Callable[["Run"], Made]) -> Made:
    """Fetch a run and call `make` with it, and repeat both where the run changed meanwhile, so that all parts of a page
    show the same state. After TRIES attempts the last result is returned anyway."""
    for _ in range(TRIES):
        row = fetch()
        made = make(row)
        if row.state == RunState.FINISHED or is_unchanged(row):
            break
    return made


def render_live_part(request: HttpRequest, seen: Revision, outlook: Outlook, make: Callable[[], str]) -> HttpResponse:
    """Respond to a page that polls for changes: with 304 where nothing changed, with a header that reloads the page
    once the run has ended, else with the text that `make` returns. The text is cached, and the reader's own CSRF token
    is put into its forms. `seen`: the run's revision and the reader's rights; `outlook`: what the run waits for."""
    if seen.state == RunState.FINISHED:
        return HttpResponse(headers={"HX-Refresh": "true"})
    response = _render_unless_known(request, seen, outlook, make)
    patch_cache_control(response, private=True, no_cache=True)
    return response


def _make_etag(request: HttpRequest, seen: Revision, outlook: Outlook, make: Callable[[], str]) -> str:
    # the ETag depends on the session, because the forms contain its CSRF token
    about = f"{request.session.session_key}:{seen}:{outlook.shown}"
    return f'"{salted_hmac("dashboard.live_part", about).hexdigest()}"'


@condition(etag_func=_make_etag)
def _render_unless_known(
    request: HttpRequest, seen: Revision, outlook: Outlook, make: Callable[[], str]
) -> HttpResponse:
    text = cached("pieces", "live", *astuple(seen), outlook.shown, request.GET.urlencode(), make=make)
    return HttpResponse(insert_token(request, text))


def insert_token(request: HttpRequest, text: str) -> str:
    return text.replace(TOKEN, get_token(request)) if TOKEN in text else text


TABLES = ("compared", "cells")
# sections that are on the page from the start, unlike the tables of a large run
ALWAYS = ("charts", "log")
# templates of sections have this empty attribute, which is replaced by one with the digest
DIGEST_ATTRIBUTE = 'data-at=""'


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page as HTML. Its element has the section's name as id and its digest as `data-at`."""

    name: str
    text: str
    digest: str

    @classmethod
    def of(cls, request: HttpRequest, name: str, shown: Mapping[str, object]) -> Self:
        """Render the template of the section `name`, with TOKEN in its forms. `shown`: the context."""
        text = render_to_string(f"dashboard/parts/run_{name}.html", {**shown, "csrf_token": TOKEN}, request)
        digest = sha256(text.encode()).hexdigest()[:12]
        return cls(name, text.replace(DIGEST_ATTRIBUTE, f'data-at="{digest}"', 1), digest)

    @property
    def out_of_band(self) -> str:
        """Return the HTML with the attribute that makes htmx replace the section on the reader's page."""
        return self.text.replace("data-at=", 'hx-swap-oob="true" data-at=', 1)


def read_section_digests(request: HttpRequest) -> dict[str, str]:
    """Read from `have=charts.0a1b2c3d4e5f,log.…` the digests of the sections on the reader's page, by name. Unknown
    names are skipped."""
    pairs = (entry.partition(".") for entry in request.GET.get("have", "").split(","))
    return {name: digest for name, _, digest in pairs if name in (*ALWAYS, *TABLES)}


def select_changed(sections: Iterable[Section], digests: Mapping[str, str]) -> list[Section]:
    return [section for section in sections if digests.get(section.name) != section.digest]


@dataclass(frozen=True)
class RunContent:
    """The content of a run's page that is the same for all readers. `document`: has the cells with results; `cells`:
    has the open cells too; `states`: the states of open cells, by id; `may_continue`: more rounds can be measured, and
    could decide an undecided comparison if there is any; `activity`: the state of an open run, empty once it has
    ended."""

    document: Document
    cells: Sequence[Cell]
    states: Mapping[str, str]
    answer: Answer
    warnings: Sequence[str]
    facts: Sequence[facts.Fact]
    may_continue: bool
    activity: str


def revision_key(row: "Run") -> tuple[object, ...]:
    return (row.pk, row.team_id, row.revision, row.state, row.created_at, row.finished_at)


def load_content(row: "Run") -> RunContent:
    return cached("large", "content", *revision_key(row), make=lambda: _make_content(row))


def _make_content(row: "Run") -> RunContent:
    document = load_document(row)
    open_cells, states, activity = _list_open_cells(row, document)
    # a cell that is still being measured may be in the document with its results so far
    known = {cell.id for cell in document.cells}
    cells = [*document.cells, *(cell for cell in open_cells if cell.id not in known)]
    model = str(row.version.model)
    return RunContent(
        document=document,
        cells=cells,
        states=states,
        answer=openings.make_run_opening(document, model=model, activity=activity),
        warnings=openings.list_warnings(document.cells),
        facts=facts.list_run_facts(document.model_copy(update={"cells": cells})),
        may_continue=any(cell.status == "done" for cell in document.cells)
        and may_more_rounds_decide(document.comparisons)
        and not explain_removed_timings(row),
        activity=activity,
    )


def load_document(row: "Run") -> Document:
    """Load the run's document without operators, except those of the comparison that its headline explains, where that
    is decided. The first sentence is then written anew, unless the stored headline has the same verdict."""
    document = selectors.document(row, with_operators=False)
    lead = rank_results(document.comparisons, {cell.id: cell for cell in document.cells}).leading
    if lead is None or not lead.change.is_decided or lead.comparison.operators:
        return document
    wanted = lead.comparison
    explained = [pages.add_operators(row, pair) if pair is wanted else pair for pair in document.comparisons]
    explained_document = document.model_copy(update={"comparisons": explained})
    return explained_document.model_copy(update={"sentence": _choose_sentence(row, explained_document)})


def _choose_sentence(row: "Run", document: Document) -> str:
    """Choose the first sentence: the stored headline if it still has the same verdict, because it was written with the
    operators of all cells, else a new sentence."""
    line = sentences.verdict_line(document)
    return row.headline if row.headline.startswith(line) else sentences.describe_run(document)


def _list_open_cells(row: "Run", document: Document) -> tuple[list[Cell], dict[str, str], str]:
    """List the cells that have not ended, with their states by id and the state of the run. All are empty for a run
    that has ended."""
    if row.state == RunState.FINISHED:
        return [], {}, ""
    known = {cell.id for cell in document.cells} - pages.open_cell_names(row)
    blocks = pages.unsettled_plans(row)
    models = collect_model_facts(row.versions) if blocks else ()
    opened, states = list_open_cells(blocks, known=known, models=models, so_far=pages.launches_so_far(row))
    return opened, states, activity_of([state for state, _ in blocks])


def draw_map(
    request: HttpRequest, row: "Run", content: RunContent, *, address: Address, part: str
) -> tuple[HeatMap, str]:
    """Draw the heat map that the address asks for, cached for this revision, and return it with its HTML. `part`: the
    requested part of the page, empty for the whole page."""
    columns, metric = request.GET.get("columns", ""), request.GET.get("metric", "")

    def make_layout() -> heatmap_layout.Layout:
        return heatmap_layout.make_layout(content.cells, content.document.comparisons, columns=columns)

    def make() -> tuple[HeatMap, str]:
        drawn = heatmap.draw_layout(
            cached("large", "layout", *revision_key(row), columns, make=make_layout),
            address,
            metric=metric,
            states=content.states,
            part=read_part_number(request),
        )
        title = "Cells" if row.state == RunState.FINISHED else "Cells, filling in"
        shown = {"map": drawn, "map_title": title, "metrics": heatmap_fields.METRICS, "address": address, "part": part}
        return drawn, render_to_string("dashboard/parts/run_map.html", shown, request)

    return cached("pieces", "map", *revision_key(row), request.GET.urlencode(), part, make=make)


def render_head(
    request: HttpRequest,
    row: "Run",
    make_context: Callable[[], Mapping[str, object]],
    *,
    may_write: bool,
    outlook: Outlook | None,
) -> str:
    """Render the head of the page with TOKEN in its forms, cached for readers with the same rights. `make_context` is
    called only without a cached head. `outlook`: what the run waits for, which changes without a new revision."""

    def make() -> str:
        return render_to_string("dashboard/parts/run_head.html", {**make_context(), "csrf_token": TOKEN}, request)

    key = (*revision_key(row), may_write, outlook and outlook.shown, request.GET.urlencode())
    return cached("pieces", "head", *key, make=make)


def select_document(content: RunContent, shown: HeatMap) -> Document:
    """Cut the document to the cells that the map shows and the baselines with which these are compared. Return the
    whole document where the map shows all rows."""
    if shown.part is None:
        return content.document
    named = {cell.id for cell in shown.cells}
    compared = [pair for pair in content.document.comparisons if pair.candidate in named]
    wanted = named | {pair.baseline for pair in compared}
    kept = [cell for cell in content.document.cells if cell.id in wanted]
    return content.document.model_copy(update={"cells": kept, "comparisons": compared})
