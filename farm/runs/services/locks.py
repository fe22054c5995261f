"""Locks in one order: the run, then its block, then the team (taken by whatever keeps or removes a file).

Every line of a run's log marks the run as changed, so whoever moves a block holds both rows. Two transactions that take
them the other way round wait for each other, and PostgreSQL ends one of them. SQLite has one lock for everything.
"""

from farm.runs.models import Block, Run


def lock_run(run_id: int) -> Run:
    """The run, read and locked, but for what may be long. Call inside a transaction."""
    return Run.objects.defer("matrix").select_for_update(no_key=True).get(pk=run_id)


def lock_block(block_id: int, *, run_id: int) -> Block:
    """The block with its run, read and locked. Call inside a transaction."""
    run = lock_run(run_id)
    block = Block.objects.select_for_update(no_key=True).get(pk=block_id)
    block.run = run
    return block
