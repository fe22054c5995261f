"""`fresh`: the inputs change from inference to inference, and their shapes may change too.

Memory is read between inferences. Growth after memory has settled is a leak; growth before that comes from an arena.
"""

import os
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from worker.runner import faults, memory, windows
from worker.runner.arrays import load_arrays
from worker.runner.engines.protocol import Feed
from worker.runner.engines.table import find_engine_kind
from worker.runner.order import BudgetOrder, Call
from worker.runner.scenarios import answer_checks, summaries
from worker.runner.scenarios.inputs import InputSet, InputSetOptions, make_input_sets
from worker.runner.scenarios.protocol import LaunchContext

# a launch has at least MIN_RUNS inferences, unless they take longer than MAX_S seconds
MIN_RUNS = 1_000
MAX_S = 10.0
# arrays for the durations of this many inferences are allocated beforehand
MAX_RUNS = 50_000
# memory is read at most once in this time
READ_EVERY_NS = 1_000_000
# the number of points at which the answer gives the memory
POINTS = 8


class Fresh:
    """Runs each set of inputs alone, then all sets in turn."""

    def __init__(self, context: LaunchContext) -> None:
        self._context = context
        settings = context.order.scenario
        self._options = InputSetOptions(settings["sets"], settings["seed"], settings["shapes"], settings["made"])
        self._sets: list[InputSet] = []
        self._calls: list[Call] = []
        self._answers: answer_checks.Answers
        self._facts: dict[str, object] = {}
        self._recorder: Recorder | None = None
        self._feeds: list[Feed] = []

    def open(self) -> None:
        """Load the model, and run each set twice alone, to keep its answer and see whether it repeats.

        Raises Refusal that names the set at which the model fails.
        """
        order, timer = self._context.order, self._context.timer
        kind = find_engine_kind(order)
        engine = kind.open_engine(order, timer=timer)
        inputs = kind.choose_inputs(engine, load_arrays(order.inputs))
        self._sets = make_input_sets(inputs, kind.dimensions(engine), self._options)
        self._answers = answer_checks.Answers(order)
        with timer.phase("first"):
            for number, input_set in enumerate(self._sets):
                with _name_input_set_in_errors(input_set, number=number, count=len(self._sets)):
                    feed = kind.feed(engine, input_set.arrays)
                    feed.run_first()
                    self._answers.keep_first(number, feed.outputs())
                    feed.settle()
                    self._answers.compare_alone(number, feed.outputs())
                self._feeds.append(feed)
        self._calls = [timer.wrap_call(feed.timed_call()) for feed in self._feeds]
        self._facts = {"requested_providers": engine.requested, "active_providers": engine.active}

    def step(self) -> bool:
        """Warm up at the first call, and measure at the second. Return whether another step follows."""
        budget, timer = self._context.order.budget, self._context.timer
        if self._recorder is None:
            with timer.phase("warmup"):
                warm = windows.warm_up(make_alternating_call(self._calls), budget)
            self._recorder = Recorder(len(self._calls), warm)
            memory.release_freed_memory()
            return True
        with timer.phase("window"):
            self._recorder.run(self._calls, budget)
        return False

    def close(self) -> dict[str, object]:
        """Compare each set's last answer with its first, and return the sample and the providers."""
        recorder, gate = self._recorder, self._context.order.gate_cpu_share
        assert recorder is not None
        peaks = summaries.read_memory_peaks()
        for number, feed in enumerate(self._feeds):
            self._answers.compare(number, feed.outputs())
        cpu_share = recorder.cpu_ns / recorder.wall_ns
        durations, cpu_p50_ns = recorder.copy_durations(), recorder.compute_cpu_p50_ns()
        metrics = {
            "growth_bytes_per_1000": recorder.compute_growth(),
            "differing_answers": self._answers.differing_count,
        }
        sample = {
            **summaries.summarise([durations]),
            "warmup_runs": recorder.warm.runs,
            "warmup_ms": recorder.warm.wall_ns / 1e6,
            "is_stable": recorder.warm.agreed and recorder.is_stable,
            "cpu_share": cpu_share,
            "cpu_p50_ms": None if gate is None or cpu_p50_ns is None else cpu_p50_ns / 1e6,
            "is_disturbed": gate is not None and cpu_share < gate,
            "throughput": durations.size / (recorder.wall_ns / 1e9),
            "phases": [*self._group_by_shape(durations), *recorder.list_memory_points()],
            **summaries.make_other_metrics(peaks, metrics),
        }
        return {"sample": sample, **self._facts}

    def _group_by_shape(self, durations: windows.Durations) -> list[summaries.Phase]:
        """Make a phase for each shape, with the p50 of its inferences, in the order of the sets."""
        labels = [input_set.label for input_set in self._sets]
        phases: list[summaries.Phase] = []
        for label in dict.fromkeys(label for label in labels if label):
            of_label = [
                durations[place :: len(labels)] for place, other_label in enumerate(labels) if other_label == label
            ]
            together = np.concatenate(of_label)
            if together.size:
                metrics = {"p50_ms": float(np.median(together)) * 1e-6, "n": float(together.size)}
                phases.append({"name": label, "metrics": metrics})
        return phases


class Recorder:
    """Records durations in order, and resident memory between them, in arrays that are allocated beforehand.

    `sets` is the number of sets of inputs, and `warm` the warm-up.
    """

    def __init__(self, sets: int, warm: windows.Warmup) -> None:
        self.warm = warm
        self.wall_ns = 0
        self.cpu_ns = 0
        self._sets = sets
        # filled with ones, so that their pages are in memory before the memory is measured
        self._durations = array("Q", [1]) * MAX_RUNS
        self._after = array("Q", [1]) * MAX_RUNS
        self._resident = array("Q", [1]) * MAX_RUNS
        self._cpu_ns = array("Q", [1]) * MAX_RUNS
        self._runs = 0
        self._readings = 0

    def run(self, calls: Sequence[Call], budget: BudgetOrder) -> None:
        """Run all sets in turn, again and again, for at least MIN_RUNS inferences and the budget's time.

        Stop earlier after MAX_S seconds, or before MAX_RUNS inferences are exceeded.
        """
        at_least_ns, at_most_ns = int(max(budget.window_s, budget.at_least_s) * 1e9), int(MAX_S * 1e9)
        clock = time.perf_counter_ns
        with ResidentReader() as resident:
            began, cpu_began, read_at = clock(), time.thread_time_ns(), 0
            while True:
                for call in calls:
                    before = clock()
                    call()
                    now = clock()
                    self._durations[self._runs] = now - before
                    self._runs += 1
                if now - read_at >= READ_EVERY_NS:
                    read_at = now
                    self._after[self._readings], self._resident[self._readings] = self._runs, resident.read_bytes()
                    self._cpu_ns[self._readings] = time.thread_time_ns()
                    self._readings += 1
                is_enough = self._runs >= MIN_RUNS and now - began >= at_least_ns
                if is_enough or now - began >= at_most_ns or self._runs + self._sets > MAX_RUNS:
                    break
            self.wall_ns, self.cpu_ns = clock() - began, time.thread_time_ns() - cpu_began

    def copy_durations(self) -> windows.Durations:
        return np.array(self._durations[: self._runs], dtype=np.uint64)

    def compute_growth(self) -> float | None:
        """Compute by how many bytes memory grew per 1,000 inferences after it settled; None for too few readings."""
        return compute_growth_per_1000(self._after[: self._readings], self._resident[: self._readings])

    def compute_cpu_p50_ns(self) -> float | None:
        """Compute the thread CPU time of an inference in ns, the median between readings.

        None for fewer than two readings, or where the clock stood still.
        """
        after, cpu_ns = (np.array(values[: self._readings], dtype=np.float64) for values in (self._after, self._cpu_ns))
        return windows.compute_positive_median(np.diff(cpu_ns) / np.diff(after))

    def list_memory_points(self) -> list[summaries.Phase]:
        """List resident memory in bytes at up to POINTS readings from the first to the last, as phases."""
        places = sorted({round(place) for place in np.linspace(0, self._readings - 1, min(POINTS, self._readings))})
        return [
            {"name": f"memory {number}", "metrics": {"inferences": after, "resident_bytes": resident}}
            for number, place in enumerate(places, start=1)
            for after, resident in [(float(self._after[place]), float(self._resident[place]))]
        ]

    @property
    def is_stable(self) -> bool:
        """Whether both halves have the same p50, within the tolerance; true for too few inferences to have halves."""
        durations = self.copy_durations()
        middle = durations.size // 2 // self._sets * self._sets
        return middle == 0 or windows.agree_within_tolerance(
            [float(np.median(durations[:middle])), float(np.median(durations[middle:]))]
        )


def compute_growth_per_1000(after: Sequence[int], resident: Sequence[int]) -> float | None:
    """Compute the growth in bytes per 1,000 inferences, from the third to the last quarter of the readings.

    `resident` has the readings, and `after` the number of inferences before each. Medians of quarters are compared,
    because memory grows in steps, which no line fits; in the first half memory settles. None for fewer than eight
    readings.
    """
    quarter = len(after) // 4
    if quarter < 2:
        return None
    third, last = slice(2 * quarter, 3 * quarter), slice(len(after) - quarter, len(after))
    inferences = float(np.median(after[last])) - float(np.median(after[third]))
    grown = float(np.median(resident[last])) - float(np.median(resident[third]))
    return 1000.0 * grown / inferences if inferences > 0 else None


class ResidentReader:
    """Reads this process's resident memory from a file that stays open; 0 on other systems than Linux."""

    def __enter__(self) -> "ResidentReader":
        try:
            self._file = os.open("/proc/self/statm", os.O_RDONLY)
        except OSError:
            self._file = -1
        self._page = os.sysconf("SC_PAGE_SIZE")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)

    def read_bytes(self) -> int:
        return int(os.pread(self._file, 128, 0).split()[1]) * self._page if self._file >= 0 else 0


def make_alternating_call(calls: Sequence[Call]) -> Call:
    """Make a call that runs the next of `calls` each time, and begins again after the last."""
    place = -1

    def call() -> object:
        nonlocal place
        place = (place + 1) % len(calls)
        return calls[place]()

    return call


@contextmanager
def _name_input_set_in_errors(input_set: InputSet, *, number: int, count: int) -> Iterator[None]:
    """Turn an exception inside the `with` into a Refusal that names the set of inputs."""
    try:
        yield
    except faults.Refusal:
        raise
    except Exception as error:  # one of ONNX Runtime's own classes
        code, text = faults.explain_error(error, during="run")
        name = f"set {number + 1} of {count} ({input_set.label or 'its values'})"
        raise faults.Refusal(code, f"the model refused {name}: {text}") from error
