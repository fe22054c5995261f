"""The pages behind share links, which anybody with a link can read, and the list of a reader's share links.

A shared page shows its subject with the rights of the person who made the link, and its cells have no links.
"""

import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.cache import cached
from dashboard.reading import compared_cells, facts, inspection, judging, openings
from dashboard.reading.copies import write_curl
from dashboard.reading.heatmap import draw_layout
from dashboard.reading.heatmap_fields import METRICS
from dashboard.reading.heatmap_layout import make_layout
from dashboard.views import charts, hardware, lists, models
from dashboard.views.access import action, carry_out, form_page, read_number, signed_in_user
from dashboard.views.cell import make_panels
from dashboard.views.comparison import judge_by_base, make_panel
from dashboard.views.lists import make_page, read_part_number
from dashboard.views.run import make_tables
from dashboard.views.run_pieces import load_document, revision_key
from farm.accounts import selectors as account_selectors
from farm.accounts import services as account_services
from farm.accounts.services import open_share
from farm.accounts.states import ShareKind
from farm.base.refusals import Gone, Missing, Refusal, TooMany
from farm.contract.document import Document
from farm.fleet.enrolment import explain_local_address
from farm.registry import selectors as registry
from farm.runs import selectors
from farm.runs.selectors.hardware import measured_across
from farm.runs.selectors.pages import judged_run, open_cell_names
from farm.runs.selectors.runs import shown_states
from farm.runs.services import share_links
from farm.runs.states import FOLLOW_UPS, RunState

if TYPE_CHECKING:
    from farm.accounts.models import Share, User
    from farm.runs.models import Run


RUNS_SHOWN = 20
FORMS = {"svg": "image/svg+xml", "png": "image/png"}
PNG_WIDTH = 1200
# at most so many shared pages are made at the same time, so that other requests still get a thread
MAX_MAKINGS = 2
_makings = threading.BoundedSemaphore(MAX_MAKINGS)
Found = TypeVar("Found")
Context = dict[str, object]


@require_safe
def shared(request: HttpRequest, secret: str) -> HttpResponse:
    """Show the page behind a share link to anybody, with the rights of its maker, and record that it was opened, the
    first time in the audit log. The status is 404 for an unknown link, and 410 for a link that has ended or whose
    subject its maker can no longer see. Where too many pages are being made, it is that of TooMany."""
    return _answer(request, lambda: HttpResponse(_render_page(request, open_share(secret))))


@require_safe
def serve_card(request: HttpRequest, secret: str, form: str) -> HttpResponse:
    """Serve a picture of a shared run's headline: SVG for a README or a pull request, PNG for chats. The status is 404
    for a link to anything but a run, and for PNG where no fonts are installed; otherwise as in `shared`. That the link
    was opened is recorded too."""
    return _answer(request, lambda: HttpResponse(_render_card(open_share(secret), form), content_type=FORMS[form]))


def _answer(request: HttpRequest, make: Callable[[], HttpResponse]) -> HttpResponse:
    try:
        response = make()
    except Refusal as refusal:
        about = {"refusal": refusal, "is_shared": True}
        response = render(request, "dashboard/refused.html", about, status=refusal.status)
    response["X-Robots-Tag"] = "noindex, nofollow"
    response["Referrer-Policy"] = "no-referrer"
    response["Cache-Control"] = "private, no-store"
    return response


def _render_page(request: HttpRequest, share: "Share") -> str:
    """Render the page. That of a run is cached for visitors who have not signed in, because thousands may open a posted
    link. Raises TooMany where too many pages are being made at the moment."""
    name, build = PAGES[ShareKind(share.kind)]

    def make() -> str:
        has_card = share.kind == ShareKind.RUN and _has_fonts()
        card = f"{settings.PUBLIC_URL}{request.path}card.png" if has_card else ""
        with _take_turn():
            context = {**build(request, share), "share": share, "is_shared": True, "card": card}
            return render_to_string(f"dashboard/{name}.html", context, request=request)

    # pages of signed-in visitors show their name, so they are not cached
    if share.kind != ShareKind.RUN or request.user.is_authenticated:
        return make()
    row = _require_subject(lambda: selectors.run(share.created_by, int(share.subject)))
    return cached("pieces", "shared", share.pk, *revision_key(row), request.GET.urlencode(), make=make)


@contextmanager
def _take_turn() -> Iterator[None]:
    """Limit how many pages are made at the same time. Raises TooMany where the limit is reached."""
    if not _makings.acquire(blocking=False):
        raise TooMany("Many people open this page at this moment; reload it in a few seconds.", retry_s=5)
    try:
        yield
    finally:
        _makings.release()


def _render_card(share: "Share", form: str) -> str | bytes:
    """Render the card of a run: as SVG in light or dark colours as the reader prefers, as PNG in light colours. Raises
    Missing for a link to anything but a run, and for PNG without fonts."""
    if share.kind != ShareKind.RUN or (form == "png" and not _has_fonts()):
        raise Missing("Only a link to a run has a card.")
    row = _require_subject(lambda: selectors.run(share.created_by, int(share.subject)))

    def make() -> str | bytes:
        said, _ = _describe_opening(row, load_document(row))
        lines = textwrap.wrap(str(said["headline"]), 46, max_lines=3, placeholder=" …")
        because = textwrap.wrap(str(said["because"]), 72, max_lines=2, placeholder=" …")
        about = {"run": row, "lines": lines, "because": because, "is_png": form == "png"}
        svg = render_to_string("dashboard/shared/card.svg", about)
        if form == "svg":
            return svg
        with _take_turn():
            return _draw_png(svg)

    return cached("pieces", "card", form, share.pk, *revision_key(row), make=make)


def _draw_png(svg: str) -> bytes:
    # imported only when a card is drawn, so that other processes do not load the library
    resvg = import_module("resvg_py")
    return bytes(resvg.svg_to_bytes(svg_string=svg, width=PNG_WIDTH))


@cache
def _has_fonts() -> bool:
    empty, said = (_draw_png(render_to_string("dashboard/shared/card.svg", {"lines": some})) for some in ((), ("Aa",)))
    return empty != said


def no_address(cell_id: str) -> str:
    return ""


def _describe_run(request: HttpRequest, share: "Share") -> Context:
    row = _require_subject(lambda: selectors.run(share.created_by, int(share.subject)))
    document = load_document(row)
    said, states = _describe_opening(row, document)
    layout = make_layout(document.cells, document.comparisons, columns=request.GET.get("columns", ""))
    return {
        **said,
        "warnings": openings.list_warnings(document.cells),
        "facts": [*facts.list_run_facts(document), facts.Fact("Submitted", f"{row.created_at:%Y-%m-%d %H:%M} UTC")],
        "map": draw_layout(layout, no_address, metric=request.GET.get("metric", ""), part=read_part_number(request)),
        "map_title": "Cells",
        "metrics": METRICS,
        **charts.make_chart(request, row, document, no_address),
        **make_tables(request, document, no_address, states=states),
    }


def _describe_opening(row: "Run", document: Document) -> tuple[Context, dict[str, str]]:
    """Make the context of the run's state and headline, and the states of the cells that have not ended, by id."""
    [state] = shown_states([row]).values()
    is_open = row.state != RunState.FINISHED
    states = dict.fromkeys(open_cell_names(row), state) if is_open else {}
    activity, model = state if is_open else "", str(row.version.model)
    answer = openings.make_run_opening(document, model=model, activity=activity)
    return {"run": row, "state": state, "is_open": is_open, **asdict(answer)}, states


def _describe_cell(request: HttpRequest, share: "Share") -> Context:
    [(run_id, name)] = share_links.parse_cells(share.subject)
    row = _require_subject(lambda: selectors.run(share.created_by, run_id))
    cell = _require_subject(lambda: selectors.cell_document(row, name))
    document = selectors.document(row, with_operators=False)
    return {"run": row, **make_panels(cell, document, no_address, state=cell.status.value)}


def _describe_model(request: HttpRequest, share: "Share") -> Context:
    user = share.created_by
    model = _require_subject(lambda: registry.model(user, int(share.subject)))
    version = registry.versions_of(model, user=user).filter(branch="").first()
    found = registry.inspection_of(version) if version else None
    row = judged_run(user, model)
    every = selectors.runs_visible_to(user).filter(version__model=model)
    listed = list(every.exclude(reason__in=FOLLOW_UPS)[:RUNS_SHOWN])
    return {
        "model": model,
        **models.describe_best(user, model, address=lambda _: ""),
        **models.describe_newest_run([run for run in listed if not run.version.branch], lambda _: no_address),
        "version": version,
        "inspection": inspection.make_inspection(found) if found else None,
        "compatibility": models.make_compatibility(version) if version else None,
        "figure": charts.draw_model_accuracy(user, row, no_address) if row else None,
    }


def _describe_hardware(request: HttpRequest, share: "Share") -> Context:
    model = _require_subject(lambda: registry.model(share.created_by, int(share.subject)))
    asked = hardware.read_question(request.GET.dict())
    panel = hardware.make_panel(measured_across(share.created_by, model), asked, lambda _: "")
    return {"model": model, "panel": panel, "asked": asked}


def _describe_comparison(request: HttpRequest, share: "Share") -> Context:
    def find_cells() -> list[judging.ChosenCell]:
        found = []
        for run_id, name in share_links.parse_cells(share.subject):
            cell = selectors.cell_document(selectors.run(share.created_by, run_id), name)
            found.append(judging.ChosenCell(f"{run_id}:{name}", run_id, cell, href=""))
        return found

    chosen = _require_subject(find_cells)
    judged = judge_by_base(share.created_by, chosen)
    kept = lists.read_parameters(request, ("every",))
    return {**make_panel(request, chosen, judged), "compared": compared_cells.make_rows(chosen, judged), "kept": kept}


def _require_subject(look: Callable[[], Found]) -> Found:
    """Load the subject of a link. Raises Gone where it was removed, or where the link's maker may no longer see it."""
    try:
        return look()
    except Refusal as refusal:
        raise Gone(
            "What this share link showed no longer exists.", hint="Ask the person who sent it for a new one."
        ) from refusal


PAGES: dict[ShareKind, tuple[str, Callable[[HttpRequest, "Share"], Context]]] = {
    ShareKind.RUN: ("shared/run", _describe_run),
    ShareKind.CELL: ("shared/cell", _describe_cell),
    ShareKind.MODEL: ("shared/model", _describe_model),
    ShareKind.COMPARE: ("compare", _describe_comparison),
    ShareKind.HARDWARE: ("hardware", _describe_hardware),
}


@form_page
def shares(request: HttpRequest) -> HttpResponse:
    """Show the share links of the reader's teams: the open links, or with `every=yes` all. A POST makes a link and
    shows its address, this once; a refusal is raised. Days that cannot be read count as 0."""
    if request.method != "POST":
        return _render_shares(request)
    kind, subject = request.POST.get("kind", ""), request.POST.get("subject", "")
    days = read_number(request, "days")
    made, url = share_links.share(kind=kind, subject=subject, by=signed_in_user(request), days=days)
    return _render_shares(request, made=made, url=url, warning=explain_local_address(settings.PUBLIC_URL))


@action
def close_share(request: HttpRequest, share_id: int) -> HttpResponseBase:
    """Revoke a link and redirect to the list, which shows a refusal."""
    user = signed_in_user(request)
    row = account_selectors.share(user, share_id)
    done = f"The link to {row.title} was revoked."
    carry_out(request, account_services.revoke_share, lambda _: done, share=row, by=user)
    return redirect("dashboard:shares")


def _render_shares(request: HttpRequest, **more: object) -> HttpResponse:
    user = signed_in_user(request)
    every = account_selectors.shares_visible_to(user)
    active, wants_all = account_selectors.open_shares(user), request.GET.get("every") == "yes"
    rows = make_page(request, every if wants_all else active)
    more |= {"every": wants_all, "active": active.count(), "ended": every.count() - active.count()}
    managed = {row.team_id for row in rows if account_selectors.can_manage(user, team=row.team)}
    lines = [_make_line(row, user, is_manager=row.team_id in managed) for row in rows]
    command = write_curl("POST", "/shares", {"kind": "run", "subject": "1", "days": 30}, url=settings.PUBLIC_URL)
    return render(request, "dashboard/shares.html", {"page": rows, "shares": lines, "command": command, **more})


def _make_line(row: "Share", user: "User", *, is_manager: bool) -> dict[str, object]:
    """Make the row of a link. Its `state` is `shown`, `ended` (its time is over) or `closed` (somebody revoked it)."""
    state = "shown" if row.is_open else "closed" if row.revoked_at else "ended"
    is_ours = is_manager or row.created_by_id == user.pk
    href = _find_address(ShareKind(row.kind), row.subject)
    return {"share": row, "href": href, "state": state, "may_close": is_ours and state == "shown"}


def _find_address(kind: ShareKind, subject: str) -> str:
    """Find the page that a link shows, for readers who have signed in."""
    if kind == ShareKind.COMPARE:
        return f"{reverse('dashboard:compare')}?{urlencode([('cells', cell) for cell in subject.split(',')])}"
    return reverse(f"dashboard:{kind.value}", args=subject.split(":"))
