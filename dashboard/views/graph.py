"""The graph of a version in Netron, with the times of a cell on its nodes."""

from dataclasses import replace
from itertools import accumulate
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
from dashboard.figures.figure import script_json, shorten_start
from dashboard.reading import compared_cells, judging
from dashboard.reading.operators import COVERS, NODE, RAN_ON, TYPE, time_columns, total_us
from dashboard.views import compared_operators
from dashboard.views.access import page, signed_in_user
from farm.base.refusals import Missing
from farm.config.security import CONTENT_SECURITY_POLICY
from farm.contract.document_cells import Cell, OperatorTime
from farm.registry import selectors, services
from farm.rules.presenting.tables import Table
from farm.rules.wording import numbers, titles
from farm.runs.selectors import cell_document, run
from farm.runs.selectors.cells import TracedCell, traced_cells

if TYPE_CHECKING:
    from farm.accounts.models import User


# the headline counts the fewest operators that have at least this share of all operators' time
SHARE_NAMED = 0.8
SHOWN = 500
# at each of these shares of the time a node's colour gets one step darker
STEPS = (0.01, 0.03, 0.1, 0.25)


def cell_key(cell: TracedCell) -> str:
    return f"{cell.run_id}:{cell.name}"


def write_headline(cell: Cell) -> str:
    """Say which share of an inference the fewest operators take that have SHARE_NAMED of all operators' time. As in the
    table, an inference includes its time in no operator."""
    times = sorted((operator.time_us for operator in cell.operators), reverse=True)
    least = SHARE_NAMED * sum(times)
    few = next((number for number, so_far in enumerate(accumulate(times), 1) if so_far >= least), len(times))
    share = numbers.share(sum(times[:few]) / (total_us(cell) or 1.0))
    return f"{share} of an inference is in {few} of {numbers.counted(len(times), 'operator')}"


def describe_top_operator(cell: Cell) -> str:
    """Describe the operator that takes most time. Its share is of the whole time, including time in no operator. The
    cell must have operators."""
    whole = total_us(cell)
    top = max(cell.operators, key=lambda operator: operator.time_us)
    part = numbers.share(top.time_us / whole if whole else None)
    time_us, where = numbers.plain(top.time_us), titles.provider(top.provider)
    return f"{top.op_type} {top.node} takes {time_us} µs of an inference, {part} of it, on {where}."


def write_graph_notes(cell: Cell) -> str:
    """Write the notes that the frame shows on the model's nodes, as JSON that is safe inside a script element. Each
    node has `text`, `more` (the tooltip), and the `step` of its colour, 1 to 5. The note of a fused node names the node
    into which it was fused, and has the step 0."""
    whole = total_us(cell) or 1.0
    written: dict[str, dict[str, str | int]] = {operator.node: _note(operator, whole) for operator in cell.operators}
    for operator in cell.operators:
        where = f"in {shorten_start(operator.node, most=24)}"
        for inner in operator.covers:
            more = f"fused into {operator.op_type} {operator.node}"
            written.setdefault(inner, {"text": where, "more": more, "step": 0})
    return script_json(written)


def _note(operator: OperatorTime, whole: float) -> dict[str, str | int]:
    share = operator.time_us / whole
    text = f"{numbers.plain(operator.time_us)} µs · {numbers.share(share)} · {titles.provider(operator.provider)}"
    fused = f", with {numbers.listed(operator.covers, most=4)} in it" if operator.covers else ""
    more = f"ran as {operator.op_type} on {operator.provider}{fused}"
    return {"text": text, "more": more, "step": 1 + sum(share >= at for at in STEPS)}


def make_table(cell: Cell) -> Table:
    """Make the table of the SHOWN operators that take most time, the longest first."""
    longest = sorted(cell.operators, key=lambda operator: -operator.time_us)[:SHOWN]
    time, share = time_columns([operator.time_us for operator in longest], total_us(cell), "µs")
    share = replace(share, note="of an inference, its time in no operator included")
    shown = (NODE, replace(time, note="per inference"), share, TYPE, RAN_ON, COVERS)
    return Table.of("operators", "The model's nodes by time", shown, longest)


def describe_omitted(cell: Cell) -> str:
    """Say how many operators the table leaves out; empty where it has all."""
    rest = len(cell.operators) - SHOWN
    if rest <= 0:
        return ""
    shortest = sorted((operator.time_us for operator in cell.operators), reverse=True)[SHOWN - 1]
    counted = numbers.counted(rest, "more operator")
    return f"{counted} of at most {numbers.plain(shortest)} µs each: see the cell's page."


# this is the only page that shows a frame, and the frame must be the farm's own
POLICY = f"{CONTENT_SECURITY_POLICY}; frame-src 'self'"
HOUR_S, YEAR_S = 3600, 365 * 24 * 3600


@page
def graph(request: HttpRequest, version_id: int) -> HttpResponse:
    """Show the graph of a version with the times of a traced cell on its nodes, and the same times as a table. `cell`
    in the address names the cell, else it is the newest; `against` names a cell to compare it with. Raises Missing for
    an unknown `cell`; an unknown `against` is ignored."""
    version = selectors.version(signed_in_user(request), version_id)
    cells = traced_cells(signed_in_user(request), version)
    chosen = _choose_cell(cells, request.GET.get("cell", ""))
    context: dict[str, object] = {
        "version": version,
        "choices": [(cell_key(cell), f"run {cell.run_id}, {cell.name}: {titles.setting(cell)}") for cell in cells],
        "netron": netron.release(),
        "facts": version.inspection or {},
    }
    if chosen is not None:
        row = run(signed_in_user(request), chosen.run_id)
        cell = cell_document(row, chosen.name)
        context |= {
            "run": row,
            "cell": cell,
            "chosen": cell_key(chosen),
            "headline": write_headline(cell),
            "because": describe_top_operator(cell),
            "notes": write_graph_notes(cell),
            "table": make_table(cell),
            "left_out": describe_omitted(cell),
        }
        base = next((cell for cell in cells if cell_key(cell) == request.GET.get("against")), None)
        if base is not None and base != chosen:
            context |= _compare_with_base(signed_in_user(request), base, chosen)
    response = render(request, "dashboard/graph.html", context)
    response["Content-Security-Policy"] = POLICY
    return response


def _compare_with_base(user: "User", base: TracedCell, chosen: TracedCell) -> dict[str, object]:
    """Make the context that compares two cells: both times on each node, with the nodes marked whose time moved."""
    pair = []
    for traced in (base, chosen):
        row = run(user, traced.run_id)
        pair.append(judging.ChosenCell(cell_key(traced), row.pk, cell_document(row, traced.name), "", row.version_id))
    found = compared_operators.group_operators(pair, compared_operators.find_comparisons(user, pair))
    return {
        "against": cell_key(base),
        "headline": compared_operators.write_headline(pair, found),
        "because": f"Times on the nodes: {' → '.join(compared_cells.name_cells(pair))}, from traces.",
        "notes": compared_operators.write_graph_notes(found),
        "table": compared_operators.make_table(pair, found),
        "left_out": "",
    }


def _choose_cell(cells: list[TracedCell], wanted: str) -> TracedCell | None:
    """Find the cell named `wanted`, or the newest where it is empty; None where no cell was traced. Raises Missing for
    an unknown name."""
    if not wanted:
        return cells[0] if cells else None
    chosen = next((cell for cell in cells if cell_key(cell) == wanted), None)
    if chosen is None:
        raise Missing(f"This version has no traced cell {wanted!r}.", hint="Choose one on the page of its graph.")
    return chosen


@page
def serve_outline(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """Serve the version's graph without its weights, for the frame. Where it does not exist yet, order it and respond
    with 202 until the workshop has prepared it."""
    version = selectors.version(signed_in_user(request), version_id)
    path = services.find_or_order_outline(version)
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
def serve_frame(request: HttpRequest) -> HttpResponse:
    """Serve Netron's page without a model. It gets the model from the page around it, and its policy lets it contact no
    server."""
    context = {"skeleton": netron.skeleton(), "release": netron.release()}
    response = render(request, "dashboard/netron.html", context)
    response["Content-Security-Policy"] = netron.FRAME_POLICY
    return response


@require_safe
@condition(etag_func=lambda _request, name: quote_etag(file.digest) if (file := netron.part(name)) else None)
def serve_part(request: HttpRequest, name: str) -> HttpResponse:
    """Serve a file of the viewer, gzipped, or 404. It needs no sign-in, because the sandboxed frame sends no session,
    and everybody can get the same file from the wheel."""
    file = netron.part(name)
    if file is None:
        return HttpResponse("Netron has no such file here.", status=404, content_type="text/plain; charset=utf-8")
    response = HttpResponse(file.packed, content_type=file.kind)
    response["Content-Encoding"] = "gzip"
    response["Access-Control-Allow-Origin"] = "*"
    patch_cache_control(response, public=True, max_age=HOUR_S)
    return response


@page
def serve_operators(request: HttpRequest) -> HttpResponse:
    """Serve Netron's descriptions of ONNX's operators as gzipped JSON, which browsers may keep for a year."""
    response = HttpResponse(netron.operators(), content_type="application/json")
    response["Content-Encoding"] = "gzip"
    patch_cache_control(response, private=True, max_age=YEAR_S, immutable=True)
    return response
