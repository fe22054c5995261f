"""What a bench document says in sentences: who is slower than what, where, by how much, how sure, and through what."""

from collections.abc import Mapping, Sequence
from math import log

from farm.contract.cells import Budget
from farm.contract.document import Cell, Comparison, Document
from farm.rules.cells import label
from farm.rules.cells.axes import ASKED_ORDER, BY_NAME
from farm.rules.cells.numbers import change, counted, microseconds, milliseconds, percent, signed
from farm.rules.planning.blocks import TWIN
from farm.rules.reporting import fusions, parities
from farm.rules.tracing.attribution import TypeChange, group_by_type

GLANCE = (
    "This is a glance: one launch of each cell, with nothing compared and no operators traced, and the next launch may "
    "well differ by a third. `--budget quick` measures eight in turn and compares them."
)
# an operator type that explains less is not named in the headline
NAMED_SHARE = 0.1


def opening(document: Document) -> str:
    """What a run opens with: its verdict, what an opset alone costs, and that outputs changed between runtimes."""
    told = (verdict_line(document), fusions.stamp_sentence(document), parities.change_sentence(document))
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
    return f"{signed(comparison.verdict)}: {_statement(comparison, baseline, candidate)}"


def cell_sentence(cell: Cell) -> str:
    """One cell in words: its latency, or its status with the reason."""
    what = f"{cell.model or 'The model'} on {cell.runtime}, {label.workload(cell)}"
    if cell.status != "done" or cell.p50_ms is None:
        why = cell.reason.text if cell.reason is not None else "it was not measured."
        return f"{signed(cell.status)}: {what}: {why}"
    return f"{what}: {milliseconds(cell.p50_ms, cell.p50_ci_ms)} at the median of {len(cell.samples_ms)} launches."


def explanation(comparison: Comparison) -> str | None:
    """`‹type›: k nodes, a → b µs, explains p % of the change`; None where the traces do not explain it."""
    named = _named_type(comparison)
    if named is None or named.share is None:
        return None
    times = f"{microseconds(named.baseline_us)} → {microseconds(named.candidate_us)} µs"
    return f"{named.op_type}: {counted(named.nodes, 'node')}, {times}, explains {_part(named.share)} of the change"


def opening_comparison(comparisons: Sequence[Comparison]) -> Comparison | None:
    """The comparison that a run opens with: of the axis that matters most, the largest decided change."""
    return max(_of_first_axis(comparisons), key=_weight, default=None)


def _of_first_axis(comparisons: Sequence[Comparison]) -> list[Comparison]:
    compared = [c for c in comparisons if c.axis != TWIN and c.verdict != "not comparable"]
    axis = min((c.axis for c in compared), key=_axis_rank, default=None)
    return [c for c in compared if c.axis == axis]


def _headline(document: Document) -> str | None:
    """The largest decided change along the axis that matters most, and how many others agree."""
    worst = opening_comparison(document.comparisons)
    if worst is None:
        return None
    cells = {cell.id: cell for cell in document.cells}
    text = _statement(worst, cells[worst.baseline], cells[worst.candidate])
    agreement = _agreement(_of_first_axis(document.comparisons), worst)
    return " ".join(part for part in (text, _because(worst), agreement) if part)


def _axis_rank(axis: str) -> tuple[int, str]:
    return (ASKED_ORDER.index(axis) if axis in ASKED_ORDER else len(ASKED_ORDER), axis)


def _weight(comparison: Comparison) -> tuple[int, float]:
    """Slower before faster before undecided before equal; the larger change first."""
    order = {"slower": 3, "faster": 2, "undecided": 1}.get(comparison.verdict, 0)
    return order, 0.0 if comparison.ratio is None else abs(log(comparison.ratio))


def _because(comparison: Comparison) -> str:
    named = _named_type(comparison) if comparison.verdict in ("slower", "faster") else None
    if named is None or named.share is None or named.share < NAMED_SHARE:
        return ""
    return f"{named.op_type} explains {_part(named.share)} of it."


def _part(share: float) -> str:
    """Above 1 other operators took less time than before, and the sum is smaller than this part of it."""
    return percent(share) if share <= 1 else "all"


def _named_type(comparison: Comparison) -> TypeChange | None:
    """The operator type with the largest share of the change."""
    shared = [one for one in group_by_type(comparison.operators) if one.share is not None]
    return max(shared, key=lambda one: one.share or 0.0, default=None)


def _agreement(comparisons: Sequence[Comparison], worst: Comparison) -> str:
    if len(comparisons) == 1:
        return ""
    same = sum(one.verdict == worst.verdict for one in comparisons)
    return f"{same} of {len(comparisons)} comparisons by {worst.axis} are {worst.verdict}."


def _statement(comparison: Comparison, baseline: Cell, candidate: Cell) -> str:
    who, than = _named_side(comparison.axis, candidate), _than(comparison.axis, baseline, candidate)
    where = f" on {candidate.node}" if candidate.node else ""
    what = f"{candidate.model or 'the model'} ({label.workload(candidate, without=comparison.axis)})"
    sure = _certainty(comparison)
    if comparison.verdict == "not comparable":
        return f"{who} and {than} cannot be compared. {comparison.reason or ''}".strip()
    if comparison.ratio is None or comparison.ci_low is None or comparison.ci_high is None:
        return f"{_uncompared(who, than, baseline, candidate)} {comparison.reason or ''}".strip()
    size, _ = change(comparison.ratio, comparison.ci_low, comparison.ci_high)
    if comparison.verdict in ("slower", "faster"):
        return f"{who} runs {what} {size} {comparison.verdict} than {than}{where} ({sure})."
    if comparison.verdict == "equal":
        return f"{who} runs {what} as fast as {than}{where}, within ± {100 * comparison.margin:.3g} % ({sure})."
    return f"Whether {who} runs {what} slower or faster than {than}{where} is undecided ({sure}).{_wanted(comparison)}"


def _uncompared(who: str, than: str, baseline: Cell, candidate: Cell) -> str:
    """Of a pair without a ratio: each side's own latency where it has one."""
    if baseline.p50_ms is None or candidate.p50_ms is None:
        return f"{who} and {than} have no figures to compare."
    new, old = (milliseconds(cell.p50_ms or 0.0, cell.p50_ci_ms) for cell in (candidate, baseline))
    return f"{who} ({new}) and {than} ({old}) were measured but could not be compared."


def _certainty(comparison: Comparison) -> str:
    if comparison.ratio is None or comparison.ci_low is None or comparison.ci_high is None:
        return ""
    _, interval = change(comparison.ratio, comparison.ci_low, comparison.ci_high)
    by = (
        "; by processor time, as other programs kept the machine busy" if comparison.verdict_from == "processor" else ""
    )
    return f"{100 * (comparison.ci_level or 0.0):.3g} % interval {interval}, {counted(comparison.rounds, 'round')}{by}"


def _wanted(comparison: Comparison) -> str:
    parts = []
    if comparison.smallest_detectable is not None:
        parts.append(f"the smallest change it could see is {100 * comparison.smallest_detectable:.2g} %")
    if comparison.rounds_needed is not None:
        parts.append(f"about {counted(comparison.rounds_needed, 'round')} would decide")
    text = "; ".join(parts)
    return f" {text[:1].upper()}{text[1:]}." if text else ""


def _named_side(axis: str, cell: Cell) -> str:
    """One side of a comparison by what differs."""
    if axis == "runtime":
        distribution, _, version = cell.runtime.partition("==")
        return f"ONNX Runtime {version}" if distribution == "onnxruntime" else f"{distribution} {version}"
    if axis == TWIN:
        return f"{cell.id} (the same cell)"
    known = BY_NAME.get(axis)
    return known.label(cell) if known is not None else cell.id


def _than(axis: str, baseline: Cell, candidate: Cell) -> str:
    """The other side; a release of the same distribution by its version alone."""
    old, new = baseline.runtime.partition("=="), candidate.runtime.partition("==")
    return old[2] if axis == "runtime" and old[0] == new[0] else _named_side(axis, baseline)


def _nothing_measured(cells: Sequence[Cell]) -> str:
    if not cells:
        return "Nothing was planned."
    reason = next((cell.reason.text for cell in cells if cell.reason is not None), "")
    return f"None of {counted(len(cells), 'cell')} could be measured. {reason}".strip()
