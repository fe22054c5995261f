"""How much a node's identical launches differ."""

from collections.abc import Iterable

from farm.fleet.models import Node, NullEstimate
from farm.rules.comparing import margins
from farm.rules.comparing.margins import FalseAlarms, NoiseFloor

# newest A/A pairs that count: machines change
HISTORY = 500
# pairs of so many nodes are read for one page
MOST_NODES = 100


def null_estimates(node: Node, *, cell_class: str, rounds: int) -> list[float]:
    """ln(ratio) of the node's A/A pairs of a class of cells, after as many rounds."""
    rows = node.null_estimates.filter(cell_class=cell_class, rounds=rounds)
    return list(rows.values_list("estimate", flat=True)[:HISTORY])


def margin_of(node: Node, *, cell_class: str, rounds: int) -> float:
    """The margin that verdicts on this node take for this class of cells."""
    return margins.margin_from_null(null_estimates(node, cell_class=cell_class, rounds=rounds))


def noise_floor(node: Node, cell_class: str | None = None) -> NoiseFloor | None:
    """The noise floor of a node, of one class of cells or of all; None until it has measured an A/A pair."""
    rows = node.null_estimates.all()
    if cell_class is not None:
        rows = rows.filter(cell_class=cell_class)
    found = list(rows.values_list("log_ratios", "estimate")[:HISTORY])
    if not found:
        return None
    margin = margins.margin_from_null([estimate for _, estimate in found])
    return margins.noise_floor([ratios for ratios, _ in found], margin=margin)


def false_alarms_by_node(nodes: Iterable[Node]) -> dict[int, FalseAlarms]:
    """The live false-alarm rate of each node that has measured A/A pairs, by its number. One query."""
    verdicts: dict[int, list[str]] = {}
    rows = NullEstimate.objects.filter(node__in=list(nodes)).order_by("-id").values_list("node_id", "verdict")
    for number, verdict in rows[: HISTORY * MOST_NODES]:
        verdicts.setdefault(number, []).append(verdict)
    found = {number: margins.false_alarms(some[:HISTORY]) for number, some in verdicts.items()}
    return {number: rate for number, rate in found.items() if rate is not None}


def of_fleet(rates: Iterable[FalseAlarms]) -> FalseAlarms | None:
    """The rates of several nodes as one; None where none has measured a pair."""
    some = list(rates)
    alarms, pairs = sum(one.alarms for one in some), sum(one.comparisons for one in some)
    return margins.rate_of(alarms, pairs)


def false_alarms(node: Node) -> FalseAlarms | None:
    """How often the node's A/A pairs were called slower or faster."""
    return margins.false_alarms(list(node.null_estimates.values_list("verdict", flat=True)[:HISTORY]))
