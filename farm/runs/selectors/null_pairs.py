"""When nodes last measured an A/A pair, as planning asks for it."""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Max
from django.utils import timezone

from farm.fleet.models import Node
from farm.rules.planning.plans import NodeOffer
from farm.runs.models import Block
from farm.runs.states import BlockState

# so long every block of a new node carries a pair
FIRST_DAY = timedelta(days=1)


def with_null_history(offers: Sequence[NodeOffer]) -> list[NodeOffer]:
    """The offers with the blocks that each node has measured since its last A/A pair, and whether it is new."""
    nodes = Node.objects.filter(pk__in=[offer.id for offer in offers])
    rows = nodes.annotate(last=Max("null_estimates__block")).values_list("pk", "created_at", "last")
    known = {str(pk): (joined_at, last) for pk, joined_at, last in rows}
    new_from = timezone.now() - FIRST_DAY
    return [
        offer.model_copy(
            update={
                "blocks_since_pair": _blocks_after(int(offer.id), last),
                "is_first_day": joined_at > new_from,
            }
        )
        for offer in offers
        for joined_at, last in [known[offer.id]]
    ]


def _blocks_after(node: int, block: int | None) -> int | None:
    """Blocks that the node has measured since this one; None where there was none."""
    return None if block is None else Block.objects.filter(node=node, state=BlockState.DONE, pk__gt=block).count()
