"""States of runs, blocks and attempts, and the arrows between them. docs/reference/states.md lists them."""

from collections.abc import Collection

from django.db import models


class RunState(models.TextChoices):
    """planned → running → finished; a finished run runs again when more rounds are asked for."""

    PLANNED = "planned"  # its rows are written, nothing was queued
    RUNNING = "running"  # a block of it is open or reported; pages say *measuring*, *queued*, *preparing* or *settling*
    FINISHED = "finished"  # its last block has ended


class RunOutcome(models.TextChoices):
    """How a finished run ended."""

    OPEN = "", "open"  # not finished
    COMPLETE = "complete"  # every planned cell is done, or was refused with its reason while others are done
    PARTIAL = "partial"  # some planned cell has no result
    REFUSED = "refused"  # every cell was refused with its reason, so that nothing was measured
    CANCELLED = "cancelled"  # a person cancelled it; the rounds that were reported before stay


class RunReason(models.TextChoices):
    """Why there is a run: a person or a watch asked for it, or the farm examines what a watch has found."""

    ASKED = "", "asked for"  # a person asked for it
    WATCH = "watch"  # a watch measures
    CONFIRMATION = "confirmation"  # a fresh block, to make sure of what a watch found
    BISECTION = "bisection"  # a search for the first bad release
    WORK_AROUND = "work-around"  # a search for session options that undo a slowdown
    FIND = "find"  # a block of a search for the settings to ship


# runs that no person waits for
BACKGROUND = (RunReason.WATCH, RunReason.CONFIRMATION, RunReason.BISECTION, RunReason.WORK_AROUND)
# runs that the farm starts to confirm or explain what another run found: lists leave them out unless asked for
FOLLOW_UPS = (RunReason.CONFIRMATION, RunReason.BISECTION, RunReason.WORK_AROUND, RunReason.FIND)


class BlockState(models.TextChoices):
    """waiting → queued → leased → reported → done; failed or cancelled from the first three."""

    WAITING = "waiting"  # for its variants and inputs, and for its turn under `max-parallel`
    # its hint is sent again every few seconds until a node claims it; each time it is queued its attempt number grows,
    # which fences off nodes that held it before
    QUEUED = "queued"
    LEASED = "leased"  # one node measures it, as long as its heartbeats extend the lease and its limits allow
    # its node has reported everything, or it was stopped after a round, and the node is free again; until a worker has
    # settled the block, it cannot be claimed, stopped or continued
    REPORTED = "reported"
    DONE = "done"  # settled, with documents and comparisons
    FAILED = "failed"  # the third failure, the twelfth attempt without a result, or nothing of it can be prepared
    CANCELLED = "cancelled"  # by a person, or by fail-fast, before a round of it was reported


class AttemptState(models.TextChoices):
    """leased → reported → done; leased → failed | lost | cancelled. The reports of the first three states count."""

    LEASED = "leased"  # the node holds the block
    REPORTED = "reported"  # the node has reported everything, or the block was stopped after a round
    DONE = "done"  # settled: its reports count
    FAILED = "failed"  # the node reported that it cannot measure the block
    LOST = "lost"  # no heartbeat; its rounds are measured again
    CANCELLED = "cancelled"  # the block was cancelled before it reported a round


class ReadingState(models.TextChoices):
    """asked → read | failed; a timeline that is opened again while it is still asked for is ordered again."""

    ASKED = "asked"
    READ = "read"
    FAILED = "failed"


class DivergenceState(models.TextChoices):
    """asked → found (an answer, whatever it says) | failed; asked again from any of them."""

    ASKED = "asked"
    FOUND = "found"
    FAILED = "failed"


class EventKind(models.TextChoices):
    """The kinds of lines in a run's log."""

    RUN_STARTED = "run_started"
    RUN_RESUMED = "run_resumed"
    RUN_FINISHED = "run_finished"
    RUN_CANCELLED = "run_cancelled"
    BLOCK_QUEUED = "block_queued"
    BLOCK_LEASED = "block_leased"
    BLOCK_REQUEUED = "block_requeued"
    BLOCK_REPORTED = "block_reported"
    BLOCK_DONE = "block_done"
    BLOCK_FAILED = "block_failed"
    BLOCK_CANCELLED = "block_cancelled"
    CELL_ENDED = "cell_ended"
    MORE_ROUNDS = "more_rounds"
    REPORT_REFUSED = "report_refused"


# from which states a block may go to each state
BLOCK_ARROWS: dict[BlockState, tuple[BlockState, ...]] = {
    BlockState.QUEUED: (BlockState.WAITING, BlockState.LEASED, BlockState.DONE),
    BlockState.LEASED: (BlockState.QUEUED,),
    BlockState.REPORTED: (BlockState.LEASED,),
    # queued or leased → done: a block that was to measure more rounds keeps its earlier ones
    BlockState.DONE: (BlockState.QUEUED, BlockState.LEASED, BlockState.REPORTED),
    BlockState.FAILED: (BlockState.WAITING, BlockState.QUEUED, BlockState.LEASED),
    BlockState.CANCELLED: (BlockState.WAITING, BlockState.QUEUED, BlockState.LEASED),
}

# from which states a run may go to each state
RUN_ARROWS: dict[RunState, tuple[RunState, ...]] = {
    RunState.RUNNING: (RunState.PLANNED, RunState.FINISHED),
    RunState.FINISHED: (RunState.PLANNED, RunState.RUNNING),
}

OPEN_BLOCKS = (BlockState.WAITING, BlockState.QUEUED, BlockState.LEASED)
# a run is not over while one of its blocks has one of these states
UNSETTLED_BLOCKS = (*OPEN_BLOCKS, BlockState.REPORTED)
ENDED_BLOCKS = (BlockState.DONE, BlockState.FAILED, BlockState.CANCELLED)

# the activity of an open run, in the words of every page: the first of these states that one of its blocks has
ACTIVITIES = (
    (BlockState.LEASED, "measuring"),
    (BlockState.QUEUED, "queued"),
    (BlockState.WAITING, "preparing"),
    (BlockState.REPORTED, "settling"),
)


def activity_of(states: Collection[str]) -> str:
    """Name the activity of an open run by the states of its blocks; "running" if all of them have ended."""
    return next((word for state, word in ACTIVITIES if state in states), RunState.RUNNING.value)
