"""Two to four runs compared cell by cell, as far as the filters of the address leave them."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard.figures import beside
from dashboard.reading import copies
from dashboard.reading import whole_runs as reading
from dashboard.views import downloads
from dashboard.views.access import person
from farm.runs import selectors

# parameters of the address that each of the page's forms leaves as it is
KEPT = ("runs", "base", "metric", "kind", "least", "sure", "find")


def whole_runs(request: HttpRequest, numbers: list[int]) -> HttpResponse:
    """The runs of these numbers. The base is the one that the address pins, else the first."""
    numbers = sorted(numbers, key=lambda number: str(number) != request.GET.get("base"))
    rows = [selectors.run(person(request), number) for number in numbers]
    documents = [selectors.document(row, with_operators=False) for row in rows]
    every = reading.matches(documents)
    filters = reading.Filters.read(request.GET)
    left = reading.shown(every, filters)
    if downloads.is_wanted(request):
        return downloads.as_file(request, "compared-runs", left, lambda one: reading.as_row(numbers, one))
    context = {
        **_chart(request, numbers, left),
        "kept": [(name, value) for name in KEPT for value in request.GET.getlist(name) if value],
        "headline": reading.headline(numbers, every),
        "rows": rows,
        "differing": reading.differing(documents),
        "every": every,
        "left": left,
        "table": reading.table(numbers, left, _address),
        "kinds": reading.KINDS,
        "filters": filters,
        "least": round(100 * filters.least),
        "copies": copies.of_runs(numbers, url=settings.PUBLIC_URL),
    }
    return render(request, "dashboard/compare_runs.html", context)


def _chart(request: HttpRequest, numbers: list[int], left: list[reading.Match]) -> dict[str, object]:
    """The points of the metric that the address names; of the first one where it names none that is known."""
    metrics = beside.drawable([cell for one in left for cell in one.cells if cell is not None])
    if not metrics:
        return {}
    metric = next((one for one in metrics if one.name == request.GET.get("metric")), metrics[0])
    rows = [beside.Matched(one.name, one.cells) for one in left]
    figure = beside.runs_beside(metric, numbers, rows, _address)
    return {"figure": figure, "metrics": metrics, "metric": metric.name}


def _address(run: int, cell: str) -> str:
    return reverse("dashboard:cell", args=[run, cell])
