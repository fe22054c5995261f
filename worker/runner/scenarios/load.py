"""`load` in an open loop: latency at a rate, or the highest rate whose p99 keeps a bound."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from worker.runner import faults, parallel_calls, windows
from worker.runner.arrays import load_arrays
from worker.runner.engines.protocol import Feed
from worker.runner.engines.table import find_engine_kind
from worker.runner.order import Call
from worker.runner.scenarios import answer_checks, arrivals, summaries
from worker.runner.scenarios.fresh import make_alternating_call
from worker.runner.scenarios.inputs import InputSetOptions, make_input_sets
from worker.runner.scenarios.protocol import LaunchContext

# the number of arrivals at each rate; a p99 needs 662 samples
ARRIVALS = 700
# sets of inputs, so that answers to the wrong request are noticed
SETS = 8
# the rates of the curve, as multiples of the one that was found
AROUND = (0.5, 0.7, 0.85, 1.0, 1.15, 1.3)
# the steps of the bisection, and the lowest rate as a part of what the streams could serve
HALVINGS = 6
MIN_PART = 1 / 8
# a found rate is estimated as this part of what the streams could serve; a search is refused if launches at such rates
# would take longer than MAX_S seconds
USUAL_PART = 0.6
MAX_S = 75.0
QUIETER = "measure when this machine is quieter, or on another one"
# how often requests are sent at a rate, where other programs delay the generator
TRIES = 3
# how many inferences each stream runs whose answers are all compared
COMPARED = 8 * SETS
# a waiting thread gets the interpreter after this time, in place of 5 ms
SWITCH_S = 0.0002


@dataclass(frozen=True)
class RateStep:
    """The requests of one rate, and the processor time of all of them. `p99_ms` is of latencies from the arrivals."""

    rate: float
    served: arrivals.Served
    cpu_ns: int

    @property
    def p99_ms(self) -> float:
        return float(np.percentile(self.served.latencies, 99)) * 1e-6

    def make_phase(self, bound_ms: float | None) -> summaries.Phase:
        """Make a phase of its figures; `goodput_per_s` counts requests within the bound, all where there is none."""
        latencies = self.served.latencies
        within = latencies.size if bound_ms is None else int(np.count_nonzero(latencies <= bound_ms * 1e6))
        return {
            "name": f"{self.rate:.4g} per s",
            "metrics": {
                "rate_per_s": self.rate,
                "p50_ms": float(np.median(latencies)) * 1e-6,
                "p99_ms": self.p99_ms,
                "goodput_per_s": within / (self.served.wall_ns / 1e9),
                "cpu_ms": self.cpu_ns / latencies.size * 1e-6,
                "late_ms": self.served.late_ns * 1e-6,
                "n": float(latencies.size),
            },
        }


class OpenLoop:
    """Sends requests at one rate or several, or searches for the highest rate whose p99 keeps the bound.

    A search returns `rates` around that rate, for the launches that follow.
    """

    def __init__(self, context: LaunchContext, *, clock: arrivals.Clock | None = None) -> None:
        settings = context.order.scenario
        self._clock = clock
        self._context = context
        self._rate: float | None = settings["rate"]
        self._bound_ms: float | None = settings["bound_ms"]
        self._rates: list[float] = settings["rates"]
        self._settings = settings
        self._streams: list[list[Call]] = []
        self._feeds: list[list[Feed]] = []
        self._answers: answer_checks.Answers
        self._warm: windows.Warmup | None = None
        self._steps: list[RateStep] = []
        self._facts: dict[str, object] = {}

    def open(self) -> None:
        """Load a session for each stream, or one for all, run each set in each stream, and keep the first answers."""
        order, settings = self._context.order, self._settings
        kind = find_engine_kind(order)
        count = settings["streams"] if settings["sessions"] == "each" else 1
        engines = [kind.open_engine(order, timer=self._context.timer) for _ in range(count)]
        inputs = kind.choose_inputs(engines[0], load_arrays(order.inputs))
        sets = make_input_sets(
            inputs, kind.dimensions(engines[0]), InputSetOptions(SETS, settings["seed"], made=settings["made"])
        )
        self._answers = answer_checks.Answers(order)
        with self._context.timer.phase("first"), faults.translate_errors("run"):
            for stream in range(settings["streams"]):
                engine = engines[stream % count]
                feeds = [kind.feed(engine, input_set.arrays) for input_set in sets]
                for feed in feeds:
                    feed.run_first()
                    feed.settle()
                self._feeds.append(feeds)
            for number, feed in enumerate(self._feeds[0]):
                self._answers.keep_first(number, feed.outputs())
                feed.run()
                self._answers.compare_alone(number, feed.outputs())
        wrap_call = self._context.timer.wrap_call
        self._streams = [[wrap_call(feed.timed_call()) for feed in feeds] for feeds in self._feeds]
        self._facts = {"requested_providers": engines[0].requested, "active_providers": engines[0].active}

    def step(self) -> bool:
        """Warm up at the first call; at the second, measure and compare answers. Return whether another step follows.

        Raises Refusal where requests are generated too late, or where no rate keeps the bound.
        """
        timer, budget = self._context.timer, self._context.order.budget
        if self._warm is None:
            sys.setswitchinterval(SWITCH_S)
            with timer.phase("warmup"):
                self._warm = windows.warm_up(make_alternating_call(self._streams[0]), budget)
            return True
        with timer.phase("window"):
            if self._rate is not None:
                self._steps = [self._drive_rate(self._rate)]
            elif self._rates:
                self._steps = [self._drive_rate(rate) for rate in self._rates]
            else:
                self._search()
        with timer.phase("answers"):
            self._compare_all()
        return False

    def close(self) -> dict[str, object]:
        """Return the sample, the providers, and under `rates` those around the rate that was found; empty for none.

        The latencies are those of the found rate, or of the middle one; each rate is a phase.
        """
        assert self._warm is not None
        peaks = summaries.read_memory_peaks()
        headline = self._choose_headline()
        latencies = headline.served.latencies
        max_rate = None
        if self._bound_ms is not None and self._rate is None:
            max_rate = find_highest_rate(self._steps, self._bound_ms)
        goodput = headline.make_phase(self._bound_ms)["metrics"]["goodput_per_s"]
        metrics = {
            "max_rate_per_s": max_rate,
            "p99_ms": headline.p99_ms,
            "goodput_per_s": goodput,
            "differing_answers": self._answers.differing_count,
        }
        sample = {
            **summaries.summarise([latencies]),
            "warmup_runs": self._warm.runs,
            "warmup_ms": self._warm.wall_ns / 1e6,
            "is_stable": self._warm.agreed,
            "throughput": latencies.size / (headline.served.wall_ns / 1e9),
            "phases": [step.make_phase(self._bound_ms) for step in sorted(self._steps, key=lambda step: step.rate)],
            **summaries.make_other_metrics(peaks, metrics),
        }
        return {"sample": sample, "rates": [part * max_rate for part in AROUND] if max_rate else [], **self._facts}

    def _drive_rate(self, rate: float) -> RateStep:
        """Send requests at a rate, up to TRIES times. Raises Refusal where the generator is late each time."""
        gaps_s = arrivals.draw_unit_gaps(ARRIVALS, self._settings["seed"]) / rate
        clock = self._clock or arrivals.RealClock(is_shared=len(self._streams) > 1)
        for _ in range(TRIES):
            cpu_began = time.process_time_ns()
            served = arrivals.serve(self._streams, gaps_s, clock=clock)
            if served.late_ns <= arrivals.MAX_LATE_NS:
                return RateStep(rate, served, time.process_time_ns() - cpu_began)
        advice = "ask for fewer streams, or measure on a quieter machine" if len(self._streams) > 1 else QUIETER
        text = (
            f"generator late: at {rate:.4g} per s streams that waited began {served.late_ns * 1e-6:.2f} ms after their "
            f"arrivals, and latencies would be its own; {advice}"
        )
        raise faults.Refusal("not_supported", text)

    def _search(self) -> None:
        """Bisect for the highest rate that keeps the bound, up to what the streams could serve without a break.

        Raises Refusal where that takes too long, or even an eighth of it does not keep the bound.
        """
        assert self._bound_ms is not None
        assert self._warm is not None
        max_rate = len(self._streams) * self._warm.runs / (self._warm.wall_ns / 1e9)
        if (launch_s := sum(ARRIVALS / (part * USUAL_PART * max_rate) for part in AROUND)) > MAX_S:
            text = (
                f"{len(AROUND)} rates of {ARRIVALS} arrivals take about {launch_s:.0f} s in each launch of this model, "
                f"which is asked {max_rate:.3g} times per s at most: write one rate in place of the bound alone"
            )
            raise faults.Refusal("not_supported", text)
        low, high = max_rate * MIN_PART, max_rate
        for _ in range(HALVINGS):
            step = self._drive_rate((low + high) / 2)
            self._steps.append(step)
            low, high = (step.rate, high) if step.p99_ms <= self._bound_ms else (low, step.rate)
        if low == max_rate * MIN_PART:
            self._steps.append(self._drive_rate(low))
            if (p99_ms := self._steps[-1].p99_ms) > self._bound_ms:
                text = (
                    f"no rate was found whose p99 keeps the bound of {self._bound_ms:g} ms: at {low:.4g} per s, an "
                    f"eighth of what the streams could serve, it is {p99_ms:.3g} ms; write a larger bound"
                )
                raise faults.Refusal("not_supported", text)

    def _choose_headline(self) -> RateStep:
        """Choose the step at the found rate if the steps are a curve around it, else the step of the middle rate."""
        ordered = sorted(self._steps, key=lambda step: step.rate)
        is_curve = len(ordered) == len(AROUND) and self._rates
        return ordered[AROUND.index(1.0) if is_curve else len(ordered) // 2]

    def _compare_all(self) -> None:
        """Run more inferences in all streams at once, and compare every answer. This would disturb timed inferences."""

        def work(stream: Call, _: parallel_calls.Gate) -> None:
            stream()

        def of(feeds: Sequence[Feed]) -> Call:
            def call() -> None:
                for turn in range(COMPARED):
                    number = turn % len(feeds)
                    feeds[number].run()
                    self._answers.compare(number, feeds[number].outputs())

            return call

        parallel_calls.run_in_parallel([of(feeds) for feeds in self._feeds], work)


def find_highest_rate(steps: Sequence[RateStep], bound_ms: float) -> float | None:
    """Find the highest rate whose p99 is within the bound, by interpolation in the logarithm of p99.

    Interpolate between the first rate beyond the bound and the one below it. Return the highest rate tried where all
    are within the bound, and None where the lowest is not. Raises IndexError for no steps.
    """
    ordered = sorted(steps, key=lambda step: step.rate)
    beyond = next((place for place, step in enumerate(ordered) if step.p99_ms > bound_ms), None)
    if beyond is None:
        return ordered[-1].rate
    if beyond == 0:
        return None
    below, above = ordered[beyond - 1], ordered[beyond]
    part = np.log(bound_ms / below.p99_ms) / np.log(above.p99_ms / below.p99_ms)
    return float(below.rate + part * (above.rate - below.rate))
