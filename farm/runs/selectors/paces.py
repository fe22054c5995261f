"""How far the blocks of an open run are, as the estimate of what is left reads them."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from django.db.models import FloatField, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.utils import timezone

from farm.contract.cells import Budget
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.planning.estimates import ROUNDS
from farm.rules.planning.null_pairs import NULL_PAIR_EVERY
from farm.rules.planning.plans import NodeOffer
from farm.rules.planning.time_left import Ahead, expected_rounds, seconds_left
from farm.runs.models import Block, CellDocument, Report, Run
from farm.runs.selectors.evidence import COUNTED
from farm.runs.states import OPEN_BLOCKS, BlockState

# whose latency a plan goes by
LATEST_CELLS = 8
_PLANNED = {
    f"planned_{name}": Cast(KT(f"plan_json__{name}"), FloatField())
    for name in ("minutes", "once_s", "round_s", "sustained_s")
}
# so long every block of a new node carries a pair
FIRST_DAY = timedelta(days=1)


class _Row(NamedTuple):
    """A block, with what its plan says in numbers."""

    pk: int
    state: str
    first_round: int
    max_rounds: int
    minutes: float | None
    once_s: float | None
    round_s: float | None
    sustained_s: float | None


class _Moments(NamedTuple):
    """When the first check of a block came, and its rounds, one after another."""

    begun_at: datetime
    rounds_at: list[datetime]


def left_of(run: Run, *, has_ended: bool = True) -> float | None:
    """Seconds until an open run is measured, from when it goes on where it waits; None while nobody can tell.

    `has_ended`: whether a block of it has.
    """
    still_open = _rows(run.blocks.filter(state__in=OPEN_BLOCKS))
    leased = [row for row in still_open if row.state == BlockState.LEASED]
    pending = [row for row in still_open if row.state != BlockState.LEASED]
    # the pace of blocks to come is that of those before
    ended = _rows(run.blocks.filter(state=BlockState.DONE).order_by("-ended_at")[:1]) if has_ended else []
    moments = _moments([row.pk for row in (*leased, *ended)])
    budget = Budget(run.budget)
    known = [_ahead(row, budget) for row in pending]
    known += [_ahead(row, budget, moments.get(row.pk)) for row in leased]
    known += [_as_ended(_ahead(row, budget, moments.get(row.pk))) for row in ended]
    return seconds_left(known, at_once=len(leased))


class Latencies(NamedTuple):
    """What an inference took in the cells that were measured last: on average, and in the quickest of them."""

    latency_ms: float
    quickest_ms: float


def latencies(version: Version) -> Latencies | None:
    """Those of a version; None where nothing of it was measured yet."""
    latest = CellDocument.objects.filter(arm__cell__run__version=version, arm__cell__beside=None).order_by("-pk")
    figures = [_p50_ms(body) for body in latest.values_list("body", flat=True)[:LATEST_CELLS]]
    found = [figure for figure in figures if figure]
    return Latencies(fmean(found), min(found)) if found else None


def _p50_ms(body: str) -> float | None:
    """None too where the document cannot be read: that keeps no new run from being planned."""
    try:
        found = json.loads(body)["p50_ms"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, float) and found > 0 else None


def _rows(blocks: QuerySet[Block]) -> list[_Row]:
    columns = ("pk", "state", "first_round", "max_rounds")
    return [_Row(*row) for row in blocks.annotate(**_PLANNED).values_list(*columns, *_PLANNED)]


def _moments(blocks: list[int]) -> dict[int, _Moments]:
    """Of the latest attempt of each of these blocks; without those whose first check has not come."""
    if not blocks:
        return {}
    rows = Report.objects.filter(attempt__block__in=blocks, attempt__state__in=COUNTED, kind__in=("check", "round"))
    found: dict[tuple[int, int], list[tuple[str, datetime]]] = defaultdict(list)
    for block, attempt, kind, at in rows.order_by("pk").values_list(
        "attempt__block", "attempt__number", "kind", "received_at"
    ):
        found[block, attempt].append((kind, at))
    return {
        block: _Moments(told[0][1], [at for kind, at in told if kind == "round"])
        for (block, _), told in sorted(found.items())
    }


def _ahead(row: _Row, budget: Budget, seen: _Moments | None = None) -> Ahead:
    """Rounds that an earlier order measured are no part of this one, nor those of an attempt that was lost."""
    rounds_at, now = seen.rounds_at if seen else [], timezone.now()
    whole_s, once_s, round_s = 60.0 * (row.minutes or 0.0), row.once_s or 0.0, row.round_s or 0.0
    expected = row.max_rounds - row.first_round
    if not row.first_round:
        least = ROUNDS[budget].least
        expected = expected_rounds(budget, rounds=len(rounds_at), least=least, most=row.max_rounds)
    return Ahead(
        planned_s=once_s + expected * round_s if row.first_round and round_s else whole_s,
        once_s=once_s,
        round_s=round_s,
        rounds=len(rounds_at),
        expected=expected,
        after_s=whole_s - once_s - ROUNDS[budget].usual * round_s if row.sustained_s and not row.first_round else 0.0,
        begun_s=(now - seen.begun_at).total_seconds() if seen else None,
        rounds_s=[(later - earlier).total_seconds() for earlier, later in pairwise(rounds_at)],
        since_s=(now - rounds_at[-1]).total_seconds() if rounds_at else 0.0,
    )


def _as_ended(one: Ahead) -> Ahead:
    """Nothing of it is missing; what is known is its pace."""
    return replace(one, expected=one.rounds, after_s=0.0, since_s=0.0)


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
