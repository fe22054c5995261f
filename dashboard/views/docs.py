"""The documents, as pages of the farm: they open without leaving it, and without a network."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from dashboard import catalogue, documents
from dashboard.views.access import page


@page
def index(request: HttpRequest) -> HttpResponse:
    """Show the documents by kind or, with `q` in the address, what a search found in them."""
    words, kinds = request.GET.get("q", "")[:200].strip(), catalogue.kinds()
    if not words:
        return render(request, "dashboard/docs.html", {"kinds": kinds})
    found = catalogue.search(words)
    count = sum(len(document.hits) for document in found)
    return render(
        request, "dashboard/docs_search.html", {"words": words, "kinds": kinds, "found": found, "count": count}
    )


@page
def document(request: HttpRequest, name: str) -> HttpResponse:
    """Show one document, or answer with a file that one links to. The name of one that moved is redirected; any
    other is 404."""
    file = documents.find_attachment(name)
    if file is not None:
        return HttpResponse(file.read_bytes(), content_type=documents.ATTACHMENTS[file.suffix])
    text = documents.document(name.rstrip("/"))
    if text is None:
        if (now := documents.moved_to(name)) is None:
            raise Http404
        return redirect(documents.address(now))
    context = {
        "document": text,
        "kinds": catalogue.kinds(),
        "place": catalogue.place_of(text.name),
        "contents": catalogue.contents(text),
    }
    return render(request, "dashboard/document.html", context)
