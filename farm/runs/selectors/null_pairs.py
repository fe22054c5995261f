"""When nodes last measured an A/A pair, as planning asks for it."""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import IntegerField, OuterRef, Subquery
from django.utils import timezone

from farm.fleet.models import Node
from farm.rules.planning.null_pairs import NULL_PAIR_EVERY
from farm.rules.planning.plans import NodeOffer
from farm.runs.models import Block
from farm.runs.states import BlockState

# so long every block of a new node carries a pair
FIRST_DAY = timedelta(days=1)


class _RowsOf(Subquery):
    """How many rows a query has that may end early."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS few)"
    output_field = IntegerField()


def with_null_history(offers: Sequence[NodeOffer]) -> list[NodeOffer]:
    """The offers with the blocks that each node has measured since its last A/A pair, and whether it is new.

    Counted no further than a pair is due, so that a node with a long history costs no more than another. Two queries.
    """
    later = Block.objects.filter(node=OuterRef("pk"), pk__gt=OuterRef("null_block"), state=BlockState.DONE)
    first = later.order_by("pk").values("pk")[:NULL_PAIR_EVERY]
    paired = Node.objects.filter(pk__in=[int(offer.id) for offer in offers]).exclude(null_block=None)
    since = dict(paired.values_list("pk", _RowsOf(first)))
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
