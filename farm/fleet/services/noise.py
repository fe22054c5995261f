"""The A/A history of nodes."""

from collections.abc import Sequence

from farm.fleet.models import Node, NullEstimate


def keep_null_estimate(
    *,
    node: Node,
    cell_class: str,
    block: int,
    arms: tuple[int, int],
    rounds: int,
    estimate: float,
    verdict: str,
    log_ratios: Sequence[float],
) -> NullEstimate:
    """Keeps what an A/A pair of a block came to; a continued block replaces its own estimate."""
    row, _ = NullEstimate.objects.update_or_create(
        block=block,
        arm=arms[0],
        twin=arms[1],
        defaults={
            "node": node,
            "cell_class": cell_class,
            "rounds": rounds,
            "estimate": estimate,
            "verdict": verdict,
            "log_ratios": list(log_ratios),
        },
    )
    return row
