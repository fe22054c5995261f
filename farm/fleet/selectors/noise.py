"""How much a node's identical launches differ, and how often they were judged different.

False alarms count the pairs whose sums stand on the nodes' rows: the newest HISTORY of each. Those of the fleet count
all nodes that the user may see.
"""

from collections.abc import Sequence

from django.db.models import Sum

from farm.accounts.selectors import Anyone
from farm.fleet.models import Node
from farm.rules.comparing import margins
from farm.rules.comparing.margins import FalseAlarms, NoiseFloor

# how many A/A pairs of a node count: only the newest, because machines change
HISTORY = 500


def noise_floor(node: Node, cell_class: str | None = None) -> NoiseFloor | None:
    """Estimate a node's noise floor for a class of cells, or for all with None, from its newest HISTORY A/A pairs.

    Return None until the node has measured an A/A pair.
    """
    rows = node.null_estimates.all()
    if cell_class is not None:
        rows = rows.filter(cell_class=cell_class)
    return estimate_noise_floor(list(rows.values_list("log_ratios", "estimate")[:HISTORY]))


def estimate_noise_floor(pairs: Sequence[tuple[list[float], float]]) -> NoiseFloor | None:
    """Estimate the noise floor from A/A pairs, each with its log ratios and its estimate; None without pairs."""
    if not pairs:
        return None
    margin = margins.margin_from_null([estimate for _, estimate in pairs])
    return margins.estimate_noise_floor([ratios for ratios, _ in pairs], margin=margin)


def false_alarms_of_fleet(user: Anyone) -> FalseAlarms | None:
    counts = Node.objects.visible_to(user).aggregate(alarms=Sum("null_alarms"), pairs=Sum("null_pairs"))
    return margins.estimate_rate(counts["alarms"] or 0, counts["pairs"] or 0)


def false_alarms(node: Node) -> FalseAlarms | None:
    return margins.estimate_rate(node.null_alarms, node.null_pairs)
