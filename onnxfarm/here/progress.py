"""Shows the progress of measurements on this machine: a bar on a terminal, lines elsewhere; always on stderr.

A line is printed when something changed, and after SAY_EVERY_S seconds without a change.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import pairwise

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn

from farm.contract.blocks import SAID_ARM
from farm.contract.reports import CheckReport, Report, RoundReport, TraceReport
from farm.rules.planning import time_left
from farm.rules.planning.plans import PlannedBlock
from farm.rules.wording.numbers import counted
from onnxfarm.outputs import print_lines

SAY_EVERY_S = 4.0
# for lines while another measurement has the machine
WAIT_EVERY_S = 60.0
WAITING = "waiting. "
# processes of an arm before its rounds: a check and a first trace
CHECKS = 2
# activities of a block that is being measured, which get no line of their own
MEASURING = ("checking", "tracing", "trace", "round", "evaluating")
Clock = Callable[[], float]


class Estimate:
    """Estimates the time until all blocks are measured, by `farm.rules.planning.time_left`."""

    def __init__(self, blocks: Sequence[PlannedBlock], *, clock: Clock = time.monotonic) -> None:
        self._blocks = blocks
        self._clock = clock
        self._number = 0
        self._began: float | None = None
        self._rounds: list[float] = []
        self._checks, self._checked_s = 0, 0.0
        self._ended: list[time_left.BlockProgress] = []
        self._is_disturbed = False

    def start_block(self, number: int) -> None:
        """Start the block with this number, from 1. Its own time counts from `begin` on."""
        if self._number:
            # the block before it is done, and its pace tells that of the later ones
            last = self._measure_progress()
            self._ended = [replace(last, ends=[last.rounds], after_s=0.0, since_s=0.0)]
        self._number, self._began, self._rounds = number, None, []
        self._checks, self._checked_s = 0, 0.0

    def begin(self) -> None:
        if self._began is None:
            self._began = self._clock()

    @property
    def has_begun(self) -> bool:
        """Whether the block is being measured. Waiting, installing and preparing come before that."""
        return self._began is not None

    def note_check(self) -> None:
        if self._began is not None:
            self._checks, self._checked_s = self._checks + 1, self._clock() - self._began

    def note_round(self, *, is_disturbed: bool = False) -> None:
        """Note that a round was measured; `is_disturbed`: other programs disturbed launches of it."""
        self._rounds.append(self._clock())
        self._is_disturbed = is_disturbed

    @property
    def is_slowed(self) -> bool:
        return self._is_disturbed and self._number > 0 and self._measure_progress().is_slowed()

    @property
    def left_s(self) -> float | None:
        """Seconds until everything is measured; None while nobody can tell."""
        if not 0 < self._number <= len(self._blocks):
            return None
        later = [time_left.BlockProgress.from_plan(block) for block in self._blocks[self._number :]]
        return time_left.seconds_left([*self._ended, self._measure_progress(), *later])

    def _measure_progress(self) -> time_left.BlockProgress:
        now, block = self._clock(), self._blocks[self._number - 1]
        checked = min(1.0, self._checks / (CHECKS * len(block.arms)))
        # the first round takes from the last check or trace on
        before = [] if self._began is None or checked < 1 else [self._began + self._checked_s]
        moments = [*before, *self._rounds]
        return replace(
            time_left.BlockProgress.from_plan(block, rounds=len(self._rounds)),
            checked=checked,
            checked_s=self._checked_s,
            begun_s=None if self._began is None else now - self._began,
            rounds_s=[later - earlier for earlier, later in pairwise(moments)],
            since_s=now - moments[-1] if moments else 0.0,
        )


class Follower:
    """Shows what is being done, and counts processes against those that the plan expects."""

    def __init__(
        self, blocks: Sequence[PlannedBlock], *, console: Console, bar: Progress | None, clock: Clock = time.monotonic
    ) -> None:
        self._console = console
        self._bar = bar
        self._clock = clock
        # of each arm: its checks, and a process a round
        self._total = sum(len(block.arms) * (CHECKS + block.min_rounds) for block in blocks)
        self._task = bar.add_task("", total=self._total) if bar else TaskID(0)
        self._estimate = Estimate(blocks, clock=clock)
        self._block_count = len(blocks)
        self._done = 0
        self._block = ""
        self._cells: dict[int, str] = {}
        self._doing, self._doing_since = "", clock()
        self._said_at = clock()

    def start_block(self, block: PlannedBlock, *, number: int) -> None:
        """Show that a block begins, with this number, from 1."""
        self._block = f"block {number} of {self._block_count}"
        self._cells = {arm.arm: arm.id for arm in block.arms}
        self._estimate.start_block(number)
        self._set_activity("preparing the inputs")
        self._print_line(f"{self._block}: {counted(len(block.arms), 'cell')}{self._describe_left()}")

    def begin(self) -> None:
        self._set_activity("")

    def show_wait(self, sentence: str) -> None:
        """Show a sentence about who has the machine, unless it is shown already."""
        text = f"{WAITING}{sentence}"
        if text == self._doing:
            return
        self._set_activity(text)
        self._show_on_bar()
        self._print_line(f"{self._block}: {text}")

    def say(self, text: str) -> None:
        """Show what is being done now, in words. An arm in them is replaced by the id of its cell."""
        text = SAID_ARM.sub(lambda arm: f", {self._cells[int(arm[1])]}" if int(arm[1]) in self._cells else "", text)
        self._set_activity(text)
        is_measuring = text.startswith(MEASURING)
        if is_measuring:
            self._estimate.begin()
        self._show_on_bar()
        if not is_measuring:
            self._print_line(text)

    def repeat_activity(self) -> None:
        """Show again what is being done, for how long, and the time left, if nothing was shown for a while."""
        now = self._clock()
        is_waiting = self._doing.startswith(WAITING) and not self._bar
        if not self._doing or now - self._said_at < (WAIT_EVERY_S if is_waiting else SAY_EVERY_S):
            return
        for_s = f", for {now - self._doing_since:.0f} s"
        self._show_on_bar(for_s)
        self._print_line(f"{self._block}: {self._doing.removesuffix('.')}{for_s}{self._describe_left()}")

    def count_report(self, report: Report) -> None:
        """Count the processes of a report as done, and show how far the block is."""
        if isinstance(report, CheckReport) or (isinstance(report, TraceReport) and report.trace_round == 0):
            self._done += 1
            self._estimate.note_check()
        if isinstance(report, RoundReport):
            self._done += len(report.samples)
            samples = (place.sample for place in report.samples)
            self._estimate.note_round(is_disturbed=any(sample and sample.is_disturbed for sample in samples))
        if self._bar:
            self._bar.update(self._task, completed=min(self._done, self._total))
        elif isinstance(report, RoundReport):
            self._print_line(f"{self._block}: round {report.round + 1} measured{self._describe_left()}")

    def _set_activity(self, text: str) -> None:
        self._doing, self._doing_since = text, self._clock()

    def _describe_left(self) -> str:
        left_s = self._estimate.left_s
        if left_s is None:
            return ""
        state = {"is_measuring": self._estimate.has_begun, "is_slowed": self._estimate.is_slowed}
        return f", {time_left.describe_time_left(left_s, **state)}"

    def _show_on_bar(self, for_s: str = "") -> None:
        """Show on the bar, if there is one, what is being done and how long it will take."""
        if self._bar:
            self._said_at = self._clock()
            doing = self._doing.removesuffix(".")
            self._bar.update(self._task, description=f"{self._block}: {doing}{for_s}{self._describe_left()}")

    def _print_line(self, text: str) -> None:
        if not self._bar:
            self._said_at = self._clock()
            print_lines(text, console=self._console)


@contextmanager
def follow_blocks(blocks: Sequence[PlannedBlock], *, console: Console) -> Iterator[Follower]:
    """Yield a follower for these blocks, with a bar where there is a terminal, and plain lines elsewhere."""
    columns = (
        SpinnerColumn(),
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
    )
    progress = Progress(*columns, console=console, transient=True) if console.is_terminal else nullcontext()
    with progress as bar:
        follower = Follower(blocks, console=console, bar=bar)
        with _repeat_every_second(follower.repeat_activity):
            yield follower


@contextmanager
def report_meanwhile(activity: str, *, console: Console, every_s: float = SAY_EVERY_S) -> Iterator[None]:
    """Print `activity` every `every_s` seconds while the `with` lasts, with how long it has taken."""
    began = said_at = time.monotonic()

    def say_again() -> None:
        nonlocal said_at
        now = time.monotonic()
        if now - said_at >= every_s:
            said_at = now
            print_lines(f"{activity}, for {now - began:.0f} s", console=console)

    with _repeat_every_second(say_again):
        yield


@contextmanager
def _repeat_every_second(say_again: Callable[[], None]) -> Iterator[None]:
    ended = threading.Event()

    def remind() -> None:
        while not ended.wait(1.0):
            say_again()

    thread = threading.Thread(target=remind, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
