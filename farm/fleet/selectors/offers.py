"""What the fleet can take, as planning asks for it."""

from farm.accounts.models import Team, User
from farm.fleet.models import Node, NullEstimate
from farm.fleet.selectors.noise import noise_floor
from farm.rules.comparing.comparisons import MARGIN
from farm.rules.planning.plans import NodeOffer


def offers(*, team: Team, user: User | None) -> list[NodeOffer]:
    """Every node that may measure this team's models for this user, with what was proven on it."""
    nodes = Node.objects.known().serving(team, user=user).defer("log_tail").order_by("pk")
    # asked once: most of a large fleet has measured no pair yet
    measured = set(NullEstimate.objects.order_by("node").values_list("node", flat=True).distinct())
    return [offer_of(node, with_noise=node.pk in measured) for node in nodes]


def offer_of(node: Node, *, with_noise: bool = True) -> NodeOffer:
    """One node as planning sees it. Its noise is open until it has measured A/A pairs, and without `with_noise`."""
    floor = noise_floor(node) if with_noise else None
    return NodeOffer(
        id=str(node.pk),
        name=node.name,
        tags=frozenset(node.all_tags),
        providers=frozenset(node.providers),
        versions=frozenset(node.runtimes),
        noise=floor.deviation if floor and floor.deviation > 0 else None,
        margin=floor.margin if floor else MARGIN,
    )
