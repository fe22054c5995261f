"""Lists the operators of a comparison that changed, and describes which of them its change comes from.

The module needs no numpy, so that the client can use it without the server's packages.
"""

from collections.abc import Sequence
from math import inf

from farm.contract.document_comparisons import Comparison, MetricChange, OperatorChange
from farm.rules.cells.metrics import JUDGED
from farm.rules.tracing.attribution import TypeChange, group_by_type
from farm.rules.tracing.executions import MIN_TRACES
from farm.rules.wording import numbers
from farm.rules.wording.numbers import counted
from farm.rules.wording.vocabulary import is_change

US_PER_MS = 1000.0
# An operator whose time changed by more than this many times a change cannot be a part of that change.
MAX_SHARE = 1.5


def list_changed_operators(comparison: Comparison) -> list[OperatorChange]:
    """List the operators with a decided verdict, the largest change in µs first; gains and losses are mixed."""
    changed = [operator for operator in comparison.operators if is_change(operator.verdict)]
    return sorted(changed, key=lambda operator: -abs(operator.moved_us))


def sort_operators(comparison: Comparison) -> list[OperatorChange]:
    """Sort operators by what they add to the change, the largest first; without a decided change, by how much they
    changed.

    Where no shares are known, those with a verdict of their own that do not go against the change come first, and those
    that cannot be part of it last.
    """

    def order(operator: OperatorChange) -> tuple[bool, bool, float]:
        added_us = _added_us(comparison, operator)
        if operator.share is not None:
            return False, False, -added_us
        is_decided = is_change(operator.verdict) and added_us >= 0
        return not is_decided, not _is_possible_part(comparison, operator), -added_us

    return sorted(comparison.operators, key=order)


def list_named_operators(comparison: Comparison) -> list[OperatorChange]:
    """List the operators that a list of causes names, in the order of `sort_operators`.

    Every operator with a share is named. Without a share, those are left out that cannot be part of the change, and
    where the change is decided also those that changed in the other direction or whose interval spans zero.
    """
    is_changed = is_change(comparison.verdict)

    def is_named(operator: OperatorChange) -> bool:
        if operator.share is not None:
            return True
        adds = _added_us(comparison, operator) > 0 and not may_be_chance(operator)
        return _is_possible_part(comparison, operator) and (adds or not is_changed)

    return [operator for operator in sort_operators(comparison) if is_named(operator)]


def find_largest_type(comparison: Comparison) -> TypeChange | None:
    """Return the operator type that adds most to the change; None where no type that can be part of it does.

    A type without a share counts only if one of its operators is not surely chance: it has a decided verdict, or an
    interval without zero, or no interval.
    """
    limit_us = _limit_us(comparison)
    sure_types = {operator.op_type for operator in comparison.operators if not may_be_chance(operator)}
    possible = [
        changed
        for changed in group_by_type(comparison.operators)
        if changed.share is not None or (changed.op_type in sure_types and abs(changed.moved_us) <= limit_us)
    ]
    largest = max(possible, key=lambda changed: _added_us(comparison, changed), default=None)
    return largest if largest is not None and _added_us(comparison, largest) > 0 else None


def describe_largest_type(comparison: Comparison) -> str:
    """Describe the operator type that changed most in the latency's direction, where traces are too few for shares.

    Return an empty string where shares are known, or no change is decided.
    """
    if not is_change(comparison.verdict):
        return ""
    largest = find_largest_type(comparison)
    if largest is None or largest.share is not None:
        return ""
    return f"{largest.op_type}: {format_type_times(largest)}, changes most; too few traces for its share"


def describe_changed_type(comparison: Comparison) -> str:
    """Describe the operator type that changed most in the latency's direction, by verdicts on its operators.

    Its times are the sums of all its operators that a list of causes names. Empty where no operator has such a verdict.
    """
    named = list_named_operators(comparison)
    changed = [operator for operator in named if operator.verdict == comparison.verdict]
    if not changed:
        return ""
    largest = group_by_type(changed)[0]
    (whole_type,) = group_by_type(operator for operator in named if operator.op_type == largest.op_type)
    part = "" if whole_type.nodes == largest.nodes else f"{largest.nodes} of them "
    whose = "its" if largest.nodes == 1 else "their"
    return f"{largest.op_type}: {format_type_times(whole_type)}, {part}{comparison.verdict} by {whose} own pairs"


def find_latency_change(comparison: Comparison) -> MetricChange | None:
    return next((metric for metric in comparison.metrics if metric.name == JUDGED.name), None)


def find_timed_us(latency_change: MetricChange | None) -> float:
    """Return by how many µs the time of an inference changed, negative where it became faster.

    Return 0 where no change is decided or known.
    """
    if latency_change is None or not latency_change.ratio or not is_change(latency_change.verdict):
        return 0.0
    return US_PER_MS * latency_change.baseline * (latency_change.ratio - 1.0)


def may_be_chance(operator: OperatorChange) -> bool:
    """Whether the operator has no decided verdict and the interval of its change spans zero; False without one."""
    low, high = operator.change_low_us, operator.change_high_us
    return not is_change(operator.verdict) and low is not None and high is not None and low <= 0 <= high


def _added_us(comparison: Comparison, change: OperatorChange | TypeChange) -> float:
    """Return how much of the comparison's change this one adds, negative against it; its size without a change."""
    if comparison.verdict == "slower":
        return change.moved_us
    return -change.moved_us if comparison.verdict == "faster" else abs(change.moved_us)


def _is_possible_part(comparison: Comparison, operator: OperatorChange) -> bool:
    return is_change(operator.verdict) or abs(operator.moved_us) <= _limit_us(comparison)


def _limit_us(comparison: Comparison) -> float:
    """Return the largest change of an operator in traces that can be part of the comparison's change."""
    latency_change = find_latency_change(comparison)
    if latency_change is None:
        return inf
    if is_change(comparison.verdict):
        return MAX_SHARE * abs(latency_change.candidate - latency_change.baseline) * US_PER_MS
    return max(latency_change.baseline, latency_change.candidate) * US_PER_MS


def format_operator_change(operator: OperatorChange) -> str:
    """Format how much an operator changed: `10 % slower (8–12 %)`; empty where its ratio or interval is not known."""
    if operator.ratio is None or operator.ci_low is None or operator.ci_high is None:
        return ""
    interval = numbers.change_interval(operator.ci_low, operator.ci_high, ratio=operator.ratio)
    return f"{numbers.change(operator.ratio, operator.ci_low, operator.ci_high)} ({interval})"


def format_operator_sides(operator: OperatorChange) -> tuple[str, str] | None:
    """Format the medians of both sides' traces, in µs; None where they contradict the change of the paired traces."""
    if (operator.candidate_us - operator.baseline_us) * operator.moved_us < 0:
        return None
    low, high = operator.change_low_us, operator.change_high_us
    return numbers.format_divisible_pair(
        operator.baseline_us,
        operator.candidate_us,
        low=operator.ci_low,
        high=operator.ci_high,
        apart=None if low is None or high is None else (low, high),
    )


def format_operator_times(operator: OperatorChange) -> str:
    """Format the medians of both sides: `37 → 88 µs`; empty where they contradict the change of the paired traces."""
    sides = format_operator_sides(operator)
    return f"{sides[0]} → {sides[1]} µs" if sides else ""


def format_type_times(changed: TypeChange) -> str:
    """Format the summed medians of a type: `2 nodes, 37 → 88 µs`; only their change where the two would contradict
    it."""
    if (changed.candidate_us - changed.baseline_us) * changed.moved_us > 0:
        times = f"{numbers.plain(changed.baseline_us)} → {numbers.plain(changed.candidate_us)}"
    else:
        times = numbers.signed(changed.moved_us)
    return f"{counted(changed.nodes, 'node')}, {times} µs"


def note_busy_machine(comparison: Comparison) -> str:
    return "traced while other programs kept the machine busy" if comparison.verdict_from == "processor" else ""


def explain_trace_doubt(comparison: Comparison) -> str:
    """Say why enough traces still explain nothing: the operators' gains and losses do not add up to the change.

    Return an empty string where shares are known, no change is decided, or there are too few traces or no operators.
    """
    moved_us = [operator.moved_us for operator in comparison.operators]
    if not moved_us or _has_shares(comparison) or comparison.traces < MIN_TRACES or not is_change(comparison.verdict):
        return ""
    more_us, less_us = sum(max(0.0, us) for us in moved_us), sum(max(0.0, -us) for us in moved_us)
    machine = " of this busy machine" if comparison.verdict_from == "processor" else ""
    sums = f"{numbers.plain(more_us)} µs more in some operators, {numbers.plain(less_us)} less in others"
    if timed_us := find_timed_us(find_latency_change(comparison)):
        sums += f", {numbers.signed(timed_us)} in the inference as it was timed"
    return f"the traces{machine} do not add up ({sums})"


def make_operators_heading(comparison: Comparison, where: str) -> str:
    """Return the heading of a list of operators: that they explain the change, or why they do not."""
    busy = f" ({note})" if (note := note_busy_machine(comparison)) else ""
    if _has_shares(comparison):
        return f"What explains the change {where}, per inference{busy}:"
    doubt = explain_trace_doubt(comparison)
    heading = f"{doubt.capitalize()}, so nothing explains" if doubt else "Too few traces to explain"
    heading = f"{heading} the change {where}"
    if not list_named_operators(comparison):
        return heading
    return f"{heading}; operators that {describe_order(comparison)}, per inference{busy}:"


def describe_order(comparison: Comparison) -> str:
    """Say by what a list of operators is ordered, and how many it leaves out that cannot be part of the change.

    These are counted only where no shares are known and a change is decided.
    The text completes `operators that …`: `became slower most (without 2 that changed by more than the inference)`.
    """
    if _has_shares(comparison):
        return "explained most"
    if not is_change(comparison.verdict):
        return "changed most"
    have_own_pairs = any(operator.verdict == comparison.verdict for operator in comparison.operators)
    order = f"became {comparison.verdict} {'by their own pairs, then others' if have_own_pairs else 'most'}"
    left_out = sum(not _is_possible_part(comparison, operator) for operator in comparison.operators)
    return f"{order} (without {left_out} that changed by more than the inference)" if left_out else order


def _has_shares(comparison: Comparison) -> bool:
    return any(operator.share is not None for operator in comparison.operators)


def describe_certainty(operators: Sequence[OperatorChange]) -> str:
    """Say how many nodes of the type that explains a change are significant; empty where rounds were not traced."""
    judged = [operator for operator in operators if operator.verdict is not None]
    if not judged:
        return ""
    significant = sum(is_change(operator.verdict) for operator in judged)
    rounds = counted(max(operator.rounds or 0 for operator in judged), "round")
    if not significant:
        return f"none of its nodes significant on its own over {rounds}"
    return f"{significant} of its {counted(len(operators), 'node')} significant on their own over {rounds}"
