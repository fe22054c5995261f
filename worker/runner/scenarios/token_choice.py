"""Chooses the next token by its scores: the likeliest, or one drawn among the likeliest by a seed."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import numpy as np

from worker.runner import faults
from worker.runner.parity import Array

# scores of one position, [sequence, vocabulary] → a token for each sequence
Choose = Callable[[Array], Array]


def choose_likeliest(scores: Array) -> Array:
    tokens: Array = scores.argmax(axis=-1)
    return tokens


def measure_score_gap(scores: Array) -> float:
    """Measure the difference of the best and the second-best score, to four significant digits.

    0 for a single score, or where the difference is not finite.
    """
    if scores.size < 2:
        return 0.0
    second, first = np.partition(scores, -2)[-2:]
    gap = float(first) - float(second)
    return float(f"{gap:.4g}") if isfinite(gap) else 0.0


def make_chooser(settings: Mapping[str, Any]) -> Choose:
    """Make the function that chooses the tokens of one generation, by the options of a generate scenario.

    Make a new one for each generation: it draws the same tokens again. Raises Refusal for an unknown kind of sampling.
    """
    kind = settings.get("sampling", "greedy")
    if kind == "greedy":
        return choose_likeliest
    if kind not in ("top-p", "top-k"):
        raise faults.Refusal("internal", f"the runner knows no sampling named {kind!r}")
    limit, temperature = float(settings["limit"]), float(settings["temperature"])
    dice = np.random.default_rng(np.random.SeedSequence([int(settings["seed"]) % 2**32, 0x70B5]))

    def draw(scores: Array) -> Array:
        return np.array([_draw_token(row, kind, limit, temperature, dice.random()) for row in scores])

    return draw


def _draw_token(scores: Array, kind: str, limit: float, temperature: float, share: float) -> int:
    """Draw a token among the `limit` likeliest (top-k), or among the likeliest whose shares add up to `limit` (top-p).

    `share`, from 0 to 1, chooses in the cumulative distribution.
    """
    if kind == "top-k":
        count = min(int(limit), scores.size)
        some = np.argpartition(scores, -count)[-count:]
        order = some[np.argsort(np.negative(scores[some]), kind="stable")]
    else:
        order = np.argsort(np.negative(scores), kind="stable")
    scaled = scores[order].astype(np.float64) / temperature
    likely = np.cumsum(np.exp(scaled - scaled[0]))
    if kind == "top-p":
        likely = likely[: int(np.searchsorted(likely, limit * likely[-1])) + 1]
    return int(order[min(int(np.searchsorted(likely, share * likely[-1], side="right")), likely.size - 1)])
