"""Reads a farm's run and its document, and follows it in the terminal, by a bar or in lines."""

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
# without a terminal, an unchanged line is printed again after this long
LINE_EVERY_S = 4.5
# the same while the run waits
WAIT_EVERY_S = 60.0

Show = Callable[["RunProgress"], None]


class RunProgress(NamedTuple):
    """How far a run is: its cells in words, and the `share` of its work that is done, 0–1.

    `minutes_left` counts from the end of the run's wait; None: not known.
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
    def news(self) -> object:
        """The part of the progress that is worth a new line once it changes: a round, a block, an activity."""
        place, _, doing = self.block.partition("; ")
        doing_now = doing if self.is_waiting else tuple(_cut_to_phase(part) for part in doing.split("; "))
        # without the round, which the activity of each node names already
        return self.cells, place.rpartition(", ")[0] if doing else place, doing_now

    @property
    def words(self) -> str:
        """The cells, the block and the minutes left, in one line."""
        parts = [self.cells]
        if self.block:
            parts.append(self.block.removesuffix("."))  # a node's sentence, that goes on here
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


def _cut_to_phase(doing: str) -> str:
    """Cut `vm: round 3: onnxruntime==1.31.1, as uploaded, arm 6` to the part that is the same from arm to arm."""
    return ":".join(doing.split(":")[:2])


def follow_run(client: Client, run_id: str, *, console: Console, timeout_s: float | None = None) -> RunOut:
    """Show how far a run is until it has ended, and return it.

    Raises TimedOut after `timeout_s` seconds, while the run goes on; None waits as long as it takes.
    """
    limit = time.monotonic() + timeout_s if timeout_s is not None else None
    with open_progress(console) as show:
        while True:
            run = client.call(operations.RUN, run=run_id)
            progress = make_progress(run)
            show(progress)
            if progress.is_finished:
                return run
            if limit is not None and time.monotonic() > limit:
                raise TimedOut(
                    f"Run {run_id} is not finished after {timeout_s:.0f} s ({progress.words}); it goes on: "
                    f"`onnxfarm status {run_id}`."
                )
            time.sleep(POLL_S)


def read_document(client: Client, run_id: str) -> Document:
    """Download and parse the bench document of a run. Raises Infrastructure when the farm writes another version."""
    plain = client.call(operations.RESULTS, run=run_id)
    try:
        return Document.model_validate(plain)
    except ValidationError as problem:
        raise Infrastructure(
            f"The farm's results have schema {plain.get('schema')!r} and this client reads {SCHEMA}: "
            "install the farm's version of onnxfarm."
        ) from problem


def format_status(run: RunOut) -> str:
    """Return the word for the run's state that the farm's pages show; for an older farm, the nearest one."""
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
def open_progress(console: Console) -> Iterator[Show]:
    """Yield a function that shows how far a run is: a bar on a terminal, lines elsewhere."""
    if console.is_terminal:
        with _open_bar(console) as show:
            yield show
    else:
        yield make_line_logger(console)


@contextlib.contextmanager
def _open_bar(console: Console) -> Iterator[Show]:
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=1.0)

        def show(standing: RunProgress) -> None:
            # the cells of a block end together, so the bar moves by rounds
            progress.update(task, completed=standing.share, description=standing.words)

        yield show


def make_line_logger(console: Console, *, clock: Callable[[], float] = time.monotonic) -> Show:
    """Make a function that prints how far a run is, if that changed or was not printed for a while."""
    shown_news: object = None
    shown_at = 0.0

    def show(standing: RunProgress) -> None:
        nonlocal shown_news, shown_at
        now = clock()
        every_s = WAIT_EVERY_S if standing.is_waiting else LINE_EVERY_S
        if standing.news != shown_news or now - shown_at > every_s:
            shown_news, shown_at = standing.news, now
            console.print(standing.words, highlight=False, soft_wrap=True)

    return show
