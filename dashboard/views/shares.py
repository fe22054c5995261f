"""Share links of the reader's teams, and the audit log that tells of them."""

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from dashboard.reading import file_rows
from dashboard.reading.copies import curl
from dashboard.views import downloads
from dashboard.views.access import action, form_page, ordered, page, person
from dashboard.views.lists import paged
from farm.accounts import selectors, services
from farm.runs.services import share_links

if TYPE_CHECKING:
    from farm.accounts.models import Share, User


@form_page
def shares(request: HttpRequest) -> HttpResponse:
    """The links; a POST makes one, whose address is on this page once, and nowhere after."""
    if request.method != "POST":
        return _shown(request)
    typed = request.POST.get("days", "")
    days = int(typed) if typed.isdecimal() and len(typed) < 5 else 0
    kind, subject = request.POST.get("kind", ""), request.POST.get("subject", "")
    made, url = share_links.share(kind=kind, subject=subject, by=person(request), days=days)
    return _shown(request, made=made, url=url)


@action
def close(request: HttpRequest, share_id: int) -> HttpResponseBase:
    """Closes a link; a refusal is said on the list."""
    row = selectors.share(person(request), share_id)
    ordered(
        request,
        lambda: services.revoke_share(share=row, by=person(request)),
        lambda _: f"The link to {row.title} was revoked.",
    )
    return redirect("dashboard:shares")


@page
def audit(request: HttpRequest) -> HttpResponse:
    """Who did what in the teams that the reader manages."""
    rows = selectors.audit_events_visible_to(person(request))
    if downloads.is_wanted(request):
        return downloads.as_file(request, "audit", rows[: downloads.MOST_ROWS], file_rows.event)
    events = paged(request, rows)
    return render(request, "dashboard/audit.html", {"events": events, "nothing": (None, "", [], {})})


def _shown(request: HttpRequest, **more: object) -> HttpResponse:
    user = person(request)
    rows = paged(request, selectors.shares_visible_to(user))
    managed = {row.team_id for row in rows if selectors.can_manage(user, team=row.team)}
    lines = [_line(row, user, is_manager=row.team_id in managed) for row in rows]
    command = curl("POST", "/shares", {"kind": "run", "subject": "1", "days": 30}, url=settings.PUBLIC_URL)
    return render(request, "dashboard/shares.html", {"page": rows, "shares": lines, "command": command, **more})


def _line(row: "Share", user: "User", *, is_manager: bool) -> dict[str, object]:
    """`state`: shown to anybody, ended by its day, or closed by somebody."""
    state = "shown" if row.is_open else "closed" if row.revoked_at else "ended"
    is_ours = is_manager or row.created_by_id == user.pk
    return {"share": row, "state": state, "may_close": is_ours and state == "shown"}
