"""Files that a node leaves with the farm while it measures: one a place, within an attempt's and a team's room.

What takes the place of an earlier file removes it; see farm.runs.services.cleanup for what an ended attempt leaves.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Sum

from farm.base.refusals import Conflict, TooLarge
from farm.registry.services import add_blob, remove_unused
from farm.registry.storage import Draft
from farm.runs.models import Attempt, Block, CompiledModel, Part, Trace
from farm.runs.services.leases import Held
from farm.runs.services.locks import lock_block

# of all files of one attempt; a trace of a large model has some 2 MiB, and a block 16 arms
MOST_BYTES = 256 * 1024**2


def must_be_current(held: Held) -> None:
    """Raises Conflict once the attempt does not hold its block any more."""
    if not held.is_current:
        raise Conflict(f"Attempt {held.attempt.number} at block {held.block.pk} is over.", code="stale")


def keep_trace(draft: Draft, held: Held, *, arm: int, trace_round: int) -> str:
    """Keeps the trace of a place and gives its digest. Raises Conflict when stale, TooLarge, NoSpace."""
    known = {"sha256": draft.sha256, "bytes": draft.bytes}
    return _keep(Trace, draft, held, {"arm": arm, "trace_round": trace_round}, known)


def keep_part(draft: Draft, held: Held, *, arm: int) -> str:
    """Keeps the part of a model for one arm and gives its digest. Raises as `keep_trace`."""
    return _keep(Part, draft, held, {"arm": arm}, {})


def keep_compiled(draft: Draft, held: Held, *, arm: int) -> str:
    """Keeps what a provider compiled of one arm's model and gives its digest. Raises as `keep_trace`."""
    return _keep(CompiledModel, draft, held, {"arm": arm}, {})


def _keep(
    kind: type[Trace | Part | CompiledModel],
    draft: Draft,
    held: Held,
    place: Mapping[str, Any],
    known: Mapping[str, object],
) -> str:
    with transaction.atomic():
        block = _locked(held)
        earlier = kind.objects.select_related("blob").filter(attempt=held.attempt, **place).first()
        replaced = earlier.blob if earlier else None
        _check_room(held.attempt, draft, earlier_bytes=replaced.bytes if replaced else 0)
        blob = add_blob(team=block.run.team, draft=draft)
        kind.objects.update_or_create(attempt=held.attempt, **place, defaults={**known, "blob": blob})
        remove_unused([replaced.pk if replaced else None])
    return draft.sha256


def _locked(held: Held) -> Block:
    block = lock_block(held.block.pk, run_id=held.block.run_id)
    must_be_current(Held(block, Attempt.objects.get(pk=held.attempt.pk)))
    return block


def _check_room(attempt: Attempt, draft: Draft, *, earlier_bytes: int) -> None:
    traces = attempt.traces.aggregate(total=Sum("bytes"))["total"] or 0
    parts = attempt.parts.aggregate(total=Sum("blob__bytes"))["total"] or 0
    compiled = attempt.compiled.aggregate(total=Sum("blob__bytes"))["total"] or 0
    total = traces + parts + compiled - earlier_bytes + draft.bytes
    if total > MOST_BYTES:
        raise TooLarge(
            f"The files of attempt {attempt.number} would have {total:,} bytes; at most {MOST_BYTES:,} are kept.",
            code="quota",
        )
