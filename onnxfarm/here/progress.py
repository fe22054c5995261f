"""What `bench` shows while it measures: a bar on a terminal, plain lines elsewhere; always on stderr.

Where there is no terminal something is said at least every SAY_EVERY_S seconds, whatever is being done.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn

from farm.contract.reports import CheckReport, Report, RoundReport, TraceReport
from farm.rules.cells.numbers import counted
from farm.rules.planning.plans import PlannedBlock

SAY_EVERY_S = 4.0
# the pace is that of so many rounds at the end
PACE_ROUNDS = 5
Clock = Callable[[], float]


class Estimate:
    """How long the blocks will take: as planned at first, at the pace of the rounds so far once there are two."""

    def __init__(self, blocks: Sequence[PlannedBlock], *, clock: Clock = time.monotonic) -> None:
        self._blocks = blocks
        self._clock = clock
        self._number = 0
        self._began: float | None = None
        self._rounds: list[float] = []

    def start_block(self, number: int) -> None:
        """The block with this number, from 1, is next; its time counts from `begin` on."""
        self._number, self._began, self._rounds = number, None, []

    def begin(self) -> None:
        """The block's first check begins."""
        self._began = self._clock()

    def note_round(self) -> None:
        """A round was measured."""
        self._rounds.append(self._clock())

    @property
    def left_s(self) -> float | None:
        """Seconds until everything is measured; None while nobody can tell."""
        if not 0 < self._number <= len(self._blocks):
            return None
        block, later = self._blocks[self._number - 1], self._blocks[self._number :]
        round_s = self._round_s()
        if round_s is None:
            left_s = 60.0 * block.minutes - (self._clock() - self._began if self._began is not None else 0.0)
            # neither planned nor measured: better said than guessed
            return None if left_s <= 0 else left_s + 60.0 * sum(one.minutes for one in later)
        missing = max(0, block.min_rounds - len(self._rounds))
        left_s = max(0.0, missing * round_s - min(round_s, self._clock() - self._rounds[-1]))
        return left_s + 60.0 * sum(one.minutes for one in later) * (round_s / block.round_s if block.round_s else 1.0)

    def _round_s(self) -> float | None:
        last = self._rounds[-PACE_ROUNDS:]
        return (last[-1] - last[0]) / (len(last) - 1) if len(last) > 1 else None


class Follower:
    """Counts processes against those the plan foresees, and says what is being done."""

    def __init__(
        self,
        blocks: Sequence[PlannedBlock],
        *,
        console: Console,
        bar: Progress | None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._console = console
        self._bar = bar
        self._clock = clock
        self._task = bar.add_task("", total=sum(map(_processes, blocks))) if bar else TaskID(0)
        self._estimate = Estimate(blocks, clock=clock)
        self._of = len(blocks)
        self._done = 0
        self._total = sum(map(_processes, blocks))
        self._block = ""
        self._doing, self._doing_since = "", clock()
        self._said_at = clock()

    def start_block(self, block: PlannedBlock, *, number: int) -> None:
        """A block begins."""
        self._block = f"block {number} of {self._of}"
        self._estimate.start_block(number)
        self._line(f"{self._block}: {counted(len(block.arms), 'cell')}{self._left()}")

    def begin(self) -> None:
        """The machine is this block's from now on."""
        self._estimate.begin()

    def wait(self, sentence: str) -> None:
        """Another measurement has the machine; who, since when and what one can do."""
        if self._bar:
            self.say(f"waiting. {sentence}")
        else:
            self._line(f"{self._block}: waiting. {sentence}")

    def say(self, text: str) -> None:
        """What is being done now."""
        self._doing, self._doing_since = text, self._clock()
        if text.startswith("checking"):
            self._estimate.begin()
        if self._bar:
            self._bar.update(self._task, description=f"{self._block}: {text}{self._left()}")
        elif not text.startswith(("round", "checking", "tracing", "trace", "evaluating")):
            self._line(text)

    def say_again(self) -> None:
        """What is still being done, where nothing was said for a while."""
        now = self._clock()
        if self._bar or not self._doing or now - self._said_at < SAY_EVERY_S:
            return
        self._line(f"{self._block}: {self._doing}, for {now - self._doing_since:.0f} s{self._left()}")

    def take(self, report: Report) -> None:
        """A report was made: so many processes more are done."""
        self._done += _steps(report)
        if isinstance(report, RoundReport):
            self._estimate.note_round()
        if self._bar:
            self._bar.update(self._task, completed=min(self._done, self._total))
        elif isinstance(report, RoundReport):
            self._line(f"{self._block}: round {report.round + 1} measured{self._left()}")

    def _left(self) -> str:
        left_s = self._estimate.left_s
        if left_s is None:
            return ""
        if left_s >= 90:
            return f", about {left_s / 60:.0f} min left"
        return f", about {max(5, 5 * round(left_s / 5)):.0f} s left"

    def _line(self, text: str) -> None:
        self._said_at = self._clock()
        if not self._bar:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def followed(blocks: Sequence[PlannedBlock], *, console: Console) -> Iterator[Follower]:
    """A follower for these blocks, with a bar where there is a terminal."""
    if not console.is_terminal:
        follower = Follower(blocks, console=console, bar=None)
        with _saying_again(follower):
            yield follower
        return
    columns = (
        SpinnerColumn(),
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield Follower(blocks, console=console, bar=bar)


@contextmanager
def _saying_again(follower: Follower) -> Iterator[None]:
    over = threading.Event()

    def keep_saying() -> None:
        while not over.wait(1.0):
            follower.say_again()

    thread = threading.Thread(target=keep_saying, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _processes(block: PlannedBlock) -> int:
    """A check, a trace and the least number of rounds for every arm."""
    return len(block.arms) * (2 + block.min_rounds)


def _steps(report: Report) -> int:
    if isinstance(report, RoundReport):
        return len(report.samples)
    return int(isinstance(report, CheckReport) or (isinstance(report, TraceReport) and report.trace_round == 0))
