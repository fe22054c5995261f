"""How much a node's identical launches differ."""

from collections.abc import Sequence

from django.db.models import Sum

from farm.accounts.selectors import Anyone
from farm.fleet.models import Node
from farm.rules.comparing import margins
from farm.rules.comparing.margins import FalseAlarms, NoiseFloor

# newest A/A pairs that count: machines change
HISTORY = 500


def noise_floor(node: Node, cell_class: str | None = None) -> NoiseFloor | None:
    """The noise floor of a node, of one class of cells or of all; None until it has measured an A/A pair."""
    rows = node.null_estimates.all()
    if cell_class is not None:
        rows = rows.filter(cell_class=cell_class)
    return estimate_noise_floor(list(rows.values_list("log_ratios", "estimate")[:HISTORY]))


def estimate_noise_floor(pairs: Sequence[tuple[list[float], float]]) -> NoiseFloor | None:
    """The noise floor of pairs, each with its dᵢ and its estimate; None for none."""
    if not pairs:
        return None
    margin = margins.margin_from_null([estimate for _, estimate in pairs])
    return margins.noise_floor([ratios for ratios, _ in pairs], margin=margin)


def fleet_false_alarms(user: Anyone) -> FalseAlarms | None:
    """The live false-alarm rate of all nodes that the user sees; None where none has measured a pair. One query."""
    counts = Node.objects.visible_to(user).aggregate(alarms=Sum("null_alarms"), pairs=Sum("null_pairs"))
    return margins.rate_of(counts["alarms"] or 0, counts["pairs"] or 0)


def false_alarms(node: Node) -> FalseAlarms | None:
    return margins.rate_of(node.null_alarms, node.null_pairs)
