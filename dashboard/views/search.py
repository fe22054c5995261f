"""The search over everything that has a page."""

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render

from dashboard import catalogue
from dashboard.views import models
from dashboard.views.access import page, signed_in_user
from dashboard.views.lists import read_search_words
from farm.alerts.selectors.search import Hit, search_everything
from farm.registry.selectors import models_visible_to
from farm.rules.presenting.tables import Column, Entry, Prose, Table

if TYPE_CHECKING:
    from farm.accounts.models import User

COLUMNS: tuple[Column[Hit], ...] = (
    Column("Name", lambda hit: Entry(hit.name, href=hit.path)),
    Column("Kind", lambda hit: Entry(hit.kind)),
    Prose("About", lambda hit: Entry(hit.about)),
)


@page
def search(request: HttpRequest) -> HttpResponseBase:
    """Show what matches the words in the address, also documents. A single hit is opened at once; documents do not
    count for this. While the reader types, htmx gets only the list of hits."""
    user, words = signed_in_user(request), read_search_words(request)
    hits = search_everything(user, words)
    if request.headers.get("HX-Request"):
        return render(request, "dashboard/parts/found.html", {"hits": hits, "words": words})
    if len(hits) == 1:
        return redirect(hits[0].path)
    context = {
        "hits": hits,
        "words": words,
        "models": _make_models_table(user, [hit for hit in hits if hit.kind == "model"]),
        "others": Table.of("others", "What else was found", COLUMNS, [hit for hit in hits if hit.kind != "model"]),
        "documents": catalogue.search(words),
    }
    return render(request, "dashboard/search.html", context)


def _make_models_table(user: "User", hits: list[Hit]) -> Table:
    """Make the table of the models among the hits as the list of models shows them, but not sorted by the server."""
    numbers = [int(hit.path.strip("/").rpartition("/")[2]) for hit in hits]
    listed = models_visible_to(user).filter(pk__in=numbers).order_by("name", "pk")
    return models.make_table(models.make_lines(list(listed)))
