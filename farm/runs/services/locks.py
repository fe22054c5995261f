"""Locks rows in one order: the run, then its block, then the team (which storing or removing a file locks).

Every line of a run's log changes the run's row, so a transaction that changes a block holds both rows. Two transactions
that lock them in different orders wait for each other, and PostgreSQL ends one of them. SQLite has one lock for
everything. `lock_run` and `lock_block` need an open transaction and raise DoesNotExist for an unknown id; they do not
load the run's matrix.
"""

from django.db.models import F, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from farm.runs.models import Block, Run


def lock_run(run_id: int) -> Run:
    return Run.objects.defer("matrix").select_for_update(no_key=True).get(pk=run_id)


def mark_run(run_id: int, *, is_begun: bool = False) -> bool:
    """Mark the run as changed, which locks it until the transaction ends; return False if there is no such run.

    With `is_begun`, the run's start is set to now, unless it is set already.
    """
    begun = {"started_at": Coalesce("started_at", Value(timezone.now()))} if is_begun else {}
    return bool(Run.objects.filter(pk=run_id).update(revision=F("revision") + 1, **begun))


def lock_block(block_id: int, *, run_id: int) -> Block:
    """Read and lock a run and then its block; return the block. Call inside a transaction."""
    run = lock_run(run_id)
    block = Block.objects.select_for_update(no_key=True).get(pk=block_id)
    block.run = run
    return block
