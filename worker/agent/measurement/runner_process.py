"""Launches a runner's process in the sandbox, watches it, and turns its ending into an answer or a reason."""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from farm.contract.reasons import Reason, ReasonCode
from farm.rules.runtimes import engines, providers
from farm.sandbox import child, interpreters, plain_files
from farm.sandbox.ending import Ending
from farm.sandbox.policy import Counts, Policy, SandboxError
from farm.sandbox.watch import RunningChild
from worker.agent.installation.runtimes import Installed
from worker.agent.machine.oom_kills import correct_ending, count_oom_kills
from worker.agent.measurement.orders import RunnerOrder
from worker.agent.measurement.prepared_arms import PreparedArm

# enough for a check with many outputs, or for the executed nodes of a large model
MAX_REPLY_BYTES = 16 << 20
CANCEL_POLL_S = 0.25
COUNTS: Counts = "instructions"

# the environment of the process, which also inherits the variables that its provider's entry names
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "ORT_DISABLE_TELEMETRY": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass
class Answer:
    """The answer of a process: its decoded reply or a reason, and how it ended; None where none was started.

    `wall_ms` is 0 then.
    """

    reply: dict[str, object] = field(default_factory=dict)
    reason: Reason | None = None
    ending: Ending | None = None
    log_tail: str = ""

    @property
    def wall_ms(self) -> float:
        return self.ending.wall_s * 1000 if self.ending else 0.0


def run_without_arm(
    order: RunnerOrder, *, runtime: Installed, stage: Path, reads: Path, work: Path, memory_bytes: int, timeout_s: float
) -> Ending:
    """Run a runner for an order without an arm. It may read `reads` and write in `work`.

    Return how it ended, also for a process that failed. Raises SandboxError where the sandbox cannot be made.
    """
    python = runtime.python
    policy = Policy(
        read_only=(*interpreters.list_interpreter_paths(python), stage, reads),
        read_write=(work,),
        memory_bytes=memory_bytes,
    )
    words, stdin = [str(python), "-I", str(stage)], json.dumps(order).encode()
    return child.run_command(words, policy=policy, timeout_s=timeout_s, stdin=stdin, cwd=work)


class Launcher:
    """Starts the runners of a block inside a `with`, and kills those that run when the block is cancelled.

    `gaps_s` has the seconds that the agent itself spends before each launch: since the process before it ended, or was
    ready for its turns. The launch after `forget_last_process` has no gap.
    """

    def __init__(
        self, *, stage: Path, timeout_s: float, memory_bytes: int | None, is_cancelled: Callable[[], bool]
    ) -> None:
        self._stage = stage
        self.timeout_s = timeout_s
        self._memory_bytes = memory_bytes
        self._is_cancelled = is_cancelled
        self._running: set[RunningChild] = set()
        self._ended = threading.Event()
        self._free_since: float | None = None
        self.gaps_s: list[float] = []

    def __enter__(self) -> "Launcher":
        threading.Thread(target=self._end_when_cancelled, daemon=True, name="cancel-watch").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def forget_last_process(self) -> None:
        self._free_since = None

    def mark_free(self, moment: float) -> None:
        """Set the time of time.monotonic from which the gap before the next launch is counted."""
        self._free_since = moment

    def launch(
        self,
        arm: PreparedArm,
        order: RunnerOrder,
        *,
        work_dir: Path,
        timeout_s: float | None = None,
        on_started: Callable[[RunningChild], None] | None = None,
    ) -> Answer:
        """Run one pass of an arm, for at most `timeout_s` or the launcher's own limit, whichever is shorter.

        The process may write in `work_dir` only. Whatever it does becomes an Answer, never an exception; so does a
        missing sandbox. A block that is cancelled already launches nothing. `on_started` is called with the running
        process.
        """
        if self._is_cancelled():
            return Answer(reason=CANCELLED)
        entry = providers.find(arm.order.cell.provider)
        # instructions are counted only where one thread does all the work
        counts = COUNTS if order.get("gate_cpu_share") is not None else None
        policy = replace(self._make_policy(arm, entry, work_dir=work_dir), counts=counts)
        passed_on = entry.environment if entry is not None else ()
        inherited = {name: os.environ[name] for name in passed_on if name in os.environ}
        kills = count_oom_kills()
        launched_ns = time.monotonic_ns()
        try:
            with self._watch_started(on_started) as started:
                ending = child.run_command(
                    [str(arm.installed.python), "-I", str(self._stage)],
                    policy=policy,
                    timeout_s=min(self.timeout_s, timeout_s or self.timeout_s),
                    stdin=json.dumps({**order, "launched_ns": launched_ns, "work_dir": str(work_dir)}).encode(),
                    env={**_ENVIRONMENT, **inherited, "HOME": str(work_dir), "TMPDIR": str(work_dir)},
                    cwd=work_dir,
                    max_reply_bytes=MAX_REPLY_BYTES,
                    on_started=started,
                )
        except SandboxError as error:
            return Answer(reason=Reason(code=ReasonCode.SANDBOX_MISSING, text=str(error)[:2000]))
        self.mark_free(launched_ns / 1e9 + ending.wall_s)
        answer = parse_ending(correct_ending(ending, before=kills, after=count_oom_kills()))
        answer.reason = add_memory_limit(answer.reason, arm.order.cell.session.memory_limit_mb)
        return answer

    def _make_policy(self, arm: PreparedArm, entry: providers.Provider | None, *, work_dir: Path) -> Policy:
        """Make the policy of an arm's process, which may read its interpreter, the stage, the model and the inputs."""
        if entry is not None and entry.building is not None:
            plain_files.make_folder(arm.engines)
        return Policy(
            read_only=(
                *interpreters.list_interpreter_paths(arm.installed.python),
                self._stage,
                arm.model.parent,
                arm.inputs.parent,
            ),
            read_write=(work_dir, arm.engines) if plain_files.is_folder(arm.engines) else (work_dir,),
            memory_bytes=self._memory_bytes,
            processes=engines.engine_of(arm.order.cell.runtime).starts_processes(arm.order.cell.runtime),
            devices=entry is not None and providers.needs_devices(entry, arm.order.cell.provider_options),
        )

    @contextlib.contextmanager
    def _watch_started(
        self, on_started: Callable[[RunningChild], None] | None
    ) -> Iterator[Callable[[RunningChild], None]]:
        """Yield a function to call with a process that has started. Inside the `with`, a cancelled block kills it."""
        alive: list[RunningChild] = []

        def started(running: RunningChild) -> None:
            alive.append(running)
            self._watch(running)
            if on_started is not None:
                on_started(running)

        try:
            yield started
        finally:
            self._running.difference_update(alive)

    def _watch(self, running: RunningChild) -> None:
        self._running.add(running)
        if self._free_since is not None:
            self.gaps_s.append(time.monotonic() - self._free_since)

    def _end_when_cancelled(self) -> None:
        while not self._ended.wait(CANCEL_POLL_S):
            alive = self._running.copy()
            if alive and self._is_cancelled():
                for running in alive:
                    running.kill()


CANCELLED = Reason(code=ReasonCode.CANCELLED, text="The block was cancelled before this was measured; start it again.")


def add_memory_limit(reason: Reason | None, limit_mb: int) -> Reason | None:
    """Add the memory limit to the reason of a crash, because a runtime without memory may crash; 0 MiB: no limit.

    Return other reasons, and None, as they are.
    """
    if reason is None or not limit_mb or reason.code != ReasonCode.CRASHED:
        return reason
    text = f"{reason.text} It ran under a memory limit of {limit_mb:,} MiB, which it may have reached."
    return Reason(code=reason.code, text=text[-2000:])


def parse_ending(ending: Ending) -> Answer:
    """Decode the reply of a process that has ended; where it has none, make the reason.

    A `reason` in the reply becomes the answer's reason, and the answer's `reply` has the other fields.
    """
    answer = Answer(ending=ending, log_tail=ending.stderr_tail[-20_000:])
    answer.reason = _make_reason_of_ending(ending)
    if answer.reason is not None:
        return answer
    try:
        reply = ending.parse_reply()
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        shown = f"{ending.reply[:60]!r}" if ending.reply else "nothing"
        answer.reason = make_garbled_reason(f"it answered {shown} where a JSON object was expected")
        return answer
    stated = reply.pop("reason", None)
    answer.reply = reply
    if stated is not None:
        answer.reason = _parse_reason(stated)
    return answer


def make_garbled_reason(detail: str) -> Reason:
    """Make the reason for a reply that cannot be read. `detail` says what is wrong with it."""
    text = f"The runner's answer cannot be read: {detail}. Run the cell again; if it persists, report the model."
    return Reason(code=ReasonCode.GARBLED, text=text[:2000])


def _parse_reason(stated: object) -> Reason:
    try:
        if not isinstance(stated, dict):
            raise TypeError("a reason is an object")
        text = str(stated["text"])
        return Reason(code=ReasonCode(stated["code"]), text=(text[:1].upper() + text[1:])[:2000])
    except (TypeError, KeyError, ValueError):
        return make_garbled_reason(f"its reason is {stated!r:.200}")


def _make_reason_of_ending(ending: Ending) -> Reason | None:
    codes = {
        "exited": (ReasonCode.CRASHED, "Check the log; another runtime or provider may work."),
        "crashed": (ReasonCode.CRASHED, "Another runtime or provider may work."),
        "timeout": (ReasonCode.TIMEOUT, "Give the cell more time, or a smaller batch or shapes."),
        "flooded": (ReasonCode.FLOODED, "The model or its provider printed too much output; none of it was kept."),
        "out_of_memory": (ReasonCode.OUT_OF_MEMORY, "Give the cell a smaller batch or shapes, or more memory."),
    }
    if ending.kind == "cancelled":
        return CANCELLED
    if ending.kind not in codes:
        return None
    code, advice = codes[ending.kind]
    # the sandbox calls the process "it"
    sentence = ending.describe().replace("It ", "The runner ", 1)
    return Reason(code=code, text=f"{sentence} {advice}"[:2000])
