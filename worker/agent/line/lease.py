"""Keeps a block's lease alive while it is measured: one heartbeat every quarter of the lease, in its own thread."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

from farm.contract.blocks import Lease
from worker.agent.line import gateway as farm

logger = logging.getLogger(__name__)

# a farm that stays away this many leases has given the block to somebody else
PATIENCE_LEASES = 4


class LeaseKeeper:
    """`with LeaseKeeper(gateway, lease): …`; `is_lost` turns true when the runner has to be killed."""

    def __init__(self, gateway: farm.Gateway, lease: Lease) -> None:
        self._gateway = gateway
        self._order = lease.order
        self._token = lease.token
        self._lease_s = lease.lease_s
        self._ended = threading.Event()
        self._lost = threading.Event()
        self.why = ""
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    def __enter__(self) -> LeaseKeeper:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._ended.set()

    @property
    def is_lost(self) -> bool:
        """Whether the block is no longer this node's: cancelled, reaped, or the node revoked."""
        return self._lost.is_set()

    def lose(self, why: str) -> None:
        """The block is given up, for a reason in words."""
        if not self._lost.is_set():
            self.why = why
            logger.warning("Block %s is let go: %s", self._order.block, why)
            self._lost.set()

    def _keep(self) -> None:
        answered_at = time.monotonic()
        while not self._ended.wait(self._lease_s / 4):
            try:
                reply = self._gateway.heartbeat(self._order.block, attempt=self._order.attempt, token=self._token)
            except farm.Unavailable as problem:
                if time.monotonic() - answered_at > PATIENCE_LEASES * self._lease_s:
                    self.lose(f"the farm has not answered for {PATIENCE_LEASES} leases ({problem}).")
                    return
                continue
            except farm.GatewayError as problem:
                self.lose(str(problem))
                return
            answered_at = time.monotonic()
            self._lease_s = reply.lease_s
