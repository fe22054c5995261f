"""A closer look at one cell: one inference of its trace, and the timings of its launches one after another."""

import json
import zlib
from functools import lru_cache

from farm.accounts.refusals import Missing
from farm.contract.reports import RoundReport
from farm.registry.selectors import stored_path
from farm.rules.judging.summaries import TimingsProblem, unpack_timings
from farm.rules.tracing.timeline import Timeline, timeline
from farm.runs.models import Arm, Report, Run
from farm.runs.selectors.evidence import COUNTED
from farm.runs.selectors.traces import traces_of

# what is unpacked and parsed while a page is waited for; longer traces are for Perfetto
LONGEST_TRACE = 48 * 1024**2
GZIP = 16 + zlib.MAX_WBITS


def timeline_of(run: Run, name: str) -> Timeline | str:
    """The timeline of the cell's first stored trace; else a sentence that says why there is none."""
    trace = traces_of(run, name).first()
    if trace is None:
        return "No trace of this cell is stored."
    return _timeline(trace.sha256)


@lru_cache(maxsize=32)
def _timeline(sha256: str) -> Timeline | str:
    try:
        packed = stored_path(sha256).read_bytes()
        unpacker = zlib.decompressobj(GZIP)
        text = unpacker.decompress(packed, LONGEST_TRACE)
        if unpacker.unconsumed_tail:
            return "The trace is too long to be drawn here; download it and open it in Perfetto."
        return timeline(json.loads(text)) or "The trace holds no whole inference."
    except Missing:
        return "The trace is not stored any more."
    except (zlib.error, ValueError, RecursionError):
        return "The trace cannot be read."


def launches_of(run: Run, name: str) -> list[tuple[int, list[float]]]:
    """Round (from 0) and timings in ms of each launch of the cell, disturbed ones too, as they were taken."""
    arm = Arm.objects.filter(block__run=run, name=name).first()
    if arm is None:
        return []
    rows = Report.objects.filter(attempt__block=arm.block_id, attempt__state__in=COUNTED, kind="round")
    rounds: dict[int, list[float]] = {}
    for body in rows.order_by("attempt__number", "pk").values_list("body", flat=True):
        report = RoundReport.model_validate_json(body)
        for place in report.samples:
            if place.arm == arm.number and place.sample is not None:
                try:
                    rounds[report.round] = unpack_timings(place.sample).tolist()
                except TimingsProblem:
                    continue
    return sorted(rounds.items())
