"""What the fleet can take, as planning asks for it."""

from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.rules.comparing.comparisons import MARGIN
from farm.rules.planning.plans import NodeOffer


def offers(*, team: Team, uploader: User | None) -> list[NodeOffer]:
    """Every node that may measure what `uploader` uploaded for this team, with what was proven on it."""
    nodes = Node.objects.known().serving(team, uploader=uploader).defer("log_tail", "self_test_json").order_by("pk")
    return [offer_of(node) for node in nodes]


def runtimes_offered(*, team: Team, uploader: User | None) -> set[str]:
    """The runtimes that these nodes have, as `distribution==version`."""
    nodes = Node.objects.known().serving(team, uploader=uploader).values_list("runtimes", flat=True)
    return {runtime for runtimes in nodes for runtime in runtimes}


def offer_of(node: Node) -> NodeOffer:
    """One node as planning sees it. Its noise is open until it has measured A/A pairs."""
    return NodeOffer(
        id=str(node.pk),
        name=node.name,
        tags=frozenset(node.all_tags),
        providers=frozenset(node.providers),
        versions=frozenset(node.runtimes),
        is_browser=node.is_browser,
        cores=node.facts_json.get("logical_cores") or None,
        noise=node.null_deviation or None,
        margin=node.null_margin or MARGIN,
        margins=node.null_margins,
    )
