"""What `bench` shows while it measures: a bar on a terminal, plain lines elsewhere; always on stderr."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn

from farm.contract.reports import CheckReport, Report, RoundReport, TraceReport
from farm.rules.planning.plans import PlannedBlock


class Follower:
    """Counts processes against those the plan foresees, and says what is being done."""

    def __init__(self, blocks: Sequence[PlannedBlock], *, console: Console, bar: Progress | None) -> None:
        self._console = console
        self._bar = bar
        self._task = bar.add_task("", total=sum(map(_processes, blocks))) if bar else TaskID(0)
        self._cells = len({arm.cell for block in blocks for arm in block.arms})
        self._began = time.monotonic()
        self._done = 0
        self._total = sum(map(_processes, blocks))
        self._block = ""

    def start_block(self, number: int, *, of: int, arms: int) -> None:
        """A block begins."""
        self._block = f"block {number} of {of}"
        self._line(f"{self._block}: {arms} cells")

    def say(self, text: str) -> None:
        """What is being done now."""
        if self._bar:
            self._bar.update(self._task, description=f"{self._block}: {text}{self._left()}")
        elif not text.startswith(("round", "checking", "tracing", "trace", "evaluating")):
            self._line(text)

    def take(self, report: Report) -> None:
        """A report was made: so many processes more are done."""
        self._done += _steps(report)
        if self._bar:
            self._bar.update(self._task, completed=min(self._done, self._total))
        elif isinstance(report, RoundReport):
            self._line(f"{self._block}: round {report.round + 1} measured{self._left()}")

    def _left(self) -> str:
        if self._done < 4:
            return ""
        left_s = (time.monotonic() - self._began) / self._done * max(0, self._total - self._done)
        return f", about {left_s / 60:.0f} min left" if left_s >= 60 else ", under 1 min left"

    def _line(self, text: str) -> None:
        if not self._bar:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def followed(blocks: Sequence[PlannedBlock], *, console: Console) -> Iterator[Follower]:
    """A follower for these blocks, with a bar where there is a terminal."""
    if not console.is_terminal:
        yield Follower(blocks, console=console, bar=None)
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


def _processes(block: PlannedBlock) -> int:
    """A check, a trace and the least number of rounds for every arm."""
    return len(block.arms) * (2 + block.min_rounds)


def _steps(report: Report) -> int:
    if isinstance(report, RoundReport):
        return len(report.samples)
    return int(isinstance(report, CheckReport) or (isinstance(report, TraceReport) and report.trace_round == 0))
