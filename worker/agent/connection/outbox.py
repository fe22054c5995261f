"""Keeps reports on disk until the farm has answered them, so that no crash or lost connection loses one.

Each report is a JSON file, and the names of the files sort in the order of the reports. The farm may get a report
twice: it counts one report for each attempt, kind, arm and round.
"""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ValidationError

from farm.base.private_files import write_private_file
from farm.contract.reports import Reply, Report
from worker.agent.connection import gateway as farm
from worker.agent.connection.mailbox import compute_backoff_s

logger = logging.getLogger(__name__)

# older reports are dropped, because their attempts are over and the farm would refuse them
MAX_AGE_S = 24 * 3600


class GivenUpError(RuntimeError):
    """A report was not answered before the attempt was cancelled. It stays on disk."""


class Spooled(BaseModel):
    """A report, with what is needed to send it again after a restart."""

    block: str
    attempt: int
    token: str
    report: Report


class Outbox:
    """Sends the reports of one node, and keeps each as a file in `folder` until the farm has answered it."""

    def __init__(self, folder: Path, gateway: farm.Gateway) -> None:
        self._folder = folder
        self._gateway = gateway
        self._count = 0
        self._lock = threading.Lock()

    def send(self, spooled: Spooled, *, is_cancelled: Callable[[], bool]) -> Reply:
        """Write the report to disk, send it until the farm answers, and delete it. Return the answer.

        Raises LeaseLostError or RejectedError where the farm refuses the report, which is then deleted too. Raises
        NodeUnknownError, and GivenUpError once `is_cancelled` is true; then the report stays on disk. A report that
        cannot be written, for instance on a full disk, is sent all the same.
        """
        return self._send(self._store(spooled), spooled, is_cancelled=is_cancelled)

    def flush(self, *, is_cancelled: Callable[[], bool]) -> int:
        """Send the reports of an earlier agent, oldest first. Return how many the farm answered or refused.

        A report that is older than MAX_AGE_S, or cannot be read, is dropped, and not counted. Once `is_cancelled` is
        true while the farm is away, the rest stays on disk. Raises NodeUnknownError.
        """
        answered = 0
        for path in sorted(self._folder.glob("*.json")):
            spooled = _read_or_drop(path)
            if spooled is None:
                continue
            try:
                self._send(path, spooled, is_cancelled=is_cancelled)
            except (farm.LeaseLostError, farm.RejectedError) as problem:
                logger.info("A report of an earlier attempt at block %s is late: %s", spooled.block, problem)
            except GivenUpError:
                return answered
            answered += 1
        return answered

    def _send(self, path: Path | None, spooled: Spooled, *, is_cancelled: Callable[[], bool]) -> Reply:
        failures = 0
        while True:
            try:
                return self._send_once(path, spooled)
            except farm.UnavailableError as problem:
                failures += 1
                pause = compute_backoff_s(failures)
                logger.warning("A report is pending (%s); sending it again in %.1f s.", problem, pause)
            end = time.monotonic() + pause
            while time.monotonic() < end and not is_cancelled():
                time.sleep(0.1)
            if is_cancelled():
                raise GivenUpError(f"A report of block {spooled.block} was not answered before the agent let go of it.")

    def _send_once(self, path: Path | None, spooled: Spooled) -> Reply:
        try:
            reply = self._gateway.report(
                spooled.block, attempt=spooled.attempt, token=spooled.token, report=spooled.report
            )
        except (farm.LeaseLostError, farm.RejectedError):
            _delete(path)
            raise
        _delete(path)
        return reply

    def _store(self, spooled: Spooled) -> Path | None:
        with self._lock:
            self._count += 1
            name = f"{time.time_ns():020d}-{self._count:06d}.json"
        path = self._folder / name
        try:
            write_private_file(path, spooled.model_dump_json())
        except OSError as problem:  # the disk is full: the report is sent anyway, but a crash would lose it
            logger.warning("A report cannot be kept on disk (%s).", problem)
            return None
        return path


def _delete(path: Path | None) -> None:
    if path is not None:
        path.unlink(missing_ok=True)


def _read_or_drop(path: Path) -> Spooled | None:
    """Return the report of a file; remove one that is too old or cannot be read, and return None."""
    try:
        if time.time() - path.stat().st_mtime < MAX_AGE_S:
            return Spooled.model_validate_json(path.read_bytes())
        logger.info("%s is dropped: its attempt is long over.", path)
    except (OSError, ValidationError) as problem:
        logger.warning("%s cannot be read and is dropped: %s", path, problem)
    path.unlink(missing_ok=True)
    return None
