"""Celery tasks of runs: the tick that queues, announces and recovers blocks, retention, settling, plans, traces."""

import logging
from collections.abc import Callable
from typing import Final

from celery import shared_task

from farm.accounts.visits import delete_expired_sessions
from farm.base.ticks import limit_concurrency, run_duties
from farm.base.ticks import tick as ticking
from farm.fleet.services import (
    end_lapsed_lendings,
    end_late_trials,
    mark_silent_nodes_offline,
    quarantine_nodes_without_owner,
)
from farm.registry.services.messages import MAKE_PLAN
from farm.runs import services
from farm.runs.services.hints import SETTLE_TASK
from farm.runs.services.timelines import READ_TRACE

log = logging.getLogger(__name__)
# how many blocks a process settles at once; some of its threads have to stay free for the ticks
AT_ONCE: Final = 4
DUTIES: tuple[Callable[[], int], ...] = (
    quarantine_nodes_without_owner,
    end_lapsed_lendings,
    end_late_trials,
    services.release_ready_blocks,
    services.send_due_hints,
    services.sweep,
    services.conclude_runs,
    services.backfill_leads,
    mark_silent_nodes_offline,
    services.remove_old_parts,
)


@shared_task(name="runs.tick")  # type: ignore[untyped-decorator]
@ticking("runs.tick")
def tick() -> None:
    run_duties(DUTIES)


@shared_task(name="runs.retain")  # type: ignore[untyped-decorator]
@ticking("runs.retain")
def retain() -> None:
    """Remove what the teams' retention rules name, once a day for each team, and expired browser sessions."""
    delete_expired_sessions()
    if removed := services.retain():
        log.info("retention removed %d runs' timings, traces, compiled models and models", removed)


@shared_task(name=SETTLE_TASK)  # type: ignore[untyped-decorator]
@limit_concurrency(AT_ONCE)
def settle(block: str, attempt: int) -> None:
    services.settle(block_id=int(block), attempt=attempt)


@shared_task(name=MAKE_PLAN)  # type: ignore[untyped-decorator]
def make_plan(order_id: int) -> None:
    services.make_plan(order_id)


@shared_task(name=READ_TRACE)  # type: ignore[untyped-decorator]
def read_trace(reading_id: int) -> None:
    services.read_trace(reading_id)
