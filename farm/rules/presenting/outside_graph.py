"""Explains a change of the time per token by choosing the token, which happens outside the graph. Pure.

Launches report its processor time only where choosing is part of the time per token, as onnxruntime-genai's call is.
"""

from farm.contract.document_comparisons import Comparison, MetricChange
from farm.rules.cells.scenario_metrics import OUTSIDE, OUTSIDE_CPU
from farm.rules.wording.numbers import explains, latency
from farm.rules.wording.vocabulary import is_change

# less of the change is not named, and more than this is none of it
NAMED_SHARE, MAX_SHARE = 0.5, 1.5


def explain_outside(comparison: Comparison) -> str | None:
    """Explain the change: `outside the graph: choosing a token, 12.9 ms → 1.3 ms, explains 97 % of the 12 ms`.

    Return None where choosing the token does not explain it.
    """
    if not is_change(comparison.verdict):
        return None
    told = {change.name: change for change in comparison.metrics}
    moved, whole = _moved(told, comparison.verdict), comparison.metrics[0] if comparison.metrics else None
    if moved is None or whole is None or whole.candidate == whole.baseline:
        return None
    apart = moved.candidate - moved.baseline
    share = apart / (whole.candidate - whole.baseline)
    if not NAMED_SHARE <= share <= MAX_SHARE:
        return None
    times = f"{latency(moved.baseline)} → {latency(moved.candidate)}"
    return f"outside the graph: choosing a token, {times}, {explains(apart, share, unit='ms')}"


def _moved(told: dict[str, MetricChange], verdict: str) -> MetricChange | None:
    """Return the time of choosing, where launches report it by processor time and it changed as the token did."""
    if OUTSIDE_CPU not in told:
        return None
    known = (told.get(name) for name in (OUTSIDE_CPU, OUTSIDE))
    return next((change for change in known if change is not None and change.verdict == verdict), None)
