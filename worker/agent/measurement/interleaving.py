"""Interleaves the arms of a round: their processes run together and take turns, so that one measures at a time.

The speed of a shared machine changes by a tenth within seconds. If arms are measured one after the other, this change
distorts their ratio; if they take turns of some milliseconds, it affects all alike. docs/samples.md has the figures.
"""

import os
import random
import select
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from farm.sandbox import plain_files
from farm.sandbox.watch import RunningChild
from worker.agent.measurement.orders import RunnerOrder
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Answer, Launcher

# the messages of worker.runner.interleaving, which runs in another environment
GO, MORE, TRACE = b"g", b"m", b"t"
ENDED = b""
LISTEN_S = 0.05
# how many processes load their models at the same time; none measures or warms up meanwhile
MAX_STARTING = min(2, os.cpu_count() or 1)

# runs a process with its pipes in the folder, calls the function when it has started, and returns its answer
Launch = Callable[[str, Callable[[RunningChild], None]], Answer]


class InterleavedProcess:
    """A process that waits for its turns. The `with` starts it, and kills it at its end if it still runs.

    `take_turn` gives it a turn, and returns its next message as `listen` does. `wake_to_end` wakes it a last time
    without waiting for it, and `wait_for_answer` waits until it has ended.
    """

    def __init__(self, launch: Launch, *, folder: Path, threads: ThreadPoolExecutor) -> None:
        self._launch = launch
        self._folder = folder
        self._threads = threads
        self._running: RunningChild | None = None

    def __enter__(self) -> "InterleavedProcess":
        plain_files.remove_path(self._folder)
        self._folder.mkdir()
        self._go, self._outcomes = (_make_pipe(self._folder / name) for name in ("go", "said"))
        self._future: Future[Answer] = self._threads.submit(self._launch, str(self._folder), self._note_started)
        return self

    def __exit__(self, *_: object) -> None:
        if self._running is not None and not self._future.done():
            self._running.kill()
        os.close(self._go)
        os.close(self._outcomes)

    def _note_started(self, running: RunningChild) -> None:
        self._running = running

    def listen(self) -> bytes:
        """Wait for the next message of the process; ENDED if it has ended. The process's time limit runs meanwhile."""
        while True:
            has_ended = self._future.done()
            readable, _, _ = select.select([self._outcomes], [], [], 0.0 if has_ended else LISTEN_S)
            if readable:
                if self._running is not None:
                    self._running.stop_clock()
                return os.read(self._outcomes, 1)
            if has_ended:
                return ENDED

    def take_turn(self) -> bytes:
        self._wake()
        return self.listen()

    def wake_to_end(self) -> None:
        if not self._future.done():
            self._wake()

    def wait_for_answer(self) -> Answer:
        return self._future.result()

    def _wake(self) -> None:
        if self._running is not None:
            self._running.start_clock()
        os.write(self._go, GO)


def measure_in_turns(
    launcher: Launcher, orders: Sequence[tuple[PreparedArm, RunnerOrder]], *, dice: random.Random
) -> list[Answer]:
    """Launch a process for each arm and its order, let them measure in turns, and return the answers in this order.

    The answer of a process that failed has a reason.
    """

    def launch(arm: PreparedArm, order: RunnerOrder, folder: str, on_started: Callable[[RunningChild], None]) -> Answer:
        return launcher.launch(arm, {**order, "turns": folder}, work_dir=arm.scratch, on_started=on_started)

    launches: list[tuple[Launch, Path]] = [
        (partial(launch, arm, order), arm.scratch / "turns") for arm, order in orders
    ]
    return interleave_processes(
        launches, dice=dice, limit_s=launcher.timeout_s * len(orders), on_ready=launcher.mark_free
    )


def interleave_processes(
    launches: Sequence[tuple[Launch, Path]],
    *,
    dice: random.Random,
    limit_s: float,
    on_ready: Callable[[float], None] = lambda moment: None,
) -> list[Answer]:
    """Start the processes, each with a folder for its pipes, and give them turns until all have measured.

    Return the answers in this order. MAX_STARTING processes at a time load their models; after each such group,
    `on_ready` is called with time.monotonic(). Once all are loaded, they warm up one after the other. In each cycle,
    the order of turns is drawn anew. No cycle begins after `limit_s`. A process that dies or hangs ends only its own
    sample. Raises ValueError for no processes.
    """
    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(max_workers=len(launches), thread_name_prefix="turns"))
        processes: list[InterleavedProcess] = []
        ready: list[InterleavedProcess] = []
        for first in range(0, len(launches), MAX_STARTING):
            started = [
                stack.enter_context(InterleavedProcess(launch, folder=folder, threads=threads))
                for launch, folder in launches[first : first + MAX_STARTING]
            ]
            processes += started
            ready += [process for process in started if process.listen() == MORE]
            on_ready(time.monotonic())
        ready = [process for process in ready if process.take_turn() == MORE]
        # each process has its own time limit; this one stops processes that always ask for another turn
        limit = time.monotonic() + limit_s
        # tracing comes last, because it would disturb the windows of others
        waiting_to_trace = _give_turns(ready, dice=dice, limit=limit)
        _give_turns(waiting_to_trace, dice=dice, limit=limit)
        for process in processes:
            process.wake_to_end()
        return [process.wait_for_answer() for process in processes]


def _give_turns(processes: list[InterleavedProcess], *, dice: random.Random, limit: float) -> list[InterleavedProcess]:
    """Give turns until no process wants another, or until `limit`. Return the processes that wait to trace."""
    waiting_to_trace: list[InterleavedProcess] = []
    while processes and time.monotonic() < limit:
        dice.shuffle(processes)
        answers = [(process, process.take_turn()) for process in processes]
        waiting_to_trace += [process for process, message in answers if message == TRACE]
        processes = [process for process, message in answers if message == MORE]
    return waiting_to_trace


def _make_pipe(path: Path) -> int:
    """Make a named pipe and open both of its ends, so that neither side waits for the other to open it."""
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)
