"""The one Celery task of a node: claim the block that a message names, measure it, and report."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from celery import Celery

from farm.contract.blocks import Lease
from farm.contract.reports import Reply, Report
from farm.contract.version import MEASURE_TASK
from worker.agent.connection import gateway as farm
from worker.agent.connection.lease import LeaseKeeper
from worker.agent.connection.mailbox import compute_backoff_s
from worker.agent.connection.outbox import GivenUpError, Outbox, Spooled
from worker.agent.machine import host_lock

logger = logging.getLogger(__name__)

# if another program holds the machine for longer, the block is left to the farm's next offer
LOCK_PATIENCE_S = 5.0
CLAIM_TRIES = 5


class Execute(Protocol):
    """Measures the block of a lease, and calls `report` and `say`, as `NodeEquipment.measure` does."""

    def __call__(
        self,
        lease: Lease,
        *,
        report: Callable[[Report], Reply],
        is_cancelled: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None: ...


class BlockDroppedError(RuntimeError):
    """The farm refused a report for good, so that this attempt is useless."""


class Measurer:
    """Measures one block at a time. `block` is the number of the current one, and None between blocks.

    `on_refused` is called when the farm does not know this node any more. `on_wait` is called with a sentence about who
    holds the machine, and with an empty one once this node holds it.
    """

    def __init__(
        self,
        *,
        gateway: farm.Gateway,
        outbox: Outbox,
        execute: Execute,
        stop: threading.Event,
        on_refused: Callable[[str], None],
        on_wait: Callable[[str], None] = lambda sentence: None,
        lock_patience_s: float = LOCK_PATIENCE_S,
    ) -> None:
        self._lock_patience_s = lock_patience_s
        self._on_wait = on_wait
        self._gateway = gateway
        self._outbox = outbox
        self._execute = execute
        self._stop = stop
        self._on_refused = on_refused
        self._free_since = time.monotonic()
        # since when another program holds the machine, even if several blocks were given back since
        self._taken_since: float | None = None
        # the place among those who wait for the machine, which is kept from block to block
        self._ticket = host_lock.Ticket()
        self.block: str | None = None

    @property
    def idle_s(self) -> float:
        """Seconds since the last block ended or `restart_idle_time` was called; 0 while a block is measured."""
        return 0.0 if self.block else time.monotonic() - self._free_since

    def restart_idle_time(self) -> None:
        self._free_since = time.monotonic()

    def measure(self, block: str, attempt: int) -> None:
        """Hold the machine, claim the block and measure it.

        It returns without measuring when the farm refuses the claim or does not answer CLAIM_TRIES claims, when the
        agent stops, or when another program holds the machine for longer than `lock_patience_s`. It also returns when
        the farm drops the attempt midway. Other exceptions of `execute` are raised.
        """
        try:
            with host_lock.hold_machine(
                patience_s=self._lock_patience_s,
                is_cancelled=self._stop.is_set,
                on_wait=self._on_wait,
                ticket=self._ticket,
            ):
                self._on_wait("")
                self._log_free_machine()
                lease = self._claim(block, attempt)
                if lease is not None:
                    self._measure(lease)
        except host_lock.BusyError as problem:
            if self._taken_since is None:
                self._taken_since = time.monotonic() - self._lock_patience_s
                logger.info("Blocks wait, first of them %s: %s", block, problem)

    def _log_free_machine(self) -> None:
        if self._taken_since is not None:
            logger.info("The machine is free again, after about %.0f s.", time.monotonic() - self._taken_since)
            self._taken_since = None

    def _measure(self, lease: Lease) -> None:
        order, started = lease.order, time.monotonic()
        logger.info("Block %s, attempt %d: %d arms.", order.block, order.attempt, len(order.arms))
        self.block = order.block
        try:
            with LeaseKeeper(self._gateway, lease) as keeper:
                self._execute(
                    lease,
                    report=self._make_reporter(lease, keeper),
                    is_cancelled=self._make_cancel_check(keeper),
                    say=keeper.set_activity,
                )
        except (GivenUpError, BlockDroppedError) as problem:
            logger.warning("Block %s ended early: %s", order.block, problem)
        finally:
            self.block, self._free_since = None, time.monotonic()
        logger.info("Block %s left after %.1f s.", order.block, time.monotonic() - started)

    def _claim(self, block: str, attempt: int) -> Lease | None:
        for tries in range(1, CLAIM_TRIES + 1):
            try:
                return self._gateway.claim(block, attempt=attempt)
            except farm.UnavailableError as problem:
                # the answer may have been lost, and the farm allows the same claim again
                logger.warning("Block %s could not be claimed (%s).", block, problem)
                if self._stop.wait(compute_backoff_s(tries)):
                    return None
            except farm.NodeUnknownError as problem:
                self._on_refused(str(problem))
                return None
            except (farm.LeaseLostError, farm.RejectedError) as problem:
                logger.info("Block %s is not for this node: %s", block, problem)
                return None
        return None

    def _make_cancel_check(self, keeper: LeaseKeeper) -> Callable[[], bool]:
        return lambda: keeper.is_lost or self._stop.is_set()

    def _make_reporter(self, lease: Lease, keeper: LeaseKeeper) -> Callable[[Report], Reply]:
        order = lease.order

        def report(message: Report) -> Reply:
            spooled = Spooled(block=order.block, attempt=order.attempt, token=lease.token, report=message)
            try:
                return self._outbox.send(spooled, is_cancelled=self._make_cancel_check(keeper))
            except farm.NodeUnknownError as problem:
                self._on_refused(str(problem))
                problem_text = str(problem)
            except (farm.LeaseLostError, farm.RejectedError) as problem:
                problem_text = str(problem)
            keeper.give_up(problem_text)
            raise BlockDroppedError(problem_text)

        return report


def register_measure_task(app: Celery, measurer: Measurer) -> None:
    """Add the task that measures a block to the app. It has no result and no retries: the farm offers a block again."""

    @app.task(name=MEASURE_TASK, ignore_result=True)  # type: ignore[untyped-decorator]
    def measure_block(*, block: str, attempt: int, **_: object) -> None:
        measurer.measure(block, attempt)
