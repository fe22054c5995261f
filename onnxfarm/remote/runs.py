"""Reads a farm's run and its results, and shows its progress in the terminal: a bar, or lines if it is no terminal."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from farm.contract.api.runs import RunOut
from farm.contract.document import SCHEMA, Document
from farm.rules.planning.time_left import describe_time_left
from farm.rules.presenting.cell_counts import CellCounts
from onnxfarm.problems import Infrastructure, TimedOut
from onnxfarm.remote import operations
from onnxfarm.remote.client import Client

POLL_S = 0.7
# seconds after which an unchanged line is printed again: while the run is measured, and while it waits
LINE_EVERY_S, WAIT_EVERY_S = 4.5, 60.0

ShowProgress = Callable[["RunProgress"], None]


class RunProgress(NamedTuple):
    """The progress of a run. `cells`: how many cells have ended, in words. `share`: the done part of its work, 0 to 1.

    `block`: what its nodes are doing, in words; may be empty. `minutes_left` counts from the end of the run's wait.
    `begins_in_minutes`: until the runs ahead of it end. `begins_in_minutes_at_least`: it begins no earlier, because
    another program has the machine. Each of the three is None if unknown. `is_slowed`: other programs on the nodes
    make the run take longer.
    """

    cells: str
    share: float
    block: str
    minutes_left: float | None
    is_finished: bool
    is_waiting: bool = False
    begins_in_minutes: float | None = None
    begins_in_minutes_at_least: float | None = None
    is_slowed: bool = False

    @property
    def line_key(self) -> object:
        """The value for which a new line is printed when it changes.

        It consists of the cells, the block and the activity with its round, but not of the time left.
        """
        place, _, doing = self.block.partition("; ")
        # keep `vm: round 3` of `vm: round 3: onnxruntime==1.31.1, as uploaded, arm 6`, because the arm changes often
        phases = tuple(":".join(part.split(":")[:2]) for part in doing.split("; "))
        # leave out the block's round, which the activity of each node names already
        return self.cells, place.rpartition(", ")[0] if doing else place, doing if self.is_waiting else phases

    @property
    def words(self) -> str:
        """The cells, what the nodes are doing and the time left, as one line.

        The time left is left out if it is unknown, or if the run has ended.
        """
        parts = [self.cells]
        if self.block:
            # a node's sentence may end with a full stop, and the line continues
            parts.append(self.block.removesuffix("."))
        if self.minutes_left is not None and not self.is_finished:
            begins_in, begins_at_least = self.begins_in_minutes, self.begins_in_minutes_at_least
            time_left = describe_time_left(
                60.0 * self.minutes_left,
                is_measuring=not self.is_waiting,
                begins_s=None if begins_in is None else 60.0 * begins_in,
                least_s=None if begins_at_least is None else 60.0 * begins_at_least,
                is_slowed=self.is_slowed,
            )
            parts.append(time_left)
        return ", ".join(parts)


def follow_run(client: Client, run_id: str, *, console: Console, timeout_s: float | None = None) -> RunOut:
    """Show the progress of a run until it has ended, whatever its outcome, and return the run.

    Raises TimedOut after `timeout_s` seconds, but does not stop the run; None: no limit.
    """
    deadline = time.monotonic() + timeout_s if timeout_s is not None else None
    with open_progress(console) as show:
        while True:
            run = client.call(operations.RUN, run=run_id)
            progress = make_progress(run)
            show(progress)
            if progress.is_finished:
                return run
            if deadline is not None and time.monotonic() > deadline:
                raise TimedOut(
                    f"Run {run_id} is not finished after {timeout_s:.0f} s ({progress.words}); it goes on: "
                    f"`onnxfarm status {run_id}`."
                )
            time.sleep(POLL_S)


def read_document(client: Client, run_id: str) -> Document:
    """Download the bench document of a run. Raises Infrastructure if it does not fit this version's schema."""
    plain = client.call(operations.RESULTS, run=run_id)
    try:
        return Document.model_validate(plain)
    except ValidationError as problem:
        raise Infrastructure(
            f"The farm's results have schema {plain.get('schema')!r} and this client reads {SCHEMA}: "
            "install the farm's version of onnxfarm."
        ) from problem


def format_status(run: RunOut) -> str:
    """Return the word that the farm's pages show for the run's state; of an older farm, its outcome or plain state."""
    return run.status or run.outcome or run.state


def make_progress(run: RunOut) -> RunProgress:
    """Make the progress of a run out of the API's answer."""
    progress = run.progress
    return RunProgress(
        cells=CellCounts(progress.cells).words,
        share=progress.share,
        block=progress.block,
        minutes_left=progress.minutes_left,
        is_finished=run.state == "finished",
        is_waiting=bool(progress.waiting),
        begins_in_minutes=progress.begins_in_minutes,
        begins_in_minutes_at_least=progress.begins_in_minutes_at_least,
        is_slowed=progress.is_slowed,
    )


@contextlib.contextmanager
def open_progress(console: Console) -> Iterator[ShowProgress]:
    """Yield a function that shows a run's progress: as a bar on a terminal, as lines elsewhere."""
    if console.is_terminal:
        with _open_bar(console) as show:
            yield show
    else:
        yield make_line_logger(console)


@contextlib.contextmanager
def _open_bar(console: Console) -> Iterator[ShowProgress]:
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=1.0)

        def show(run_progress: RunProgress) -> None:
            # the cells of a block end together, so the bar moves by rounds
            progress.update(task, completed=run_progress.share, description=run_progress.words)

        yield show


def make_line_logger(console: Console, *, clock: Callable[[], float] = time.monotonic) -> ShowProgress:
    """Make a function that prints a run's progress if its `line_key` changed.

    An unchanged line is printed again after LINE_EVERY_S seconds, or WAIT_EVERY_S while the run waits.
    """
    shown_key: object = None
    shown_at = 0.0

    def show(run_progress: RunProgress) -> None:
        nonlocal shown_key, shown_at
        now = clock()
        every_s = WAIT_EVERY_S if run_progress.is_waiting else LINE_EVERY_S
        if run_progress.line_key != shown_key or now - shown_at > every_s:
            shown_key, shown_at = run_progress.line_key, now
            console.print(run_progress.words, highlight=False, soft_wrap=True)

    return show
