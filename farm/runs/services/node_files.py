"""Stores the files that a node sends while it measures, within a limit for the attempt and the team's quota.

They are raw traces (gzipped JSON in Chrome's format), models that a provider compiled, and zipped parts of models. A
new file replaces an earlier one with the same key. farm.runs.services.endings removes the files of attempts without a
result.
"""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import Sum

from farm.base.refusals import TooLarge, Unprocessable
from farm.contract.node import MAX_COMPILED_BYTES, MAX_TRACE_BYTES, MAX_TRACE_UNPACKED_BYTES
from farm.fleet.models import Node
from farm.registry.services import remove_unused_blobs, store_blob_within_quota
from farm.registry.storage import Draft, check_free_space
from farm.rules.runtimes import providers
from farm.runs.models import Arm, Attempt, CompiledModel, Part, Trace
from farm.runs.services.leases import Claim, find_claim
from farm.runs.services.locks import lock_block
from farm.runs.services.plausibility import MAX_TRACE_ROUND

# limit of all files of an attempt together; a trace of a large model has about 2 MiB, and a block up to 16 arms
MAX_BYTES = 256 * 1024**2
# a trace is unpacked in pieces of this size
CHUNK = 1 << 20
# zlib's window bits for data with a gzip header
GZIP = 16 + zlib.MAX_WBITS


def store_file(
    model: type[Trace | Part | CompiledModel], draft: Draft, claim: Claim, key: Mapping[str, Any], **columns: object
) -> str:
    """Store a file under its key within the attempt, such as {"arm": 0}, in place of an earlier one; return its sha256.

    Raises Conflict if the attempt is over, and TooLarge over the attempt's limit or the team's quota.
    """
    with transaction.atomic():
        block = lock_block(claim.block.pk, run_id=claim.block.run_id)
        Claim(block, Attempt.objects.get(pk=claim.attempt.pk)).require_current()
        earlier = model.objects.select_related("blob").filter(attempt=claim.attempt, **key).first()
        replaced = earlier.blob if earlier else None
        _check_quota(claim.attempt, draft, earlier_bytes=replaced.bytes if replaced else 0)
        blob = store_blob_within_quota(team=block.run.team, draft=draft)
        model.objects.update_or_create(attempt=claim.attempt, **key, defaults={**columns, "blob": blob})
        remove_unused_blobs([replaced.pk if replaced else None])
    return draft.sha256


def _check_quota(attempt: Attempt, draft: Draft, *, earlier_bytes: int) -> None:
    traces = attempt.traces.aggregate(total=Sum("bytes"))["total"] or 0
    parts = attempt.parts.aggregate(total=Sum("blob__bytes"))["total"] or 0
    compiled = attempt.compiled.aggregate(total=Sum("blob__bytes"))["total"] or 0
    total = traces + parts + compiled - earlier_bytes + draft.bytes
    if total > MAX_BYTES:
        raise TooLarge(
            f"The files of attempt {attempt.number} would have {total:,} bytes; at most {MAX_BYTES:,} are kept.",
            code="quota",
        )


def accept_compiled(*, node: Node, block_id: str, attempt: int, token: str, arm: int, chunks: Iterable[bytes]) -> str:
    """Store the model that a provider compiled for an arm, in place of an earlier one; return its sha256.

    Raises what `find_claim` does, Conflict if the attempt is over, TooLarge over MAX_COMPILED_BYTES, the attempt's
    limit or the team's quota, NoSpace, and Unprocessable for an empty file, an unknown arm, or one whose provider
    compiles nothing.
    """
    claim = find_claim(node=node, block_id=block_id, attempt=attempt, token=token)
    claim.require_current()
    row = Arm.objects.select_related("cell").filter(block=claim.block, number=arm).first()
    entry = providers.find(row.cell.spec.provider) if row is not None else None
    if entry is None or not entry.leaves_context:
        raise Unprocessable(f"Nothing is compiled for arm {arm} of block {block_id}.", code="implausible")
    check_free_space(bytes_wanted=MAX_COMPILED_BYTES)
    draft = Draft(f"compiled-{arm}.onnx", limit_bytes=MAX_COMPILED_BYTES)
    try:
        for chunk in chunks:
            draft.write(chunk)
        if not draft.bytes:
            raise Unprocessable("The compiled model is empty.", code="bad_model")
        draft.seal()
        return store_file(CompiledModel, draft, claim, {"arm": arm})
    finally:
        draft.discard()


def accept_trace(
    *, node: Node, block_id: str, attempt: int, token: str, place: tuple[int, int], chunks: Iterable[bytes]
) -> str:
    """Store the raw trace of `place`, an arm and a trace round, in place of an earlier one; return the gzip's sha256.

    Raises what `find_claim` does, Conflict if the attempt is over, TooLarge over MAX_TRACE_BYTES (unpacked over
    MAX_TRACE_UNPACKED_BYTES), over the attempt's limit or the team's quota, NoSpace, and Unprocessable for a place that
    was not asked for, or for content that is not one gzip file or does not begin like JSON.
    """
    claim = find_claim(node=node, block_id=block_id, attempt=attempt, token=token)
    arm, trace_round = place
    if arm >= len(claim.block.plan_json["arms"]) or trace_round > MAX_TRACE_ROUND:
        raise Unprocessable(f"Arm {arm} has no trace {trace_round} in block {block_id}.", code="implausible")
    claim.require_current()
    check_free_space(bytes_wanted=MAX_TRACE_BYTES)
    draft = Draft(f"trace-{arm}-{trace_round}.json.gz", limit_bytes=MAX_TRACE_BYTES)
    try:
        _write_trace(draft, chunks)
        key = {"arm": arm, "trace_round": trace_round}
        return store_file(Trace, draft, claim, key, sha256=draft.sha256, bytes=draft.bytes)
    finally:
        draft.discard()


def _write_trace(draft: Draft, chunks: Iterable[bytes]) -> None:
    """Write the chunks to the draft, and check in constant memory that they are gzip and begin like JSON."""
    unpacker = zlib.decompressobj(GZIP)
    unpacked_bytes, first_character = 0, b""
    try:
        for chunk in chunks:
            draft.write(chunk)
            while chunk and not unpacker.eof:
                text = unpacker.decompress(chunk, CHUNK)
                unpacked_bytes += len(text)
                first_character = first_character or text.lstrip()[:1]
                if unpacked_bytes > MAX_TRACE_UNPACKED_BYTES:
                    raise TooLarge(f"The trace unpacks to more than {MAX_TRACE_UNPACKED_BYTES:,} bytes.")
                chunk = unpacker.unconsumed_tail
    except zlib.error as problem:
        raise Unprocessable(f"The trace is not gzip: {problem}.", code="bad_trace") from problem
    if not unpacker.eof or unpacker.unused_data or first_character not in (b"[", b"{"):
        raise Unprocessable("The trace is not one gzip file of a Chrome trace.", code="bad_trace")
    draft.seal()
