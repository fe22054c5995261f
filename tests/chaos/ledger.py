"""What must be true in the end, read from the database: every block ended once, with the samples of one attempt."""

from collections import Counter
from typing import Any

from farm.runs.models import Block, Event, Run
from farm.runs.selectors.documents import make_document
from farm.runs.states import ENDED_BLOCKS, AttemptState, BlockState, EventKind, RunState

ENDINGS = (EventKind.BLOCK_DONE, EventKind.BLOCK_FAILED, EventKind.BLOCK_CANCELLED)
ROUNDS = 8


def open_blocks() -> int:
    return Block.objects.exclude(state__in=ENDED_BLOCKS).count()


def audit() -> dict[str, Any]:
    """Counts; `problems` is empty when nothing was lost or doubled."""
    blocks = Block.objects.select_related("run__version__model").prefetch_related("attempts")
    problems = [problem for block in blocks for problem in _problems(block)]
    problems += [f"run {run.pk} is {run.state}" for run in Run.objects.exclude(state=RunState.FINISHED)]
    attempts = Counter(attempt.state for block in blocks for attempt in block.attempts.all())
    return {
        "blocks": len(blocks),
        "done": sum(block.state == BlockState.DONE for block in blocks),
        "failed": sum(block.state == BlockState.FAILED for block in blocks),
        "lost": sum(block.state not in ENDED_BLOCKS for block in blocks),
        "doubled": sum("twice" in problem for problem in problems),
        "attempts": dict(attempts),
        "problems": problems[:20],
    }


def _problems(block: Block) -> list[str]:
    found = []
    endings = Event.objects.filter(block=block, kind__in=ENDINGS).count()
    done = [attempt for attempt in block.attempts.all() if attempt.state == AttemptState.DONE]
    if block.state not in ENDED_BLOCKS:
        found.append(f"block {block.pk} is lost: {block.state} at attempt {block.attempt}")
    elif endings != 1:
        found.append(f"block {block.pk} ended {endings} times: twice is once too often")
    if block.state == BlockState.DONE and len(done) != 1:
        found.append(f"block {block.pk} has {len(done)} done attempts: done twice")
    if block.state == BlockState.DONE and len(done) == 1:
        found += _sample_problems(block, done[0].number)
    if any(attempt.state in (AttemptState.LEASED, AttemptState.REPORTED) for attempt in block.attempts.all()):
        found.append(f"block {block.pk} has ended and an attempt is not over")
    return found


def _sample_problems(block: Block, attempt: int) -> list[str]:
    """Every sample says which attempt made it; all must be of the one that was done, a round each."""
    found = []
    for cell in make_document(block.run).cells:
        if cell.block != f"b{block.number}":
            continue
        rounds = {round((p50 - attempt) * 1000) for p50 in cell.samples_ms}
        if len(cell.samples_ms) != ROUNDS or rounds != set(range(1, ROUNDS + 1)):
            found.append(f"block {block.pk}, {cell.id}: samples {cell.samples_ms} are not of attempt {attempt} alone")
    return found
