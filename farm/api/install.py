"""The farm's own wheel, for machines that join: the file, and a simple index (PEP 503) for tools that need an index."""

from html import escape

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.http import quote_etag
from django.views.decorators.http import condition, require_safe

from farm.fleet.farm_wheel import NAME, NoWheelError, Wheel, build_farm_wheel

# clients ask each time, and get a 304 until the farm is upgraded
FRESH = "no-cache"
PAGE = """<!doctype html>
<html lang="en"><head><title>{name}</title></head>
<body><h1>{name}</h1><a href="../../{wheel}#sha256={sha256}" data-requires-python="&gt;=3.11">{wheel}</a></body></html>
"""


def _etag(request: HttpRequest, name: str = "") -> str:
    return quote_etag(_build_wheel().sha256)


@require_safe
@condition(etag_func=_etag)
def wheel(request: HttpRequest, name: str) -> HttpResponse:
    """Answer the wheel, which has the program but no data of this farm, to everybody.

    404 for another name, and where the farm cannot build a wheel; 304 where the caller's ETag is still right.
    """
    farm_wheel = _build_wheel()
    if name != farm_wheel.name:
        raise Http404(f"This farm is {farm_wheel.name}; its address is /install/{farm_wheel.name}.")
    response = HttpResponse(farm_wheel.content, content_type="application/octet-stream")
    response["Cache-Control"] = FRESH
    response["Content-Disposition"] = f'attachment; filename="{farm_wheel.name}"'
    return response


@require_safe
@condition(etag_func=_etag)
def index(request: HttpRequest) -> HttpResponse:
    """Answer a simple index (PEP 503) that lists only the wheel; 404 where the farm cannot build one."""
    farm_wheel = _build_wheel()
    response = HttpResponse(PAGE.format(name=NAME, wheel=escape(farm_wheel.name), sha256=farm_wheel.sha256))
    response["Cache-Control"] = FRESH
    return response


def _build_wheel() -> Wheel:
    try:
        return build_farm_wheel()
    except NoWheelError as problem:
        raise Http404(str(problem)) from problem
