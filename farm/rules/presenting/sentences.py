"""Describes a bench document in sentences: what is slower than what, where, by how much, how surely, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.contract.cells import Budget
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells import label
from farm.rules.cells.axes import BY_NAME
from farm.rules.comparing.quantities import Change, change_between, is_same_model
from farm.rules.planning.blocks import TWIN
from farm.rules.presenting import (
    fusions,
    generation_phases,
    metric_changes,
    outside_graph,
    parities,
    simulated,
)
from farm.rules.presenting.called_operators import (
    describe_cause,
    describe_certainty,
    describe_changed_type,
    describe_trace_noise,
    explain_trace_doubt,
    type_times,
)
from farm.rules.presenting.cell_counts import list_own
from farm.rules.presenting.headlines import (
    WORK_AXES,
    Opening,
    Standing,
    axis_rank,
    count_unmeasured,
    find_opening,
    lost_providers,
    named,
)
from farm.rules.presenting.lines import BUSY, fails_parity, how_far_off, is_by_processor, is_wrong
from farm.rules.presenting.stability import describe_rounds_needed
from farm.rules.presenting.times import Times
from farm.rules.quality import accuracy_metrics
from farm.rules.tracing.attribution import NAMED_SHARE, find_largest_share
from farm.rules.wording import titles
from farm.rules.wording.numbers import counted, explains, latency, listed, percent
from farm.rules.wording.vocabulary import is_change, signed

GLANCE = (
    "This is a glance: one launch of each cell, with nothing compared and no operators traced, and the next launch may "
    "well differ by a third. `--budget quick` measures eight in turn and compares them."
)


@dataclass(frozen=True, slots=True)
class Phrases:
    """How a comparison is told by one quantity: what is decided, what is equal, what is open.

    `verb`: what the side is beside its verdict. What leads only where it is decided has no other words.
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


def opening(document: Document) -> str:
    """Return the sentences that a run opens with: its verdict, what an opset alone costs, and changed outputs."""
    told = (
        simulated.sentence(document),
        verdict_line(document),
        count_unmeasured(document, find_opening(document.comparisons, {cell.id: cell for cell in document.cells})),
        fusions.stamp_sentence(document),
        parities.change_sentence(document),
        parities.models_sentence(document),
    )
    is_glance = document.budget == Budget.GLANCE and any(cell.p50_ms is not None for cell in document.cells)
    texts = (*told, GLANCE if is_glance else "")
    return " ".join(text for text in texts if text)


def verdict_line(document: Document) -> str:
    """Describe what leads, by the rule of farm.rules.presenting.headlines, and how many others are equal or
    undecided."""
    cells = {cell.id: cell for cell in document.cells}
    found = find_opening(document.comparisons, cells)
    lead = _of_lead(found.lead, found, cells) if found.lead is not None else []
    # where wrong outputs won every comparison, nothing else is to be told
    lead = lead or ([] if found.left_out else [_measured(document)])
    ran = elsewhere(found, cells)
    told = [ran, *lead] if found.is_elsewhere_first else [*lead, ran]
    rest = [open_of(found, word) for word in ("equal", "undecided")]
    return " ".join(part for part in (wrong_outputs(document), *told, *rest) if part)


def _measured(document: Document) -> str:
    """Cells of which none is compared; an A/A copy is none of its own."""
    cells = list_own(document.cells)
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
    rest = (f"; {refused} refused" if refused else "") + (f"; {missing} did not finish" if missing else "")
    return f"{counted(len(measured), 'cell')} of {measured[0].model or 'the model'} measured{rest}, none to compare."


def comparison_sentence(comparison: Comparison, cells: Mapping[str, Cell], *, told: Change | None = None) -> str:
    """Describe one comparison, with its sign; `told` is the change it leads with, where that is not its own verdict."""
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    change = told or change_between(comparison, baseline, candidate)
    return f"{signed(change.word)}{change.unit}: {_statement(comparison, change, cells)}"


def cell_sentence(cell: Cell, comparisons: Sequence[Comparison] = ()) -> str:
    """Describe a cell alone: its latency, or its status with the reason. `comparisons` are those with its A/A copy."""
    what = f"{cell.model or 'The model'} on {cell.runtime}, {label.workload_label(cell)}"
    if cell.status != "done" or cell.p50_ms is None:
        why = cell.reason.text if cell.reason is not None else "it was not measured."
        return f"{signed(cell.status)}: {what}: {why}"
    launches = f"at the median of {counted(len(cell.samples_ms), 'launch', 'launches')}"
    by_clock = latency(cell.p50_ms, cell.p50_ci_ms)
    few = f" {cell.reason.text}" if cell.reason is not None else ""
    times = Times.of([cell], comparisons)
    if cell.id not in times.by_processor:
        return f"{what}: {by_clock} {launches}.{few}"
    told = times.with_compared_time(cell)
    spent = latency(told.p50_ms, told.p50_ci_ms)
    return f"{what}: {spent} of processor time {launches} ({by_clock} by the clock). {BUSY}.{few}"


def explanation(comparison: Comparison) -> str | None:
    """Explain a change: `‹type›: k nodes, a → b µs, explains p % of the c µs`, or that it is outside the graph.

    Where rounds were traced, it says how many of these nodes changed significantly; and whether the machine was busy.
    Of cells that generate, it explains decoding and prefill apart. Return None where nothing changed or nothing
    explains it.
    """
    own = _explanation(comparison)
    if not comparison.prompt_operators:
        return own
    parts = (f"decoding: {own}" if own else "", generation_phases.explain_prefill(comparison))
    return "; ".join(part for part in parts if part) or None


def _explanation(comparison: Comparison) -> str | None:
    if not is_change(comparison.verdict):
        return None
    named = find_largest_share(comparison.operators)
    if named is None or named.share is None:
        called, doubt = describe_changed_type(comparison), explain_trace_doubt(comparison)
        own = "; ".join(filter(None, (called, doubt if called else doubt.capitalize())))
        return outside_graph.explain_outside(comparison) or own or None
    sure = describe_certainty([operator for operator in comparison.operators if operator.op_type == named.op_type])
    told = f"{named.op_type}: {type_times(named)}, {explains(named.moved_us, named.share)}"
    notes = "; ".join(note for note in (sure, describe_trace_noise(comparison)) if note)
    return f"{told} ({notes})" if notes else told


def cause(comparison: Comparison) -> str:
    """Return the operator type that a change comes from; empty where none explains a part worth naming."""
    named = find_largest_share(comparison.operators)
    return named.op_type if named is not None and (named.share or 0.0) >= NAMED_SHARE else ""


def wrong_outputs(document: Document) -> str:
    """Say which settings give wrong outputs, and that what they win does not count; empty where all are right."""
    cells = {cell.id: cell for cell in document.cells}
    found = find_opening(document.comparisons, cells)
    if not found.wrong:
        return ""
    measured = [cell for cell in list_own(cells.values()) if cell.p50_ms is not None]
    won = len(found.left_out)
    gains = f", so {counted(won, 'change')} in their favour do{'es' if won == 1 else ''} not count" if won else ""
    return f"{wrong_among(found.wrong, named(found.wrong, measured), of=len(measured))}{gains}."


def wrong_among(wrong: Sequence[Cell], names: str, *, of: int) -> str:
    """Say how many of `of` cells give wrong outputs, their names unless all do, and what shows it."""
    worst = sorted(wrong, key=how_far_off, reverse=True)
    lost = [cell.accuracy for cell in worst if cell.accuracy and not fails_parity(cell) and is_wrong(cell)]
    said = []
    if failed := len(wrong) - len(lost):
        said.append(f"{failed} of {counted(of, 'cell')} fail{'s' if failed == 1 else ''} parity")
    if lost:
        loses = "loses accuracy," if len(lost) == 1 else "lose accuracy, worst"
        loss = accuracy_metrics.metric_of(lost[0]).format_loss(lost[0])
        said.append(f"{len(lost)} of {counted(of, 'cell')} {loses} {loss}")
    who = f" of {names}" if len(wrong) < of else ""
    return f"Wrong outputs{who}: {'; '.join(said)}"


def elsewhere(found: Opening, cells: Mapping[str, Cell]) -> str:
    """Say which settings ran on another provider than was asked for; empty where none did."""
    if not found.elsewhere:
        return ""
    ran = [cell for cell in cells.values() if cell.active_providers]
    lost = dict.fromkeys(titles.provider(name) for cell in found.elsewhere for name in lost_providers(cell))
    used = dict.fromkeys(titles.provider(cell.active_providers[0]) for cell in found.elsewhere)
    where = f"{len(found.elsewhere)} of {counted(len(ran), 'cell')}: {named(found.elsewhere, ran)}"
    return f"{listed(list(lost))} did not start, {listed(list(used))} ran instead ({where})."


def _of_lead(lead: Standing, found: Opening, cells: Mapping[str, Cell]) -> list[str]:
    """The comparison that leads in words, what it comes from, and how many others of its axis agree."""
    candidate = cells[lead.comparison.candidate]
    text, also = _statement(lead.comparison, lead.change, cells), _also_changed(lead, candidate)
    if lead.axis != "model":  # the name of a model keeps its first letter
        text, also = _capital(text), _capital(also) if lead.grown else also
    return [
        also if lead.grown else "",
        generation_phases.describe_phases(lead.comparison, candidate),
        text,
        _because(lead),
        "" if lead.grown else also,
        _agreement(lead, found.standings),
    ]


def _capital(text: str) -> str:
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def open_of(found: Opening, word: str) -> str:
    """Say how many comparisons have the verdict `word`, equal or undecided, by axis, without what leads already
    says."""
    lead = found.lead
    said = []
    counting = [standing for standing in found.standings if standing.is_right]
    for axis in sorted({standing.axis for standing in counting}, key=axis_rank):
        words: list[str] = [standing.change.word for standing in counting if standing.axis == axis]
        is_said = lead is not None and lead.axis == axis and word in (lead.change.word, "equal")
        if (count := words.count(word)) and not is_said:
            said.append(f"{count} of {len(words)} by {axis}")
    return f"{word.capitalize()}: {', '.join(said)}." if said else ""


def _because(standing: Standing) -> str:
    is_told = standing.change.is_decided and standing.change.quantity == "latency"
    return describe_cause(standing.comparison) if is_told else ""


def _also_changed(standing: Standing, candidate: Cell) -> str:
    """Memory that changed with it; along an axis that sets how much work is done, more of it is no news."""
    if standing.axis in (*WORK_AXES, "batch"):
        return ""
    return metric_changes.sentence(_named_side(standing.axis, candidate), standing.change.word, standing.comparison)


def _agreement(standing: Standing, standings: Sequence[Standing]) -> str:
    """How many comparisons of the axis came out the same way, of those that count, and how many the other way."""
    others = [other.change for other in standings if other.axis == standing.axis and other.is_right]
    if len(others) == 1:
        return ""
    change = standing.change
    verb = _PHRASES[change.quantity if change.is_decided else "latency"].verb
    same = sum(other.word == change.word and other.unit == change.unit for other in others)
    against = sum(change.is_decided and other.is_decided and other.is_gain != change.is_gain for other in others)
    said = f"{same} of {len(others)} comparisons by {standing.axis} {verb.format(word=change.word)}"
    return f"{said}, {against} the other way." if against else f"{said}."


def _statement(comparison: Comparison, change: Change, cells: Mapping[str, Cell]) -> str:
    """A comparison in words."""
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    who, than = name_sides(comparison.axis, baseline, candidate)
    if change.word == "not comparable":
        models = f"They are different models, {baseline.model} and {candidate.model}."
        why = comparison.reason or "" if is_same_model(baseline, candidate) else models
        return f"{who} and {than} cannot be compared. {why}".strip()
    if change.figures is None:
        return f"{_uncompared(who, than, baseline, candidate)} {comparison.reason or ''}".strip()
    where = f" on {candidate.node}" if candidate.node else ""
    shared, sure = _shared(comparison.axis, candidate), _certainty(comparison, change)
    what = f"{candidate.model or 'the model'} ({shared})"
    if comparison.axis == "model":
        what, where = "", f"{where}, with {shared}"
    size = change.amount if change.is_decided else ""
    phrases = _PHRASES[change.quantity]
    told = phrases.decided if change.is_decided else phrases.equal if change.word == "equal" else phrases.undecided
    said = {"who": who, "what": what, "than": than, "where": where, "size": size, "word": change.word, "sure": sure}
    text = told.format(**said, margin=percent(comparison.margin))
    text = " ".join(text.split())
    return f"{text}{_describe_missing(comparison) if change.word == 'undecided' else ''}"


def _shared(axis: str, cell: Cell) -> str:
    runtime = "" if axis in ("runtime", TWIN) else _named_side("runtime", cell)
    return ", ".join(text for text in (label.workload_label(cell, without=axis), runtime) if text)


def _uncompared(who: str, than: str, baseline: Cell, candidate: Cell) -> str:
    """Of a pair without a ratio: each side's own time where it has one, as the table of cells tells it."""
    if baseline.p50_ms is None or candidate.p50_ms is None:
        return f"{who} and {than} have no figures to compare."
    new, old = map(Times.of([baseline, candidate]).words, (candidate, baseline))
    return f"{who} ({new}) and {than} ({old}) were measured but could not be compared."


def _certainty(comparison: Comparison, change: Change) -> str:
    """Of figures that there are: the interval in the direction that the sentence says, else with its signs."""
    by = ", CPU time" if is_by_processor(comparison) else ""
    return (
        f"{percent(comparison.ci_level or 0.0)} interval {change.interval}, {counted(comparison.rounds, 'round')}{by}"
    )


def _describe_missing(comparison: Comparison) -> str:
    """Say what a verdict still needs; where rounds are too few to detect anything, their reason says it."""
    parts = []
    why = f" {comparison.reason}" if comparison.smallest_detectable is None and comparison.reason else ""
    if comparison.smallest_detectable is not None:
        parts.append(f"the smallest detectable change is {100 * comparison.smallest_detectable:.2g} %")
    text = "; ".join(filter(None, [*parts, describe_rounds_needed(comparison)]))
    return why + (f" {text[:1].upper()}{text[1:]}." if text else "")


def _named_side(axis: str, cell: Cell) -> str:
    """One side of a comparison by what differs."""
    if axis == "runtime":
        return titles.runtime_in_words(cell.runtime)
    if axis == TWIN:
        return f"{cell.id} (the same cell)"
    known = BY_NAME.get(axis)
    return known.label(cell) if known is not None else cell.id


def name_sides(axis: str, baseline: Cell, candidate: Cell) -> tuple[str, str]:
    """Name the candidate and the other side; a release of the same distribution there by its version alone."""
    if axis == "runtime":
        return _named_side(axis, candidate), titles.runtime_before(baseline.runtime, candidate.runtime)
    return _named_side(axis, candidate), _named_side(axis, baseline)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of what leads: what is told beside what, how surely, what both share, its cause, and what follows."""

    who: str
    than: str
    sure: str
    shared: str
    cause: str
    rest: Sequence[str]


def parts_of(lead: Standing, found: Opening, cells: Mapping[str, Cell]) -> Parts:
    """Return the parts of the leading comparison."""
    pair, (baseline, candidate) = lead.comparison, (cells[lead.comparison.baseline], cells[lead.comparison.candidate])
    grown, generated, statement, cause_of_it, *others = _of_lead(lead, found, cells)
    who, than = name_sides(lead.axis, baseline, candidate)
    sure = (pair.reason or "").rstrip(".") if lead.change.figures is None else _certainty(pair, lead.change)
    first = [generated, _describe_missing(pair).strip() if lead.change.word == "undecided" else ""]
    if lead.grown is not None:
        sure = metric_changes.describe(lead.grown)
        # the headline says one of them
        first = [grown if len(metric_changes.list_changes_in_sentence(pair)) > 1 else "", generated, statement]
    return Parts(
        who=_capital(who),
        than=than,
        sure=sure,
        shared=_shared(lead.axis, candidate),
        cause=cause_of_it,
        rest=[*first, *others],
    )
