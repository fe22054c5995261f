"""The farm's own wheel, for machines that join: one file by its name, and an index of it for tools that want one."""

from html import escape

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.http import quote_etag
from django.views.decorators.http import condition, require_safe

from farm.fleet.farm_wheel import NAME, NoWheelError, Wheel, build_farm_wheel

# asked again each time and answered 304: the next release of the farm has another digest
FRESH = "no-cache"
PAGE = """<!doctype html>
<html lang="en"><head><title>{name}</title></head>
<body><h1>{name}</h1><a href="../../{wheel}#sha256={sha256}" data-requires-python="&gt;=3.11">{wheel}</a></body></html>
"""


def _etag(request: HttpRequest, name: str = "") -> str:
    return quote_etag(_wheel().sha256)


@require_safe
@condition(etag_func=_etag)
def wheel(request: HttpRequest, name: str) -> HttpResponse:
    """Answer the wheel to anybody: it has the program and nothing of this farm. 404 for another name, or for none."""
    known = _wheel()
    if name != known.name:
        raise Http404(f"This farm is {known.name}; its address is /install/{known.name}.")
    response = HttpResponse(known.content, content_type="application/octet-stream")
    response["Cache-Control"] = FRESH
    response["Content-Disposition"] = f'attachment; filename="{known.name}"'
    return response


@require_safe
@condition(etag_func=_etag)
def index(request: HttpRequest) -> HttpResponse:
    """Answer a simple index (PEP 503) that lists the wheel alone."""
    known = _wheel()
    response = HttpResponse(PAGE.format(name=NAME, wheel=escape(known.name), sha256=known.sha256))
    response["Cache-Control"] = FRESH
    return response


def _wheel() -> Wheel:
    try:
        return build_farm_wheel()
    except NoWheelError as problem:
        raise Http404(str(problem)) from problem
