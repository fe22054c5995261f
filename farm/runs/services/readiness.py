"""waiting → queued: a block waits for its variants and inputs, and for its turn under `max-parallel`."""

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from farm.contract.reasons import Reason
from farm.registry.states import MakingState
from farm.runs.models import Arm, Block, Cell, Run
from farm.runs.selectors.evidence import UNMAKEABLE
from farm.runs.services.bell import ring_on_commit
from farm.runs.services.completion import finish_run_if_over
from farm.runs.services.locks import lock_run
from farm.runs.states import BlockState, EventKind, RunState

# at most so many are released in one tick, so that a tick stays short, and at once when a run starts
MOST = 64
MOST_AT_START = 8
UNFINISHED = (MakingState.PENDING, MakingState.MAKING)


def release_ready_blocks(*, run: Run | None = None, most: int = MOST) -> int:
    """Queues blocks whose inputs are ready; gives how many. Cells whose inputs cannot be made are refused."""
    unmade = Q(cell__variant__state__in=UNFINISHED) | Q(cell__preparation__state__in=UNFINISHED)
    waiting = Block.objects.filter(state=BlockState.WAITING, run__state=RunState.RUNNING)
    # labelled data that came with the model are looked at before any cell is judged on them
    waiting = waiting.exclude(run__version__evaluation__state__in=UNFINISHED)
    if run is not None:
        waiting = waiting.filter(run=run)
    ready = waiting.exclude(Exists(Arm.objects.filter(unmade, block=OuterRef("pk")))).select_related("run")
    return sum(_release(block) for block in ready.order_by("run_id", "number")[:most])


def _release(block: Block) -> bool:
    with transaction.atomic():
        run = lock_run(block.run_id)
        if not _has_turn(run):
            return False
        block.run = run
        why = _refuse_unmakeable(block)
        if why is not None and not block.arms.filter(status="").exists():
            block.fail(why)
            finish_run_if_over(run)
            return False
        if not block.queue():
            return False
        ring_on_commit(block)
    return True


def _has_turn(run: Run) -> bool:
    if run.max_parallel is None:
        return True
    busy = run.blocks.filter(state__in=(BlockState.QUEUED, BlockState.LEASED)).count()
    return busy < run.max_parallel


def _refuse_unmakeable(block: Block) -> Reason | None:
    """Refuses arms whose variant or inputs have failed; gives the last reason."""
    why: Reason | None = None
    for arm in block.arms.filter(UNMAKEABLE, status="").select_related("cell__variant", "cell__preparation"):
        cell = arm.cell
        makings = [making for making in (cell.variant, cell.preparation) if making is not None]
        why = next((making.reason for making in makings if making.reason is not None), None)
        if why is None:
            continue
        ending = {"status": why.status, "reason_code": why.code, "reason_text": why.text}
        Arm.objects.filter(pk=arm.pk).update(**ending)
        Cell.objects.filter(pk=cell.pk, status="").update(**ending)
        block.log(EventKind.CELL_ENDED, f"{cell.name}: {why.text}", cell=cell.name, code=why.code)
    return why
