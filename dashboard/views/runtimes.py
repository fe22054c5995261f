"""Which releases of ONNX Runtime the fleet has, with which providers."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.reading import file_rows
from dashboard.reading import runtimes as reading
from dashboard.views import downloads
from dashboard.views.access import page, person
from farm.alerts.selectors.histories import history_of
from farm.alerts.selectors.pages import looks
from farm.alerts.selectors.releases import published
from farm.fleet.selectors import nodes_listed
from farm.fleet.states import NodeHealth
from farm.runs.selectors.releases import measured_with


@page
def runtimes(request: HttpRequest) -> HttpResponse:
    """Version × provider × node of one distribution at a time."""
    user = person(request)
    nodes = list(nodes_listed(user).exclude(health=NodeHealth.RETIRED).order_by("name"))
    asked = looks()
    names = reading.distributions(nodes, asked)
    distribution = reading.chosen(request.GET.get("distribution", ""), names)
    offered = published(distribution, with_prereleases=request.GET.get("early") == "yes")
    history = history_of(user, distribution)
    measured = measured_with(user, distribution)
    board = reading.board(distribution, nodes=nodes, offered=offered, history=history, measured=measured)
    if downloads.is_wanted(request):
        name = f"runtimes-{distribution}"
        return downloads.as_file(request, name, board.rows, lambda row: file_rows.release(row, board.columns))
    context = {
        "board": board,
        "distributions": names,
        "early": request.GET.get("early") == "yes",
        "index": reading.index_words(asked.get(distribution), every_s=settings.INDEX_POLL_S),
        "watches": history.watches,
        "has_nodes": bool(nodes),
        "command": "onnxfarm submit model.onnx --matrix matrix.yaml --wait",
    }
    return render(request, "dashboard/runtimes.html", context)
