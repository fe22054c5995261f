"""A run in one look: a headline of at most twelve words, in one line its cause and certainty, then what else is known.
Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells import label
from farm.rules.comparing.quantities import Change
from farm.rules.presenting import sentences
from farm.rules.presenting.cell_counts import list_own
from farm.rules.presenting.headlines import (
    Opening,
    Standing,
    count_unmeasured,
    explain_wrong,
    find_opening,
    lost_providers,
    named,
)
from farm.rules.presenting.times import Times
from farm.rules.wording import titles
from farm.rules.wording.numbers import counted, latency, listed, percent, unbroken

MAX_WORDS = 12
# words that a headline begins with, and that stand in small letters behind a model's name
_LOWERED = ("Against", "Batch", "Undecided", "Wrong")


@dataclass(frozen=True, slots=True)
class Answer:
    """A headline, what it rests on (`because`), and sentences about everything else (`rest`)."""

    headline: str
    because: str = ""
    rest: str = ""

    @classmethod
    def from_text(cls, text: str) -> "Answer":
        first, _, rest = text.partition(". ")
        return cls(f"{first}." if rest else text, "", rest)


def make_answer(document: Document) -> Answer:
    """Return the headline of a document with its cause and the rest, by the rule of farm.rules.presenting.headlines."""
    cells = {cell.id: cell for cell in document.cells}
    found = find_opening(document.comparisons, cells)
    before, line, after = document.sentence.partition(sentences.verdict_line(document))
    others = [sentences.open_of(found, word) for word in ("equal", "undecided")]
    unmeasured = count_unmeasured(document, found)
    rest = [before.strip() if line else "", *others, after.removeprefix(f" {unmeasured}").strip()]
    lead = _answer_lead(found, cells)
    if found.wrong:
        headline = name_models(_name_wrong(found, cells), found.wrong)
        led = Answer(headline, explain_wrong(found.wrong), sentences.wrong_outputs(document))
    elif found.is_elsewhere_first:
        lost = dict.fromkeys(titles.provider(name) for cell in found.elsewhere for name in lost_providers(cell))
        ran = sum(bool(cell.active_providers) for cell in cells.values())
        headline = f"{listed(list(lost))} did not start in {len(found.elsewhere)} of {counted(ran, 'cell')}"
        led = Answer(name_models(headline, found.elsewhere), "", sentences.elsewhere(found, cells))
    elif lead is None:
        return _answer_single_cell(document) or Answer.from_text(document.sentence)
    else:
        led = Answer(lead.headline, lead.because, _join(lead.rest, sentences.elsewhere(found, cells), *rest))
        return _add_unmeasured(led, unmeasured)
    beside = "" if lead is None else _join(f"{lead.headline} ({lead.because}).", lead.rest)
    return _add_unmeasured(Answer(led.headline, led.because, _join(led.rest, beside, *rest)), unmeasured)


def _add_unmeasured(answer: Answer, unmeasured: str) -> Answer:
    return replace(answer, because=" · ".join(filter(None, (answer.because, unmeasured.rstrip(".")))))


def _join(*sentences_: str) -> str:
    return " ".join(filter(None, sentences_))


def _name_wrong(found: Opening, cells: Mapping[str, Cell]) -> str:
    measured = [cell for cell in list_own(cells.values()) if cell.p50_ms is not None]
    names = named(found.wrong, measured) if len(found.wrong) < len(measured) else ""
    headline = f"Wrong outputs of {names}"
    is_named = names and is_short(headline)
    return headline if is_named else f"Wrong outputs in {len(found.wrong)} of {counted(len(measured), 'cell')}"


def name_models(headline: str, cells: Iterable[Cell]) -> str:
    """Put the models that a headline is about before it, where that leaves it short."""
    models = listed([model for model in dict.fromkeys(cell.model for cell in cells) if model])
    first, _, rest = headline.partition(" ")
    about = f"{models}: {first.lower() if first in _LOWERED else first} {rest}"
    return about if models and is_short(about) else headline


def _answer_lead(found: Opening, cells: Mapping[str, Cell]) -> Answer | None:
    """Return the answer about the leading comparison; None where none leads."""
    if found.lead is None:
        return None
    lead, change = found.lead, found.lead.heading
    parts = sentences.parts_of(lead, found, cells)
    # the largest of several is not told as the whole
    most = "up to " if len(_list_changes(lead, found, cells)) > 1 else ""
    headline = _headline(parts, change, margin=lead.comparison.margin, most=most)
    beside = "" if is_short(headline) else f"{parts.who} beside {parts.than}"
    candidate = cells[lead.comparison.candidate]
    where = candidate.node
    measured = f"{parts.shared} on {where}" if where else parts.shared
    because = " · ".join(filter(None, (parts.cause.rstrip("."), beside, parts.sure, measured)))
    short = f"{change.text or change.word} by {lead.axis}"
    headline = short[:1].upper() + short[1:] if beside else headline
    # two models are told apart by their names already
    about = [] if lead.axis == "model" else [candidate]
    return Answer(name_models(headline, about), because, _join(*parts.rest))


def _list_changes(lead: Standing, found: Opening, cells: Mapping[str, Cell]) -> set[str]:
    """Return how large the changes are that came out as the leading one did, of the same model and the same two."""

    def about(comparison: Comparison, change: Change) -> object:
        baseline, candidate = cells.get(comparison.baseline), cells.get(comparison.candidate)
        if baseline is None or candidate is None:
            return None
        sides = sentences.name_sides(comparison.axis, baseline, candidate)
        return comparison.axis, candidate.model, sides, change.word, change.unit

    same = about(lead.comparison, lead.change)
    right = [other for other in found.standings if other.is_right]
    return {other.change.amount for other in right if about(other.comparison, other.change) == same}


def _headline(parts: sentences.Parts, change: Change, *, margin: float, most: str) -> str:
    who, than = parts.who, parts.than
    if change.figures is None:
        return f"{who} and {than} could not be compared"
    if change.quantity == "memory":
        return f"{who} takes {change.amount} more memory than {than}"
    if change.word == "undecided":
        return f"Undecided whether {who} is slower or faster than {than}"
    if change.word == "equal":
        return f"{who} is as fast as {than}, within ± {percent(margin)}"
    if change.unit:
        article = "" if change.unit.endswith("/s") else "a "
        return f"{who} has {most}{article}{change.amount} {change.word}{change.unit} than {than}"
    return f"{who} is {most}{change.amount} {change.word} than {than}"


def is_short(headline: str) -> bool:
    return len(unbroken(headline).split(" ")) <= MAX_WORDS


def _answer_single_cell(document: Document) -> Answer | None:
    """Return the answer about the latency of a document's only cell; None for any other document."""
    own = list_own(document.cells)
    if len(own) != 1 or own[0].status != "done" or own[0].p50_ms is None:
        return None
    times = Times.of(own, document.comparisons)
    cell = times.with_compared_time(own[0])
    of = " of processor time" if cell.id in times.by_processor else ""
    headline = f"{cell.model or 'The model'} takes {latency(cell.p50_ms or 0.0, cell.p50_ci_ms)}{of}"
    where = f" on {cell.node}" if cell.node else ""
    because = f"{titles.runtime_in_words(cell.runtime)}, {label.workload_label(cell)}{where}"
    return Answer(headline, because, document.sentence)
