"""Locks in one order: the run, then its block, then the team (taken by whatever keeps or removes a file).

Every line of a run's log marks the run as changed, so whoever moves a block holds both rows. Two transactions that take
them the other way round wait for each other, and PostgreSQL ends one of them. SQLite has one lock for everything.
"""

from django.db import router

from farm.runs.models import Block, Run


def lock_run(run_id: int) -> Run:
    """The run, read and locked, but for what may be long. Call inside a transaction."""
    return Run.objects.defer("matrix").select_for_update(no_key=True).get(pk=run_id)


def lock_run_to_change(run_id: int) -> Run:
    """The same, marked as changed with the one statement that locks it: for whoever certainly writes into its log."""
    columns = ", ".join(str(field.column) for field in Run._meta.concrete_fields if field.name != "matrix")
    statement = f"UPDATE {Run._meta.db_table} SET revision = revision + 1 WHERE id = %s RETURNING {columns}"
    found = list(Run.objects.using(router.db_for_write(Run)).raw(statement, [run_id]))
    if not found:
        raise Run.DoesNotExist
    found[0].is_marked = True
    return found[0]


def lock_block(block_id: int, *, run_id: int, is_changing: bool = False) -> Block:
    """The block with its run, read and locked; `is_changing` as `lock_run_to_change`. Call inside a transaction."""
    run = lock_run_to_change(run_id) if is_changing else lock_run(run_id)
    block = Block.objects.select_for_update(no_key=True).get(pk=block_id)
    block.run = run
    return block
