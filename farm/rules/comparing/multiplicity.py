"""Decides which of many verdicts hold, where some look significant by chance."""

from collections.abc import Sequence

import numpy as np

from farm.rules.wording.numbers import percent

LEVEL = 0.05


def benjamini_hochberg(p_values: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Mark the hypotheses to reject at a false-discovery rate of at most `level` (Benjamini and Hochberg, 1995).

    Raises ValueError when a p value is not between 0 and 1.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if not ((p >= 0.0) & (p <= 1.0)).all():
        raise ValueError(f"The p values {list(p_values)} do not all lie between 0 and 1.")
    within = np.sort(p) <= level * np.arange(1, len(p) + 1) / max(1, len(p))
    if not within.any():
        return [False] * len(p)
    largest = np.sort(p)[np.flatnonzero(within)[-1]]
    return [bool(holds) for holds in p <= largest]


def explain_chance(count: int, noun: str) -> str:
    """Say why a verdict that looks like a change is not called so among `count` of them; `noun` names one of them."""
    return (
        f"Among {count} {noun}{'' if count == 1 else 's'} this one may be chance (Benjamini-Hochberg at "
        f"{percent(LEVEL)}): measure it alone, or with a longer budget."
    )
