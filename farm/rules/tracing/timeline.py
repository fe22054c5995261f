"""Reads one inference of a trace as a timeline: what ran when, and what ran inside what.

The trace is ONNX Runtime's profile, Chrome trace JSON (1.15–1.31). A `model_run` event is one inference. Events of the
category `Node` whose names end in `_kernel_time` are operators of the graph; those of control flow contain others. The
file comes from a machine that may send anything, so events of any other shape are ignored.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NotRequired, TypedDict, TypeGuard

RUN_EVENT: Final = "model_run"
SUFFIX: Final = "_kernel_time"
# the runs that a trace pass warms up with
WARM_UP: Final = 3
MAX_NAME: Final = 200


@dataclass(slots=True)
class Span:
    """One execution of a node. `start_us` counts from the beginning of the inference."""

    name: str
    op_type: str
    provider: str
    start_us: float
    duration_us: float
    # without the time of its children
    self_us: float
    # 0 for a node of the main graph, 1 inside control flow, and so on
    depth: int
    # the number of its thread
    lane: int = 0

    @property
    def end_us(self) -> float:
        return self.start_us + self.duration_us


@dataclass(frozen=True, slots=True)
class Timeline:
    """The inference of median length among `runs`: those after the warm-up, or all where there are none after it.

    `number` is its number among all runs, from 1. `spans` are in order of their start, parents first. `in_nodes_us` is
    the time of its nodes, each counted once.
    """

    runs: int
    number: int
    duration_us: float
    spans: tuple[Span, ...]

    @property
    def in_nodes_us(self) -> float:
        return sum(span.self_us for span in self.spans)


class _Event(TypedDict):
    """One event of a Chrome trace; times are microseconds."""

    name: str
    ts: float
    dur: float
    cat: NotRequired[object]
    tid: NotRequired[object]
    args: NotRequired[object]


def parse_timeline(trace: object) -> Timeline | None:
    """Return the timeline of the inference whose length is closest to the median in a parsed trace.

    The first WARM_UP inferences are left out, unless there are no others.
    `trace` is a list of events or a mapping with `traceEvents`. Return None where it has no complete inference.
    """
    events = trace.get("traceEvents") if isinstance(trace, Mapping) else trace
    if not isinstance(events, Sequence):
        return None
    valid = [event for event in events if _is_event(event)]
    runs = sorted((float(e["ts"]), float(e["ts"]) + float(e["dur"])) for e in valid if e["name"] == RUN_EVENT)
    warm = runs[WARM_UP:] or runs
    if not warm:
        return None
    # choose the inference whose length is closest to the median
    middle = median(end - start for start, end in warm)
    start, end = min(warm, key=lambda run: abs(run[1] - run[0] - middle))
    nodes = [e for e in valid if e.get("cat") == "Node" and str(e["name"]).endswith(SUFFIX)]
    inside = sorted(
        (e for e in nodes if start <= float(e["ts"]) and float(e["ts"]) + float(e["dur"]) <= end + 1),
        key=lambda e: (float(e["ts"]), -float(e["dur"])),
    )
    return Timeline(
        runs=len(warm),
        number=runs.index((start, end)) + 1,
        duration_us=end - start,
        spans=tuple(_nest(inside, begin_us=start)),
    )


def _is_event(event: object) -> TypeGuard[_Event]:
    """Whether an event has a name, and a start and a duration that are numbers from 0 to less than 1e15 µs."""
    if not isinstance(event, Mapping) or not isinstance(event.get("name"), str):
        return False
    times = (event.get("ts"), event.get("dur"))
    return all(isinstance(time, int | float) and 0 <= time < 1e15 for time in times)


def _nest(events: Iterable[_Event], *, begin_us: float) -> list[Span]:
    """Return events as spans in order of their start, parents first, whose own time leaves their children out."""
    spans: list[Span] = []
    stacks: dict[str, list[Span]] = {}
    for event in events:
        thread = str(event.get("tid"))
        stack = stacks.setdefault(thread, [])
        start_us, duration_us = float(event["ts"]) - begin_us, float(event["dur"])
        # starts are whole microseconds: a neighbour that starts as this one ends is no child
        while stack and (stack[-1].end_us <= start_us or stack[-1].end_us < start_us + duration_us):
            stack.pop()
        arguments = event.get("args")
        args: Mapping[str, object] = arguments if isinstance(arguments, Mapping) else {}
        span = Span(
            name=str(event["name"]).removesuffix(SUFFIX)[:MAX_NAME],
            op_type=str(args.get("op_name") or "")[:MAX_NAME],
            provider=str(args.get("provider") or "")[:MAX_NAME],
            start_us=start_us,
            duration_us=duration_us,
            self_us=duration_us,
            depth=len(stack),
            lane=list(stacks).index(thread),
        )
        if stack:
            stack[-1].self_us = max(0.0, stack[-1].self_us - duration_us)
        stack.append(span)
        spans.append(span)
    return spans
