"""Models that a provider compiled on a node: bounded, stored by digest, and read by nobody outside a sandbox."""

from collections.abc import Iterable

from farm.base.refusals import Unprocessable
from farm.contract.node import MAX_COMPILED_BYTES
from farm.fleet.models import Node
from farm.registry.storage import Draft, check_room
from farm.rules.runtimes import providers
from farm.runs.models import Arm
from farm.runs.services.deposits import keep_compiled, must_be_current
from farm.runs.services.leases import held_attempt


def accept_compiled(*, node: Node, block_id: str, attempt: int, token: str, arm: int, chunks: Iterable[bytes]) -> str:
    """Stores what a provider compiled of an arm's model; gives its digest. The same again is answered alike.

    Raises Conflict when stale, TooLarge over MAX_COMPILED_BYTES, the attempt's room or the team's quota, NoSpace, and
    Unprocessable for an arm whose provider leaves nothing of the kind, or for no bytes at all.
    """
    held = held_attempt(node=node, block_id=block_id, attempt=attempt, token=token)
    must_be_current(held)
    row = Arm.objects.select_related("cell").filter(block=held.block, number=arm).first()
    entry = providers.find(row.cell.spec.provider) if row is not None else None
    if entry is None or not entry.leaves_context:
        raise Unprocessable(f"Nothing is compiled for arm {arm} of block {block_id}.", code="implausible")
    check_room(bytes_wanted=MAX_COMPILED_BYTES)
    draft = Draft(f"compiled-{arm}.onnx", limit_bytes=MAX_COMPILED_BYTES)
    try:
        for chunk in chunks:
            draft.write(chunk)
        if not draft.bytes:
            raise Unprocessable("The compiled model is empty.", code="bad_model")
        draft.seal()
        return keep_compiled(draft, held, arm=arm)
    finally:
        draft.discard()
