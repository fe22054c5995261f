"""A/A pairs of a node, kept as the end of a block keeps them."""

from collections.abc import Sequence
from typing import Any

from farm.fleet.models import Node, NullEstimate
from farm.fleet.services import store_null_estimates


def keep_null_estimate(*, node: Node, arms: tuple[int, int], log_ratios: Sequence[float], **figures: Any) -> None:
    """Keeps one pair of one block."""
    row = NullEstimate(node=node, arm=arms[0], twin=arms[1], log_ratios=list(log_ratios), **figures)
    store_null_estimates(node=node, estimates=[row])
