"""Describes a bench document in sentences: what is slower than what, where, by how much, how certainly, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from farm.contract.cells import Budget
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells import label
from farm.rules.cells.axes import BY_NAME
from farm.rules.comparing.quantities import Change, change_between, is_same_model
from farm.rules.planning.blocks import TWIN
from farm.rules.presenting import fusions, metric_changes, parities, simulated
from farm.rules.presenting.cell_counts import list_planned_cells
from farm.rules.presenting.explanations import describe_cause, describe_phases
from farm.rules.presenting.headlines import (
    WORK_AXES,
    RankedComparison,
    RankedResults,
    axis_sort_key,
    describe_unmeasured,
    lost_providers,
    name_cells,
    rank_results,
)
from farm.rules.presenting.lines import BUSY, fails_parity, is_by_processor, is_wrong, order_by_wrongness
from farm.rules.presenting.stability import describe_rounds_needed
from farm.rules.presenting.times import Times
from farm.rules.quality import accuracy_metrics
from farm.rules.wording import titles
from farm.rules.wording.numbers import counted, latency, listed, percent
from farm.rules.wording.vocabulary import with_mark

GLANCE = (
    "This is a glance: one launch of each cell, with nothing compared and no operators traced, and the next launch may "
    "well differ by a third. `--budget quick` measures eight in turn and compares them."
)


@dataclass(frozen=True, slots=True)
class Phrases:
    """The sentences about a comparison in one quantity: of a decided change, of equal sides, of an undecided one.

    `verb` follows a number of comparisons: `3 of 4 comparisons by batch are slower`. A quantity that is mentioned only
    where it is decided has no other sentences.
    """

    decided: str
    verb: str
    equal: str = ""
    undecided: str = ""


_PHRASES = {
    "latency": Phrases(
        "{who} runs {what} {size} {word} than {than}{where} ({sure}).",
        "are {word}",
        equal="{who} runs {what} as fast as {than}{where}, within ± {margin} ({sure}).",
        undecided="Whether {who} runs {what} slower or faster than {than}{where} is undecided ({sure}).",
    ),
    "items": Phrases(
        "{who} runs {what} with {size} {word} items/s than {than}{where} ({sure}).",
        "have {word} items/s",
        equal="{who} runs {what} with as many items/s as {than}{where}, within ± {margin} ({sure}).",
        undecided="Whether {who} runs {what} with more or fewer items/s than {than}{where} is undecided ({sure}).",
    ),
    "rate": Phrases(
        "{who} serves {what} at a {size} {word} rate than {than}{where} ({sure}).",
        "have a {word} rate",
        equal="{who} serves {what} at as high a rate as {than}{where}, within ± {margin} ({sure}).",
        undecided="Whether {who} serves {what} at a higher or lower rate than {than}{where} is undecided ({sure}).",
    ),
    "prefill": Phrases("{who} prefills {what} {size} {word} than {than}{where} ({sure}).", "have a {word} prefill"),
    "tokens": Phrases(
        "{who} runs {what} at {size} {word} tokens/s than {than}{where} ({sure}).", "have {word} tokens/s"
    ),
}


def describe_run(document: Document) -> str:
    """Return the sentences that a run opens with: its verdict, and what was simulated, not measured or only glanced at.

    They also say what an opset alone costs, and which outputs changed.
    """
    results = rank_results(document.comparisons, {cell.id: cell for cell in document.cells})
    is_glance = document.budget == Budget.GLANCE and any(cell.p50_ms is not None for cell in document.cells)
    sentences = (
        simulated.describe_simulated(document),
        verdict_line(document, results),
        describe_unmeasured(document, results),
        fusions.describe_lost_fusions(document),
        parities.describe_changed_outputs(document),
        parities.describe_model_outputs(document),
        GLANCE if is_glance else "",
    )
    return " ".join(filter(None, sentences))


def verdict_line(document: Document, results: RankedResults | None = None) -> str:
    """Describe the leading result, and how many other comparisons are equal or undecided.

    Wrong outputs come first; providers that did not start come where their priority puts them. Without comparisons,
    describe the only cell, or say how many cells were measured. `results` are those of the document, where the caller
    has ranked them already.
    """
    cells = {cell.id: cell for cell in document.cells}
    results = results or rank_results(document.comparisons, cells)
    main: Sequence[str] = ()
    if results.leading is not None:
        main = _describe_leading(results.leading, results, cells)
    elif not results.comparisons:
        main = [_describe_uncompared_cells(document)]
    misplaced = describe_misplaced(results, cells)
    sentences = [
        describe_wrong(results, cells),
        *([misplaced, *main] if results.are_misplaced_first else [*main, misplaced]),
        *(count_by_axis(results, word) for word in ("equal", "undecided")),
    ]
    return " ".join(filter(None, sentences))


def _describe_uncompared_cells(document: Document) -> str:
    cells = list_planned_cells(document.cells)
    measured = [cell for cell in cells if cell.status == "done"]
    if len(cells) == 1 and measured:
        return cell_sentence(measured[0], document.comparisons)
    if not cells:
        return "Nothing was planned."
    if not measured:
        reason = next((cell.reason.text for cell in cells if cell.reason is not None), "")
        return f"None of {counted(len(cells), 'cell')} was measured. {reason}".strip()
    refused = sum(cell.status == "refused" for cell in cells)
    missing = len(cells) - len(measured) - refused
    others = (f"; {refused} refused" if refused else "") + (f"; {missing} did not finish" if missing else "")
    return f"{counted(len(measured), 'cell')} of {measured[0].model or 'the model'} measured{others}, none to compare."


def comparison_sentence(comparison: Comparison, cells: Mapping[str, Cell], *, change: Change | None = None) -> str:
    """Describe one comparison, with the sign of its verdict.

    `cells` holds both sides by id. `change` is the change to describe, where that is not the comparison's own.
    """
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    change = change or change_between(comparison, baseline, candidate)
    return f"{with_mark(change.word)}{change.unit}: {_state_change(comparison, change, cells)}"


def cell_sentence(cell: Cell, comparisons: Sequence[Comparison] = ()) -> str:
    """Describe a cell alone: its latency, or its status with the reason. `comparisons` are those with its A/A copy."""
    subject = f"{cell.model or 'The model'} on {cell.runtime}, {label.workload_label(cell)}"
    if cell.status != "done" or cell.p50_ms is None:
        reason = cell.reason.text if cell.reason is not None else "it was not measured."
        return f"{with_mark(cell.status)}: {subject}: {reason}"
    launches = f"at the median of {counted(len(cell.samples_ms), 'launch', 'launches')}"
    wall_time = latency(cell.p50_ms, cell.p50_ci_ms)
    note = f" {cell.reason.text}" if cell.reason is not None else ""
    times = Times.of([cell], comparisons)
    if cell.id not in times.by_processor:
        return f"{subject}: {wall_time} {launches}.{note}"
    compared = times.with_compared_time(cell)
    processor_time = latency(compared.p50_ms, compared.p50_ci_ms)
    return f"{subject}: {processor_time} of processor time {launches} ({wall_time} by the clock). {BUSY}.{note}"


def describe_wrong(results: RankedResults, cells: Mapping[str, Cell]) -> str:
    """Say which cells have wrong outputs, and how many changes in their favour do not count; empty where none has."""
    if not results.wrong_cells:
        return ""
    measured = [cell for cell in list_planned_cells(cells.values()) if cell.p50_ms is not None]
    names = name_cells(results.wrong_cells, measured)
    won = len(results.comparisons) - len(results.valid_comparisons)
    gains = f", so {counted(won, 'change')} in their favour do{'es' if won == 1 else ''} not count" if won else ""
    return f"{describe_wrong_cells(results.wrong_cells, names, measured=len(measured))}{gains}."


def describe_wrong_cells(wrong: Sequence[Cell], names: str, *, measured: int) -> str:
    """Say how many of the measured cells have wrong outputs, which (unless all have), and why they are wrong."""
    worst_first = sorted(wrong, key=order_by_wrongness, reverse=True)
    lossy = [cell.accuracy for cell in worst_first if cell.accuracy and not fails_parity(cell) and is_wrong(cell)]
    parts = []
    if failed := len(wrong) - len(lossy):
        parts.append(f"{failed} of {counted(measured, 'cell')} fail{'s' if failed == 1 else ''} parity")
    if lossy:
        verb = "loses accuracy," if len(lossy) == 1 else "lose accuracy, worst"
        loss = accuracy_metrics.metric_of(lossy[0]).format_change(lossy[0])
        parts.append(f"{len(lossy)} of {counted(measured, 'cell')} {verb} {loss}")
    owner = f" of {names}" if len(wrong) < measured else ""
    return f"Wrong outputs{owner}: {'; '.join(parts)}"


def describe_misplaced(results: RankedResults, cells: Mapping[str, Cell]) -> str:
    """Say which providers did not start, what ran instead and in which cells; empty where all started."""
    misplaced = results.misplaced_cells
    if not misplaced:
        return ""
    ran = [cell for cell in cells.values() if cell.active_providers]
    lost = dict.fromkeys(titles.provider(name) for cell in misplaced for name in lost_providers(cell))
    used = dict.fromkeys(titles.provider(cell.active_providers[0]) for cell in misplaced)
    where = f"{len(misplaced)} of {counted(len(ran), 'cell')}: {name_cells(misplaced, ran)}"
    return f"{listed(list(lost))} did not start, {listed(list(used))} ran instead ({where})."


def count_by_axis(results: RankedResults, word: str, *, only: str = "") -> str:
    """Say how many comparisons of each axis, or of `only` one, have the verdict `word`, equal or undecided.

    Along the axis of the leading comparison, equal ones are never counted, and undecided ones not where that comparison
    is undecided itself. Empty where nothing is counted.
    """
    leading, counts = results.leading, []
    compared = {ranked.axis for ranked in results.valid_comparisons if only in ("", ranked.axis)}
    for axis in sorted(compared, key=axis_sort_key):
        words: list[str] = [ranked.change.word for ranked in results.valid_comparisons if ranked.axis == axis]
        is_said = leading is not None and leading.axis == axis and word in (leading.change.word, "equal")
        if (count := words.count(word)) and not is_said:
            counts.append(f"{count} of {len(words)} by {axis}")
    return f"{word.capitalize()}: {', '.join(counts)}." if counts else ""


class _LeadingSentences(NamedTuple):
    """The sentences about the leading comparison, in this order; empty strings where there is nothing to say."""

    memory_growth: str
    phases: str
    statement: str
    cause: str
    further_metrics: str
    agreement: str


def _describe_leading(
    leading: RankedComparison, results: RankedResults, cells: Mapping[str, Cell]
) -> _LeadingSentences:
    comparison, candidate = leading.comparison, cells[leading.comparison.candidate]
    has_grown = leading.memory_growth is not None
    statement, further = _state_change(comparison, leading.change, cells), ""
    # Along an axis that sets how much work is done, more memory is no news.
    if leading.axis not in (*WORK_AXES, "batch"):
        further = metric_changes.describe_changes(_name_side(leading.axis, candidate), leading.change.word, comparison)
    if leading.axis != "model":  # the name of a model keeps its first letter
        statement, further = _capitalise(statement), _capitalise(further) if has_grown else further
    is_explained = leading.change.is_decided and leading.change.quantity == "latency"
    return _LeadingSentences(
        memory_growth=further if has_grown else "",
        phases=describe_phases(comparison, candidate),
        statement=statement,
        cause=describe_cause(comparison) if is_explained else "",
        further_metrics="" if has_grown else further,
        agreement=_count_agreement(leading, results.valid_comparisons),
    )


def _capitalise(text: str) -> str:
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def _count_agreement(leading: RankedComparison, counting: Sequence[RankedComparison]) -> str:
    """Say how many comparisons along the axis agree with the leading one, and how many went the other way."""
    changes = [ranked.change for ranked in counting if ranked.axis == leading.axis]
    if len(changes) == 1:
        return ""
    main = leading.change
    verb = _PHRASES[main.quantity if main.is_decided else "latency"].verb
    same = sum(change.word == main.word and change.unit == main.unit for change in changes)
    opposed = sum(main.is_decided and change.is_decided and change.is_gain != main.is_gain for change in changes)
    text = f"{same} of {len(changes)} comparisons by {leading.axis} {verb.format(word=main.word)}"
    return f"{text}, {opposed} the other way." if opposed else f"{text}."


def _state_change(comparison: Comparison, change: Change, cells: Mapping[str, Cell]) -> str:
    """Describe a change in a sentence without the sign of its verdict, and say what an undecided one still needs."""
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    who, than = name_sides(comparison.axis, baseline, candidate)
    if change.word == "not comparable":
        models = f"They are different models, {baseline.model} and {candidate.model}."
        reason = comparison.reason or "" if is_same_model(baseline, candidate) else models
        return f"{who} and {than} cannot be compared. {reason}".strip()
    if change.figures is None:
        if baseline.p50_ms is None or candidate.p50_ms is None:
            text = f"{who} and {than} have no figures to compare."
        else:
            new, old = map(Times.of([baseline, candidate]).format_latency, (candidate, baseline))
            text = f"{who} ({new}) and {than} ({old}) were measured but could not be compared."
        return f"{text} {comparison.reason or ''}".strip()
    where = f" on {candidate.node}" if candidate.node else ""
    shared = _describe_shared(comparison.axis, candidate)
    what = f"{candidate.model or 'the model'} ({shared})"
    if comparison.axis == "model":
        what, where = "", f"{where}, with {shared}"
    phrases = _PHRASES[change.quantity]
    phrase = phrases.undecided
    if change.is_decided:
        phrase = phrases.decided
    elif change.word == "equal":
        phrase = phrases.equal
    text = phrase.format(
        who=who,
        what=what,
        than=than,
        where=where,
        size=change.amount if change.is_decided else "",
        word=change.word,
        sure=_describe_certainty(comparison, change),
        margin=percent(comparison.margin),
    )
    text = " ".join(text.split())
    return f"{text}{_describe_missing(comparison) if change.word == 'undecided' else ''}"


def _describe_shared(axis: str, cell: Cell) -> str:
    runtime = "" if axis in ("runtime", TWIN) else _name_side("runtime", cell)
    return ", ".join(filter(None, (label.workload_label(cell, without=axis), runtime)))


def _describe_certainty(comparison: Comparison, change: Change) -> str:
    interval = f"{percent(comparison.ci_level or 0.0)} interval {change.interval}"
    clock = ", CPU time" if is_by_processor(comparison) else ""
    return f"{interval}, {counted(comparison.rounds, 'round')}{clock}"


def _describe_missing(comparison: Comparison) -> str:
    """Say what an undecided verdict still needs, after a space; with too few rounds it is the comparison's reason."""
    smallest = comparison.smallest_detectable
    detectable = "" if smallest is None else f"the smallest detectable change is {100 * smallest:.2g} %"
    reason = f" {comparison.reason}" if smallest is None and comparison.reason else ""
    text = "; ".join(filter(None, (detectable, describe_rounds_needed(comparison))))
    return reason + (f" {text[:1].upper()}{text[1:]}." if text else "")


def name_sides(axis: str, baseline: Cell, candidate: Cell) -> tuple[str, str]:
    """Name the candidate, then the baseline, by what differs along the axis.

    A baseline that is a release of the candidate's distribution is named by its version alone.
    """
    if axis == "runtime":
        return _name_side(axis, candidate), titles.runtime_before(baseline.runtime, candidate.runtime)
    return _name_side(axis, candidate), _name_side(axis, baseline)


def _name_side(axis: str, cell: Cell) -> str:
    if axis == "runtime":
        return titles.runtime_in_words(cell.runtime)
    if axis == TWIN:
        return f"{cell.id} (the same cell)"
    return BY_NAME[axis].label(cell) if axis in BY_NAME else cell.id


@dataclass(frozen=True, slots=True)
class HeadlineParts:
    """The leading comparison in parts, of which a headline and the line below it are made.

    `who` is the candidate and `than` the baseline; `sure` has the interval and the rounds; `shared` are the settings of
    both sides; `sentences` has everything else.
    """

    who: str
    than: str
    sure: str
    shared: str
    cause: str
    sentences: Sequence[str]


def split_leading(leading: RankedComparison, results: RankedResults, cells: Mapping[str, Cell]) -> HeadlineParts:
    """Split the leading comparison into the parts of a headline; some of its `sentences` may be empty."""
    comparison = leading.comparison
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    texts = _describe_leading(leading, results, cells)
    who, than = name_sides(leading.axis, baseline, candidate)
    if leading.memory_growth is not None:
        sure = metric_changes.describe(leading.memory_growth)
        # The headline names one metric that grew.
        has_others = len(metric_changes.list_summarised_changes(comparison)) > 1
        growth = texts.memory_growth if has_others else ""
        first = [growth, texts.phases, texts.statement]
    else:
        has_figures = leading.change.figures is not None
        sure = _describe_certainty(comparison, leading.change) if has_figures else (comparison.reason or "").rstrip(".")
        missing = _describe_missing(comparison).strip() if leading.change.word == "undecided" else ""
        first = [texts.phases, missing]
    return HeadlineParts(
        who=_capitalise(who),
        than=than,
        sure=sure,
        shared=_describe_shared(leading.axis, candidate),
        cause=texts.cause,
        sentences=[*first, texts.further_metrics, texts.agreement],
    )
