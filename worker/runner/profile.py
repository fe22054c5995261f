"""ONNX Runtime's profile (Chrome-trace JSON, 1.15–1.31), summed up per executed node.

MEASURING.md, "What really ran": node events have category `Node` and names ending in `_kernel_time`; up to 1.20 there
are fence events too; values of `args` are strings; events of control-flow nodes include their children.

From 1.28 on, where the provider allocates from an arena, an event also says what the arena had in use when the node
ended, and how much more than when it began (`mem_requested_in_use_delta`, as the kernel asked for it). The first
inference of given shapes tells that node by node; later ones allocate everything between nodes in one piece, at once.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from statistics import median_grouped
from typing import TypedDict

NODE_SUFFIX = "_kernel_time"
RUN_EVENT = "model_run"
# the profiler stops at this many events
MAX_EVENTS = 1_000_000
# what a node asked of the arena and had not given back when it ended
MEMORY = "mem_requested_in_use_delta"
MAX_BYTES = 1 << 50
# executed nodes sent back; a model with more keeps the slowest ones and one sum of the others
MAX_NODES = 20_000

# what identifies an executed node: names of its parents, its own name, operator, provider, index in its graph
Key = tuple[tuple[str, ...], str, str, str, int]


class TraceEvent(TypedDict, total=False):
    """What is read of one event of the profile; times in µs."""

    name: str
    cat: str
    ts: int
    dur: int
    tid: int
    args: dict[str, str]


@dataclass
class Total:
    """One executed node: its time in µs in each run that it took part in, children excluded, and its calls in all.

    `memory_bytes`: the most that one call asked of the arena and kept, in any run; None where the profile says nothing.
    """

    by_run: dict[int, int] = field(default_factory=dict)
    calls: int = 0
    memory_bytes: int | None = None

    def time_us(self, runs: int) -> float:
        """The median over all runs: a mean would carry every time that something else took the processor away."""
        spent = list(self.by_run.values())
        return median_us([*spent, *[0] * (runs - len(spent))])


@dataclass
class _Event:
    start_us: int
    end_us: int
    name: str
    key: Key
    memory_bytes: int | None = None
    inner_us: int = 0

    @property
    def self_us(self) -> int:
        return max(0, self.end_us - self.start_us - self.inner_us)


@dataclass
class Summary:
    """What `runs` runs took: `run_us` the median of whole runs, between whose nodes there is time too."""

    runs: int = 0
    run_us: float = 0.0
    nodes: dict[Key, Total] = field(default_factory=dict)
    has_overflowed: bool = False


def summarise(events: list[TraceEvent], *, skip_runs: int, cold_runs: Collection[int] = ()) -> Summary:
    """Node events of the runs after the first `skip_runs` ones (they warm up), by node and run.

    `cold_runs`: places of further runs that do not count, from the first of all. Memory is that of all other runs: the
    first ones tell it, and how many there are before does not change it.
    A run cut short by the profiler's limit has fewer events than the others and is left out.
    """
    runs = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("name") == RUN_EVENT)
    spans = [span for place, span in enumerate(runs) if place not in cold_runs]
    begun = sum(place not in cold_runs for place in range(min(skip_runs, len(runs))))
    per_run = _by_run(events, spans)
    has_overflowed = len(events) >= MAX_EVENTS
    full = max((len(run) for run in per_run), default=0)
    counted = [at for at in range(begun, len(spans)) if not has_overflowed or len(per_run[at]) == full]
    whole_us = median_us([spans[at][1] - spans[at][0] for at in counted]) if counted else 0.0
    summary = Summary(runs=len(counted), run_us=whole_us, has_overflowed=has_overflowed)
    known: dict[Key, int] = {}
    for at, run in enumerate(per_run):
        is_counted = at in counted
        for event in _executed(run):
            if event.memory_bytes is not None:
                known[event.key] = max(known.get(event.key, 0), event.memory_bytes)
            if is_counted:
                total = summary.nodes.setdefault(event.key, Total())
                total.by_run[at] = total.by_run.get(at, 0) + event.self_us
                total.calls += 1
    for key, total in summary.nodes.items():
        total.memory_bytes = known.get(key)
    return summary


def _by_run(events: list[TraceEvent], spans: Sequence[tuple[int, int]]) -> list[list[TraceEvent]]:
    """The node events within each of these stretches of time, in order of their start, parents before children."""
    per_run: list[list[TraceEvent]] = [[] for _ in spans]
    nodes = [e for e in events if e.get("cat") == "Node" and str(e.get("name", "")).endswith(NODE_SUFFIX)]
    nodes.sort(key=lambda e: (int(e["ts"]), -int(e["dur"])))
    at = 0
    for event in nodes:
        while at < len(spans) and int(event["ts"]) > spans[at][1]:
            at += 1
        if at < len(spans) and int(event["ts"]) >= spans[at][0]:
            per_run[at].append(event)
    return per_run


def median_us(spent: Sequence[int]) -> float:
    """The median of times that were cut to whole µs: among equal ones it stands where the middle one would.

    Without that, a node of 0.4 µs would take none: `statistics.median_grouped` has the formula.
    """
    return max(0.0, median_grouped(spent))


def make_rows(summary: Summary) -> list[dict[str, object]]:
    """One row an executed node with its time in a run, slowest first; at most MAX_NODES and one row of the rest."""
    ordered = sorted(
        ((key, total, total.time_us(summary.runs)) for key, total in summary.nodes.items()), key=lambda item: -item[2]
    )
    rows: list[dict[str, object]] = [
        {
            "path": list(key[0]),
            "name": key[1],
            "op_type": key[2],
            "provider": key[3],
            "index": key[4],
            "time_us": time_us,
            "calls": total.calls,
            "memory_bytes": total.memory_bytes,
        }
        for key, total, time_us in ordered[:MAX_NODES]
    ]
    rest: dict[str, float] = {}
    for key, _, time_us in ordered[MAX_NODES:]:
        rest[key[3]] = rest.get(key[3], 0.0) + time_us
    rows += [
        {"path": [], "name": "", "op_type": "", "provider": provider, "index": -1, "time_us": spent, "calls": 1}
        for provider, spent in rest.items()
    ]
    return rows


def _executed(run: list[TraceEvent]) -> list[_Event]:
    """The nodes of a run, each with the time of its children: those of the same thread inside it (If, Loop, Scan, …).

    The events come in order of their start, parents before their children.
    """
    done: list[_Event] = []
    open_by_thread: dict[int | None, list[_Event]] = {}
    for raw in run:
        stack = open_by_thread.setdefault(raw.get("tid"), [])
        start, end = int(raw["ts"]), int(raw["ts"]) + int(raw["dur"])
        # starts are whole microseconds: a neighbour that starts as this one ends is no child
        while stack and (stack[-1].end_us <= start or stack[-1].end_us < end):
            stack.pop()
        name = raw["name"].removesuffix(NODE_SUFFIX)
        arguments = raw.get("args", {})
        path = tuple(parent.name for parent in stack)
        key = (path, name, str(arguments.get("op_name", "")), str(arguments.get("provider", "")), _index(arguments))
        event = _Event(start, end, name, key, memory_bytes=_memory(arguments))
        if stack:
            stack[-1].inner_us += end - start
        stack.append(event)
        done.append(event)
    return done


def _memory(arguments: dict[str, str]) -> int | None:
    """What a node asked for and kept. One that gave back more than it asked for kept nothing."""
    try:
        return min(MAX_BYTES, max(0, int(arguments[MEMORY])))
    except (KeyError, ValueError):
        return None


def _index(arguments: dict[str, str]) -> int:
    try:
        return int(arguments.get("node_index", -1))
    except ValueError:
        return -1
