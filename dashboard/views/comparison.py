"""The page that compares cells of any runs, a base and up to three others, which the address names."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NotRequired, TypedDict

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard import axes
from dashboard.figures import beside
from dashboard.figures.figure import Figure
from dashboard.reading import compared_cells, compared_lines, copies, pairs
from dashboard.reading.compared_cells import MAX_CHOSEN, Row, make_rows, name_cells, pin_base
from dashboard.reading.judging import ChosenCell, PairVerdict, judge_pair
from dashboard.views import compared_operators, compared_runs, lists
from dashboard.views.access import page, signed_in_user
from dashboard.views.lists import first_rows, make_page_in_order, read_row_numbers, read_search_words
from farm.base.refusals import Missing
from farm.contract.document_comparisons import Comparison
from farm.contract.numbers import is_row_number
from farm.rules.cells.metric import Metric
from farm.rules.presenting import answers
from farm.rules.presenting.tables import Table
from farm.rules.wording import titles
from farm.runs import selectors
from farm.runs.selectors import pages
from farm.runs.selectors.cells import MAX_HITS, cells_matching, list_measured_cells
from farm.runs.selectors.runs import devices_by_block

if TYPE_CHECKING:
    from farm.accounts.models import User
    from farm.runs.models import Run


KEPT = ("cells", "base", "view", "metric", "every", "find")


class Panel(TypedDict):
    """The context of cells side by side: headline, rows, and the chart where one can be drawn. `conditions`: what the
    cells share, in words; `every`: equal rows are shown too; `find`: the searched words; `equal`: how many rows are
    equal for all cells."""

    chosen: list[ChosenCell]
    headline: str
    conditions: str
    every: bool
    find: str
    rows: list[compared_lines.Line]
    equal: int
    table: Table
    figure: NotRequired[Figure]
    metrics: NotRequired[list[Metric]]
    metric: NotRequired[str]


@page
def compare(request: HttpRequest) -> HttpResponse:
    """Compare the cells named by `cells=RUN:CELL`, at most MAX_CHOSEN, with the first cell or the one in `base`, and
    list further cells to choose from. `runs=RUN`, given at least twice, compares whole runs instead. `view` shows
    operators or timelines instead, and `as` asks for a file of the rows. For a cell that cannot be shown the page has a
    sentence; only a run in `runs` that does not exist raises Missing."""
    numbers = read_row_numbers(request.GET, "runs", most=MAX_CHOSEN)
    if len(numbers) > 1:
        return compared_runs.render_runs(request, numbers)
    chosen, problems, known = _read_cells(request)
    verdicts = judge_by_base(signed_in_user(request), chosen, known)
    view = compared_operators.read_view(request, chosen)
    if view:
        return _render_closer(request, view, chosen, verdicts)
    panel = make_panel(request, chosen, verdicts)
    if lists.wants_file(request) and chosen:
        return lists.render_file(
            request, "compared-cells", panel["rows"], lambda line: compared_lines.make_file_row(chosen, line)
        )
    runs = _list_runs(request)
    matrices = {choice.run_id: known[choice.run_id].matrix for choice in chosen}
    context: dict[str, object] = {
        **panel,
        "problems": problems,
        "compared": _list_cells(request, chosen, verdicts),
        "copies": copies.copy_runs(
            matrices,
            matrix=copies.write_matrix(
                pages.cell_specs([(choice.run_id, choice.cell.id) for choice in chosen]), matrices=matrices.values()
            ),
            url=settings.PUBLIC_URL,
        ),
        "share_subject": ",".join(choice.key for choice in chosen),
        "may_share": selectors.can_write_runs(signed_in_user(request), {known[choice.run_id].pk for choice in chosen}),
        "may_add": len(chosen) < MAX_CHOSEN,
        "kept": lists.read_parameters(request, KEPT),
        "taken": {choice.key for choice in chosen},
        "runs": runs,
        **list_offered(request, runs),
    }
    if not chosen:
        whole = request.GET.get("by") == "runs" or bool(numbers)
        context |= _choose_two_runs(runs, numbers) if whole else {"pairs": pairs.list_pairs(list_measured_cells(runs))}
        context["by"] = "runs" if whole else "cells"
    return render(request, "dashboard/compare.html", context)


def _render_closer(
    request: HttpRequest, view: str, chosen: list[ChosenCell], verdicts: list[PairVerdict]
) -> HttpResponse:
    """Render the operators or the timelines of the chosen cells, below the list of the cells."""
    groups = compared_operators.find_groups(signed_in_user(request), chosen)
    if lists.wants_file(request):
        return compared_operators.render_file(request, chosen, groups)
    context = {
        "headline": write_headline(chosen, verdicts),
        "conditions": compared_cells.describe_conditions(chosen, verdicts),
        "chosen": chosen,
        "compared": _list_cells(request, chosen, verdicts),
        "view": view,
        "kept": lists.read_parameters(request, KEPT),
        **compared_operators.make_panel(request, view, chosen, groups),
    }
    return render(request, "dashboard/compare_closer.html", context)


def write_headline(chosen: list[ChosenCell], verdicts: list[PairVerdict]) -> str:
    """Say how the cells compare, and name their model if all have the same; empty for fewer than two cells."""
    headline = compared_cells.write_headline(chosen, verdicts)
    is_one_model = len({choice.cell.model for choice in chosen}) == 1
    return answers.name_models(headline, [chosen[0].cell]) if headline and is_one_model else headline


def make_panel(request: HttpRequest, chosen: list[ChosenCell], verdicts: list[PairVerdict]) -> Panel:
    """Make the panel for the compare page and for share links: the rows that differ, or all rows with `every=yes`, that
    contain the words in `find`, and for at least two cells the chart of the metric in the address."""
    every, wanted = request.GET.get("every") == "yes", read_search_words(request, "find")
    whole = compared_lines.make_lines(chosen, verdicts) if len(chosen) > 1 else []
    rows = compared_lines.select_lines(whole, every=every, wanted=wanted)
    panel: Panel = {
        "chosen": chosen,
        "headline": write_headline(chosen, verdicts),
        "conditions": compared_cells.describe_conditions(chosen, verdicts),
        "every": every,
        "find": wanted,
        "rows": rows,
        "equal": sum(not line.differs for line in whole),
        "table": compared_lines.make_table(chosen, rows),
    }
    metrics = beside.drawable_metrics([choice.cell for choice in chosen])
    if len(chosen) < 2 or not metrics:
        return panel
    metric = compared_runs.choose_metric(request, metrics, verdicts)
    panel |= {"figure": _draw_bars(metric, chosen, verdicts), "metrics": metrics, "metric": metric.name}
    return panel


def _draw_bars(metric: Metric, chosen: list[ChosenCell], verdicts: list[PairVerdict]) -> Figure:
    base, names = chosen[0].cell, name_cells(chosen)
    bars = [beside.Bar(names[0], base, chosen[0].href)]
    for name, choice, verdict in zip(names[1:], chosen[1:], verdicts, strict=True):
        change = compared_lines.describe_change(metric, base, choice.cell, verdict)
        bars.append(beside.Bar(name, choice.cell, choice.href, change.text, change.tone))
    return beside.draw_cells(metric, bars)


def _list_cells(request: HttpRequest, chosen: list[ChosenCell], verdicts: list[PairVerdict]) -> list[Row]:
    """Make the rows of the cells, with the addresses that pin a cell as the base and that remove it."""
    keys = [choice.key for choice in chosen]
    rows = []
    for row in make_rows(chosen, verdicts):
        others = [key for key in keys if key != row.choice.key]
        is_base = row.verdict is None
        pin = "" if is_base else _make_address(request, keys, base=row.choice.key)
        rows.append(replace(row, pin=pin, without=_make_address(request, others, base="" if is_base else keys[0])))
    return rows


def _make_address(request: HttpRequest, keys: list[str], *, base: str) -> str:
    query = request.GET.copy()
    query.setlist("cells", keys)
    query.pop("base", None)
    if base:
        query["base"] = base
    return f"?{query.urlencode(safe=':')}"


def _read_cells(request: HttpRequest) -> tuple[list[ChosenCell], list[str], dict[int, "Run"]]:
    """Load the cells that the address names, the base first. The other values are a sentence for each cell that cannot
    be shown, and the loaded runs by number."""
    runs: dict[int, Run] = {}
    known, problems = [], []
    keys = list(dict.fromkeys(request.GET.getlist("cells")))
    if len(keys) > MAX_CHOSEN:
        problems.append(f"{len(keys)} cells were chosen; the first {MAX_CHOSEN} of them are compared.")
    for key in keys[:MAX_CHOSEN]:
        try:
            known.append(_load_cell(signed_in_user(request), key, runs))
        except Missing as missing:
            problems.append(str(missing))
    return pin_base(known, request.GET.get("base", "")), problems, runs


def _load_cell(user: "User", key: str, runs: dict[int, "Run"]) -> ChosenCell:
    run_id, _, cell_id = key.partition(":")
    if not is_row_number(run_id):
        raise Missing(f"“{key[:60]}” names no cell: write RUN:CELL.")
    # several cells are usually of the same run, which is loaded only once
    run = runs.get(int(run_id)) or runs.setdefault(int(run_id), selectors.run(user, int(run_id)))
    cell = selectors.cell_document(run, cell_id)
    return ChosenCell(key, run.pk, cell, reverse("dashboard:cell", args=[run.pk, cell.id]), run.version_id)


def judge_by_base(
    user: "User", chosen: list[ChosenCell], known: Mapping[int, "Run"] | None = None
) -> list[PairVerdict]:
    """Judge each cell except the first against the first, in order; empty for fewer than two cells. `known`: runs that
    were loaded for this user already, by number; other runs are loaded with the rights of `user`."""
    if len(chosen) < 2:
        return []
    if len({choice.cell.node for choice in chosen}) > 1:
        devices = devices_by_block({choice.run_id for choice in chosen})
        chosen = [replace(choice, device=devices.get((choice.run_id, choice.cell.block), "")) for choice in chosen]

    def comparisons_of(choice: ChosenCell) -> list[Comparison]:
        run = (known or {}).get(choice.run_id) or selectors.run(user, choice.run_id)
        return selectors.comparisons_of(run, name=choice.cell.id, with_operators=False)

    base, *others = chosen
    measured = comparisons_of(base)
    return [
        judge_pair(base, other, measured, comparisons_of(other) if other.run_id != base.run_id else ())
        for other in others
    ]


def _choose_two_runs(runs: list["Run"], named: list[int]) -> dict[str, int | None]:
    """Choose the form's first values: as base the first named run, else the second newest; against it the newest other
    run. A value is None where there are too few runs."""
    known = [run.pk for run in runs]
    base = next((number for number in named if number in known), known[1] if len(known) > 1 else None)
    return {"base": base, "against": next((number for number in known if number != base), None)}


RUNS_SHOWN = 50


def list_offered(request: HttpRequest, runs: list["Run"]) -> dict[str, object]:
    """Make the context of the list of cells to choose from, each with its key, its name and where it is. With searched
    words these are at most MAX_HITS matching cells of any run; else a page of the cells of the run in `?run=`, or of
    the first of `runs`. Chosen cells stay in the list."""
    typed = read_search_words(request)
    if typed:
        matching = cells_matching(signed_in_user(request), typed)
        cells = []
        for match in matching[:MAX_HITS]:
            node = f" on {match.node}" if match.node else ""
            name = f"{match.model} v{match.version}: {titles.setting(match)}{node}"
            cells.append((f"{match.run_id}:{match.name}", name, f"run {match.run_id}, {match.name}"))
        return {"words": typed, "cells": cells, "has_more": len(matching) > MAX_HITS}
    run = next((run for run in runs if str(run.pk) == request.GET.get("run", "")), runs[0] if runs else None)
    if run is None:
        return {}
    shown = make_page_in_order(request, selectors.measured_cells(run))
    measured = [selectors.parse_cell(row) for row in shown]
    along = axes.varying_axes(measured)
    cells = [(f"{run.pk}:{cell.id}", axes.name_of(cell, along), cell.id) for cell in measured]
    return {"run": run, "cells": cells, "page": shown}


def _list_runs(request: HttpRequest) -> list["Run"]:
    """List the newest RUNS_SHOWN runs, the newest first, and at the end the run in `?run=` if it is not among them."""
    runs = first_rows(selectors.runs_for_lists(signed_in_user(request)), RUNS_SHOWN)
    wanted = request.GET.get("run", "")
    if is_row_number(wanted) and all(str(run.pk) != wanted for run in runs):
        runs += selectors.runs_for_lists(signed_in_user(request)).filter(pk=int(wanted))
    return runs
