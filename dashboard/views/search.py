"""The search over everything that has a page; what fits alone is opened at once."""

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from dashboard import passages
from dashboard.views.access import page, person
from dashboard.views.lists import searched
from farm.alerts.selectors.finding import find

# documents that hold the words, shown below what the farm has
DOCUMENTS = 5


@page
@require_safe
def search(request: HttpRequest) -> HttpResponseBase:
    """What fits the words of the address; its list alone while they are typed."""
    words = searched(request)
    hits = find(person(request), words)
    context = {"hits": hits, "words": words}
    if request.headers.get("HX-Request"):
        return render(request, "dashboard/parts/found.html", context)
    if len(hits) == 1:
        return redirect(hits[0].path)
    return render(request, "dashboard/search.html", {**context, "documents": passages.search(words)[:DOCUMENTS]})
