"""The graph of a version in Netron, with the times of a cell on its nodes."""

from pathlib import Path
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.utils.http import quote_etag
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import condition, require_safe

from dashboard import netron
from dashboard.reading import graph as reading
from dashboard.reading import operators_beside, side
from dashboard.views.access import page, person
from dashboard.views.compared_operators import paired
from farm.base.refusals import Missing
from farm.config.security import CONTENT_SECURITY_POLICY
from farm.registry import selectors, services
from farm.runs.selectors import cell_document, run
from farm.runs.selectors.cells import TracedCell, traced_cells

if TYPE_CHECKING:
    from farm.accounts.models import User

# the one page that shows a frame, and only this farm's own
POLICY = f"{CONTENT_SECURITY_POLICY}; frame-src 'self'"
HOUR_S, YEAR_S = 3600, 365 * 24 * 3600


@page
def graph(request: HttpRequest, version_id: int) -> HttpResponse:
    """The picture, and beside it the same times as a table. The cell is part of the address, and so is another one
    that it is compared `against`."""
    version = selectors.version(person(request), version_id)
    cells = traced_cells(person(request), version)
    chosen = _chosen(cells, request.GET.get("cell", ""))
    context: dict[str, object] = {
        "version": version,
        "choices": reading.choices(cells),
        "netron": netron.release(),
        "facts": version.inspection or {},
    }
    if chosen is not None:
        row = run(person(request), chosen.run_id)
        cell = cell_document(row, chosen.name)
        context |= {
            "run": row,
            "cell": cell,
            "chosen": reading.key_of(chosen),
            "headline": reading.headline(cell),
            "because": reading.because(cell),
            "notes": reading.notes(cell),
            "table": reading.table(cell),
            "left_out": reading.left_out(cell),
        }
        base = next((cell for cell in cells if reading.key_of(cell) == request.GET.get("against")), None)
        if base is not None and base != chosen:
            context |= _against(person(request), base, chosen)
    response = render(request, "dashboard/graph.html", context)
    response["Content-Security-Policy"] = POLICY
    return response


def _against(user: "User", base: TracedCell, chosen: TracedCell) -> dict[str, object]:
    """The same page of two cells: both times on each node, and what moved between them marked."""
    pair = [_side(user, one) for one in (base, chosen)]
    found = operators_beside.groups(pair, paired(user, pair))
    return {
        "against": reading.key_of(base),
        "headline": operators_beside.headline(pair, found),
        "because": f"Times on the nodes: {' → '.join(side.names(pair))}, from traces.",
        "notes": operators_beside.notes(found),
        "table": operators_beside.table(pair, found),
        "left_out": "",
    }


def _side(user: "User", one: TracedCell) -> side.Chosen:
    row = run(user, one.run_id)
    return side.Chosen(reading.key_of(one), row.pk, cell_document(row, one.name), "", row.version_id)


def _chosen(cells: list[TracedCell], wanted: str) -> TracedCell | None:
    """The cell that the address names, the newest when it names none. Raises Missing."""
    if not wanted:
        return cells[0] if cells else None
    chosen = next((cell for cell in cells if reading.key_of(cell) == wanted), None)
    if chosen is None:
        raise Missing(f"This version has no traced cell {wanted!r}.", hint="Choose one on the page of its graph.")
    return chosen


@page
def outline(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """The version's graph without its weights, for the frame; the page around it hands it over. 202 while it is made.

    The workshop made it (farm.registry.services.products): no byte of a model is read by this process.
    """
    version = selectors.version(person(request), version_id)
    path = services.outline_of(version)
    if path is None:
        made = "The graph is being prepared; ask again in a moment."
        headers = {"Retry-After": "2", "Cache-Control": "no-store"}
        return HttpResponse(made, status=202, content_type="text/plain; charset=utf-8", headers=headers)
    response = _unless_known(request, version.artifact.sha256, path)
    patch_cache_control(response, private=True, no_cache=True)
    return response


@condition(etag_func=lambda _request, sha256, _path: quote_etag(sha256))
def _unless_known(request: HttpRequest, sha256: str, path: Path) -> HttpResponse:
    return HttpResponse(path.read_bytes(), content_type="application/octet-stream")


@page
@xframe_options_sameorigin
def frame(request: HttpRequest) -> HttpResponse:
    """Netron's page, empty: it gets its model from the page around it, and can ask nobody else."""
    skeleton = netron.skeleton()
    if skeleton is None:
        raise Missing("Netron is not installed on this farm.", hint="Install requirements/server.txt.")
    response = render(request, "dashboard/netron.html", {"skeleton": skeleton, "release": netron.release()})
    response["Content-Security-Policy"] = netron.FRAME_POLICY
    return response


@require_safe
@condition(etag_func=lambda _request, name: quote_etag(file.digest) if (file := netron.part(name)) else None)
def part(request: HttpRequest, name: str) -> HttpResponse:
    """A file of the viewer: public, as it is for everybody who installs the wheel. The frame has no session to show."""
    file = netron.part(name)
    if file is None:
        return HttpResponse("Netron has no such file here.", status=404, content_type="text/plain; charset=utf-8")
    response = HttpResponse(file.packed, content_type=file.kind)
    response["Content-Encoding"] = "gzip"
    response["Access-Control-Allow-Origin"] = "*"
    patch_cache_control(response, public=True, max_age=HOUR_S)
    return response


@page
def operators(request: HttpRequest) -> HttpResponse:
    """What Netron knows of ONNX's operators: the same for every model, so browsers keep it."""
    response = HttpResponse(netron.operators(), content_type="application/json")
    response["Content-Encoding"] = "gzip"
    patch_cache_control(response, private=True, max_age=YEAR_S, immutable=True)
    return response
