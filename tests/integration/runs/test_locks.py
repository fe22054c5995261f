"""Two services that want the same run and block at the same moment: one waits, none is ended by the database."""

import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from farm.fleet.models import Node
from farm.runs.models import Block, Run
from farm.runs.services.locking import lock_run
from farm.runs.states import BlockState
from tests.integration.runs.making import claim, first_block, post
from tests.unit.rules.making import make_facts

pytestmark = pytest.mark.django_db(transaction=True)


def beside(work: Callable[[], object]) -> Callable[[], None]:
    """Starts work in a thread with a connection of its own; the result waits for it and raises what it raised."""
    problems: list[BaseException] = []

    def body() -> None:
        try:
            work()
        except BaseException as problem:
            problems.append(problem)
        finally:
            connection.close()

    thread = threading.Thread(target=body)
    thread.start()

    def join() -> None:
        thread.join(20)
        assert not thread.is_alive()
        if problems:
            raise problems[0]

    return join


def hold_run_then_block(block: Block, other: Callable[[], object]) -> None:
    """What cancelling does, slowly: the run is locked, the other one sets out, and then the block is wanted too."""
    with transaction.atomic():
        lock_run(block.run_id)
        join = beside(other)
        threading.Event().wait(0.5)
        Block.objects.filter(pk=block.pk).update(rung_at=None)
    join()


def test_a_claim_waits_for_whoever_holds_the_run(run: Run, node: Node) -> None:
    block = first_block(run)
    hold_run_then_block(block, lambda: claim(node, Block.objects.get(pk=block.pk)))
    assert Block.objects.get(pk=block.pk).state == BlockState.LEASED


def test_a_report_waits_for_whoever_holds_the_run(run: Run, node: Node) -> None:
    block = first_block(run)
    lease = claim(node, block)
    hold_run_then_block(block, lambda: post(node, lease, make_facts()))
    assert block.attempts.get().reports.count() == 1
