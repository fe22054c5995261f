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
from typing import NamedTuple, TypedDict

NODE_SUFFIX = "_kernel_time"
RUN_EVENT = "model_run"
# the number of events at which the profiler stops
MAX_EVENTS = 1_000_000
# the bytes that a node asked of the arena and kept when it ended
MEMORY = "mem_requested_in_use_delta"
MAX_BYTES = 1 << 50
# the maximum of executed nodes in an answer: the slowest ones; the others are summed for each provider
MAX_NODES = 20_000


class Node(NamedTuple):
    """An executed node. `path`: the control-flow nodes around it, by name; `node_index`: its place in its graph."""

    path: tuple[str, ...]
    name: str
    op_type: str
    provider: str
    node_index: int


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
        """Compute the median over `runs` runs, where a run without the node counts 0. A mean would follow outliers."""
        spent = list(self.by_run.values())
        return compute_median_us([*spent, *[0] * (runs - len(spent))])


@dataclass
class _Event:
    """One execution of a node in a run. `inner_us` is the time of its children."""

    start_us: int
    end_us: int
    node: Node
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
    nodes: dict[Node, Total] = field(default_factory=dict)
    has_overflowed: bool = False


def summarise(events: list[TraceEvent], *, skip_runs: int, cold_runs: Collection[int] = ()) -> Summary:
    """Sum up the times of each executed node over the runs that count.

    The first `skip_runs` runs warm up, and do not count. Nor do `cold_runs`, which are numbers of runs from 0, and runs
    that the profiler's limit of events cut short. A node's memory is the maximum over all runs but the cold ones: the
    runs that warm up are the ones that allocate.
    """
    runs = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("name") == RUN_EVENT)
    spans = [span for place, span in enumerate(runs) if place not in cold_runs]
    warmup_runs = sum(place not in cold_runs for place in range(min(skip_runs, len(runs))))
    per_run = _split_by_run(events, spans)

    # a run that was cut short has fewer events than the others
    has_overflowed = len(events) >= MAX_EVENTS
    full = max((len(run) for run in per_run), default=0)
    counted = [place for place in range(warmup_runs, len(spans)) if not has_overflowed or len(per_run[place]) == full]
    run_us = compute_median_us([spans[place][1] - spans[place][0] for place in counted]) if counted else 0.0

    summary = Summary(runs=len(counted), run_us=run_us, has_overflowed=has_overflowed)
    max_memory_bytes: dict[Node, int] = {}
    for place, run in enumerate(per_run):
        is_counted = place in counted
        for event in _list_executed(run):
            if event.memory_bytes is not None:
                max_memory_bytes[event.node] = max(max_memory_bytes.get(event.node, 0), event.memory_bytes)
            if is_counted:
                total = summary.nodes.setdefault(event.node, Total())
                total.by_run[place] = total.by_run.get(place, 0) + event.self_us
                total.calls += 1
    for node, total in summary.nodes.items():
        total.memory_bytes = max_memory_bytes.get(node)
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
    """Compute the median of times in whole µs, interpolated by `statistics.median_grouped`.

    Without that, a node of 0.4 µs would take no time. Raises StatisticsError for no times.
    """
    return max(0.0, median_grouped(spent))


def make_rows(summary: Summary) -> list[dict[str, object]]:
    """Make a row for each of the MAX_NODES slowest nodes, slowest first, then one row for each provider's other nodes.

    A row of other nodes has the sum of their times, no name, and the index -1.
    """
    times_us = {node: total.compute_time_us(summary.runs) for node, total in summary.nodes.items()}
    slowest_first = sorted(times_us, key=lambda node: -times_us[node])
    rows: list[dict[str, object]] = []
    for node in slowest_first[:MAX_NODES]:
        total = summary.nodes[node]
        rows.append(
            {
                "path": list(node.path),
                "name": node.name,
                "op_type": node.op_type,
                "provider": node.provider,
                "index": node.node_index,
                "time_us": times_us[node],
                "calls": total.calls,
                "memory_bytes": total.memory_bytes,
            }
        )
    other_us_by_provider: dict[str, float] = {}
    for node in slowest_first[MAX_NODES:]:
        other_us_by_provider[node.provider] = other_us_by_provider.get(node.provider, 0.0) + times_us[node]
    rows += [
        {"path": [], "name": "", "op_type": "", "provider": provider, "index": -1, "time_us": spent, "calls": 1}
        for provider, spent in other_us_by_provider.items()
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
        # starts are whole microseconds, so a node that starts when this one ends is not its child
        while stack and (stack[-1].end_us <= start or stack[-1].end_us < end):
            stack.pop()
        name = raw["name"].removesuffix(NODE_SUFFIX)
        facts = raw.get("args", {})
        path = tuple(parent.node.name for parent in stack)
        index = _read_integer(facts, "node_index")
        index = -1 if index is None else index
        node = Node(path, name, str(facts.get("op_name", "")), str(facts.get("provider", "")), index)
        event = _Event(start, end, node, memory_bytes=_read_allocated_bytes(facts))
        if stack:
            stack[-1].inner_us += end - start
        stack.append(event)
        done.append(event)
    return done


def _read_allocated_bytes(arguments: dict[str, str]) -> int | None:
    """Read the bytes that a node allocated and did not free, 0 to MAX_BYTES; None where the event does not say."""
    size = _read_integer(arguments, MEMORY)
    return None if size is None else min(MAX_BYTES, max(0, size))


def _read_integer(arguments: dict[str, str], name: str) -> int | None:
    try:
        return int(arguments[name])
    except (KeyError, ValueError):
        return None
