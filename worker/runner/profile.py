"""Summarises ONNX Runtime's profile (Chrome-trace JSON, 1.15–1.31) by executed node.

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
# the number of events at which the profiler stops
MAX_EVENTS = 1_000_000
# the bytes that a node asked of the arena and kept when it ended
MEMORY = "mem_requested_in_use_delta"
MAX_BYTES = 1 << 50
# the most executed nodes in an answer: the slowest ones, and one sum of the others
MAX_NODES = 20_000

# an executed node: the names of its parents, its own name, operator, provider, and index in its graph
Key = tuple[tuple[str, ...], str, str, str, int]


class TraceEvent(TypedDict, total=False):
    """The part of a profile's event that is read here; times in µs."""

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

    def compute_time_us(self, runs: int) -> float:
        """Compute the median over all runs, as a mean would include every time that another program interrupted."""
        spent = list(self.by_run.values())
        return compute_median_us([*spent, *[0] * (runs - len(spent))])


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
    """Times of `runs` runs by node. `run_us` is the median of whole runs, with the time between nodes.

    `has_overflowed`: the profiler reached its limit of events.
    """

    runs: int = 0
    run_us: float = 0.0
    nodes: dict[Key, Total] = field(default_factory=dict)
    has_overflowed: bool = False


def summarise(events: list[TraceEvent], *, skip_runs: int, cold_runs: Collection[int] = ()) -> Summary:
    """Sum up node events by node, over the runs after the first `skip_runs` ones, which warm up.

    `cold_runs` are places of further runs, from the first of all, that do not count at all. A node's memory is the most
    of all other runs, those that warm up too, as the first ones allocate. A run that the profiler's limit cut short is
    left out.
    """
    runs = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("name") == RUN_EVENT)
    spans = [span for place, span in enumerate(runs) if place not in cold_runs]
    begun = sum(place not in cold_runs for place in range(min(skip_runs, len(runs))))
    per_run = _split_by_run(events, spans)
    has_overflowed = len(events) >= MAX_EVENTS
    full = max((len(run) for run in per_run), default=0)
    counted = [at for at in range(begun, len(spans)) if not has_overflowed or len(per_run[at]) == full]
    whole_us = compute_median_us([spans[at][1] - spans[at][0] for at in counted]) if counted else 0.0
    summary = Summary(runs=len(counted), run_us=whole_us, has_overflowed=has_overflowed)
    known: dict[Key, int] = {}
    for at, run in enumerate(per_run):
        is_counted = at in counted
        for event in _list_executed(run):
            if event.memory_bytes is not None:
                known[event.key] = max(known.get(event.key, 0), event.memory_bytes)
            if is_counted:
                total = summary.nodes.setdefault(event.key, Total())
                total.by_run[at] = total.by_run.get(at, 0) + event.self_us
                total.calls += 1
    for key, total in summary.nodes.items():
        total.memory_bytes = known.get(key)
    return summary


def _split_by_run(events: list[TraceEvent], spans: Sequence[tuple[int, int]]) -> list[list[TraceEvent]]:
    """Split the node events by run, in order of their start, parents before children."""
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


def compute_median_us(spent: Sequence[int]) -> float:
    """Compute the median of times that were cut to whole µs by interpolation (`statistics.median_grouped`).

    Without that, a node of 0.4 µs would take no time.
    """
    return max(0.0, median_grouped(spent))


def make_rows(summary: Summary) -> list[dict[str, object]]:
    """Make a row for each executed node, the slowest first: at most MAX_NODES, and one row of the rest a provider."""
    ordered = [(key, total, total.compute_time_us(summary.runs)) for key, total in summary.nodes.items()]
    ordered.sort(key=lambda item: -item[2])
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


def _list_executed(run: list[TraceEvent]) -> list[_Event]:
    """List the nodes of a run with the time of their children: nodes of the same thread inside them (If, Loop, Scan).

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
        facts = raw.get("args", {})
        path = tuple(parent.name for parent in stack)
        key = (path, name, str(facts.get("op_name", "")), str(facts.get("provider", "")), _read_index(facts))
        event = _Event(start, end, name, key, memory_bytes=_read_kept_bytes(facts))
        if stack:
            stack[-1].inner_us += end - start
        stack.append(event)
        done.append(event)
    return done


def _read_kept_bytes(arguments: dict[str, str]) -> int | None:
    """Read the bytes that a node allocated and kept, at least 0; None where the event does not say."""
    try:
        return min(MAX_BYTES, max(0, int(arguments[MEMORY])))
    except (KeyError, ValueError):
        return None


def _read_index(arguments: dict[str, str]) -> int:
    try:
        return int(arguments.get("node_index", -1))
    except ValueError:
        return -1
