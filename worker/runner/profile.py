"""ONNX Runtime's profile (Chrome-trace JSON, 1.15–1.31), summed up per executed node.

MEASURING.md, "What really ran": node events have category `Node` and names ending in `_kernel_time`; up to 1.20 there
are fence events too; values of `args` are strings; events of control-flow nodes include their children.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median_grouped
from typing import TypedDict

NODE_SUFFIX = "_kernel_time"
RUN_EVENT = "model_run"
# the profiler stops at this many events
MAX_EVENTS = 1_000_000
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
    """One executed node: its time in µs in each run that it took part in, children excluded, and its calls in all."""

    by_run: dict[int, int] = field(default_factory=dict)
    calls: int = 0

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
    inner_us: int = 0


@dataclass
class Summary:
    """What `runs` runs took: `run_us` the median of whole runs, between whose nodes there is time too."""

    runs: int = 0
    run_us: float = 0.0
    nodes: dict[Key, Total] = field(default_factory=dict)
    has_overflowed: bool = False


def summarise(events: list[TraceEvent], *, skip_runs: int, cold_runs: Collection[int] = ()) -> Summary:
    """Node events of the runs after the first `skip_runs` ones (they warm up), by node and run.

    `cold_runs`: places of further runs that do not count, from the first of all.
    A run cut short by the profiler's limit has fewer events than the others and is left out.
    """
    runs = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("name") == RUN_EVENT)
    spans = [span for place, span in enumerate(runs) if place >= skip_runs and place not in cold_runs]
    per_run: list[list[TraceEvent]] = [[] for _ in spans]
    nodes = sorted((e for e in events if _is_node(e)), key=lambda e: (int(e["ts"]), -int(e["dur"])))
    at = 0
    for event in nodes:
        while at < len(spans) and int(event["ts"]) > spans[at][1]:
            at += 1
        if at < len(spans) and int(event["ts"]) >= spans[at][0]:
            per_run[at].append(event)
    has_overflowed = len(events) >= MAX_EVENTS
    full = max((len(run) for run in per_run), default=0)
    counted = [at for at, run in enumerate(per_run) if not has_overflowed or len(run) == full]
    whole_us = median_us([spans[at][1] - spans[at][0] for at in counted]) if counted else 0.0
    summary = Summary(runs=len(counted), run_us=whole_us, has_overflowed=has_overflowed)
    for at in counted:
        for key, spent_us in _self_times(per_run[at]):
            total = summary.nodes.setdefault(key, Total())
            total.by_run[at] = total.by_run.get(at, 0) + spent_us
            total.calls += 1
    return summary


def median_us(spent: Sequence[int]) -> float:
    """The median of times that were cut to whole µs: among equal ones it stands where the middle one would.

    Without that, a node of 0.4 µs would take none: `statistics.median_grouped` has the formula.
    """
    return max(0.0, median_grouped(spent))


def as_rows(summary: Summary) -> list[dict[str, object]]:
    """One row an executed node with its time in a run, slowest first; at most MAX_NODES and one row of the rest."""
    ordered = sorted(
        ((key, total, total.time_us(summary.runs)) for key, total in summary.nodes.items()), key=lambda one: -one[2]
    )
    rows = [
        {
            "path": list(key[0]),
            "name": key[1],
            "op_type": key[2],
            "provider": key[3],
            "index": key[4],
            "time_us": time_us,
            "calls": total.calls,
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


def _is_node(event: TraceEvent) -> bool:
    return event.get("cat") == "Node" and str(event.get("name", "")).endswith(NODE_SUFFIX)


def _self_times(run: list[TraceEvent]) -> Iterable[tuple[Key, int]]:
    """Time of each event of a run without its children: those of the same thread inside it (If, Loop, Scan, …).

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
        event = _Event(start_us=start, end_us=end, name=name, key=key)
        if stack:
            stack[-1].inner_us += end - start
        stack.append(event)
        done.append(event)
    return [(event.key, max(0, event.end_us - event.start_us - event.inner_us)) for event in done]


def _index(arguments: dict[str, str]) -> int:
    try:
        return int(arguments.get("node_index", -1))
    except ValueError:
        return -1
