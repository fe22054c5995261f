"""The page that compares two to four runs cell by cell, with filters in the address."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import TypeGuard

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard import axes
from dashboard.figures import beside
from dashboard.figures.figure import latency_entry
from dashboard.reading import copies
from dashboard.reading.compared_lines import FACTS, PROCESSOR_TIME
from dashboard.reading.judging import ChosenCell, PairVerdict, judge_pair
from dashboard.views import lists
from dashboard.views.access import signed_in_user
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells.axes import runtime_sort_key
from farm.rules.cells.metric import Metric
from farm.rules.comparing.quantities import is_same_model
from farm.rules.presenting.tables import Entry, Head, Table
from farm.rules.presenting.times import clock_title
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import WRONG, sign_of
from farm.runs import selectors

# the keys of the two compared cells in a verdict
BASE, OTHER = "base", "other"
# at most so many matches are compared, since each takes as long as a small page
MAX_MATCHES = 500
APART = "left out: the change is of the pairs of one block, from which both medians are apart otherwise"
KINDS = (("", "every cell"), ("both", "measured in all"), ("one", "missing or failed in one"))


@dataclass(frozen=True)
class Filters:
    """The filters of the matches. `kind`: a key of KINDS; `is_sure`: only changes whose interval excludes 1 count;
    `min_change`: the least change, as a fraction; `words`: texts that the name of a match must contain."""

    kind: str = ""
    is_sure: bool = False
    min_change: float = 0.0
    words: str = ""

    @classmethod
    def read(cls, request: HttpRequest) -> "Filters":
        """Read the filters from the address. A value that cannot be read filters nothing. In the address `least` is
        `min_change` in percent."""
        kind, least = request.GET.get("kind", ""), request.GET.get("least", "")
        percent = int(least) if least.isdecimal() and len(least) < 4 else 0
        known = kind if kind in dict(KINDS) else ""
        return cls(known, request.GET.get("sure") == "yes", percent / 100, lists.read_search_words(request, "find"))

    def keeps(self, match: "Match") -> bool:
        """Whether the match passes all filters. With `min_change` or `is_sure`, at least one of its cells must have
        such a change against the base."""
        if not all(word in match.name.lower() for word in self.words.lower().split()):
            return False
        if self.kind and (None not in match.judged) != (self.kind == "both"):
            return False
        if not self.is_sure and not self.min_change:
            return True
        sure = [judged for judged in match.judged if judged and (judged.excludes_no_change or not self.is_sure)]
        return any(judged.ratio and abs(log(judged.ratio)) >= log(1 + self.min_change) for judged in sure)


@dataclass(frozen=True)
class Match:
    """The cells with the same settings in each run, the base first. `cells`: None where a run has no such cell;
    `judged`: the verdict for each run except the base, None where either cell is missing or was not measured;
    `release`: the sort key of the runtime."""

    name: str
    cells: tuple[Cell | None, ...]
    judged: tuple[PairVerdict | None, ...]

    def is_wrong(self, place: int) -> bool:
        """Whether the outputs of the cell at this place, 0 for the base, are wrong. False where it was not compared."""
        key, verdicts = (OTHER, self.judged[place - 1 : place]) if place else (BASE, self.judged)
        return any(judged is not None and key in judged.wrong for judged in verdicts)

    @property
    def release(self) -> tuple[object, ...]:
        return next((runtime_sort_key(cell.runtime) for cell in self.cells if cell is not None), ())

    @property
    def size(self) -> float:
        """Return the largest change of the match in either direction, as the logarithm of its ratio; 0 without any."""
        return max(
            (abs(log(verdict.ratio)) for verdict in self.judged if verdict is not None and verdict.ratio), default=0.0
        )


def match_cells(documents: Sequence[Document]) -> list[Match]:
    """Match the cells of the documents by the axes that vary within any document, and sort the matches by their largest
    change. A/A twins are left out. A model that was renamed between the runs counts under its first name. Only the
    first MAX_MATCHES settings are matched; where two cells of a run have the same settings, the first one is used."""
    own = [[cell for cell in document.cells if cell.twin_of is None] for document in documents]
    names: dict[str, str | None] = {}
    for cell in (cell for cells in own for cell in cells if cell.model_sha256):
        names.setdefault(cell.model_sha256, cell.model)
    varied = [axis for axis in axes.AXES if any(len({axis.label(cell) for cell in cells}) > 1 for cells in own)]
    places: dict[tuple[str, ...], list[Cell | None]] = {}
    for number, cells in enumerate(own):
        for cell in cells:
            # a model that was renamed between the runs is matched under its first name
            named = cell.model_copy(update={"model": names.get(cell.model_sha256, cell.model)})
            found = places.setdefault(axes.place_of(named, varied), [None] * len(own))
            found[number] = found[number] or cell
    made = []
    measured = [_group_comparisons(document) for document in documents]
    for place, (base, *others) in list(places.items())[:MAX_MATCHES]:
        compared = zip(others, measured[1:], strict=True)
        judged = tuple(_judge(base, other, measured[0], of_other) for other, of_other in compared)
        made.append(Match(" · ".join(place) or "the only cell", (base, *others), judged))
    return sorted(made, key=lambda match: (-match.size, match.release))


def _group_comparisons(document: Document) -> Mapping[str, Sequence[Comparison]]:
    found: dict[str, list[Comparison]] = {}
    for comparison in document.comparisons:
        for cell in (comparison.baseline, comparison.candidate):
            found.setdefault(cell, []).append(comparison)
    return found


def _judge(
    base: Cell | None,
    other: Cell | None,
    of_base: Mapping[str, Sequence[Comparison]],
    of_other: Mapping[str, Sequence[Comparison]],
) -> PairVerdict | None:
    if base is None or other is None or base.p50_ms is None or other.p50_ms is None:
        return None
    chosen = ChosenCell(BASE, 0, base, ""), ChosenCell(OTHER, 1, other, "")
    return judge_pair(*chosen, of_base.get(base.id, []), of_other.get(other.id, []))


def write_headline(runs: Sequence[int], rows: Sequence[Match]) -> str:
    """Say which runs have wrong outputs, how many cells changed by more than their interval, and name the largest
    change. Only matches that were measured in all runs count. Of different models it only says so."""
    others = numbers.listed([f"run {run}" for run in runs[1:]])
    first = f"{others[:1].upper()}{others[1:]} against run {runs[0]}"
    both = [row for row in rows if None not in row.judged]
    if not both:
        return f"{first}: no cell was measured in {'both' if len(runs) == 2 else 'all of them'}"
    counts = {run: sum(match.is_wrong(place) for match in both) for place, run in enumerate(runs)}
    of = numbers.counted(len(both), "cell")
    wrong = [f"{WRONG} of run {run} in {count} of {of}" for run, count in counts.items() if count]
    is_one_model = any(_has_same_model(match.cells) for match in both)
    if len(both) == 1 < len(rows):
        first = f"Only {both[0].name} is in {'both' if len(runs) == 2 else 'all'} runs"
    finding = _largest_change(runs, both) if is_one_model else "different models, shown side by side without a verdict"
    return f"{first}: {'; '.join([*wrong, finding])}"


def _has_same_model(cells: Sequence[Cell | None]) -> bool:
    known = [cell for cell in cells if cell is not None]
    return all(is_same_model(known[0], cell) for cell in known)


def _largest_change(runs: Sequence[int], both: Sequence[Match]) -> str:
    sure = [match for match in both if any(map(_is_clear_change, match.judged))]
    if not sure:
        return f"no clear difference{f' in {len(both)} cells' if len(both) > 1 else ''}"
    changes = [(judged, run) for judged, run in zip(sure[0].judged, runs[1:], strict=True) if _is_clear_change(judged)]
    top, run = max(changes, key=lambda change: abs(log(change[0].ratio or 1.0)))
    if len(both) == 1:
        return f"{top.change} in run {run}"
    counted = f"{len(sure)} of {numbers.counted(len(both), 'cell')}"
    return f"{counted} {'differs' if len(sure) == 1 else 'differ'}; largest: {sure[0].name}, {top.change}"


def _is_clear_change(judged: PairVerdict | None) -> TypeGuard[PairVerdict]:
    # a change counts if its interval excludes 1 and the outputs are right
    return judged is not None and judged.excludes_no_change and not judged.wrong


def list_differences(documents: Sequence[Document]) -> list[tuple[str, list[str]]]:
    """List the facts that differ between the runs, such as node or release, each with a text for every run. Only
    measured cells count. A text names at most three values, and is `none` where there is no value."""
    rows = [(axis.heading, axis.label) for axis in axes.AXES] + list(FACTS)
    facts = []
    for name, write in rows:
        texts = [
            sorted({write(cell) for cell in document.cells if cell.p50_ms is not None} - {""}) for document in documents
        ]
        if len({tuple(values) for values in texts}) > 1:
            facts.append((name, [numbers.listed(values, most=3) or "none" for values in texts]))
    return facts


def make_table(runs: Sequence[int], found: Sequence[Match]) -> Table:
    """Make a table with a row for each match: the time in the base run, then time and change in each other run."""
    by = [judged.by_processor for match in found for judged in match.judged if judged is not None]
    time = clock_title(by)
    heads = [Head("Cell"), Head(f"run {runs[0]}, {time}, ms", is_number=True)]
    for run in runs[1:]:
        heads += [Head(f"run {run}, {time}, ms", is_number=True), Head("change", is_number=True)]
        heads += [Head("95 % interval", is_number=True), Head("How", is_text=len(runs) == 2)]
    rows = [_make_row(runs, match) for match in found]
    return Table("across", "Cells of these runs, the largest change first", heads, rows)


def _make_row(runs: Sequence[int], match: Match) -> tuple[Entry, ...]:
    how = next((judged for judged in match.judged if judged is not None), None)
    entries = [Entry(match.name), _p50_entry(runs[0], match.cells[0], how)]
    for run, cell, judged in zip(runs[1:], match.cells[1:], match.judged, strict=True):
        is_alike = judged is None or judged.agrees_with_times(match.cells[0], cell)
        entries.append(_p50_entry(run, cell, judged) if is_alike else Entry(title=APART))
        if judged is None:
            entries += [Entry(""), Entry(""), Entry("not measured in both")]
            continue
        entries += [Entry(judged.change, judged.ratio), Entry(judged.interval, judged.low)]
        entries.append(Entry(sign=judged.sign, value=judged.sign.word, soft="" if judged.change else judged.evidence))
    return tuple(entries)


def _p50_entry(run: int, cell: Cell | None, judged: PairVerdict | None) -> Entry:
    if cell is None:
        return Entry("no such cell")
    if cell.p50_ms is None:
        return Entry(sign_of(cell.status.value).word, href=_cell_address(run, cell.id))
    timed = cell if judged is None else judged.times_of(cell).with_compared_time(cell)
    return replace(latency_entry(timed, is_marked=timed is not cell), href=_cell_address(run, cell.id))


def make_file_row(runs: Sequence[int], match: Match) -> dict[str, str | float | None]:
    """Make the row of a match in a file: the cell and p50 by the clock in each run, and for each run except the base
    the ratio to the base with its interval, which may be of processor time. Unknown values are None."""
    row: dict[str, str | float | None] = {"cell": match.name}
    for run, cell in zip(runs, match.cells, strict=True):
        row |= {f"run_{run}_cell": cell.id if cell else None, f"run_{run}_p50_ms": cell.p50_ms if cell else None}
    for run, judged in zip(runs[1:], match.judged, strict=True):
        row |= {
            f"run_{run}_ratio": judged.ratio if judged else None,
            f"run_{run}_low": judged.low if judged else None,
            f"run_{run}_high": judged.high if judged else None,
            f"run_{run}_how": judged.sign.word if judged else "not measured in both",
        }
    return row


# parameters of the address that the forms of the page keep
KEPT = ("runs", "base", "metric", "kind", "least", "sure", "find")


def render_runs(request: HttpRequest, numbers: list[int]) -> HttpResponse:
    """Render the comparison of these runs with the filters of the address, or as a file where `as` asks for it. The
    base is the run in `?base=`, else the first run. The headline is about all matches, also those that are filtered
    out."""
    numbers = sorted(numbers, key=lambda number: str(number) != request.GET.get("base"))
    rows = [selectors.run(signed_in_user(request), number) for number in numbers]
    documents = [selectors.document(row, with_operators=False) for row in rows]
    every = match_cells(documents)
    filters = Filters.read(request)
    left = [match for match in every if filters.keeps(match)]
    if lists.wants_file(request):
        return lists.render_file(request, "compared-runs", left, lambda match: make_file_row(numbers, match))
    context = {
        **_draw_chart(request, numbers, left),
        "kept": lists.read_parameters(request, KEPT),
        "headline": write_headline(numbers, every),
        "rows": rows,
        "differing": list_differences(documents),
        "version": rows[0].version_id if len({row.version_id for row in rows}) == 1 else None,
        "every": every,
        "left": left,
        "table": make_table(numbers, left),
        "kinds": KINDS,
        "filters": filters,
        "least": round(100 * filters.min_change),
        "copies": copies.copy_runs(numbers, url=settings.PUBLIC_URL),
    }
    return render(request, "dashboard/compare_runs.html", context)


def _draw_chart(request: HttpRequest, numbers: list[int], left: list[Match]) -> dict[str, object]:
    """Make the context with the chart of the chosen metric; empty where no metric can be drawn."""
    metrics = beside.drawable_metrics([cell for match in left for cell in match.cells if cell is not None])
    if not metrics:
        return {}
    metric = choose_metric(request, metrics, (judged for match in left for judged in match.judged))
    rows = [beside.Matched(match.name, match.cells) for match in left]
    figure = beside.draw_runs(metric, numbers, rows, _cell_address)
    return {"figure": figure, "metrics": metrics, "metric": metric.name}


def choose_metric(request: HttpRequest, metrics: Sequence[Metric], judged: Iterable[PairVerdict | None]) -> Metric:
    """Choose the metric that the address names, else processor time where a verdict rests on it. Where the chosen one
    is not in `metrics`, which must not be empty, it is the first of them."""
    is_by_processor = any(verdict is not None and verdict.by_processor for verdict in judged)
    name = request.GET.get("metric") or (PROCESSOR_TIME if is_by_processor else "")
    return next((metric for metric in metrics if metric.name == name), metrics[0])


def _cell_address(run: int, cell: str) -> str:
    return reverse("dashboard:cell", args=[run, cell])
