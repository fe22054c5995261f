"""The pages of the list of models, of a model with its versions, and of uploads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.core.exceptions import RequestDataTooBig, TooManyFilesSent
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django_htmx.http import HttpResponseClientRedirect

from dashboard.figures.figure import Address
from dashboard.reading import accuracy, best_settings, facts, file_rows, inspection, leads, news, runs
from dashboard.reading.heatmap import draw_layout
from dashboard.reading.heatmap_layout import make_layout
from dashboard.reading.removals import describe_removal
from dashboard.reading.versions import version_table
from dashboard.reading.watched_series import describe_model, load_slowest_series
from dashboard.views import charts, lists
from dashboard.views.access import form_page, page, signed_in_user, team_choice
from dashboard.views.lists import Listing, Together, first_rows, make_page, read_search_words, sort_rows
from dashboard.views.run import cell_addresses_in
from dashboard.views.run_pieces import load_content
from dashboard.views.variant import make_variant_table
from farm.accounts.selectors import can_write
from farm.alerts.selectors.finds import find_newest_search_with_answer
from farm.alerts.selectors.pages import find_watch_of_each
from farm.base.refusals import Invalid, Refusal
from farm.contract.reasons import CellStatus
from farm.registry import selectors, services
from farm.registry.states import VersionState
from farm.registry.upload_handler import StoredUpload
from farm.rules.presenting.key_results import KeyResult
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import sign_of
from farm.runs.selectors import compared_with_before, pages, runs_for_lists
from farm.runs.selectors.cells import measured_settings
from farm.runs.selectors.compatibility import compatibility_of
from farm.runs.selectors.runs import shown_states
from farm.runs.states import FOLLOW_UPS

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    from dashboard.reading.watched_series import SlowestSeries
    from farm.accounts.models import User
    from farm.accounts.selectors import Anyone
    from farm.registry.models import Model, Version
    from farm.registry.selectors import Counted
    from farm.runs.models import Run


@dataclass(frozen=True)
class Line:
    """A row of the list of models. `run`: the last run that a person or a watch asked for, without those of branches;
    `ended`: the newest such run that has ended; `slowest`: the slowest watched series; `state`: of the newest version;
    `run_state`: of the last run, both empty where there is none; `watch`: the number of a watch of the model, None
    where it has a series or no watch; `confirmed`: the lead of the run that confirmed `ended`."""

    model: "WithAnnotations[Model, Counted]"
    run: "Run | None"
    ended: "Run | None"
    slowest: "SlowestSeries | None"
    state: str = ""
    run_state: str = ""
    watch: int | None = None
    confirmed: KeyResult = leads.NO_LEAD

    @property
    def lead(self) -> KeyResult:
        return leads.read_lead(self.ended)


def _name_entry(line: Line) -> Entry:
    model = line.model
    return Entry(model.name, href=reverse("dashboard:model", args=[model.pk]), title=model.description[:300])


def _last_run_entry(line: Line) -> Entry:
    """Make the link to the last run with its state, or where there is none the version's state. EXPECTED states are not
    shown."""
    state = line.run_state if line.run is not None and line.state != "rejected" else line.state
    sign = sign_of(state) if state and state not in EXPECTED else None
    if line.run is None:
        return Entry(sign=sign) if sign else Entry(numbers.NOT_MEASURED)
    return replace(runs.link_run(line.run.pk), sign=sign)


def _watched_entry(line: Line) -> Entry:
    series = line.slowest
    if series is None and line.watch is not None:
        return Entry("no result yet", href=reverse("dashboard:watch", args=[line.watch]))
    if series is None:
        return Entry("", soft="not watched")
    title = f"{series.words}, {series.interval}, with {series.release}"
    return Entry(series.last, series.ratio, href=series.href, title=title, spark=series.spark)


ORDERS = {
    "name": ("name",),
    "run": ("last_run",),
    "verdict": ("last_lead__verdict",),
    "change": ("last_lead__ratio",),
    "at": ("ended_run",),
}
# usual states of runs and versions, which the list does not show
EXPECTED = ("complete", "ready")
# orders for which the newest run of every model has to be loaded
BY_RUN = ("run", "verdict", "change", "at")


def make_table(lines: Iterable[Line], *, is_ordered: bool = False, box: str = "") -> Table:
    """Make the table of models, in the order given. `is_ordered`: the headings link to the list sorted by the server;
    `box`: the name of the checkboxes that select rows, none where it is empty. Settings that all rows share stand once,
    above the table; teams only where there are several."""
    rows = list(lines)
    shared = leads.find_shared_settings(line.lead for line in rows)
    teams = [Column[Line]("Team", lambda line: Entry(line.model.team.name))]
    columns: list[Column[Line]] = [
        Column("Model", _name_entry, order="name"),
        Column("Last run", _last_run_entry, order="run"),
        Column("Verdict", lambda line: leads.make_verdict_entry(line.lead), order="verdict"),
        Number(
            "change",
            lambda line: leads.make_change_entry(line.lead, line.confirmed),
            "of what its newest finished run leads with",
            order="change",
        ),
        Number("interval", lambda line: leads.make_interval_entry(line.lead, line.confirmed)),
        Prose("What", lambda line: leads.make_subject_entry(line.lead, shared)),
        Column("Measured", lambda line: runs.measured_entry(line.ended, last=line.run), order="at"),
        Column("Watched", _watched_entry, "latency against the pinned release, over the rounds of a watch"),
        Column("Labels", lambda line: Entry(", ".join(line.model.labels))),
        *(teams if len({line.model.team_id for line in rows}) > 1 else []),
    ]
    columns = columns if is_ordered else [column.unordered for column in columns]
    table = Table.of("models", "Models", columns, rows).with_row_keys([line.model.pk for line in rows], box=box)
    return replace(table, shared=", ".join(shared))


OPEN_STATES = (VersionState.PENDING, VersionState.INSPECTING)
RUNS_SHOWN = 10
# what Django raises for a form that it cannot parse, or that is too large
UNREADABLE_FORM = (MultiPartParserError, RequestDataTooBig, TooManyFilesSent)
# a run with more cells has no heat map on the page of its model
MAP_CELLS = 100
VARIANTS_SHOWN = 100
# the field of the form at which a refusal is shown, by its code
FIELD_OF_CODE = {
    **{"bad_name": "model", "bad_note": "note", "bad_recipe": "recipe"},
    **dict.fromkeys(("not_found", "not_allowed", "team_not_named"), "team"),
}


@page
def models(request: HttpRequest) -> HttpResponse:
    """Show a page of the models of the reader's teams, by name unless `sort` says otherwise. A search is for a part of
    the name. `as` asks for a file instead, of all pages but at most lists.MAX_ROWS rows."""
    user, wanted = signed_in_user(request), read_search_words(request)
    matching = selectors.models_visible_to(user).order_by("name", "pk")
    if wanted:
        matching = matching.filter(name__icontains=wanted)
    if request.GET.get("sort", "").removeprefix("-") in BY_RUN:
        matching = pages.add_last_run(matching)
    rows = sort_rows(request, matching, ORDERS)
    if lists.wants_file(request):
        every = list(rows[: lists.MAX_ROWS])
        last = {model: found.run for model, found in pages.last_runs(every).items()}
        return lists.render_file(request, "models", every, lambda row: file_rows.model_row(row, last.get(row.pk)))
    listed = make_page(request, rows)
    together = [Together("Label or delete", reverse("dashboard:chosen_models"))]
    shown_lines = make_lines(list(listed))
    table = make_table(shown_lines, is_ordered=True, box="models")
    listing = Listing(table, listed, words=wanted, searches="Name", together=together)
    worst = news.write_worst(
        (line.model.name, leads.prefer_confirmed(line.lead, line.confirmed)) for line in shown_lines
    )
    more = "each by the release or version that its last finished run compared" if worst else ""
    return render(request, "dashboard/models.html", {"list": listing, "worst": worst, "more": more})


def make_lines(listed: "Sequence[WithAnnotations[Model, selectors.Counted]]") -> list[Line]:
    """Load the rows of the list for these models, in the same order."""
    last, slowest = pages.last_runs(listed), load_slowest_series(listed)
    states = selectors.newest_version_states(listed)
    measured = shown_states(found.run for found in last.values())
    confirmed = leads.load_confirmed_leads(found.finished for found in last.values())
    watches = find_watch_of_each(row for row in listed if row.pk not in slowest)
    made = []
    for row in listed:
        run, ended = last.get(row.pk, (None, None))
        state, run_state, watch = states.get(row.pk, ""), measured[run.pk] if run else "", watches.get(row.pk)
        again = confirmed.get(ended.pk, leads.NO_LEAD) if ended else leads.NO_LEAD
        made.append(Line(row, run, ended, slowest.get(row.pk), state, run_state, watch, again))
    return made


@page
def model(request: HttpRequest, model_id: int) -> HttpResponse:
    return render_model(request, selectors.model(signed_in_user(request), model_id))


def render_model(request: HttpRequest, row: "Model", *, status: int = 200, **more: object) -> HttpResponse:
    """Render the page of a model with the version that the address names, else the newest that is not of a branch, else
    the newest; only 100 are considered, those of branches last. `more` adds to the context, such as errors and the
    texts of forms. While a version is being inspected the page polls only for the part of the version; afterwards that
    request gets a header that reloads the page."""
    user = signed_in_user(request)
    versions = selectors.newest_versions(row, user=user, limit=100)
    newest = next((version for version in versions if not version.branch), versions[0] if versions else None)
    chosen = next((version for version in versions if str(version.number) == request.GET.get("version")), newest)
    may_write = can_write(user, team=row.team)
    is_rejected = bool(versions) and all(version.state == VersionState.REJECTED for version in versions)
    context: dict[str, object] = {
        "model": row,
        "version": chosen,
        "may_write": may_write,
        "is_rejected": is_rejected,
    }
    if chosen is not None:
        context |= _describe_version(user, chosen)
    if request.headers.get("HX-Target") == "version":
        if not context.get("is_open"):
            # reload the whole page, because other parts of it have the actions on the version
            return HttpResponse(headers={"HX-Refresh": "true"})
        return render(request, "dashboard/parts/version.html", context)
    every = runs_for_lists(user).filter(version__model=row)
    # runs that the farm started itself are shown with their alert, and in the list of all runs
    listed = first_rows(every.exclude(reason__in=FOLLOW_UPS), RUNS_SHOWN)
    otherwise = _describe_unmeasured(chosen, is_searched=context.get("last_find") is not None)
    whole = {
        **context,
        "runs": listed,
        "run_table": runs.make_table(listed, shown_states(listed), leads.load_confirmed_leads(listed)),
        "farm_made": every.filter(reason__in=FOLLOW_UPS).count(),
        "may_find": may_write and chosen is not None and chosen.state == VersionState.READY,
        **_draw_accuracy(request, row),
        **describe_model(row),
        **describe_best(user, row, request.GET.get("budget", "")[:40], otherwise=otherwise),
        **describe_newest_run([run for run in listed if not run.version.branch], cell_addresses_in),
        "version_table": version_table(versions, chosen, compared=compared_with_before(user, row)),
        "removed": list(selectors.removed_versions(row, user=user)[:100]),
        **more,
    }
    if may_write:
        whole["what_goes"] = describe_removal(selectors.estimate_removal(row))
        whole["version_goes"] = describe_removal(selectors.estimate_removal(row, version=chosen)) if chosen else ""
    return render(request, "dashboard/model.html", whole, status=status)


def _describe_version(user: "User", version: "Version") -> dict[str, object]:
    """Make the context of a version: its inspection, labelled data, variants, and the newest search with an answer."""
    found = selectors.inspection_of(version)
    labelled = accuracy.describe_labelled_data(selectors.evaluation_of(version))
    variants = selectors.variants_of(version.artifact).order_by("-pk")[:VARIANTS_SHOWN]
    return {
        "inspection": inspection.make_inspection(found) if found else None,
        "program": inspection.make_program(version, found),
        "compatibility": make_compatibility(version),
        "is_open": version.state in OPEN_STATES or bool(labelled and labelled.is_open),
        "evaluation": labelled,
        "variants": make_variant_table(variants),
        "duplicates": selectors.versions_with_same_bundle(version, user=user),
        "last_find": find_newest_search_with_answer(version.pk),
    }


UNMEASURED = "has not been measured yet"
# facts of the best setting that the line below the headline names already
NAMED_BELOW_HEADLINE = ("Runtime", "Batch", "Shapes", "Precision", "Threads", "Node")


def _describe_unmeasured(version: "Version | None", *, is_searched: bool) -> str:
    """Say why a model has no best settings: its version was rejected, only a search measured it, or nothing did. The
    text follows the model's name."""
    if version is None or version.state == VersionState.REJECTED:
        return "was rejected" if version is not None else UNMEASURED
    return "has been measured by a search alone" if is_searched else UNMEASURED


def describe_best(
    user: "Anyone",
    model: "Model",
    budget: str = "",
    *,
    otherwise: str = UNMEASURED,
    address: best_settings.CellAddress = best_settings.cell_address,
) -> dict[str, object]:
    """Make the context with the model's best settings, their headline and facts. `budget`: the latency budget in ms as
    typed; `otherwise`: the end of the headline where nothing was measured; `address`: links a setting."""
    best = best_settings.make_panel(*measured_settings(user, model), budget, address)
    chips = facts.list_cell_facts(best.top.settings[0].cell) if best and best.top.settings else []
    chips = [chip for chip in chips if chip.name not in NAMED_BELOW_HEADLINE]
    headline, because = (best.headline, best.because) if best else (otherwise, "")
    return {"best": best, "headline": f"{model.name} {headline}", "because": because, "facts": chips}


def describe_newest_run(listed: Sequence["Run"], address_in: Callable[[int], Address]) -> dict[str, object]:
    """Make the context with the answer and heat map of the first of these runs that has a result and was not cancelled,
    else of the first with a headline. Empty where there is none; without the map for more than MAP_CELLS cells.
    `address_in`: returns for a run's number the function that links its cells."""
    # a run with a result says more about a model than a run that only has a headline
    compared = (run for run in listed if run.lead and leads.read_lead(run).verdict != CellStatus.CANCELLED)
    run = next(compared, next((run for run in listed if run.headline), None))
    if run is None:
        return {}
    content = load_content(run)
    context = {"said": run, "answer": content.answer}
    if len(content.cells) > MAP_CELLS:
        return context
    layout = make_layout(content.cells, content.document.comparisons)
    return {**context, "map": draw_layout(layout, address_in(run.pk), states=content.states)}


def _draw_accuracy(request: HttpRequest, model: "Model") -> dict[str, object]:
    """Make the context with the accuracy chart of the newest run that was judged; empty where none was."""
    row = pages.judged_run(signed_in_user(request), model)
    if row is None:
        return {}
    figure = charts.draw_model_accuracy(signed_in_user(request), row, cell_addresses_in(row.pk))
    return {"figure": figure, "figure_run": row}


def make_compatibility(version: "Version") -> inspection.Compatibility | None:
    """Make the panel that shows which releases load the version; None unless the version is ready."""
    if version.state != VersionState.READY:
        return None
    return inspection.compatibility_panel(compatibility_of(version))


@csrf_exempt
@form_page
def upload(request: HttpRequest) -> HttpResponseBase:
    """Show the upload form. A POST creates the version and redirects to it; a refusal is shown at its field.

    Files are hashed while they arrive, so a refusal may come before the form was read. Therefore the CSRF token is
    checked in `_receive_upload`, where a refusal still becomes a page.
    """
    try:
        return _receive_upload(request)
    except Refusal as refusal:
        return _render_form(request, {FIELD_OF_CODE.get(refusal.code, "files"): str(refusal)}, status=refusal.status)
    except UNREADABLE_FORM:
        sentence = "The form could not be read: send at most 64 files, and choose them again."
        return _render_form(request, {"files": sentence}, status=400)


@csrf_protect
def _receive_upload(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return _render_form(request, {})
    files = [file for _, uploads in request.FILES.lists() for file in uploads if isinstance(file, StoredUpload)]
    if not files:
        raise Invalid("No file was chosen: choose an .onnx with its external data, or a .zip.")
    version = services.receive_upload(
        user=signed_in_user(request),
        files=[file.draft for file in files],
        model=request.POST.get("model", ""),
        note=request.POST.get("note", ""),
        team=request.POST.get("team", ""),
        recipe=request.POST.get("recipe", ""),
    )
    address = runs.version_address(version)
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)  # type: ignore[attr-defined]


def _render_form(request: HttpRequest, errors: Mapping[str, str], *, status: int = 200) -> HttpResponse:
    """Render the form with the typed texts and the errors by field. Files have to be chosen again."""
    typed = {}
    # a form that could not be parsed has no texts to keep
    if not errors.get("files", "").startswith("The form could"):
        given = request.POST if request.method == "POST" else request.GET
        typed = {name: given.get(name, "") for name in ("model", "note", "team", "recipe")}
    choice = team_choice(signed_in_user(request), typed=typed.get("team", ""))
    context = {"errors": errors, "typed": typed, "team_choice": choice}
    name = "dashboard/parts/upload.html" if request.headers.get("HX-Request") else "dashboard/upload.html"
    return render(request, name, context, status=status)
