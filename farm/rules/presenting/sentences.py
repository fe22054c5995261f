"""What a bench document says in sentences: who is slower than what, where, by how much, how sure, and through what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.contract.cells import Budget
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells import label
from farm.rules.cells.axes import BY_NAME
from farm.rules.comparing.quantities import Change, change_between
from farm.rules.planning.blocks import TWIN
from farm.rules.presenting import (
    busy_machine,
    fusions,
    generation_phases,
    metric_changes,
    outside_graph,
    parities,
    simulated,
)
from farm.rules.presenting.called_operators import certainty
from farm.rules.presenting.headlines import WORK_AXES, Opening, Standing, axis_rank, opening_of
from farm.rules.presenting.lines import BUSY, is_busy, is_by_processor
from farm.rules.tracing.attribution import TypeChange, group_by_type
from farm.rules.wording import titles
from farm.rules.wording.numbers import counted, explained, latency, percent, plain
from farm.rules.wording.vocabulary import is_change, signed

GLANCE = (
    "This is a glance: one launch of each cell, with nothing compared and no operators traced, and the next launch may "
    "well differ by a third. `--budget quick` measures eight in turn and compares them."
)
# an operator type that explains less is not named in the headline
NAMED_SHARE = 0.1
NAMED_CELLS = 3


@dataclass(frozen=True, slots=True)
class Phrases:
    """How a comparison is told by one quantity: what is decided, what is equal, what is open.

    `verb`: what the side is beside its verdict; `but`, `gain`: what a winner is whose outputs are wrong.
    """

    decided: str
    equal: str
    undecided: str
    verb: str
    but: str
    gain: str


_PHRASES = {
    "latency": Phrases(
        "{who} runs {what} {size} {word} than {than}{where} ({sure}).",
        "{who} runs {what} as fast as {than}{where}, within ± {margin} ({sure}).",
        "Whether {who} runs {what} slower or faster than {than}{where} is undecided ({sure}).",
        verb="are {word}",
        but="is faster but",
        gain="its speedup does",
    ),
    "items": Phrases(
        "{who} runs {what} with {size} {word} items/s than {than}{where} ({sure}).",
        "{who} runs {what} with as many items/s as {than}{where}, within ± {margin} ({sure}).",
        "Whether {who} runs {what} with more or fewer items/s than {than}{where} is undecided ({sure}).",
        verb="have {word} items/s",
        but="has more items/s but is",
        gain="its items/s do",
    ),
    "rate": Phrases(
        "{who} serves {what} at a {size} {word} rate than {than}{where} ({sure}).",
        "{who} serves {what} at as high a rate as {than}{where}, within ± {margin} ({sure}).",
        "Whether {who} serves {what} at a higher or lower rate than {than}{where} is undecided ({sure}).",
        verb="have a {word} rate",
        but="serves a higher rate but is",
        gain="that does",
    ),
}


def opening(document: Document) -> str:
    """What a run opens with: its verdict, what an opset alone costs, and that outputs changed between runtimes."""
    told = (
        simulated.sentence(document),
        verdict_line(document),
        fusions.stamp_sentence(document),
        parities.change_sentence(document),
        parities.models_sentence(document),
    )
    texts = (*told, GLANCE if document.budget == Budget.GLANCE else "")
    return " ".join(text for text in texts if text)


def verdict_line(document: Document) -> str:
    """The one sentence, or two, that a run comes to."""
    measured = [cell for cell in document.cells if cell.status == "done"]
    headline = _headline(document)
    if headline is not None:
        return headline
    if len(document.cells) == 1 and measured:
        return cell_sentence(measured[0])
    if not measured:
        return _nothing_measured(document.cells)
    missing = len(document.cells) - len(measured)
    rest = f"; {missing} did not finish" if missing else ""
    return f"{counted(len(measured), 'cell')} of {measured[0].model or 'the model'} measured{rest}, none to compare."


def comparison_sentence(comparison: Comparison, cells: Mapping[str, Cell]) -> str:
    """One comparison in words, with its sign."""
    baseline, candidate = cells[comparison.baseline], cells[comparison.candidate]
    change = change_between(comparison, baseline, candidate)
    return f"{signed(change.word)}{change.unit}: {_statement(comparison, baseline, candidate)}"


def cell_sentence(cell: Cell) -> str:
    """One cell in words: its latency, or its status with the reason."""
    what = f"{cell.model or 'The model'} on {cell.runtime}, {label.workload(cell)}"
    if cell.status != "done" or cell.p50_ms is None:
        why = cell.reason.text if cell.reason is not None else "it was not measured."
        return f"{signed(cell.status)}: {what}: {why}"
    launches = f"at the median of {len(cell.samples_ms)} launches"
    by_clock = latency(cell.p50_ms, cell.p50_ci_ms)
    if is_busy(cell):
        return f"{what}: {latency(cell.cpu_p50_ms)} of processor time {launches} ({by_clock} by the clock). {BUSY}."
    return f"{what}: {by_clock} {launches}."


def explanation(comparison: Comparison) -> str | None:
    """`‹type›: k nodes, a → b µs, explains p % of the change`, or that it is outside the graph; None without a reason.

    Where rounds were traced, how many of these nodes are called slower or faster by themselves; and whether the machine
    was busy. Of cells that generate, decoding and prefill apart.
    """
    own = _explanation(comparison)
    if not comparison.prompt_operators:
        return own
    parts = (f"decoding: {own}" if own else "", generation_phases.explanation(comparison))
    return "; ".join(part for part in parts if part) or None


def _explanation(comparison: Comparison) -> str | None:
    named = _named_type(comparison)
    if named is None or named.share is None:
        return outside_graph.explanation(comparison)
    times = f"{plain(named.baseline_us)} → {plain(named.candidate_us)} µs"
    sure = certainty([one for one in comparison.operators if one.op_type == named.op_type])
    told = f"{named.op_type}: {counted(named.nodes, 'node')}, {times}, explains {explained(named.share)} of the change"
    notes = "; ".join(note for note in (sure, busy_machine.note_of_traces(comparison)) if note)
    return f"{told} ({notes})" if notes else told


def most_changed(comparison: Comparison) -> str:
    """The operator type that changed most the way the latency did, where too few traces give no shares; else empty."""
    if not is_change(comparison.verdict):
        return ""
    sign = 1.0 if comparison.verdict == "slower" else -1.0
    unshared = [one for one in group_by_type(comparison.operators) if one.share is None]
    most = max(unshared, key=lambda one: sign * (one.candidate_us - one.baseline_us), default=None)
    if most is None or sign * (most.candidate_us - most.baseline_us) <= 0:
        return ""
    times = f"{plain(most.baseline_us)} → {plain(most.candidate_us)} µs"
    return f"{most.op_type}: {counted(most.nodes, 'node')}, {times}, changes most; too few traces for its share"


def _headline(document: Document) -> str | None:
    """The largest decided change, the axis that is asked for first, what was left out, and what is undecided."""
    cells = {cell.id: cell for cell in document.cells}
    found = opening_of(document.comparisons, cells)
    if found.lead is None:
        return None
    parts = [part for one in found.told for part in _told(one, found, cells)]
    return " ".join(part for part in (*parts, _left_out(found), _undecided(found)) if part)


def _told(one: Standing, found: Opening, cells: Mapping[str, Cell]) -> list[str]:
    """A comparison in words, what it comes from, and after the last one how many others of its axis agree."""
    baseline, candidate = cells[one.comparison.baseline], cells[one.comparison.candidate]
    before = None if one is found.told[0] else cells[found.told[0].comparison.candidate]
    text = _statement(one.comparison, baseline, candidate, before=before)
    text = _begun(text, one.axis)
    agreement = _agreement(one, found.standings) if one is found.told[-1] else ""
    caveat = _caveat(one, cells)
    # a cell whose outputs are wrong is not praised before that is said
    first = [caveat, text] if one.change.is_gain else [text, caveat]
    return [
        generation_phases.sentence(one.comparison, candidate),
        *first,
        _because(one),
        _also_changed(one, candidate),
        agreement,
    ]


def _begun(text: str, axis: str) -> str:
    """A sentence's first word with a capital, unless it is the name of a model."""
    return text if axis == "model" else _capital(text)


def _capital(text: str) -> str:
    """`Batch 8 runs …`; names such as `int8-dynamic` stay as they are written."""
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def _caveat(one: Standing, cells: Mapping[str, Cell]) -> str:
    """That the better side gives wrong outputs."""
    if one.is_right:
        return ""
    sides = [cells[side] for side in (one.comparison.baseline, one.comparison.candidate)]
    # of models the outputs of the new one are judged by the base's
    wrong = [cell.id for cell in sides if cell.parity.verdict == "fail"] or [one.comparison.candidate]
    outputs = f"the outputs of {' and '.join(wrong)} fail parity"
    if not one.change.is_gain:
        return _capital(f"{outputs}.")
    phrases = _PHRASES[one.change.quantity]
    who = _begun(_named_side(one.axis, cells[one.comparison.candidate]), one.axis)
    return f"{who} {phrases.but} different: {outputs}, so {phrases.gain} not count."


def _left_out(found: Opening) -> str:
    """Gains that do not lead, because the outputs of the better side are wrong; those told already are not repeated."""
    left = [one for one in found.left_out if one not in found.told]
    # where nothing is right, the sentence about the first one says so
    if not left or found.lead is None or not found.lead.is_right:
        return ""
    better = dict.fromkeys(_better(one) for one in left)
    names = list(better)[:NAMED_CELLS]
    more = f" and {len(better) - len(names)} more" if len(better) > len(names) else ""
    return (
        f"Left out, because outputs fail parity: {counted(len(left), 'comparison')} that {', '.join(names)}{more} won."
    )


def _better(one: Standing) -> str:
    return one.comparison.candidate if one.change.is_gain else one.comparison.baseline


def _undecided(found: Opening) -> str:
    """How many comparisons are undecided, by axis, where there are more than have a sentence of their own."""
    said = []
    for axis in sorted({one.axis for one in found.standings}, key=axis_rank):
        words = [one.change.word for one in found.standings if one.axis == axis]
        told = sum(one.axis == axis and one.change.word == "undecided" for one in found.told)
        # how many others are as undecided as the last one told was said behind it
        if told and found.told[-1].axis == axis and found.told[-1].change.word == "undecided":
            continue
        if (count := words.count("undecided")) > told:
            said.append(f"{count} of {len(words)} by {axis}")
    return f"Undecided: {', '.join(said)}." if said else ""


def _because(one: Standing) -> str:
    is_told = one.change.is_decided and one.change.quantity == "latency"
    named = _named_type(one.comparison) if is_told else None
    if named is None or named.share is None or named.share < NAMED_SHARE:
        outside = outside_graph.explanation(one.comparison) if is_told else None
        return f"It comes from {outside}." if outside else ""
    return f"{named.op_type} explains {explained(named.share)} of it."


def _also_changed(one: Standing, candidate: Cell) -> str:
    """Memory that changed with it; along an axis that sets how much work is done, more of it is no news."""
    if one.axis in (*WORK_AXES, "batch"):
        return ""
    return metric_changes.sentence(_named_side(one.axis, candidate), one.change.word, one.comparison)


def _named_type(comparison: Comparison) -> TypeChange | None:
    """The operator type with the largest share of the change."""
    shared = [one for one in group_by_type(comparison.operators) if one.share is not None]
    return max(shared, key=lambda one: one.share or 0.0, default=None)


def _agreement(one: Standing, standings: Sequence[Standing]) -> str:
    """How many comparisons of the axis came out the same way."""
    words = [other.change.word for other in standings if other.axis == one.axis]
    if len(words) == 1:
        return ""
    verb = _PHRASES[one.change.quantity if one.change.is_decided else "latency"].verb
    same = words.count(one.change.word)
    return f"{same} of {len(words)} comparisons by {one.axis} {verb.format(word=one.change.word)}."


def _statement(comparison: Comparison, baseline: Cell, candidate: Cell, *, before: Cell | None = None) -> str:
    """A comparison in words; what the sentence before it named, by its candidate, is not named again."""
    who, than = _named_side(comparison.axis, candidate), _than(comparison.axis, baseline, candidate)
    change = change_between(comparison, baseline, candidate)
    if change.word == "not comparable":
        return f"{who} and {than} cannot be compared. {_obstacle(comparison, baseline, candidate)}".strip()
    if change.figures is None:
        return f"{_uncompared(who, than, baseline, candidate)} {comparison.reason or ''}".strip()
    is_new_place = before is None or before.node != candidate.node
    where = f" on {candidate.node}" if candidate.node and is_new_place else ""
    model = (candidate.model or "the model") if before is None else "it"
    shared, sure = _shared(comparison.axis, candidate), _certainty(comparison, change)
    what = f"{model} ({shared})"
    if comparison.axis == "model":
        what, where = "", f"{where}, with {shared}"
    size = change.amount if change.is_decided else ""
    phrases = _PHRASES[change.quantity]
    told = phrases.decided if change.is_decided else phrases.equal if change.word == "equal" else phrases.undecided
    said = {"who": who, "what": what, "than": than, "where": where, "size": size, "word": change.word, "sure": sure}
    text = told.format(**said, margin=percent(comparison.margin))
    text = " ".join(text.split())
    return f"{text}{_wanted(comparison) if change.word == 'undecided' else ''}"


def _obstacle(comparison: Comparison, baseline: Cell, candidate: Cell) -> str:
    if baseline.model != candidate.model:
        return f"They are different models, {baseline.model} and {candidate.model}."
    return comparison.reason or ""


def _shared(axis: str, cell: Cell) -> str:
    """What both sides have in common, apart from the model."""
    runtime = "" if axis in ("runtime", TWIN) else _named_side("runtime", cell)
    return ", ".join(text for text in (label.workload(cell, without=axis), runtime) if text)


def _uncompared(who: str, than: str, baseline: Cell, candidate: Cell) -> str:
    """Of a pair without a ratio: each side's own latency where it has one."""
    if baseline.p50_ms is None or candidate.p50_ms is None:
        return f"{who} and {than} have no figures to compare."
    new, old = (latency(cell.p50_ms or 0.0, cell.p50_ci_ms) for cell in (candidate, baseline))
    return f"{who} ({new}) and {than} ({old}) were measured but could not be compared."


def _certainty(comparison: Comparison, change: Change) -> str:
    """Of figures that there are: the interval in the direction that the sentence says, else with its signs."""
    by = ", CPU time" if is_by_processor(comparison) else ""
    return (
        f"{percent(comparison.ci_level or 0.0)} interval {change.interval}, {counted(comparison.rounds, 'round')}{by}"
    )


def _wanted(comparison: Comparison) -> str:
    """What is missing to a verdict; of too few rounds the reason says it, for they detect nothing."""
    parts = []
    why = f" {comparison.reason}" if comparison.smallest_detectable is None and comparison.reason else ""
    if comparison.smallest_detectable is not None:
        parts.append(f"the smallest detectable change is {100 * comparison.smallest_detectable:.2g} %")
    # one that is undecided by its items per second alone has its rounds as counted for latency
    if comparison.rounds_needed is not None and comparison.verdict == "undecided":
        parts.append(f"about {counted(comparison.rounds_needed, 'round')} would decide")
    text = "; ".join(parts)
    return why + (f" {text[:1].upper()}{text[1:]}." if text else "")


def _named_side(axis: str, cell: Cell) -> str:
    """One side of a comparison by what differs."""
    if axis == "runtime":
        return titles.runtime_in_words(cell.runtime)
    if axis == TWIN:
        return f"{cell.id} (the same cell)"
    known = BY_NAME.get(axis)
    return known.label(cell) if known is not None else cell.id


def _than(axis: str, baseline: Cell, candidate: Cell) -> str:
    """The other side; a release of the same distribution by its version alone."""
    if axis == "runtime":
        return titles.runtime_before(baseline.runtime, candidate.runtime)
    return _named_side(axis, baseline)


def _nothing_measured(cells: Sequence[Cell]) -> str:
    if not cells:
        return "Nothing was planned."
    reason = next((cell.reason.text for cell in cells if cell.reason is not None), "")
    return f"None of {counted(len(cells), 'cell')} could be measured. {reason}".strip()
