"""Explains a change of the time per token by choosing the token, which happens outside the graph.

Launches report its processor time only where choosing is part of the time per token, as onnxruntime-genai's call is.
"""

from farm.contract.document_comparisons import Comparison, MetricChange
from farm.rules.cells.scenario_metrics import OUTSIDE, OUTSIDE_CPU
from farm.rules.wording.numbers import explains, latency
from farm.rules.wording.vocabulary import is_change

# Choosing a token is named where it is at least this share of the change, and at most that: more contradicts it.
NAMED_SHARE, MAX_SHARE = 0.5, 1.5


def explain_outside(comparison: Comparison) -> str | None:
    """Explain the change: `outside the graph: choosing a token, 12.9 ms → 1.3 ms, explains 97 % of the 12 ms`.

    Return None where choosing the token does not explain it.
    """
    if not is_change(comparison.verdict):
        return None
    choosing, token = _find_choosing(comparison), comparison.metrics[0] if comparison.metrics else None
    if choosing is None or token is None or token.candidate == token.baseline:
        return None
    moved_ms = choosing.candidate - choosing.baseline
    share = moved_ms / (token.candidate - token.baseline)
    if not NAMED_SHARE <= share <= MAX_SHARE:
        return None
    times = f"{latency(choosing.baseline)} → {latency(choosing.candidate)}"
    return f"outside the graph: choosing a token, {times}, {explains(moved_ms, share, unit='ms')}"


def _find_choosing(comparison: Comparison) -> MetricChange | None:
    """Return the time of choosing a token, where launches report its processor time and it changed as the token did."""
    changes = {change.name: change for change in comparison.metrics}
    if OUTSIDE_CPU not in changes:
        return None
    both = (changes.get(name) for name in (OUTSIDE_CPU, OUTSIDE))
    return next((change for change in both if change is not None and change.verdict == comparison.verdict), None)
