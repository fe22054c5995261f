"""Shows the progress of measurements on this machine: a bar on a terminal, lines elsewhere.

A line is printed when something changes, and after REPEAT_EVERY_S seconds without a change.
"""

import re
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

REPEAT_EVERY_S = 4.0
# seconds between repeated lines while another measurement has the machine
WAIT_EVERY_S = 60.0
WAITING = "waiting. "
# the number of processes of an arm before its rounds: a check and a first trace
CHECKS = 2
# the first words of activities of measuring, which get no line of their own
MEASURING = ("checking", "tracing", "trace", "round", "evaluating")
Clock = Callable[[], float]


class Estimate:
    """Estimates how long it will take until all blocks are measured, from the plan and from the pace so far."""

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
        """Go on to the block with this number, from 1. Its time counts from `start_clock` on, after its preparation."""
        if self._number:
            # the pace of the last block is the best guess for the later blocks
            last = self._measure_progress()
            self._ended = [replace(last, ends=[last.rounds], after_s=0.0, since_s=0.0)]
        self._number, self._began, self._rounds = number, None, []
        self._checks, self._checked_s = 0, 0.0

    def start_clock(self) -> None:
        """Note that measuring of the block begins now. Later calls change nothing."""
        if self._began is None:
            self._began = self._clock()

    @property
    def has_begun(self) -> bool:
        """Whether measuring of the block has begun. Preparing, installing and waiting come before that."""
        return self._began is not None

    def count_check(self) -> None:
        """Count a check or first trace of an arm as done now, if the clock was started; otherwise do nothing."""
        if self._began is not None:
            self._checks, self._checked_s = self._checks + 1, self._clock() - self._began

    def count_round(self, *, is_disturbed: bool = False) -> None:
        """Count a round as measured now. `is_disturbed`: other programs disturbed one of its launches."""
        self._rounds.append(self._clock())
        self._is_disturbed = is_disturbed

    @property
    def is_slowed(self) -> bool:
        """Whether other programs disturbed the last round, and rounds take much longer than usual."""
        return self._is_disturbed and self._number > 0 and self._measure_progress().is_slowed()

    @property
    def remaining_s(self) -> float | None:
        """The seconds until everything is measured; None before the first block, or if it cannot be estimated."""
        if not 0 < self._number <= len(self._blocks):
            return None
        later = [time_left.BlockProgress.from_plan(block) for block in self._blocks[self._number :]]
        return time_left.seconds_left([*self._ended, self._measure_progress(), *later])

    def _measure_progress(self) -> time_left.BlockProgress:
        now, block = self._clock(), self._blocks[self._number - 1]
        checked = min(1.0, self._checks / (CHECKS * len(block.arms)))
        # the first round begins at the end of the last check or trace
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
    """Shows what is being done, and how many of the planned processes are done. `bar` None: prints lines."""

    def __init__(
        self, blocks: Sequence[PlannedBlock], *, console: Console, bar: Progress | None, clock: Clock = time.monotonic
    ) -> None:
        self._console = console
        self._bar = bar
        self._clock = clock
        # each arm has processes for its checks, and one per round
        self._total = sum(len(block.arms) * (CHECKS + block.min_rounds) for block in blocks)
        self._task = bar.add_task("", total=self._total) if bar else TaskID(0)
        self._estimate = Estimate(blocks, clock=clock)
        self._block_count = len(blocks)
        self._done = 0
        self._block = ""
        self._cells: dict[int, str] = {}
        self._doing, self._doing_since = "", clock()
        self._shown_at = clock()

    def start_block(self, block: PlannedBlock, *, number: int) -> None:
        """Note that a block begins, and print a line about it; a bar shows it with the next activity.

        `number` counts from 1.
        """
        self._block = f"block {number} of {self._block_count}"
        self._cells = {arm.arm: arm.id for arm in block.arms}
        self._estimate.start_block(number)
        self._set_activity("preparing the inputs")
        self._print_line(f"{self._block}: {counted(len(block.arms), 'cell')}{self._describe_remaining()}")

    def clear_activity(self) -> None:
        self._set_activity("")

    def show_wait(self, sentence: str) -> None:
        """Show a sentence about the measurement that this one waits for, unless the same sentence is shown already."""
        text = f"{WAITING}{sentence}"
        if text == self._doing:
            return
        self._set_activity(text)
        self._show_on_bar()
        self._print_line(f"{self._block}: {text}")

    def show_activity(self, text: str) -> None:
        """Show what is being done now. In the text, an arm's number becomes its cell's id; an unknown one is removed.

        An activity of measuring, such as a round, starts the estimate's clock, and is shown on a bar only.
        """

        def name_cell(arm: re.Match[str]) -> str:
            cell = self._cells.get(int(arm[1]))
            return f", {cell}" if cell else ""

        text = SAID_ARM.sub(name_cell, text)
        self._set_activity(text)
        is_measuring = text.startswith(MEASURING)
        if is_measuring:
            self._estimate.start_clock()
        self._show_on_bar()
        if not is_measuring:
            self._print_line(text)

    def repeat_activity(self) -> None:
        """Show again what is being done, for how long, and the time left, if nothing was shown for REPEAT_EVERY_S.

        While lines show a wait, the limit is WAIT_EVERY_S. Without an activity, nothing is shown.
        """
        now = self._clock()
        is_waiting = self._doing.startswith(WAITING) and not self._bar
        if not self._doing or now - self._shown_at < (WAIT_EVERY_S if is_waiting else REPEAT_EVERY_S):
            return
        for_s = f", for {now - self._doing_since:.0f} s"
        self._show_on_bar(for_s)
        self._print_line(f"{self._block}: {self._doing.removesuffix('.')}{for_s}{self._describe_remaining()}")

    def count_report(self, report: Report) -> None:
        """Count the processes of a check, first trace or round as done; other reports count nothing.

        Then update the bar; without one, print a line for a round only.
        """
        if isinstance(report, CheckReport) or (isinstance(report, TraceReport) and report.trace_round == 0):
            self._done += 1
            self._estimate.count_check()
        if isinstance(report, RoundReport):
            self._done += len(report.samples)
            samples = (place.sample for place in report.samples)
            self._estimate.count_round(is_disturbed=any(sample and sample.is_disturbed for sample in samples))
        if self._bar:
            self._bar.update(self._task, completed=min(self._done, self._total))
        elif isinstance(report, RoundReport):
            self._print_line(f"{self._block}: round {report.round + 1} measured{self._describe_remaining()}")

    def _set_activity(self, text: str) -> None:
        self._doing, self._doing_since = text, self._clock()

    def _describe_remaining(self) -> str:
        remaining_s = self._estimate.remaining_s
        if remaining_s is None:
            return ""
        state = {"is_measuring": self._estimate.has_begun, "is_slowed": self._estimate.is_slowed}
        return f", {time_left.describe_time_left(remaining_s, **state)}"

    def _show_on_bar(self, for_s: str = "") -> None:
        """Show on the bar, if there is one, what is being done and how long it will take."""
        if self._bar:
            self._shown_at = self._clock()
            doing = self._doing.removesuffix(".")
            self._bar.update(self._task, description=f"{self._block}: {doing}{for_s}{self._describe_remaining()}")

    def _print_line(self, text: str) -> None:
        if not self._bar:
            self._shown_at = self._clock()
            print_lines(text, console=self._console)


@contextmanager
def follow_blocks(blocks: Sequence[PlannedBlock], *, console: Console) -> Iterator[Follower]:
    """Yield a follower for these blocks: a bar on a terminal, else lines. It repeats an unchanged activity."""
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
        with _call_every_second(follower.repeat_activity):
            yield follower


@contextmanager
def print_periodically(activity: str, *, console: Console, every_s: float = REPEAT_EVERY_S) -> Iterator[None]:
    """Print `activity` with its duration every `every_s` seconds until the `with` ends; nothing if it ends earlier."""
    began = printed_at = time.monotonic()

    def print_again() -> None:
        nonlocal printed_at
        now = time.monotonic()
        if now - printed_at >= every_s:
            printed_at = now
            print_lines(f"{activity}, for {now - began:.0f} s", console=console)

    with _call_every_second(print_again):
        yield


@contextmanager
def _call_every_second(function: Callable[[], None]) -> Iterator[None]:
    """Call a function every second in another thread, until the `with` ends."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(1.0):
            function()

    thread = threading.Thread(target=repeat, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
