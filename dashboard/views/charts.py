"""The charts of a run, of which the page shows the one that the address names."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NotRequired, TypedDict

from django.http import HttpRequest

from dashboard.figures import cell_bars, latency, operators, pareto, ratios, scenarios, throughput
from dashboard.figures.figure import Address, Figure, empty_figure
from dashboard.reading import comparisons
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells import recipes
from farm.rules.presenting import headlines
from farm.rules.presenting.tables import Table
from farm.runs import selectors
from farm.runs.selectors import pages
from farm.runs.selectors.cells import add_lost_accuracy

if TYPE_CHECKING:
    from farm.accounts.selectors import Anyone
    from farm.runs.models import Run


@dataclass(frozen=True)
class Tab:
    """A tab of the charts. `name`: the name of its chart in the address."""

    name: str
    label: str


class Chart(TypedDict):
    """The context with the chosen chart. `chart`: its name; `table_open`: its table is shown from the start. Where the
    chart shows a single comparison, `pairs` has the keys and names of all that can be chosen, and `pair` its key."""

    tabs: tuple[Tab, ...]
    chart: str
    figure: Figure
    table_open: NotRequired[bool]
    pairs: NotRequired[list[tuple[str, str]]]
    pair: NotRequired[str]


TABS = (
    Tab("comparisons", "Comparisons"),
    Tab("latency", "Latency"),
    Tab("operators", "Operators"),
    Tab("providers", "Providers"),
    Tab("throughput", "Throughput"),
    Tab("pareto", "Accuracy"),
    Tab("cold-start", "Cold start"),
    Tab("memory", "Memory"),
)


def make_chart(request: HttpRequest, row: "Run", document: Document, address: Address) -> Chart:
    """Draw the chart that `?chart=` names, else the chart that fits the run best.

    Tabs for the run's own scenarios come before TABS. `?along=` names the axis whose comparisons are drawn, and
    `?pair=` the comparison whose operators are drawn. Without them the headline's axis or comparison is used, also for
    an unknown comparison; for an unknown axis it is the first of comparisons.list_axes.
    """
    of_scenarios = scenarios.list_run_figures(document.cells, address, document.comparisons)
    tabs = (*(Tab(chart.name, chart.label) for chart in scenarios.CHARTS if chart.name in of_scenarios), *TABS)
    name = request.GET.get("chart", "")
    if name not in {tab.name for tab in tabs}:
        name = _choose_chart(document, of_scenarios)
    if name in of_scenarios:
        return {"tabs": tabs, "chart": name, "figure": of_scenarios[name](), "table_open": True}
    if name == "operators":
        return {**_draw_operators(request, row, document), "tabs": tabs}
    drawn: dict[str, Callable[[], Figure]] = {
        "comparisons": lambda: _draw_ratios(document, address, along=request.GET.get("along", "")),
        "latency": lambda: latency.draw_latency(document.cells, document.comparisons, address),
        "providers": lambda: cell_bars.draw_providers(document.cells, address),
        "throughput": lambda: throughput.draw_throughput(document.cells, address, document.comparisons),
        "pareto": lambda: draw_accuracy(row, document, address),
        "cold-start": lambda: cell_bars.draw_cold_start(document.cells, address, document.comparisons),
        "memory": lambda: cell_bars.draw_memory(document.cells, address),
    }
    return {"tabs": tabs, "chart": name, "figure": drawn[name]()}


def _choose_chart(document: Document, of_scenarios: Iterable[str]) -> str:
    """Choose the chart that fits a run best: accuracy where several precisions were judged on one runtime, else the
    chart of its scenario, else comparisons, else latency."""
    judged = [cell for cell in document.cells if cell.accuracy is not None and cell.accuracy.value is not None]
    if len({cell.precision for cell in judged}) > 1 and len({cell.runtime for cell in judged}) == 1:
        return "pareto"
    for name in of_scenarios:
        if scenarios.is_about(document.cells, name):
            return name
    has_ratios = any(comparison.ratio is not None for comparison in document.comparisons)
    return "comparisons" if has_ratios else "latency"


def draw_accuracy(row: "Run", document: Document, address: Address) -> Figure:
    """Draw accuracy against latency of a run's cells. The operators of judged quantised cells are loaded for the
    table."""
    return pareto.draw_cells([_add_operators(row, cell) for cell in document.cells], address, document.comparisons)


def draw_model_accuracy(user: "Anyone", row: "Run", address: Address) -> Figure:
    """Draw accuracy against latency of a run for its model's page. Each cell also has its loss against earlier versions
    on the same labelled data."""
    document = selectors.document(row, with_operators=False)
    cells = add_lost_accuracy(user, row.version.model, row.version.number, document.cells)
    return draw_accuracy(row, document.model_copy(update={"cells": cells}), address)


def _add_operators(row: "Run", cell: Cell) -> Cell:
    """Load the operators of a quantised cell that was judged on labelled data, because its row describes them."""
    is_judged = cell.accuracy is not None and recipes.is_quantised(cell.precision)
    if cell.operators or not is_judged or cell.status != "done":
        return cell
    return cell.model_copy(update={"operators": selectors.cell_document(row, cell.id).operators})


def _draw_ratios(document: Document, address: Address, *, along: str) -> Figure:
    """Draw the comparisons of the axis `along`, or where it is empty of the headline's axis."""
    by_id = {cell.id: cell for cell in document.cells}
    drawn = comparisons.drop_twins(comparisons.select_axis(document.comparisons, along, by_id), by_id)
    return ratios.draw_ratios(comparisons.name_comparisons(drawn, by_id, address))


def _draw_operators(request: HttpRequest, row: "Run", document: Document) -> Chart:
    """Draw the operators of the comparison that the address names, else of the headline's comparison."""
    by_id = {cell.id: cell for cell in document.cells}
    opening = headlines.rank_results(document.comparisons, by_id)
    known = comparisons.drop_twins(comparisons.select_axis(document.comparisons, opening.axis, by_id), by_id)
    keys = {_make_key(comparison): comparison for comparison in known}
    usual = opening.leading.comparison if opening.leading is not None else next(iter(known), None)
    wanted = keys.get(request.GET.get("pair", "")) or usual
    if wanted is None:
        empty = Table.of(operators.NAME, "Operators", operators.COLUMNS, ())
        sentence = "No two cells have been compared yet."
        return {"tabs": TABS, "chart": "operators", "figure": empty_figure(operators.NAME, sentence, empty)}
    chosen = wanted if wanted.operators else pages.add_operators(row, wanted)
    named = comparisons.name_comparisons(known, by_id, str)
    labels = [(key, shown.name) for key, shown in zip(keys, named, strict=True)]
    figure = operators.draw_operators(chosen, operators.name_sides(by_id[chosen.baseline], by_id[chosen.candidate]))
    return {"tabs": TABS, "chart": "operators", "figure": figure, "pairs": labels, "pair": _make_key(chosen)}


def _make_key(comparison: Comparison) -> str:
    return f"{comparison.baseline}~{comparison.candidate}"
