"""The table of metrics: one entry each, in the order in which a cell's page lists them.

Summaries, documents, CSV, pages and alerts read the table. A metric that is not a field of the contract's Sample or
CheckReport is sent and recorded by its name under `metrics`. A new metric needs only an entry here or in
`scenario_metrics`, and the line that measures it. Installed packages add their own metrics.
"""

from collections.abc import Mapping
from math import isclose
from statistics import median

from farm.contract.cells import Call
from farm.contract.document_cells import Cell
from farm.rules.cells import outside_metrics
from farm.rules.cells.metric import SIZE, TIME, Judging, Metric
from farm.rules.cells.scenario_metrics import OF_SCENARIOS
from farm.rules.cells.scenarios import OUTSIDE
from farm.rules.comparing.percentile_counts import MIN_TIMINGS
from farm.rules.wording import titles
from farm.rules.wording.numbers import MIB

# launches of one cell differ by up to 2 MiB, and another release's own code takes up to 12 MiB more
MIN_MEMORY = 16.0 * MIB
_BY_REPEAT = Judging(SIZE, by="repeat", margin=MIN_MEMORY, is_told=True, alerts_as="memory")


def _make_call_metric(name: Call) -> Metric:
    """Make the metric of a call that a cell is not timed by; launches time it too where an inference is short."""
    return Metric(
        f"{name}_p50_ms",
        f"p50 by {titles.CALLS[name]}",
        "ms",
        "less",
        summary=median,
        noise="rounds",
        reads="latency",
        note="timed in the same launches, where an inference takes less than 1 ms",
        judging=Judging(TIME, alerts_as="call"),
        processor=f"{name}_cpu_p50_ms",
    )


def items_per_cpu_second(cell: Cell) -> float | None:
    """Compute how many items are processed in a second of processor time.

    None where processor time is not known, and where throughput is not batch / p50, as under a load or with concurrent
    streams.
    """
    items = 1000.0 * (cell.batch or 1)
    follows_from_p50 = isclose((cell.throughput or 0.0) * (cell.p50_ms or 0.0), items, rel_tol=1e-6)
    return items / cell.cpu_p50_ms if follows_from_p50 and cell.cpu_p50_ms else None


# a cell that is timed by one call may also have the metric of the other call
OF_CALLS: Mapping[Call, Metric] = {call: _make_call_metric(call) for call in titles.CALLS}
OWN: tuple[Metric, ...] = (
    Metric(
        "p50_ms",
        "p50",
        "ms",
        "less",
        summary=median,
        noise="rounds",
        reads="latency",
        samples_as="samples_ms",
        interval_as="p50_ci_ms",
        is_judged=True,
        judging=Judging(TIME),
    ),
    Metric(
        "cpu_p50_ms",
        "processor time",
        "ms",
        "less",
        summary=median,
        note="the thread's own time, without the turns of other programs: means of 20 ms, so that it may pass the p50",
        samples_as="cpu_samples_ms",
        judging=Judging(TIME),
    ),
    *OF_CALLS.values(),
    Metric(
        "instructions",
        "instructions per inference",
        "",
        "less",
        summary=median,
        noise="launches",
        reads="count",
        note="retired in user mode by the thread that computes, where the processor's counters can be read",
        absent="not readable here: this machine lets a process read no counter of its instructions",
    ),
    Metric("mean_ms", "mean", "ms", "less"),
    Metric("std_ms", "standard deviation", "ms", "less"),
    Metric("min_ms", "min", "ms", "less", summary=min),
    Metric("max_ms", "max", "ms", "less", summary=max),
    Metric("p90_ms", "p90", "ms", "less", from_timings=MIN_TIMINGS["p90"]),
    Metric("p95_ms", "p95", "ms", "less", from_timings=MIN_TIMINGS["p95"]),
    Metric(
        "p99_ms",
        "p99",
        "ms",
        "less",
        from_timings=MIN_TIMINGS["p99"],
        judging=Judging(TIME, margin=0.1, kinds=("load",), is_told=True),
    ),
    Metric("throughput", "throughput", "items/s", "more", note="by the clock"),
    Metric(
        "cpu_throughput",
        "throughput of processor time",
        "items/s",
        "more",
        note="as if the processor had nothing else to do",
        derive=items_per_cpu_second,
    ),
    Metric(
        "with_copies_p50_ms",
        "with host copies",
        "ms",
        "less",
        summary=median,
        note="p50 with inputs and outputs in host memory; the p50 above is of tensors on the device",
    ),
    Metric("energy_mj", "energy per inference", "mJ", "less"),
    Metric("import_ms", "import", "ms", "less", note="of ONNX Runtime, in a fresh process"),
    Metric(
        "session_ms",
        "session creation",
        "ms",
        "less",
        note="by the clock, in one process",
        judging=Judging(TIME, by="fastest", margin=0.1, alerts_as="session", min_alert=20.0),
        phase="session",
    ),
    Metric("cached_session_ms", "", "ms", "less"),
    Metric("engine_bytes", "", "bytes", "less", reads="memory"),
    Metric(
        "first_ms",
        "first inference",
        "ms",
        "less",
        note="by the clock, in one process",
        judging=Judging(
            TIME, by="fastest", margin=0.1, kinds=("single", "sustained"), alerts_as="first", min_alert=5.0
        ),
        phase="first",
    ),
    Metric(
        "peak_memory_bytes",
        "peak memory",
        "bytes",
        "less",
        summary=max,
        reads="memory",
        note="resident, of a process that loads the model and runs it once",
        judging=_BY_REPEAT,
        launch_title="peak memory of a launch",
    ),
    Metric(
        "peak_address_space_bytes",
        "peak address space",
        "bytes",
        "less",
        summary=max,
        reads="memory",
        note="of the whole process, touched or not: what a limit on its memory counts",
        judging=_BY_REPEAT,
    ),
    Metric(
        "memory_per_session_bytes",
        "memory per further session",
        "bytes",
        "less",
        reads="memory",
        note="resident, of a second and third session in one process, told once",
    ),
    Metric(
        "addresses_per_thread_bytes",
        "address space per further thread",
        "bytes",
        "less",
        reads="memory",
        note="of sessions with the cell's threads against one with a single thread, told once",
    ),
    *OF_SCENARIOS,
    Metric("copies", "copies", "", "less", reads="count", note="between host and device, per inference"),
    Metric("disturbed_samples", "disturbed launches", reads="count", note="another program took the processor"),
    Metric("is_stable", "stable", reads="yes", note="timing windows agree within 5 %"),
    Metric("is_bimodal", "two groups of launches", reads="yes"),
    Metric("is_repeatable", "repeatable", reads="yes", note="the same input twice gives the same bits"),
)
_OF_PACKAGES = [
    *(measure.metric for entry in OUTSIDE.entries for measure in entry.metrics),
    *outside_metrics.metrics_for_any_scenario(outside_metrics.GROUP.load_installed().entries),
]
METRICS = outside_metrics.merge_tables(OWN, _OF_PACKAGES)
BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}
# shows whether two sides do the same work
INSTRUCTIONS = BY_NAME["instructions"]
# the metric that verdicts are about
JUDGED = next(metric for metric in METRICS if metric.is_judged)
# the metrics for which each launch reports a figure
OF_LAUNCHES = tuple(metric for metric in METRICS if metric.summary is not None)
# the metrics on which a watch alerts by a separate verdict, by name
ALERTING: Mapping[str, Judging] = {
    metric.name: metric.judging for metric in METRICS if metric.judging is not None and metric.judging.alerts_as
}
# the metrics in which two arms are compared, `JUDGED` first
COMPARED = tuple((metric, metric.judging) for metric in METRICS if metric.judging is not None)
