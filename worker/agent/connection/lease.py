"""Keeps the lease of a block while it is measured, by a heartbeat every quarter of the lease, in its own thread."""

from __future__ import annotations

import logging
import threading
import time

from farm.contract.blocks import Lease
from worker.agent.connection import gateway as farm

logger = logging.getLogger(__name__)

# a new activity is reported after this pause, and at most once in REPORT_EVERY_S
GATHER_S = 0.5
REPORT_EVERY_S = 4.0
# after this many leases without an answer, the farm has given the block to another node
PATIENCE_LEASES = 4


class LeaseKeeper:
    """Keeps a lease inside a `with`. When `is_lost` becomes true, the runner has to be killed.

    That is so once the farm refuses a heartbeat or answers none for PATIENCE_LEASES leases, and after `give_up`.
    """

    def __init__(self, gateway: farm.Gateway, lease: Lease) -> None:
        self._gateway = gateway
        self._order = lease.order
        self._token = lease.token
        self._lease_s = lease.lease_s
        self._ended = threading.Event()
        self._lost = threading.Event()
        self._has_news = threading.Event()
        self._doing = ""
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    def __enter__(self) -> LeaseKeeper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._has_news.set()

    def set_activity(self, doing: str) -> None:
        """Set what is being done now, in words. A heartbeat tells the farm within about five seconds."""
        if doing != self._doing:
            self._doing = doing
            self._has_news.set()

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set()

    def give_up(self, reason: str) -> None:
        """Mark the lease as lost, and log the reason. A second call does nothing."""
        if not self._lost.is_set():
            logger.warning("Block %s was released: %s", self._order.block, reason)
            self._lost.set()

    def _keep(self) -> None:
        answered_at = time.monotonic()
        while self._wait_for_beat():
            try:
                reply = self._gateway.heartbeat(
                    self._order.block, attempt=self._order.attempt, token=self._token, doing=self._doing
                )
            except farm.UnavailableError as problem:
                if time.monotonic() - answered_at > PATIENCE_LEASES * self._lease_s:
                    self.give_up(f"the farm has not answered for {PATIENCE_LEASES} leases ({problem}).")
                    return
                continue
            except farm.GatewayError as problem:
                self.give_up(str(problem))
                return
            answered_at = time.monotonic()
            self._lease_s = reply.lease_s

    def _wait_for_beat(self) -> bool:
        """Wait a quarter of the lease, or less for a new activity. Return False when the block is over."""
        quarter_s = self._lease_s / 4
        rest_s = min(REPORT_EVERY_S, quarter_s)
        if self._ended.wait(rest_s):
            return False
        if self._has_news.wait(quarter_s - rest_s):
            self._ended.wait(min(GATHER_S, quarter_s))
            self._has_news.clear()
        return not self._ended.is_set()
