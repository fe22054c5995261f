"""Extracts the timeline of one inference from a raw trace that a node sent. Runs in the child only."""

import json
import zlib
from dataclasses import asdict
from pathlib import Path

from farm.rules.tracing.timeline import parse_timeline
from farm.workshop.child import payloads
from farm.workshop.problems import Problem, answer_problems

GZIP = 16 + zlib.MAX_WBITS
UNREADABLE = "The trace cannot be read."
TOO_LONG = "The trace is too long to be drawn here; download it and open it in Perfetto."


@answer_problems
def write_timeline(payload: payloads.Trace) -> dict[str, object]:
    """Write the timeline of one inference of the payload's trace to `out` as JSON.

    `limit_bytes` limits the unpacked text, `limit_events` its events, and `limit_spans` the spans that are drawn.
    Returns the problem long_trace beyond these, and no_timeline if the trace is unreadable or holds no whole inference.
    """
    events = _read_events(Path(payload["folder"]) / payload["main"], limit_bytes=payload["limit_bytes"])
    if isinstance(events, list) and len(events) > payload["limit_events"]:
        raise Problem("long_trace", TOO_LONG)
    try:
        timeline = parse_timeline(events)
    except (ValueError, OverflowError, RecursionError) as problem:
        raise Problem("no_timeline", UNREADABLE) from problem
    if timeline is None:
        raise Problem("no_timeline", "The trace holds no whole inference.")
    if len(timeline.spans) > payload["limit_spans"]:
        raise Problem("long_trace", TOO_LONG)
    Path(payload["out"]).write_text(json.dumps(asdict(timeline), allow_nan=False))
    return {}


def _read_events(path: Path, *, limit_bytes: int) -> object:
    unpacker = zlib.decompressobj(GZIP)
    try:
        text = unpacker.decompress(path.read_bytes(), limit_bytes)
        if unpacker.unconsumed_tail:
            raise Problem("long_trace", TOO_LONG)
        parsed = json.loads(text)
    except (zlib.error, ValueError, RecursionError) as problem:
        raise Problem("no_timeline", UNREADABLE) from problem
    return parsed.get("traceEvents") if isinstance(parsed, dict) else parsed
