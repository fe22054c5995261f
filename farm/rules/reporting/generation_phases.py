"""What a comparison of cells that generate says of its two phases: the prompt, and the tokens behind it. Pure."""

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.rules.cells.numbers import change_beside, counted, microseconds, percent
from farm.rules.reporting.prefills import is_generated, prefill_of
from farm.rules.tracing.attribution import TypeChange, group_by_type

# an operator type that explains less of the prompt's change is not named
NAMED_SHARE = 0.1
_CHANGED = ("slower", "faster")


def sentence(one: Comparison, candidate: Cell) -> str:
    """`Prefill is 15 % slower, decoding is equal. SkipLayerNormalization explains 85 % of prefill's change.`

    Empty for cells that generate nothing, and for those without a verdict on both.
    """
    prefill = prefill_of(one)
    if not is_generated(candidate) or prefill is None or one.verdict == "not comparable":
        return ""
    first = _worded(prefill.verdict, prefill.ratio, prefill.ci_low, prefill.ci_high)
    then = _worded(one.verdict, one.ratio, one.ci_low, one.ci_high)
    both = f"Prefill is {first}, decoding is {then}." if first != then else f"Prefill and decoding are {first}."
    return " ".join(text for text in (both, _because(one, prefill)) if text)


def explanation(one: Comparison) -> str:
    """`prefill: SkipLayerNormalization: 17 nodes, 310 → 620 µs, explains 92 % of the change`; empty where none did."""
    prefill, named = prefill_of(one), _named_type(one)
    if prefill is None or prefill.verdict not in _CHANGED or named is None or named.share is None:
        return ""
    told = f"{counted(named.nodes, 'node')}, {microseconds(named.baseline_us)} → {microseconds(named.candidate_us)} µs"
    return f"prefill: {named.op_type}: {told}, explains {_part(named.share)} of the change"


def _worded(verdict: str, ratio: float | None, low: float | None, high: float | None) -> str:
    if verdict not in _CHANGED or ratio is None or low is None or high is None:
        return verdict
    size, _ = change_beside(verdict, ratio, low, high)
    return f"{size} {verdict}"


def _because(one: Comparison, prefill: MetricChange) -> str:
    named = _named_type(one) if prefill.verdict in _CHANGED else None
    if named is None or named.share is None or named.share < NAMED_SHARE:
        return ""
    return f"{named.op_type} explains {_part(named.share)} of prefill's change."


def _part(share: float) -> str:
    return percent(share) if share <= 1 else "all"


def _named_type(one: Comparison) -> TypeChange | None:
    """The operator type with the largest share of the prompt's change."""
    shared = [change for change in group_by_type(one.prompt_operators) if change.share is not None]
    return max(shared, key=lambda change: change.share or 0.0, default=None)
