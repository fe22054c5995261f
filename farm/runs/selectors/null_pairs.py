"""When nodes last measured an A/A pair, as planning asks for it."""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Max
from django.utils import timezone

from farm.fleet.models import Node, NullEstimate
from farm.rules.planning.plans import NodeOffer
from farm.runs.models import Block
from farm.runs.states import BlockState

# so long every block of a new node carries a pair
FIRST_DAY = timedelta(days=1)


def with_null_history(offers: Sequence[NodeOffer]) -> list[NodeOffer]:
    """The offers with the blocks that each node has measured since its last A/A pair, and whether it is new.

    Two queries, and one more for each node that has measured a pair.
    """
    last = dict(NullEstimate.objects.order_by().values_list("node").annotate(Max("block")))
    new_from = timezone.now() - FIRST_DAY
    new = {str(pk) for pk in Node.objects.filter(created_at__gt=new_from).values_list("pk", flat=True)}
    return [
        offer.model_copy(
            update={
                "blocks_since_pair": _blocks_after(int(offer.id), last.get(int(offer.id))),
                "is_first_day": offer.id in new,
            }
        )
        for offer in offers
    ]


def _blocks_after(node: int, block: int | None) -> int | None:
    """Blocks that the node has measured since this one; None where there was none."""
    return None if block is None else Block.objects.filter(node=node, state=BlockState.DONE, pk__gt=block).count()
