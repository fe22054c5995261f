"""The pages of the list of runs and of a run, also while it is measured, and the actions on a run."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import mark_safe

from dashboard import axes
from dashboard.figures.figure import Address
from dashboard.reading import cells, comparisons, copies, facts, file_rows, news
from dashboard.reading import runs as reading
from dashboard.reading.heatmap import HeatMap
from dashboard.reading.leads import NO_LEAD, load_confirmed_leads, prefer_confirmed, read_lead
from dashboard.reading.runs import person_name
from dashboard.views import charts, lists
from dashboard.views import run_pieces as pieces
from dashboard.views.access import action, carry_out, page, read_number, signed_in_user
from dashboard.views.lists import Filter, Listing, Together, make_page, read_filter, read_search_words, sort_rows
from farm.alerts.selectors.origins import explain_origin
from farm.contract.document import Document
from farm.contract.reasons import CellStatus
from farm.registry.selectors import version_ids_of_model_name
from farm.rules.cells.commands import submit_command
from farm.rules.matrices.matrix_text import write_text
from farm.rules.presenting.accuracy_answers import answer_accuracy
from farm.rules.presenting.lines import BUSY, is_by_processor
from farm.rules.presenting.tables import move_shared_note
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import ELSEWHERE, VERDICTS, WRONG
from farm.runs import selectors, services
from farm.runs.selectors import pages
from farm.runs.selectors.outlooks import Outlook, outlook_of
from farm.runs.selectors.runs import busy_blocks, shown_states
from farm.runs.states import FOLLOW_UPS, RunOutcome, RunReason, RunState

if TYPE_CHECKING:
    from farm.runs.models import Run


EVENTS_SHOWN = 60
ALONE = "Nothing to compare: give at least one axis of the matrix two values."
UNMEASURED = "Nothing to compare: no block measured two cells."
# how many of the newest lines of the log the head of an open run shows
TAIL = 4
STATES = (("running", "in progress"), *((outcome.value, outcome.value) for outcome in RunOutcome if outcome.value))
REASONS = (("every", "every run"), *((reason.value, reason.value) for reason in RunReason if reason.value))


class PageContext(TypedDict):
    """The context that the parts of a run's page share. `visible`: the document, cut to the cells that the map shows
    and the cells with which these are compared; `states`: the states of cells that have not ended, by id."""

    run: "Run"
    is_open: bool
    may_write: bool
    head_text: str
    map: HeatMap
    map_text: str
    visible: Document
    states: Mapping[str, str]


@page
def run(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Show the page of a run. The page of an open run polls `part=live` for changes. `part=compared` and `part=cells`
    are the tables of a large run, which load when the reader scrolls to them."""
    user, part = signed_in_user(request), request.GET.get("part", "")
    if part == "live":
        seen = pages.revision_of(user, run_id)
        outlook = pieces.find_outlook(seen)
        return pieces.render_live_part(request, seen, outlook, lambda: _render_changed(request, seen, outlook))

    def respond(row: "Run") -> HttpResponse:
        context = _make_context(request, row, may_write=selectors.can_write_run(user, row))
        if part in pieces.TABLES:
            section = pieces.Section.of(request, part, {**context, **make_run_tables(request, row, context)})
            return HttpResponse(pieces.insert_token(request, section.text))
        head = mark_safe(pieces.insert_token(request, context["head_text"]))
        below = _make_below(request, row, context)
        return render(request, "dashboard/run.html", {**context, **below, "head_text": head})

    return pieces.make_unchanged(lambda: selectors.run(user, run_id), respond)


def _render_changed(request: HttpRequest, seen: pages.Revision, outlook: Outlook) -> str:
    """Render the head, the map, and the sections that differ from those on the reader's page."""
    digests = pieces.read_section_digests(request)

    def make(row: "Run") -> list[str]:
        known = outlook if row.revision == seen.revision else None
        context = _make_context(request, row, may_write=seen.may_write, outlook=known, part="live")
        sections = pieces.select_changed(_make_sections(request, row, context, tables=digests), digests)
        return [context["head_text"], context["map_text"], *(section.out_of_band for section in sections)]

    fetch = partial(selectors.run, signed_in_user(request), seen.run_id, is_light=True)
    return "\n".join(pieces.make_unchanged(fetch, make))


def _make_context(
    request: HttpRequest, row: "Run", *, may_write: bool, outlook: Outlook | None = None, part: str = ""
) -> PageContext:
    """Render the head and the map, and make the context of the other parts. `outlook`: what the run waits for, if it
    was loaded already; `part`: the requested part of the page, empty for the whole page."""
    content = pieces.load_content(row)
    if outlook is None and row.state != RunState.FINISHED:
        outlook = outlook_of(row.pk)
    drawn, text = pieces.draw_map(request, row, content, address=cell_addresses_in(row.pk), part=part)
    return {
        "run": row,
        "is_open": row.state != RunState.FINISHED,
        "may_write": may_write,
        "head_text": pieces.render_head(
            request,
            row,
            lambda: {**_make_head(row, content, outlook, may_write=may_write), **_answer_accuracy(request, content)},
            may_write=may_write,
            outlook=outlook,
        ),
        "map": drawn,
        "map_text": text,
        "visible": pieces.select_document(content, drawn),
        "states": content.states,
    }


def _make_head(
    row: "Run", content: pieces.RunContent, outlook: Outlook | None, *, may_write: bool
) -> dict[str, object]:
    """Make the context of the head. `outlook`: what an open run waits for; None for a run that has ended."""
    is_open = row.state != RunState.FINISHED
    busy = busy_blocks(row) if outlook is not None else []
    tail = selectors.events(row).order_by("-pk")[:TAIL]
    submitted = facts.Fact("Submitted", f"{row.created_at:%Y-%m-%d %H:%M} UTC by {person_name(row.requested_by)}")
    return {
        "run": row,
        "state": content.activity or row.outcome or row.state,
        "live": None if outlook is None else {"busy": busy, "outlook": outlook, "tail": list(tail)},
        "origin": explain_origin(row),
        "is_open": is_open,
        "period": settings.LIVE_PERIOD_S,
        **asdict(content.answer),
        "progress": _describe_progress(row, outlook) if is_open else None,
        "warnings": content.warnings,
        "facts": [*facts.add_nodes(content.facts, [block.node for block in busy]), submitted],
        "may_write": may_write,
        "may_continue": content.may_continue,
    }


def _answer_accuracy(request: HttpRequest, content: pieces.RunContent) -> dict[str, object]:
    """Make the context that replaces the run's headline where the address asks for the accuracy chart; else empty."""
    known = content.document
    answer = answer_accuracy(known.cells, known.comparisons) if request.GET.get("chart") == "pareto" else None
    return {} if answer is None else asdict(answer)


def _describe_progress(row: "Run", outlook: Outlook | None) -> dict[str, object]:
    """Make the context of an open run's progress: how far it is, how long it has taken, and how long it still takes."""
    progress = selectors.progress(row, outlook=outlook)
    # a run that waits is shown as not started, also where it waits for further rounds
    began_at = None if progress.outlook.idle_reason else progress.started_at
    rounds = f"{progress.rounds} of {numbers.counted(progress.rounds_most, 'round')} measured"
    return {
        "percent": round(100 * progress.share),
        "words": f"{progress.counts.words}; {rounds}",
        "since": ("started", began_at) if began_at else ("submitted", progress.created_at),
        "left": progress.outlook.words_left,
    }


def _is_large(request: HttpRequest, context: PageContext) -> bool:
    return len(context["visible"].cells) > pieces.MAX_CELLS and request.GET.get("tables") != "yes"


def _make_sections(
    request: HttpRequest, row: "Run", context: PageContext, *, tables: Collection[str] = ()
) -> list[pieces.Section]:
    """Render the sections of the page: the chart, the log, and the tables. A large run has only those tables that are
    in `tables`, because the reader's page shows them already."""
    drawn = charts.make_chart(request, row, context["visible"], cell_addresses_in(row.pk))
    is_large = _is_large(request, context)
    if is_large:
        drawn["figure"] = replace(drawn["figure"], table=drawn["figure"].table.first(pieces.MAX_CELLS))
    names = [*pieces.ALWAYS, *(name for name in pieces.TABLES if not is_large or name in tables)]
    rows = make_run_tables(request, row, context) if set(names) & set(pieces.TABLES) else {}
    events = list(selectors.events(row).order_by("-pk")[:EVENTS_SHOWN])
    return [pieces.Section.of(request, name, {**context, **drawn, **rows, "events": events}) for name in names]


def _make_below(request: HttpRequest, row: "Run", context: PageContext) -> dict[str, object]:
    """Make the context of everything below the head: the sections, the matrix and the commands."""
    main = row.version.artifact.main
    return {
        "is_large": _is_large(request, context),
        "sections": {
            section.name: mark_safe(pieces.insert_token(request, section.text))
            for section in _make_sections(request, row, context)
        },
        "matrix_text": write_text(row.matrix),
        "copies": copies.copy_runs([row.pk], matrix=write_text(row.matrix), url=settings.PUBLIC_URL),
        "results_command": f"onnxfarm results {row.pk} --json > run-{row.pk}.json",
        "submit_command": submit_command(main, matrix="matrix.yaml"),
    }


def make_run_tables(request: HttpRequest, row: "Run", context: PageContext) -> dict[str, object]:
    visible, states, may_write = context["visible"], context["states"], context["may_write"]
    return make_tables(request, visible, cell_addresses_in(row.pk), states=states, row=row, may_write=may_write)


def make_tables(
    request: HttpRequest,
    document: Document,
    address: Address,
    *,
    states: Mapping[str, str],
    row: "Run | None" = None,
    may_write: bool = False,
) -> dict[str, object]:
    """Make the context of a document's tables: comparisons along one axis (`along` in the address, else the
    headline's), cells without the refused ones, and refused cells by reason. With `row`, the run, cells can be selected
    for a comparison; with `may_write` too, cells can be run again."""
    writable = row if may_write else None
    again = partial(reading.address_to_repeat, writable) if writable is not None else None
    ended = [cell for cell in document.cells if cell.status != CellStatus.REFUSED]
    whole = cells.make_table(ended, address, comparisons=document.comparisons, again=again, states=states)
    table, note = move_shared_note(whole)
    if row is not None:
        table = table.with_row_keys([f"{row.pk}:{cell.id}" for cell in ended], box="cells")
    return {
        **_make_compared(request, document, address),
        "cells": table,
        "cells_note": note,
        "refused": cells.group_refused(document.cells, address, matrix=writable.matrix if writable else ""),
    }


def _make_compared(request: HttpRequest, document: Document, address: Address) -> dict[str, object]:
    by_id = {cell.id: cell for cell in document.cells}
    along = comparisons.select_axis(document.comparisons, request.GET.get("along", ""), by_id)
    table, note = move_shared_note(comparisons.make_table(along, by_id, address))
    return {
        "comparisons": table,
        "shared_note": note,
        "busy": BUSY if any(map(is_by_processor, document.comparisons)) else "",
        "compared_axes": comparisons.list_axes(document.comparisons),
        "uncompared": ALONE if len(axes.varying_axes(document.cells)) == 0 else UNMEASURED,
        "along": along[0].axis if along else "",
    }


def cell_addresses_in(run_id: int) -> Callable[[str], str]:
    """Return a function that returns the address of a cell's page in this run for the cell's id."""
    return lambda cell_id: reverse("dashboard:cell", args=[run_id, cell_id])


@action
def cancel(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Cancel the run and redirect to its page, which shows a refusal. The results so far are kept."""
    user = signed_in_user(request)
    row = selectors.run(user, run_id)
    carry_out(request, services.cancel_run, lambda _: "Cancelled.", run=row, by=user)
    return redirect("dashboard:run", run_id=row.pk)


@action
def add_rounds(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Queue the typed number of further rounds: for the undecided blocks, or for all measured blocks where no
    comparison is undecided; no block gets more than MAX_ROUNDS in all. Redirects to the run's page, which shows a
    refusal."""
    user, rounds = signed_in_user(request), read_number(request, "rounds")
    row = selectors.run(user, run_id)
    undecided = any(pair.verdict == "undecided" for pair in selectors.comparisons_of(row, with_operators=False))
    blocks = None if undecided else list(row.blocks.filter(state="done").values_list("number", flat=True))
    queued = f"{rounds} more rounds were queued."
    carry_out(request, services.measure_more_rounds, lambda _: queued, run=row, by=user, rounds=rounds, blocks=blocks)
    return redirect("dashboard:run", run_id=row.pk)


@page
def runs(request: HttpRequest) -> HttpResponse:
    """Show a page of the runs of the reader's teams, the newest first unless `sort` says otherwise. Runs that the farm
    started itself to follow up on others are left out unless the filter `reason` asks for them. A search is for a part
    of the model's name. `as` asks for a file instead, of all pages but at most lists.MAX_ROWS rows."""
    user, wanted = signed_in_user(request), read_search_words(request)
    filters = [
        read_filter(request, "state", "State", STATES),
        read_filter(request, "verdict", "Verdict", [(word, word) for word in (WRONG, ELSEWHERE, *VERDICTS)]),
        read_filter(request, "reason", "Why", REASONS, nothing="started by people or watches"),
    ]
    rows = sort_rows(request, filter_runs(selectors.runs_for_lists(user), wanted, filters), reading.ORDERS)
    if lists.wants_file(request):
        listed = list(rows[: lists.MAX_ROWS])
        states = shown_states(listed)
        return lists.render_file(request, "runs", listed, lambda row: file_rows.run_row(row, states[row.pk]))
    shown = make_page(request, rows)
    confirmed = load_confirmed_leads(shown)
    listing = Listing(
        reading.make_table(shown, shown_states(shown), confirmed, is_ordered=True, box="runs"),
        shown,
        filters,
        wanted,
        searches="Model",
        together=[Together("Compare", reverse("dashboard:compare"), key="c")],
    )
    in_progress = 0 if listing.is_narrowed else pages.open_run_counts(user)[0]
    worst = news.write_worst(
        ((row.version.model.name, prefer_confirmed(read_lead(row), confirmed.get(row.pk, NO_LEAD))) for row in shown),
        noun="run",
    )
    more = f"{in_progress} in progress" if in_progress else ""
    return render(request, "dashboard/runs.html", {"list": listing, "worst": worst, "more": more})


def filter_runs(rows: QuerySet["Run"], wanted: str, filters: list[Filter]) -> QuerySet["Run"]:
    """Filter the runs by words in their model's name and by the filters `state`, `verdict` and `reason`, all of which
    must be given. A `reason` that is none, such as `every`, filters nothing. Where it is empty, the runs in FOLLOW_UPS,
    which the farm started itself, are left out."""
    values = {filter_.name: filter_.value for filter_ in filters}
    if wanted:
        rows = rows.filter(version__in=version_ids_of_model_name(wanted))
    if values["state"] == RunState.RUNNING:
        rows = rows.filter(state__in=pages.OPEN_RUNS)
    elif values["state"]:
        rows = rows.filter(outcome=values["state"])
    if values["verdict"]:
        rows = rows.filter(lead__verdict=values["verdict"])
    if values["reason"] in RunReason.values and values["reason"]:
        return rows.filter(reason=values["reason"])
    return rows if values["reason"] else rows.exclude(reason__in=FOLLOW_UPS)
