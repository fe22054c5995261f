"""Asks nodes where in a model the outputs of a cell begin to differ, and stores their answers.

A question queues the cell's block again, on the node that measured it, with an order that holds the question and no
rounds. Queueing, lease, token and sweep then work as for every block, and the stored measurements stay as they are.
"""

import re
from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from farm.accounts.models import User
from farm.base.refusals import Conflict, NotAllowed, Unprocessable
from farm.contract.base import FILE_NAME
from farm.contract.divergence import DivergenceDocument, DivergenceReport
from farm.contract.node import MAX_PART_BYTES
from farm.contract.reasons import CellStatus
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth
from farm.registry.services import remove_unused_blobs
from farm.registry.storage import Draft, check_free_space
from farm.rules.cells.commands import diverge_command
from farm.runs.models import Arm, Attempt, Block, Divergence, Part, Run
from farm.runs.selectors.divergences import measured_arm
from farm.runs.services.hints import hint_on_commit
from farm.runs.services.leases import find_claim
from farm.runs.services.locks import lock_block, lock_run
from farm.runs.services.node_files import store_file
from farm.runs.states import BlockState, DivergenceState, EventKind, RunState

ZIP = b"PK\x03\x04"
_FILE = re.compile(FILE_NAME)


def ask_divergence(*, run: Run, cell: str, by: User, against: str | None = None) -> Divergence:
    """Ask the node that measured a cell where its outputs begin to differ from those of another cell.

    `against` is the other cell's id; None compares with the CPU without optimisations. A question that still waits is
    returned as it is. One that was answered or failed is asked again, and its answer is deleted. Raises NotAllowed
    without the right to run in the team, Missing for a cell that was never in a block, and Conflict if the cells are
    the same or of different blocks, one of them has no outputs, the node was removed or the block is not done.
    """
    if not Run.objects.writable_by(by).filter(pk=run.pk).exists():
        raise NotAllowed(f"You can view run {run.pk} but not change it; ask an admin of its team.")
    arm = measured_arm(run, cell)
    other_arm = measured_arm(run, against) if against else None
    _check_can_ask(arm, other_arm)
    with transaction.atomic():
        lock_run(run.pk)
        block = lock_block(arm.block_id, run_id=run.pk)
        row, is_new = Divergence.objects.get_or_create(arm=arm, against=other_arm, defaults={"asked_by": by})
        row.arm.block = block
        if not is_new and row.is_open:
            return row
        if block.state != BlockState.DONE:
            raise _make_not_done_error(block)
        question = {"state": DivergenceState.ASKED, "asked_by": by, "asked_at": timezone.now(), "ended_at": None}
        Divergence.objects.filter(pk=row.pk).update(**question, body="", problem="", part=None)
        remove_unused_blobs([row.part_id])
        _queue_question(block, cell)
    row.refresh_from_db()
    return row


def store_divergence(block: Block, attempt: Attempt, report: DivergenceReport) -> None:
    """Store a node's answer, if its question still waits. Call inside the transaction that stores the report.

    A part of a model is kept only if this attempt sent it for this arm. The answer's command is replaced by the farm's
    own, and unsafe file names are dropped. An answer without a document marks the question as failed.
    """
    rows = Divergence.objects.filter(arm__block=block, arm__number=report.arm, state=DivergenceState.ASKED)
    rows = rows.filter(against=None) if report.against is None else rows.filter(against__number=report.against)
    row = rows.select_related("arm__cell__variant__artifact", "against__cell").first()
    if row is None:
        return
    variant = row.arm.cell.variant
    document = _replace_unsafe_texts(report.document, row, main=variant.artifact.main if variant else "")
    # search only among the parts of this attempt and arm, so that a digest cannot name another file of the team
    parts = Part.objects.filter(attempt=attempt, arm=report.arm, blob__sha256=report.part_sha256 or "")
    columns = {"part": parts.values_list("blob", flat=True).first(), "ended_at": timezone.now()}
    if document is not None:
        rows.update(state=DivergenceState.FOUND, body=document.model_dump_json(by_alias=True), problem="", **columns)
    else:
        problem = report.reason.text if report.reason else "The node sent no answer and no reason."
        rows.update(state=DivergenceState.FAILED, body="", problem=problem, **columns)


def _replace_unsafe_texts(
    document: DivergenceDocument | None, row: Divergence, *, main: str
) -> DivergenceDocument | None:
    """Replace the answer's command by the farm's own and drop unsafe file names, since people paste them."""
    if document is None or document.found is None:
        return document
    part, against = document.found.part, row.against
    command = diverge_command(
        row.arm.cell.spec, main, against=against.cell.spec.runtime if against else None, has_inputs=True
    )
    changes = {
        "main": main,
        "files": tuple(name for name in part.files if _FILE.fullmatch(name)),
        "command": command if part.shows_it and row.arm.cell.spec.recipe.is_identity else "",
    }
    first_difference = document.found.model_copy(update={"part": part.model_copy(update=changes)})
    return document.model_copy(update={"model": main, "found": first_difference})


def accept_part(*, node: Node, block_id: str, attempt: int, token: str, arm: int, chunks: Iterable[bytes]) -> str:
    """Store a zipped part of a model that belongs to an answer; return its sha256.

    Raises what `find_claim` does, Conflict if the attempt is over, TooLarge over MAX_PART_BYTES, the attempt's
    limit or the team's quota, NoSpace, and Unprocessable for an arm without an open question or a file that is no zip.
    """
    claim = find_claim(node=node, block_id=block_id, attempt=attempt, token=token)
    claim.require_current()
    if not Divergence.objects.filter(arm__block=claim.block, arm__number=arm, state=DivergenceState.ASKED).exists():
        raise Unprocessable(f"No search was requested for arm {arm} of block {block_id}.", code="implausible")
    check_free_space(bytes_wanted=MAX_PART_BYTES)
    draft = Draft(f"part-{arm}.zip", limit_bytes=MAX_PART_BYTES)
    try:
        _write_zip(draft, chunks)
        return store_file(Part, draft, claim, {"arm": arm})
    finally:
        draft.discard()


def _write_zip(draft: Draft, chunks: Iterable[bytes]) -> None:
    beginning = b""
    for chunk in chunks:
        if len(beginning) < len(ZIP):
            beginning += chunk[: len(ZIP)]
        draft.write(chunk)
    if not beginning.startswith(ZIP):
        raise Unprocessable("The part is not a zip archive.", code="bad_part")
    draft.seal()


def _check_can_ask(arm: Arm, other_arm: Arm | None) -> None:
    block = arm.block
    if other_arm is not None and (other_arm.block_id != arm.block_id or other_arm.pk == arm.pk):
        raise Conflict(
            f"{other_arm.name} is not another cell of the block of {arm.name}: only cells that were measured together "
            "are held against each other.",
            code="other_block",
        )
    for compared in (arm, other_arm):
        if compared is not None and compared.status != CellStatus.DONE:
            raise Conflict(f"{compared.name} has no outputs: it is {compared.status or 'not measured yet'}.")
    if block.node is None or block.node.health == NodeHealth.RETIRED:
        raise Conflict(
            f"The node that measured {arm.name} was removed from the farm.",
            code="node_gone",
            hint="Run `onnxfarm diverge` on a machine like it.",
        )


def _queue_question(block: Block, cell: str) -> None:
    """Queue a done block again for the question alone. Raises Conflict if the block is no longer done."""
    if block.run.state == RunState.FINISHED and not block.run.resume():
        raise _make_not_done_error(block)
    text = f"Searching for the first divergent node of {cell} on {block.node.name if block.node else 'its node'}."
    changes = {"only_node": block.node, "first_round": block.rounds, "max_rounds": block.max_rounds, "failures": 0}
    if not block.queue(EventKind.BLOCK_REQUEUED, came_from=BlockState.DONE, text=text, **changes):
        raise _make_not_done_error(block)
    hint_on_commit(block)


def _make_not_done_error(block: Block) -> Conflict:
    return Conflict(f"Block {block.number} is {block.state}: ask once it is done.", code="not_done")
