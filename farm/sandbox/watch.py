"""Watches a child from outside: drains its pipes, enforces its limits, and ends its whole process group."""

import contextlib
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from farm.sandbox import memory
from farm.sandbox.child_process import Child
from farm.sandbox.ending import Ending, Kind

# how much of the end of stdout and stderr is kept, and how much a child may print before it is ended
_TAIL_BYTES = 16 * 1024
_MAX_OUTPUT_BYTES = 256 << 20
_READ_BYTES = 1 << 16
_POLL_S = 0.1
_POLL_WITHOUT_DESCRIPTOR_S = 0.01  # where no descriptor reports the child's end
# so many readings of memory are needed to know a peak that is below the parent's
_MIN_MEMORY_READS = 5
# how long the pipes are still read after the child's end
_MAX_DRAIN_S = 1.0
# texts on stderr that mean that an allocation failed
_NO_MEMORY = ("MemoryError", "bad_alloc", "Cannot allocate memory", "Failed to allocate memory", "out of memory")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits that the watch enforces, in seconds and bytes; None where there is no limit."""

    wall_s: float
    cpu_s: float | None
    memory_bytes: int | None
    address_space_bytes: int | None
    reply_bytes: int
    # whether the child may start others, whose memory then counts too
    is_group: bool = False
    # whether another program runs the child, and reports a signal by the exit code 128 + signal
    is_wrapped: bool = False


class RunningChild:
    """A running child, which any thread may kill. Its time limit can be paused while it waits for another process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.is_cancelled = False
        self._is_over = False
        self._lock = threading.Lock()
        self._waited_s = 0.0
        self._waits_since: float | None = None

    def stop_clock(self) -> None:
        with self._lock:
            self._waits_since = time.monotonic()

    def start_clock(self) -> None:
        """Let the time limit count again; do nothing where the clock runs."""
        with self._lock:
            if self._waits_since is not None:
                self._waited_s += time.monotonic() - self._waits_since
                self._waits_since = None

    def count_waited_s(self) -> float:
        with self._lock:
            return self._waited_s + (0.0 if self._waits_since is None else time.monotonic() - self._waits_since)

    def kill(self) -> None:
        """Kill the child and its whole process group, so that it ends as `cancelled`; do nothing after its end."""
        with self._lock:
            if not self._is_over:
                self.is_cancelled = True
                self._kill_group()

    def close(self) -> None:
        """Kill what is left of the group while its id is still taken; after this `kill` does nothing."""
        with self._lock:
            self._is_over = True
            self._kill_group()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


class Watch:
    """Follows one child from its start to its end."""

    def __init__(self, process: Child, *, reply: IO[bytes], limits: Limits) -> None:
        self.running = RunningChild(process.pid)
        self._process = process
        self._limits = limits
        self._started = time.monotonic()
        self._own_peak = memory.read_process_memory(process.parent_pid).resident
        self._pipes = {"reply": reply, "stdout": process.stdout, "stderr": process.stderr}
        self._captured = {name: bytearray() for name in self._pipes}
        self._output_bytes = 0
        self._peak_bytes = 0
        self._memory_reads = 0
        self._kind: Kind | None = None
        self._limit = ""

    def wait_for_end(self, on_started: Callable[[RunningChild], None] | None = None) -> Ending:
        """Block until the child has ended or a limit ended it; kills its whole group before it returns.

        `on_started` is called first. An exception from it, or while waiting, also kills the child.
        """
        with contextlib.ExitStack() as stack:
            selector = stack.enter_context(selectors.DefaultSelector())
            for name, pipe in self._pipes.items():
                stack.enter_context(pipe)
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, name)
            try:
                if on_started is not None:
                    on_started(self.running)
                self._follow(selector)
            except BaseException:
                self.running.close()
                self._process.reap()
                raise
            self.running.close()
            self._read_remaining_output(selector)
        return self._make_ending()

    def _follow(self, selector: selectors.BaseSelector) -> None:
        next_check = 0.0
        with _open_exit_descriptor(self._process.pid) as descriptor:
            if descriptor is not None:
                selector.register(descriptor, selectors.EVENT_READ, "exit")
            while self._kind is None and not self._process.has_exited():
                now = time.monotonic()
                deadline = self._started + self._limits.wall_s + self.running.count_waited_s()
                if now >= deadline:
                    self._stop("timeout", f"its limit is {self._limits.wall_s:g} s")
                if now >= next_check:
                    self._check_memory()
                    next_check = now + _POLL_S
                wait_s = _POLL_S if descriptor is not None else _POLL_WITHOUT_DESCRIPTOR_S
                self._read(selector, wait_s=min(wait_s, max(0.0, deadline - now)))
            if descriptor is not None:
                selector.unregister(descriptor)

    def _stop(self, kind: Kind, limit: str) -> None:
        self._kind = self._kind or kind
        self._limit = self._limit or limit

    def _check_memory(self) -> None:
        pid, allowed = self._process.pid, self._limits.memory_bytes
        sizes = memory.read_group_memory(pid) if self._limits.is_group else memory.read_process_memory(pid)
        used = sizes.resident + sizes.kernel
        self._memory_reads += 1
        self._peak_bytes = max(self._peak_bytes, sizes.resident)
        if allowed is not None and used > allowed:
            self._stop("out_of_memory", f"it used {_mib(used)} and its limit is {_mib(allowed)}")

    def _read(self, selector: selectors.BaseSelector, *, wait_s: float) -> int:
        """Read once from every pipe that has something, and return the number of bytes read."""
        total = 0
        for key, _ in selector.select(wait_s):
            if key.data == "exit":
                continue
            chunk = os.read(key.fd, _READ_BYTES)
            if not chunk:
                selector.unregister(key.fileobj)
            total += len(chunk)
            self._store_output(key.data, chunk)
        return total

    def _store_output(self, name: str, chunk: bytes) -> None:
        buffer = self._captured[name]
        buffer += chunk
        if name == "reply":
            if len(buffer) > self._limits.reply_bytes:
                del buffer[self._limits.reply_bytes :]
                self._stop("flooded", f"its reply went over the limit of {_mib(self._limits.reply_bytes)}")
            return
        del buffer[:-_TAIL_BYTES]
        self._output_bytes += len(chunk)
        if self._output_bytes > _MAX_OUTPUT_BYTES:
            self._stop("flooded", f"it printed more than {_mib(_MAX_OUTPUT_BYTES)}")

    def _read_remaining_output(self, selector: selectors.BaseSelector) -> None:
        """Read what is left in the pipes, for a second at most, as another process may still hold one open."""
        deadline = time.monotonic() + _MAX_DRAIN_S
        while selector.get_map() and time.monotonic() < deadline:
            before = len(selector.get_map())
            if self._read(selector, wait_s=0.05) == 0 and len(selector.get_map()) == before:
                return

    def _make_ending(self) -> Ending:
        end = self._process.reap()
        code = end.exit_code
        if self._limits.is_wrapped and 128 < code <= 128 + signal.SIGRTMAX:
            code = 128 - code
        tails = {name: self._captured[name].decode("utf-8", errors="replace") for name in ("stdout", "stderr")}
        kind, limit = self._judge_end(code, cpu_s=end.cpu_s, stderr=tails["stderr"])
        return Ending(
            kind=kind,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            reply=bytes(self._captured["reply"]),
            stdout_tail=tails["stdout"],
            stderr_tail=tails["stderr"],
            limit=limit,
            wall_s=time.monotonic() - self._started,
            cpu_s=end.cpu_s,
            peak_memory_bytes=self._find_peak_bytes(end.peak_bytes),
        )

    def _find_peak_bytes(self, kernel_peak: int) -> int | None:
        """Return the peak memory in bytes; None where it could not be measured.

        A child inherits its parent's peak, so that a smaller one of its own is known only from enough readings.
        """
        if kernel_peak > self._own_peak:
            return max(kernel_peak, self._peak_bytes)
        return self._peak_bytes if self._memory_reads >= _MIN_MEMORY_READS else None

    def _judge_end(self, code: int, *, cpu_s: float, stderr: str) -> tuple[Kind, str]:
        if self._kind is not None:
            return self._kind, self._limit
        if self.running.is_cancelled:
            return "cancelled", ""
        if code == 0:
            return "done", ""
        allowed = self._limits.cpu_s
        if allowed is not None and (code == -signal.SIGXCPU or (code == -signal.SIGKILL and cpu_s >= allowed)):
            return "timeout", f"it used up its {allowed:g} s of processor time"
        if code == -signal.SIGKILL:
            return "out_of_memory", "the system killed it, as it does when the machine has no memory left"
        if self._limits.address_space_bytes is not None and any(word in stderr for word in _NO_MEMORY):
            return "out_of_memory", f"its address space is limited to {_mib(self._limits.address_space_bytes)}"
        return ("exited", "") if code > 0 else ("crashed", "")


@contextlib.contextmanager
def _open_exit_descriptor(pid: int) -> Iterator[int | None]:
    """Open a descriptor that becomes readable when the process ends; None where the system has none."""
    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError):  # this is no Linux, or one older than 5.3
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB" if size >= 1 << 20 else f"{size} bytes"
