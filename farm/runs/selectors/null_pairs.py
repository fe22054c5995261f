"""When nodes last measured an A/A pair, as planning asks for it."""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Count, F
from django.utils import timezone

from farm.fleet.models import Node
from farm.rules.planning.plans import NodeOffer
from farm.runs.models import Block
from farm.runs.states import BlockState

# so long every block of a new node carries a pair
FIRST_DAY = timedelta(days=1)


def with_null_history(offers: Sequence[NodeOffer]) -> list[NodeOffer]:
    """The offers with the blocks that each node has measured since its last A/A pair, and whether it is new.

    Three queries.
    """
    paired = set(Node.objects.exclude(null_block=None).values_list("pk", flat=True))
    done = Block.objects.filter(state=BlockState.DONE, pk__gt=F("node__null_block")).values_list("node")
    since = dict(done.annotate(Count("pk")).order_by())
    new_from = timezone.now() - FIRST_DAY
    new = set(Node.objects.filter(created_at__gt=new_from).values_list("pk", flat=True))
    return [
        offer.model_copy(
            update={
                "blocks_since_pair": since.get(int(offer.id), 0) if int(offer.id) in paired else None,
                "is_first_day": int(offer.id) in new,
            }
        )
        for offer in offers
    ]
