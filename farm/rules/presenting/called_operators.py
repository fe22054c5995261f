"""Lists and describes the operators of a comparison that have a verdict of their own. Needs no numpy."""

from collections.abc import Sequence
from math import inf

from farm.contract.document_comparisons import Comparison, MetricChange, OperatorChange
from farm.rules.cells.metrics import JUDGED
from farm.rules.presenting.outside_graph import MAX_SHARE, explain_outside
from farm.rules.tracing.attribution import NAMED_SHARE, TypeChange, find_largest_share, group_by_type
from farm.rules.tracing.executions import MIN_TRACES
from farm.rules.wording import numbers
from farm.rules.wording.numbers import counted
from farm.rules.wording.vocabulary import is_change

US_PER_MS = 1000.0


def list_changed_operators(comparison: Comparison) -> list[OperatorChange]:
    called = [change for change in comparison.operators if is_change(change.verdict)]
    return sorted(called, key=lambda change: -abs(change.moved_us))


def sort_operators(comparison: Comparison) -> list[OperatorChange]:
    """Sort operators by what they add to the change, the largest first; without a decided change, by how much they
    changed.

    Where no shares are known, those with a verdict of their own come first, and those that cannot be part of the change
    last.
    """

    def place(operator: OperatorChange) -> tuple[bool, bool, float]:
        added = -_added_us(comparison, operator)
        if operator.share is not None:
            return False, False, added
        return not is_change(operator.verdict) or added > 0, not _fits(comparison, operator), added

    return sorted(comparison.operators, key=place)


def list_named_operators(comparison: Comparison) -> list[OperatorChange]:
    """List the operators that a list of causes names, in their order.

    Where no shares are known, it leaves out those that changed in the other direction, whose interval spans zero, or
    that cannot be part of the change.
    """
    ordered, is_changed = sort_operators(comparison), is_change(comparison.verdict)
    adding = [each for each in ordered if _added_us(comparison, each) > 0 and not _may_be_chance(each)]
    fitting = [each for each in ordered if _fits(comparison, each) and (each in adding or not is_changed)]
    return [operator for operator in ordered if operator.share is not None or operator in fitting]


def _may_be_chance(operator: OperatorChange) -> bool:
    low, high = operator.change_low_us, operator.change_high_us
    return not is_change(operator.verdict) and low is not None and high is not None and low <= 0 <= high


def find_largest_type(comparison: Comparison) -> TypeChange | None:
    """Return the operator type that adds most to the change; None where no type that can be part of it does."""
    limit_us = _limit_us(comparison)
    types = group_by_type(comparison.operators)
    changed = {operator.op_type for operator in comparison.operators if not _may_be_chance(operator)}
    fitting = [
        found
        for found in types
        if found.share is not None or (found.op_type in changed and abs(found.moved_us) <= limit_us)
    ]
    most = max(fitting, key=lambda found: _added_us(comparison, found), default=None)
    return most if most is not None and _added_us(comparison, most) > 0 else None


def describe_largest_type(comparison: Comparison) -> str:
    """Describe the operator type that changed most in the latency's direction, where too few traces give no shares.

    Return an empty string otherwise.
    """
    if not is_change(comparison.verdict):
        return ""
    most = find_largest_type(comparison)
    if most is None or most.share is not None:
        return ""
    return f"{most.op_type}: {type_times(most)}, changes most; too few traces for its share"


def describe_changed_type(comparison: Comparison) -> str:
    """Of operators that changed as the latency did by their own pairs, the type that did most: all of it that a list
    names."""
    told = list_named_operators(comparison)
    called = [operator for operator in told if operator.verdict == comparison.verdict]
    if not called:
        return ""
    most = group_by_type(called)[0]
    (named,) = group_by_type(operator for operator in told if operator.op_type == most.op_type)
    own = "" if named.nodes == most.nodes else f"{most.nodes} of them "
    whose = "its" if most.nodes == 1 else "their"
    return f"{most.op_type}: {type_times(named)}, {own}{comparison.verdict} by {whose} own pairs"


def describe_cause(comparison: Comparison) -> str:
    """Say in a sentence what a change of the latency comes from: the type of operator that explains most of it, or
    choosing a token, or where traces contradict the change the type that did most by its own pairs."""
    named = find_largest_share(comparison.operators)
    if named is not None and named.share is not None and named.share >= NAMED_SHARE:
        return f"{named.op_type} {numbers.explains(named.moved_us, named.share)}."
    if outside := explain_outside(comparison):
        return f"It comes from {outside}."
    called = "" if named else describe_changed_type(comparison)
    return f"{called}." if called else ""


def find_whole(comparison: Comparison) -> MetricChange | None:
    """Return the change of the time of an inference; None where that was not judged."""
    return next((metric for metric in comparison.metrics if metric.name == JUDGED.name), None)


def find_timed_us(whole: MetricChange | None) -> float:
    """Return by how many µs a time changed, which is what operators can have shares of; 0 where it did not."""
    if whole is None or not whole.ratio or not is_change(whole.verdict):
        return 0.0
    return US_PER_MS * whole.baseline * (whole.ratio - 1.0)


def _added_us(comparison: Comparison, change: OperatorChange | TypeChange) -> float:
    sign = {"slower": 1.0, "faster": -1.0}.get(comparison.verdict)
    return abs(change.moved_us) if sign is None else sign * change.moved_us


def _fits(comparison: Comparison, operator: OperatorChange) -> bool:
    return is_change(operator.verdict) or abs(operator.moved_us) <= _limit_us(comparison)


def _limit_us(comparison: Comparison) -> float:
    """The largest change in traces that can be part of the comparison's; where nothing changed, the inference
    itself."""
    whole = find_whole(comparison)
    if whole is None:
        return inf
    if is_change(comparison.verdict):
        return MAX_SHARE * abs(whole.candidate - whole.baseline) * US_PER_MS
    return max(whole.baseline, whole.candidate) * US_PER_MS


def format_operator_change(operator: OperatorChange) -> str:
    """Format how much an operator changed with its interval: `10 % slower (8–12 %)`; empty without a verdict."""
    if operator.ratio is None or operator.ci_low is None or operator.ci_high is None:
        return ""
    interval = numbers.change_interval(operator.ci_low, operator.ci_high, ratio=operator.ratio)
    return f"{numbers.change(operator.ratio, operator.ci_low, operator.ci_high)} ({interval})"


def format_operator_sides(operator: OperatorChange) -> tuple[str, str] | None:
    """Medians of the traces as they are written; None where they are apart otherwise than the pairs."""
    if (operator.candidate_us - operator.baseline_us) * operator.moved_us < 0:
        return None
    low, high = operator.change_low_us, operator.change_high_us
    apart = None if low is None or high is None else (low, high)
    known = operator.baseline_us, operator.candidate_us
    return numbers.format_divisible_pair(*known, low=operator.ci_low, high=operator.ci_high, apart=apart)


def operator_times(operator: OperatorChange) -> str:
    """Format the medians of both sides: `37 → 88 µs`; empty where their ratio would contradict the operator's pairs."""
    sides = format_operator_sides(operator)
    return f"{sides[0]} → {sides[1]} µs" if sides else ""


def type_times(changed: TypeChange) -> str:
    """Format the summed medians of a type: `2 nodes, 37 → 88 µs`; only their change where the two would contradict
    it."""
    apart = changed.candidate_us - changed.baseline_us
    times = f"{numbers.plain(changed.baseline_us)} → {numbers.plain(changed.candidate_us)}"
    said = times if apart * changed.moved_us > 0 else numbers.signed(changed.moved_us)
    return f"{counted(changed.nodes, 'node')}, {said} µs"


def describe_trace_noise(comparison: Comparison) -> str:
    return "traced while other programs kept the machine busy" if comparison.verdict_from == "processor" else ""


def explain_trace_doubt(comparison: Comparison) -> str:
    """Say why enough traces still explain nothing: the operators' gains and losses do not add up to the change.

    Return an empty string where shares are known, or there are too few traces.
    """
    moved = [change.moved_us for change in comparison.operators]
    is_shared = any(change.share is not None for change in comparison.operators)
    if not moved or is_shared or comparison.traces < MIN_TRACES or not is_change(comparison.verdict):
        return ""
    more, less = (sum(abs(us) for us in moved if (us > 0) == is_more) for is_more in (True, False))
    of = " of this busy machine" if comparison.verdict_from == "processor" else ""
    moves = f"{numbers.plain(more)} µs more in some operators, {numbers.plain(less)} less in others"
    if timed_us := find_timed_us(find_whole(comparison)):
        moves += f", {numbers.signed(timed_us)} in the inference as it was timed"
    return f"the traces{of} do not add up ({moves})"


def operators_heading(comparison: Comparison, where: str) -> str:
    """Return the heading of a list of operators: that they explain the change, or why they do not."""
    busy = f" ({note})" if (note := describe_trace_noise(comparison)) else ""
    if any(change.share is not None for change in comparison.operators):
        return f"What explains the change {where}, per inference{busy}:"
    doubt = explain_trace_doubt(comparison)
    why = f"{doubt.capitalize()}, so nothing explains" if doubt else "Too few traces to explain"
    listed = f"operators that {describe_order(comparison)}, per inference{busy}:"
    return f"{why} the change {where}{f'; {listed}' if list_named_operators(comparison) else ''}"


def describe_order(comparison: Comparison) -> str:
    """Say by what a list of operators is ordered, and how many it leaves out as no part of the change."""
    if any(change.share is not None for change in comparison.operators):
        return "explained most"
    if not is_change(comparison.verdict):
        return "changed most"
    is_own = any(change.verdict == comparison.verdict for change in comparison.operators)
    order = f"became {comparison.verdict} {'by their own pairs, then others' if is_own else 'most'}"
    beyond = sum(not _fits(comparison, change) for change in comparison.operators)
    return f"{order} (without {beyond} that changed by more than the inference)" if beyond else order


def describe_certainty(operators: Sequence[OperatorChange]) -> str:
    """Say how many operators that explain a change are significant on their own; empty where rounds were not traced."""
    judged = [change for change in operators if change.verdict is not None]
    if not judged:
        return ""
    called = sum(is_change(change.verdict) for change in judged)
    over = f"over {counted(max(change.rounds or 0 for change in judged), 'round')}"
    if not called:
        return f"none significant on its own {over}"
    return f"{called} of {len(operators)} significant on their own {over}"
