"""Raw traces: gzipped Chrome-trace JSON, bounded when packed and when unpacked, stored by digest."""

import zlib
from collections.abc import Iterable

from farm.base.refusals import TooLarge, Unprocessable
from farm.contract.node import MAX_TRACE_BYTES, MAX_TRACE_UNPACKED_BYTES
from farm.fleet.models import Node
from farm.registry.storage import Draft, check_room
from farm.runs.services.deposits import keep_trace, must_be_current
from farm.runs.services.leases import held_attempt
from farm.runs.services.plausibility import MAX_TRACE_ROUND

CHUNK = 1 << 20
GZIP = 16 + zlib.MAX_WBITS


def accept_trace(
    *, node: Node, block_id: str, attempt: int, token: str, place: tuple[int, int], chunks: Iterable[bytes]
) -> str:
    """Stores the raw trace of `place` = (arm, trace round) and gives the digest of its gzip bytes.

    The same trace again is answered alike, another one takes its place. Raises Conflict when stale, TooLarge over
    MAX_TRACE_BYTES, the attempt's room or the team's quota, NoSpace, and Unprocessable for what is not gzip, unpacks to
    more than MAX_TRACE_UNPACKED_BYTES or is no JSON text.
    """
    held = held_attempt(node=node, block_id=block_id, attempt=attempt, token=token)
    arm, trace_round = place
    if arm >= len(held.block.plan_json["arms"]) or trace_round > MAX_TRACE_ROUND:
        raise Unprocessable(f"Arm {arm} has no trace {trace_round} in block {block_id}.", code="implausible")
    must_be_current(held)
    check_room(bytes_wanted=MAX_TRACE_BYTES)
    draft = Draft(f"trace-{arm}-{trace_round}.json.gz", limit_bytes=MAX_TRACE_BYTES)
    try:
        _receive(draft, chunks)
        return keep_trace(draft, held, arm=arm, trace_round=trace_round)
    finally:
        draft.discard()


def _receive(draft: Draft, chunks: Iterable[bytes]) -> None:
    """Writes the chunks and unpacks them beside, in constant memory, to know what they are."""
    unpacker = zlib.decompressobj(GZIP)
    unpacked, first = 0, b""
    try:
        for chunk in chunks:
            draft.write(chunk)
            while chunk and not unpacker.eof:
                text = unpacker.decompress(chunk, CHUNK)
                unpacked, first = unpacked + len(text), first or text.lstrip()[:1]
                if unpacked > MAX_TRACE_UNPACKED_BYTES:
                    raise TooLarge(f"The trace unpacks to more than {MAX_TRACE_UNPACKED_BYTES:,} bytes.")
                chunk = unpacker.unconsumed_tail
    except zlib.error as problem:
        raise Unprocessable(f"The trace is not gzip: {problem}.", code="bad_trace") from problem
    if not unpacker.eof or unpacker.unused_data or first not in (b"[", b"{"):
        raise Unprocessable("The trace is not one gzip file of a Chrome trace.", code="bad_trace")
    draft.seal()
