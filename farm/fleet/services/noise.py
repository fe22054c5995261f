"""The A/A history of nodes."""

from collections.abc import Sequence

from django.db import transaction

from farm.fleet.models import Node, NullEstimate
from farm.fleet.selectors.noise import HISTORY, floor_of
from farm.rules.comparing.margins import is_false_alarm


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
    figures = {
        "node": node,
        "cell_class": cell_class,
        "rounds": rounds,
        "estimate": estimate,
        "verdict": verdict,
        "log_ratios": list(log_ratios),
    }
    with transaction.atomic():
        row, _ = NullEstimate.objects.update_or_create(block=block, arm=arms[0], twin=arms[1], defaults=figures)
        _count(node)
    return row


def _count(node: Node) -> None:
    """Writes what the node's pairs come to beside it, so that lists and plans need not read every pair."""
    pairs = list(node.null_estimates.values_list("verdict", "log_ratios", "estimate", "block")[:HISTORY])
    floor = floor_of([(ratios, estimate) for _, ratios, estimate, _ in pairs])
    Node.objects.filter(pk=node.pk).update(
        null_pairs=len(pairs),
        null_alarms=sum(is_false_alarm(verdict) for verdict, *_ in pairs),
        null_deviation=floor.deviation if floor else None,
        null_margin=floor.margin if floor else None,
        null_block=max(block for *_, block in pairs),
    )
