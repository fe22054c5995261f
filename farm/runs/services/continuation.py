"""Orders about a run that exists: stop it, or measure more rounds of what is done."""

from collections.abc import Collection

from django.db import transaction

from farm.accounts.models import User
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.contract.reasons import Reason, ReasonCode
from farm.fleet.states import NodeHealth
from farm.rules.wording.numbers import counted
from farm.runs.models import Block, Run
from farm.runs.selectors.retention import removed_timings
from farm.runs.services.bell import ring_on_commit
from farm.runs.services.endings import finish_run_if_over, stop_block
from farm.runs.services.locks import lock_run
from farm.runs.states import OPEN_BLOCKS, BlockState, EventKind, RunState

# farm.contract.blocks.BlockOrder allows no more
MOST_ROUNDS = 96


def cancel_run(*, run: Run, by: User) -> Run:
    """Stops a run: what is done or reported stays, what is measured now is let go at the next heartbeat.

    A run that was finished and only measures more rounds ends as it had. Cancelling a finished run changes nothing.
    Raises NotAllowed without the right to run in its team.
    """
    _must_write(run, by)
    reason = Reason(code=ReasonCode.CANCELLED, text=f"Cancelled by {by.username}.")
    with transaction.atomic():
        row = lock_run(run.pk)
        if row.state != RunState.FINISHED:
            row.log(EventKind.RUN_CANCELLED, reason.text, by=by.pk)
            for block in row.blocks.select_for_update().filter(state__in=OPEN_BLOCKS):
                block.run = row
                stop_block(block, reason)
            finish_run_if_over(row)
    row.refresh_from_db()
    return row


def more_rounds(*, run: Run, by: User, rounds: int, blocks: Collection[int] | None = None) -> list[Block]:
    """Lets done blocks go on for so many rounds more, on the node where they were begun; gives those that do.

    `blocks`: their numbers in the run; without it, every done block that has an undecided comparison. Raises Invalid
    for an unknown block or a count that is no use, Conflict when none of them can go on.
    """
    _must_write(run, by)
    if not 1 <= rounds <= MOST_ROUNDS:
        raise Invalid(f"{rounds} more rounds cannot be measured; ask for 1 to {MOST_ROUNDS}.", code="rounds")
    with transaction.atomic():
        row = lock_run(run.pk)
        if gone := removed_timings(row):
            raise Conflict(gone, code="retention", hint="Start a new run to measure again.")
        chosen = _chosen(row, blocks)
        if row.state == RunState.FINISHED and not row.resume():
            raise Conflict(f"Run {row.pk} is {row.state}.")
        for block in chosen:
            _go_on(block, rounds)
        more = counted(rounds, "more round")
        text = f"{by.username} asked for {more} of {counted(len(chosen), 'block')}."
        row.log(EventKind.MORE_ROUNDS, text, blocks=[block.number for block in chosen], rounds=rounds)
    return chosen


def _chosen(run: Run, numbers: Collection[int] | None) -> list[Block]:
    done = run.blocks.select_for_update(of=("self",)).select_related("only_node", "node").filter(state=BlockState.DONE)
    if numbers is None:
        undecided = run.comparisons.filter(verdict="undecided").values("block_id")
        chosen = list(done.filter(pk__in=undecided))
    else:
        chosen = list(done.filter(number__in=numbers))
        missing = sorted(set(numbers) - {block.number for block in chosen})
        if missing:
            raise Invalid(f"Run {run.pk} has no done block {', '.join(map(str, missing))}.", code="unknown_block")
    able = [block for block in chosen if block.rounds < MOST_ROUNDS and _node_is_there(block)]
    if not able:
        raise Conflict(
            "No block of this run can continue: each is decided or being settled, has all its rounds, or "
            "lost its node.",
            code="nothing_to_continue",
            hint="Start a new run to measure again.",
        )
    for block in able:
        block.run = run
    return able


def _node_is_there(block: Block) -> bool:
    return block.node is not None and block.node.health != NodeHealth.RETIRED


def _go_on(block: Block, rounds: int) -> None:
    block.queue(
        EventKind.BLOCK_REQUEUED,
        text=f"Block {block.number} continues for {rounds} more rounds.",
        only_node=block.node,
        first_round=block.rounds,
        max_rounds=min(MOST_ROUNDS, block.rounds + rounds),
        failures=0,
    )
    ring_on_commit(block)


def _must_write(run: Run, user: User) -> None:
    if not Run.objects.writable_by(user).filter(pk=run.pk).exists():
        raise NotAllowed(f"You can view run {run.pk} but not change it; ask an admin of its team.")
