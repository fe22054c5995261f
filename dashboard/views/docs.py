"""The documents as pages of the farm, which can be read without an internet connection."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from dashboard import catalogue, documents
from dashboard.views.access import page


@page
def index(request: HttpRequest) -> HttpResponse:
    """Show the documents by kind, or with `q` in the address the sections that a search found."""
    words, kinds = request.GET.get("q", "")[:200].strip(), catalogue.kinds()
    if not words:
        return render(request, "dashboard/docs.html", {"kinds": kinds})
    found = catalogue.search(words)
    count = sum(len(document.hits) for document in found)
    context = {"words": words, "kinds": kinds, "found": found, "count": count}
    return render(request, "dashboard/docs_search.html", context)


@page
def document(request: HttpRequest, name: str) -> HttpResponse:
    """Show a document, or serve a file that documents link to. The old name of a moved document is redirected; any
    other name raises Http404."""
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
