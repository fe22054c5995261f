"""Answers a run in one look: a headline of at most twelve words, its cause and certainty in a line, then the rest."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.cells import label
from farm.rules.comparing.quantities import Change
from farm.rules.presenting import sentences
from farm.rules.presenting.cell_counts import list_planned_cells
from farm.rules.presenting.headlines import (
    RankedComparison,
    RankedResults,
    describe_unmeasured,
    explain_wrong,
    lost_providers,
    name_cells,
    rank_results,
)
from farm.rules.presenting.times import Times
from farm.rules.wording import titles
from farm.rules.wording.numbers import counted, latency, listed, percent, unbroken

MAX_WORDS = 12
# first words of headlines that become lower case after the name of a model
_LOWERED = ("Against", "Batch", "Undecided", "Wrong")


@dataclass(frozen=True, slots=True)
class Answer:
    """A headline, the line below it with cause and certainty (`because`), and further sentences (`rest`).

    `because` and `rest` may be empty.
    """

    headline: str
    because: str = ""
    rest: str = ""

    @classmethod
    def from_sentences(cls, text: str) -> "Answer":
        """Make the first sentence the headline, and the others the rest."""
        first, _, others = text.partition(". ")
        return cls(f"{first}." if others else text, "", others)


def make_answer(document: Document) -> Answer:
    """Make the headline of a document and the lines below it, about the result that ranks first in `rank_results`.

    Without such a result it is about the latency of the only cell, or else begins with the document's first sentence.
    """
    cells = {cell.id: cell for cell in document.cells}
    results = rank_results(document.comparisons, cells)
    unmeasured = describe_unmeasured(document, results)
    main = _answer_with_leading(results.leading, results, cells) if results.leading is not None else None
    misplaced = sentences.describe_misplaced(results, cells)
    others = _list_other_sentences(document, results, unmeasured)
    if results.wrong_cells:
        headline = name_models(_name_wrong(results, cells), results.wrong_cells)
        wrong = sentences.describe_wrong(results, cells)
        answer = Answer(headline, explain_wrong(results.wrong_cells), _join(wrong, *_list_answer_texts(main), *others))
    elif results.are_misplaced_first:
        headline = name_models(_count_misplaced(results, cells), results.misplaced_cells)
        answer = Answer(headline, "", _join(misplaced, *_list_answer_texts(main), *others))
    elif main is not None:
        answer = replace(main, rest=_join(main.rest, misplaced, *others))
    else:
        return _answer_single_cell(document) or Answer.from_sentences(document.sentence)
    return replace(answer, because=" · ".join(filter(None, (answer.because, unmeasured.rstrip(".")))))


def _list_other_sentences(document: Document, results: RankedResults, unmeasured: str) -> list[str]:
    """List the document's sentences around its verdict, and how many comparisons of the leading axis are undecided."""
    axis = results.leading.axis if results.leading is not None else ""
    before, verdict, after = document.sentence.partition(sentences.verdict_line(document, results))
    return [
        before.strip() if verdict else "",
        sentences.count_by_axis(results, "undecided", only=axis),
        after.removeprefix(f" {unmeasured}").strip(),
    ]


def _list_answer_texts(answer: Answer | None) -> list[str]:
    return [] if answer is None else [f"{answer.headline} ({answer.because}).", answer.rest]


def _join(*texts: str) -> str:
    return " ".join(filter(None, texts))


def _name_wrong(results: RankedResults, cells: Mapping[str, Cell]) -> str:
    wrong = results.wrong_cells
    measured = [cell for cell in list_planned_cells(cells.values()) if cell.p50_ms is not None]
    names = name_cells(wrong, measured) if len(wrong) < len(measured) else ""
    headline = f"Wrong outputs of {names}"
    if names and is_short(headline):
        return headline
    return f"Wrong outputs in {len(wrong)} of {counted(len(measured), 'cell')}"


def _count_misplaced(results: RankedResults, cells: Mapping[str, Cell]) -> str:
    misplaced = results.misplaced_cells
    lost = dict.fromkeys(titles.provider(name) for cell in misplaced for name in lost_providers(cell))
    ran = sum(bool(cell.active_providers) for cell in cells.values())
    return f"{listed(list(lost))} did not start in {len(misplaced)} of {counted(ran, 'cell')}"


def name_models(headline: str, cells: Iterable[Cell]) -> str:
    """Put the models of these cells before a headline, unless it would then have more than MAX_WORDS words.

    Behind them, the headline's first word becomes lower case if it is one of _LOWERED.
    """
    models = listed([model for model in dict.fromkeys(cell.model for cell in cells) if model])
    first, _, others = headline.partition(" ")
    with_models = f"{models}: {first.lower() if first in _LOWERED else first} {others}"
    return with_models if models and is_short(with_models) else headline


def _answer_with_leading(leading: RankedComparison, results: RankedResults, cells: Mapping[str, Cell]) -> Answer:
    change, candidate = leading.headline_change, cells[leading.comparison.candidate]
    parts = sentences.split_leading(leading, results, cells)
    # Where several changes have this verdict, the headline says `up to` and gives the largest.
    is_largest_of_several = len(_list_amounts(leading, results, cells)) > 1
    headline = _write_headline(parts, change, margin=leading.comparison.margin, is_largest=is_largest_of_several)
    sides = ""
    if not is_short(headline):
        sides = f"{parts.who} beside {parts.than}"
        headline = f"{change.text or change.word} by {leading.axis}"
        headline = headline[:1].upper() + headline[1:]
    measured = f"{parts.shared} on {candidate.node}" if candidate.node else parts.shared
    because = " · ".join(filter(None, (parts.cause.rstrip("."), sides, parts.sure, measured)))
    # A headline that compares two models names them already.
    named = [] if leading.axis == "model" else [candidate]
    return Answer(name_models(headline, named), because, _join(*parts.sentences))


def _list_amounts(leading: RankedComparison, results: RankedResults, cells: Mapping[str, Cell]) -> set[str]:
    """Return the distinct sizes of the changes with the verdict, model and sides of the leading one."""

    def describe(ranked: RankedComparison) -> object:
        comparison, change = ranked.comparison, ranked.change
        baseline, candidate = cells.get(comparison.baseline), cells.get(comparison.candidate)
        if baseline is None or candidate is None:
            return None
        sides = sentences.name_sides(comparison.axis, baseline, candidate)
        return comparison.axis, candidate.model, sides, change.word, change.unit

    of_leading = describe(leading)
    return {ranked.change.amount for ranked in results.valid_comparisons if describe(ranked) == of_leading}


def _write_headline(parts: sentences.HeadlineParts, change: Change, *, margin: float, is_largest: bool) -> str:
    who, than = parts.who, parts.than
    if change.figures is None:
        return f"{who} and {than} could not be compared"
    if change.quantity == "memory":
        return f"{who} takes {change.amount} more memory than {than}"
    if change.word == "undecided":
        return f"Undecided whether {who} is slower or faster than {than}"
    if change.word == "equal":
        return f"{who} is as fast as {than}, within ± {percent(margin)}"
    up_to = "up to " if is_largest else ""
    if change.unit:
        article = "" if change.unit.endswith("/s") else "a "
        return f"{who} has {up_to}{article}{change.amount} {change.word}{change.unit} than {than}"
    return f"{who} is {up_to}{change.amount} {change.word} than {than}"


def is_short(headline: str) -> bool:
    return len(unbroken(headline).split(" ")) <= MAX_WORDS


def _answer_single_cell(document: Document) -> Answer | None:
    """Make the answer about the latency of a document's only cell; None for any other document."""
    planned = list_planned_cells(document.cells)
    if len(planned) != 1 or planned[0].status != "done" or planned[0].p50_ms is None:
        return None
    times = Times.of(planned, document.comparisons)
    cell = times.with_compared_time(planned[0])
    clock = " of processor time" if cell.id in times.by_processor else ""
    headline = f"{cell.model or 'The model'} takes {latency(cell.p50_ms or 0.0, cell.p50_ci_ms)}{clock}"
    where = f" on {cell.node}" if cell.node else ""
    because = f"{titles.runtime_in_words(cell.runtime)}, {label.workload_label(cell)}{where}"
    return Answer(headline, because, document.sentence)
