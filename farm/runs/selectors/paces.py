"""Reads what plans need of earlier measurements: the latency of a version, and when nodes measured A/A pairs."""

import json
from collections.abc import Sequence
from datetime import timedelta
from statistics import fmean
from typing import NamedTuple

from django.db.models import IntegerField, OuterRef, Subquery
from django.utils import timezone

from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.planning.null_pairs import NULL_PAIR_EVERY
from farm.rules.planning.plans import NodeOffer
from farm.runs.models import Block, CellDocument
from farm.runs.states import BlockState

# how many of the newest cells a plan reads for the latency
LATEST_CELLS = 8
# a node is new for this long; every block of a new node gets an A/A pair
FIRST_DAY = timedelta(days=1)


class Latencies(NamedTuple):
    """The p50 latency of an inference in the newest cells: the mean of the cells, and the lowest."""

    latency_ms: float
    quickest_ms: float


def read_latencies(version: Version) -> Latencies | None:
    """Read the latencies of the LATEST_CELLS newest cells of a version; None if none of them has one."""
    latest = CellDocument.objects.filter(arm__cell__run__version=version, arm__cell__beside=None).order_by("-pk")
    figures = [_read_p50_ms(body) for body in latest.values_list("body", flat=True)[:LATEST_CELLS]]
    measured = [figure for figure in figures if figure]
    return Latencies(fmean(measured), min(measured)) if measured else None


def _read_p50_ms(body: str) -> float | None:
    """Return the p50 of a cell's document; None if it has none or cannot be read, so that planning goes on."""
    try:
        p50_ms = json.loads(body)["p50_ms"]
    except (ValueError, KeyError, TypeError):
        return None
    return p50_ms if isinstance(p50_ms, float) and p50_ms > 0 else None


class _RowsOf(Subquery):
    """Counts the rows of a query that has a LIMIT."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS few)"
    output_field = IntegerField()


def add_null_history(offers: Sequence[NodeOffer]) -> list[NodeOffer]:
    """Add to each offer how many blocks its node has measured since its last A/A pair, and whether the node is new.

    The number is None if the node never measured a pair, and no higher than needed for the next pair to be due. A node
    is new for FIRST_DAY.
    """
    later = Block.objects.filter(node=OuterRef("pk"), pk__gt=OuterRef("null_block"), state=BlockState.DONE)
    first = later.order_by("pk").values("pk")[:NULL_PAIR_EVERY]
    paired = Node.objects.filter(pk__in=[int(offer.id) for offer in offers]).exclude(null_block=None)
    since = dict(paired.values_list("pk", _RowsOf(first)))
    new_from = timezone.now() - FIRST_DAY
    new = set(Node.objects.filter(created_at__gt=new_from).values_list("pk", flat=True))
    return [
        offer.model_copy(update={"blocks_since_pair": since.get(int(offer.id)), "is_first_day": int(offer.id) in new})
        for offer in offers
    ]
