"""Polls the farm for messages, by one long poll at a time, and only while a message is wanted.

A thread polls, so that the worker's loop stays free for signals. While a block is measured, nothing is polled. When the
farm is away, the pauses grow, with jitter, so that a thousand nodes do not come back at the same moment.
"""

import logging
import queue
import random
import threading
import time
from collections.abc import Callable

from farm.contract.node import Offer
from worker.agent.connection import gateway

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 10.0
# an empty answer that comes earlier did not come from a long poll, and a pause follows
MIN_POLL_S = 1.0


def compute_backoff_s(failures: int, draw: Callable[[], float] = random.random) -> float:
    """Compute the seconds to pause after a number of failures in a row, which grow exponentially up to MAX_PAUSE_S.

    Half of the pause is jitter: `draw` returns a random number from 0 to 1.
    """
    max_s = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures - 1, 16))
    return max_s * (0.5 + 0.5 * draw())


class Mailbox:
    """Gets offers in a separate thread from `fetch`, a long poll that returns an offer or None.

    `on_refused` is called once when the farm does not know this node any more (401), and then the thread ends.
    """

    def __init__(self, fetch: Callable[[], Offer | None], *, on_refused: Callable[[str], None]) -> None:
        self._fetch = fetch
        self._on_refused = on_refused
        self._offers: queue.Queue[Offer] = queue.Queue()
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="mailbox", daemon=True)
        self._thread.start()

    def take(self, timeout_s: float | None) -> Offer | None:
        """Wait for an offer; None when none came within `timeout_s` seconds. Without a limit it waits for ever."""
        if self._offers.empty():
            self._wanted.set()
        try:
            offer = self._offers.get(timeout=timeout_s)
        except queue.Empty:
            return None
        # `_wanted` may have been set just before this offer came, and would start a second poll
        self._stop_wanting()
        return offer

    def close(self) -> None:
        """End the thread. An offer that a poll in flight gets is dropped, and the farm offers its block again."""
        self._closed.set()
        self._wanted.set()

    def _stop_wanting(self) -> None:
        self._wanted.clear()
        if self._closed.is_set():
            # close() wakes the thread only once, and it must not miss that
            self._wanted.set()

    def _poll(self) -> None:
        failures = 0
        while True:
            self._wanted.wait()
            if self._closed.is_set():
                return
            started = time.monotonic()
            try:
                offer = self._fetch()
            except gateway.NodeUnknownError as problem:
                self._on_refused(str(problem))
                return
            except Exception as problem:  # this thread must not end, or the node would get no more blocks
                failures += 1
                pause = compute_backoff_s(failures)
                if isinstance(problem, gateway.GatewayError):
                    # a proxy may also answer 404 while the farm is replaced
                    logger.warning("The farm is not responding (%s); retrying in %.1f s.", problem, pause)
                else:
                    logger.exception("The farm could not be asked for a message; retrying in %.1f s.", pause)
                self._closed.wait(pause)
                continue
            failures = 0
            if offer is not None:
                self._stop_wanting()
                self._offers.put(offer)
            # a proxy or an old farm that does not hold the poll must not be flooded
            elif time.monotonic() - started < MIN_POLL_S:
                self._closed.wait(compute_backoff_s(1) + MIN_POLL_S)
