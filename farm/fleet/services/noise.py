"""Stores the A/A history of nodes."""

from collections.abc import Sequence

from django.db import transaction

from farm.fleet.models import Node, NullEstimate
from farm.fleet.selectors.noise import HISTORY, estimate_noise_floor
from farm.rules.comparing.margins import metric_margins
from farm.rules.wording.vocabulary import is_change

# the columns that identify a pair, and those that a newer estimate of the same pair replaces
PLACE = ("block", "arm", "twin")
REPLACED = ("node", "cell_class", "rounds", "estimate", "verdict", "log_ratios", "metrics")


def store_null_estimates(*, node: Node, estimates: Sequence[NullEstimate]) -> None:
    """Store the estimates of a block's A/A pairs, and summarise the newest HISTORY pairs on the node's row.

    The summary has counts, the deviation and margins. Older pairs stay stored, and `node` itself is not refreshed.
    If a pair is stored already, because its block was continued, its estimate is replaced. An empty list changes
    nothing.
    """
    if not estimates:
        return
    with transaction.atomic(savepoint=False):
        NullEstimate.objects.bulk_create(estimates, update_conflicts=True, unique_fields=PLACE, update_fields=REPLACED)
        _summarise_pairs(node)


def _summarise_pairs(node: Node) -> None:
    """Write the sums of the node's pairs to its row, so that lists and plans need not read every pair."""
    columns = ("verdict", "log_ratios", "estimate", "metrics", "block")
    pairs = list(node.null_estimates.values_list(*columns)[:HISTORY])
    floor = estimate_noise_floor([(ratios, estimate) for _, ratios, estimate, *_ in pairs])
    estimates: dict[str, list[float]] = {}
    for *_, metrics, _ in pairs:
        for name, estimate in metrics.items():
            estimates.setdefault(name, []).append(estimate)
    Node.objects.filter(pk=node.pk).update(
        null_pairs=len(pairs),
        null_alarms=sum(is_change(verdict) for verdict, *_ in pairs),
        null_deviation=floor.deviation if floor else None,
        null_margin=floor.margin if floor else None,
        null_margins=metric_margins(estimates),
        null_block=max(block for *_, block in pairs),
    )
