"""When nodes last measured an A/A pair, as planning asks for it."""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from farm.fleet.models import Node
from farm.rules.planning.plans import NodeOffer
from farm.runs.models import Block
from farm.runs.states import BlockState

# so long every block of a new node carries a pair
FIRST_DAY = timedelta(days=1)


def with_null_history(offers: Sequence[NodeOffer]) -> list[NodeOffer]:
    """The offers with the blocks that each node has measured since its last A/A pair, and whether it is new.

    Two queries.
    """
    # node by node, so that an index leads to the few blocks since the pair
    later = Block.objects.filter(node=OuterRef("pk"), pk__gt=OuterRef("null_block"), state=BlockState.DONE)
    counted = later.order_by().values("node").annotate(count=Count("pk")).values("count")
    paired = Node.objects.filter(pk__in=[int(offer.id) for offer in offers]).exclude(null_block=None)
    since = dict(paired.values_list("pk", Coalesce(Subquery(counted), 0)))
    new_from = timezone.now() - FIRST_DAY
    new = set(Node.objects.filter(created_at__gt=new_from).values_list("pk", flat=True))
    return [
        offer.model_copy(
            update={
                "blocks_since_pair": since.get(int(offer.id)),
                "is_first_day": int(offer.id) in new,
            }
        )
        for offer in offers
    ]
