"""Reads and stores the timelines of raw traces. A `prepare` worker reads one in the workshop once somebody opens it.

A trace comes from a node and is not trusted, so neither web nor gateway parses it. A hint that the worker never got is
sent again while somebody has the page open.
"""

import logging
from datetime import timedelta
from pathlib import Path
from typing import Final

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from pydantic import TypeAdapter

from farm.base.refusals import Refusal
from farm.registry.selectors import find_stored_file
from farm.registry.services.messages import send_hint_on_commit
from farm.registry.work_folders import copy_file, make_work_folder
from farm.rules.tracing.timeline import Timeline
from farm.runs.models import Run, Trace, TraceReading
from farm.runs.selectors.files import traces_of
from farm.runs.selectors.retention import explain_removed_traces
from farm.runs.states import ReadingState
from farm.workshop import orders

log = logging.getLogger(__name__)
READ_TRACE: Final = "runs.read_trace"
NAME: Final = "trace.json.gz"
ASKED_AGAIN_AFTER: Final = timedelta(seconds=60)
MAX_TRIES: Final = 3
WAITS: Final = "Reading the trace; it appears here in a moment."
GONE: Final = "The trace is no longer stored."
LOST: Final = "The farm could not read the trace: its worker stopped. The raw trace can still be downloaded."
BROKEN: Final = "Internal error while reading the trace; see the farm's log."
_TIMELINE: TypeAdapter[Timeline] = TypeAdapter(Timeline)


def find_or_order_timeline(run: Run, name: str) -> Timeline | str:
    """Return the timeline of the cell's first stored trace, and order it if that was not done yet.

    If there is none, return a sentence: WAITS while the trace is being read, or else why it cannot be. An order without
    an answer is sent again after ASKED_AGAIN_AFTER; after MAX_TRIES orders it counts as failed, for good.
    """
    trace = traces_of(run, name).first()
    if trace is None:
        return explain_removed_traces(run) or "No trace of this cell is stored."
    reading = _find_or_order(trace)
    if reading.state == ReadingState.READ:
        return _TIMELINE.validate_json(reading.body)
    return reading.problem if reading.state == ReadingState.FAILED else WAITS


def read_trace(reading_id: int) -> None:
    """Read an ordered trace, and store its timeline or why it cannot be read. Nothing happens if it is not ordered."""
    waiting = TraceReading.objects.filter(pk=reading_id, state=ReadingState.ASKED)
    reading = waiting.select_related("trace").first()
    if reading is None:
        return
    try:
        timeline = _read_timeline(reading.trace)
    except orders.WorkshopError as problem:
        waiting.update(state=ReadingState.FAILED, problem=problem.reason.text[:500])
    except Refusal as refusal:
        waiting.update(state=ReadingState.FAILED, problem=str(refusal)[:500])
    except Exception:
        # a bug of the farm: the reader is told, instead of waiting for ever, and the log has the traceback
        log.exception("reading %s broke", reading.trace)
        waiting.update(state=ReadingState.FAILED, problem=BROKEN)
    else:
        waiting.update(state=ReadingState.READ, body=_TIMELINE.dump_json(timeline).decode())


def _find_or_order(trace: Trace) -> TraceReading:
    """Find the trace's reading; order it if it is new, or if its worker seems to have been lost."""
    with transaction.atomic():
        reading, is_new = TraceReading.objects.get_or_create(trace=trace)
        waiting = TraceReading.objects.filter(pk=reading.pk, state=ReadingState.ASKED)
        overdue = waiting.filter(asked_at__lt=timezone.now() - ASKED_AGAIN_AFTER)
        if overdue.filter(tries__gte=MAX_TRIES).update(state=ReadingState.FAILED, problem=LOST):
            reading.refresh_from_db()
            return reading
        due = waiting if is_new else overdue
        if due.update(asked_at=timezone.now(), tries=F("tries") + 1):
            send_hint_on_commit(READ_TRACE, reading.pk)
    return reading


def _read_timeline(trace: Trace) -> Timeline:
    try:
        stored: Path = find_stored_file(trace.sha256)
    except Refusal as missing:
        raise type(missing)(GONE) from missing
    with make_work_folder() as folder:
        for name in ("bundle", "out"):
            (folder / name).mkdir()
        copy_file(stored, folder / "bundle" / NAME)
        return orders.read_timeline(folder / "bundle", NAME, out_dir=folder / "out")
