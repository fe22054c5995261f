"""The documents, as pages of the farm: they open without leaving it, and without a network."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import documents
from dashboard.views.access import page


@page
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The index of the documents, or what a search found."""
    words = request.GET.get("q", "")[:200].strip()
    if not words:
        return _shown(request, documents.FIRST)
    sections = [
        (section, documents.address(section.name, section.anchor), documents.excerpt(section, words))
        for section in documents.search(words)
    ]
    return render(request, "dashboard/docs_search.html", {"words": words, "sections": sections})


@page
@require_safe
def document(request: HttpRequest, name: str) -> HttpResponse:
    """One document, or a file that one links to."""
    beside = documents.attachment(name)
    if beside is None:
        return _shown(request, name.rstrip("/"))
    return HttpResponse(beside.read_bytes(), content_type=documents.ATTACHMENTS[beside.suffix])


def _shown(request: HttpRequest, name: str) -> HttpResponse:
    text = documents.document(name)
    if text is None:
        raise Http404
    return render(request, "dashboard/document.html", {"document": text})
