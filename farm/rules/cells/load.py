"""The scenario `load`: requests arrive at a given rate (open loop), or streams run without pause (closed loop)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Final, Literal

from farm.contract.cells import SINGLE, CellSpec, Workload
from farm.contract.document_cells import CellPhase, Figure
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.readers import read_count
from farm.rules.cells.scenario import MAX_LAUNCH_S, UNKNOWN_LATENCY_MS, Scenario, ShapeProblem, read_options
from farm.rules.cells.scenario_metrics import GOODPUT, MAX_RATE
from farm.rules.cells.single import Single
from farm.rules.runtimes import engines
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.wording.numbers import counted, plain

MAX_STREAMS: Final = 64
_OPTIONS: Final = ("rate", "bound", "streams", "sessions", "closed")
# the lowest and the highest rate per second, and bound in ms; a load generator on a shared machine may itself be late
# by more than a shorter bound
_RATES: Final = (0.1, 1_000_000.0)
_BOUNDS: Final = (0.1, 60_000.0)
_REAL = re.compile(r"^(\d{1,12}(?:\.\d{1,12})?)(ms|s|us|)$", re.ASCII)
_UNITS: Final = {"": 1.0, "ms": 1.0, "s": 1000.0, "us": 0.001}
# a rate is held where at least this share of the requests is answered in time
MIN_ANSWERED_SHARE = 0.95
# the arrivals at each rate, and the rates that are measured, as fractions of the one that is searched, as in
# worker.runner.scenarios.load
ARRIVALS = 700
AROUND = (0.5, 0.7, 0.85, 1.0, 1.15, 1.3)
# the highest rate is usually this part of streams / latency
USUAL_PART = 0.6
# a bound is usually this many latencies; the latency of an unknown model is estimated from it
TYPICAL_BOUND = 10.0
# how often a rate is measured at most, when the load generator was late
MAX_TRIES = 3


@dataclass(frozen=True)
class Load(Scenario):
    """An open loop: requests arrive at `rate` per second on `streams` streams. `Scenario` documents the methods."""

    kind: ClassVar[str] = "load"
    schema: ClassVar[Mapping[str, Any]] = {"type": "object"}
    is_single_stream: ClassVar[bool] = False
    is_open: ClassVar[bool] = True
    # requests per second; None searches the highest rate whose p99 keeps the bound
    rate: float | None = None
    # the limit of the p99; None where there is none
    bound_ms: float | None = None
    streams: int = 1
    # whether the streams share a session, or each has one
    sessions: Literal["shared", "each"] = "shared"

    @classmethod
    def read(cls, options: object, /) -> Scenario:
        """Make an open load from its options, or a closed one if they have `closed`. Raises MatrixProblem."""
        written = read_options(cls.kind, options, example="load: {rate: 50}")
        for name in written:
            if name not in _OPTIONS:
                raise MatrixProblem(choice_sentence("option of load", name, _OPTIONS))
        if "closed" in written:
            return Closed.read(written)
        if not {"rate", "bound"} & written.keys():
            raise MatrixProblem(
                "The scenario load needs a rate or a bound: write `load:rate=50`, `load:bound=20ms` or `load:closed=4`."
            )
        sessions = str(written.get("sessions", "shared"))
        if sessions not in ("shared", "each"):
            raise MatrixProblem(choice_sentence("sessions of load", sessions, ("shared", "each")))
        rate = _read_number("rate", written["rate"], _RATES, "per second, such as 50") if "rate" in written else None
        bound = _read_number("bound", written["bound"], _BOUNDS, "in ms, such as 20ms") if "bound" in written else None
        streams = read_count("streams", written.get("streams", 1), minimum=1, maximum=MAX_STREAMS, scenario=cls.kind)
        return cls(rate, bound, streams, "each" if sessions == "each" else "shared")

    @property
    def text(self) -> str:
        """The scenario as a matrix writes it; a single stream and a shared session are left out."""
        options = {
            "rate": None if self.rate is None else f"{self.rate:.12g}",
            "bound": None if self.bound_ms is None else f"{self.bound_ms:.12g}ms",
            "streams": self.streams if self.streams > 1 else None,
            "sessions": None if self.sessions == "shared" else self.sessions,
        }
        return self._format_text(options)

    @property
    def label(self) -> str:
        """The rate, the bound and the streams in words: `load of 50 per s, p99 within 20 ms, 2 streams`."""
        rate = f"load of {self.rate:g} per s" if self.rate is not None else "highest load"
        bound = f"p99 within {self.bound_ms:g} ms" if self.bound_ms is not None else ""
        streams = f"{self.streams} streams" if self.streams > 1 else ""
        each = "a session each" if self.sessions == "each" else ""
        return ", ".join(part for part in (rate, bound, streams, each) if part)

    @property
    def looks_for_a_rate(self) -> bool:
        return self.rate is None

    def inferences_at_once(self, work: Workload) -> int:
        return self.streams

    def runner_settings(self, work: Workload) -> dict[str, object]:
        options = {"rate": self.rate, "bound_ms": self.bound_ms, "streams": self.streams, "sessions": self.sessions}
        return {**super().runner_settings(work), **options, "rates": []}

    def refusals(self, spec: CellSpec, model: ModelFacts, *, shape_problem: ShapeProblem) -> Iterator[str]:
        """Say why the cell cannot be measured.

        The model cannot keep the rate or the bound, launches take too long, or the engine has no streams.
        """
        yield from super().refusals(spec, model, shape_problem=shape_problem)
        if not engines.engine_of(spec.runtime).has_streams:
            yield f"{spec.runtime} runs one inference at a time: leave load out, or take a release of ONNX Runtime."
        latency_ms = model.quickest_ms or model.latency_ms
        if self.rate is not None:
            yield from self._refuse_rate(self.rate, latency_ms)
        if self.bound_ms is not None and latency_ms is not None and self.bound_ms < latency_ms:
            yield (
                f"The bound of {self.bound_ms:g} ms is below the latency of one inference alone, {latency_ms:.3g} ms: "
                "write a larger one."
            )
        elif self.rate is None and latency_ms is not None and (driven_s := self._driven_s(latency_ms)) > MAX_LAUNCH_S:
            yield (
                f"{len(AROUND)} rates of {ARRIVALS} arrivals take about {driven_s:.0f} s in each launch of a "
                f"model of {latency_ms:.3g} ms, and a block at most {MAX_LAUNCH_S:.0f} s: write one rate, such as "
                f"`load:rate={ceil(ARRIVALS / MAX_LAUNCH_S)}:bound={self.bound_ms:g}ms`, or more streams."
            )

    def _refuse_rate(self, rate: float, latency_ms: float | None) -> Iterator[str]:
        if (min_rate := ARRIVALS / MAX_LAUNCH_S) > rate:
            minutes = ARRIVALS / rate / 60.0
            yield (
                f"At {rate:g} per s the {ARRIVALS} arrivals of a p99 take {minutes:.3g} minutes in each launch: ask "
                f"for {ceil(min_rate)} per s or more."
            )
        if latency_ms is not None and (busy := rate * latency_ms / 1000.0) >= self.streams:
            yield (
                f"{rate:g} requests of {latency_ms:.3g} ms come in a second, too many for "
                f"{counted(self.streams, 'stream')}: ask for {int(busy) + 1} streams or a lower rate."
            )

    def extra_launch_s(self, latency_ms: float | None, *, timed_s: float) -> float:
        return self._driven_s(latency_ms) - timed_s

    def search_s(self, latency_ms: float | None) -> float:
        return self._driven_s(latency_ms) if self.rate is None else 0.0

    def max_launch_s(self, latency_ms: float | None) -> float:
        return MAX_TRIES * self._driven_s(latency_ms)

    def _driven_s(self, latency_ms: float | None) -> float:
        """Estimate how many seconds the arrivals of a launch take, at its rate or at those around a likely result."""
        if self.rate is not None:
            return ARRIVALS / self.rate
        if latency_ms is None and self.bound_ms is not None:
            latency_ms = min(UNKNOWN_LATENCY_MS, self.bound_ms / TYPICAL_BOUND)
        rate = USUAL_PART * self.streams / ((latency_ms or UNKNOWN_LATENCY_MS) / 1000.0)
        return sum(ARRIVALS / (part * rate) for part in AROUND)

    def describe_result(
        self, launched: Mapping[str, Figure], *, p99_ms: float | None, phases: Sequence[CellPhase] = ()
    ) -> str:
        """Describe the highest rate that kept the bound, or how many requests were answered at the set rate.

        `launched` has the figures of all launches by name of metric, and `phases` the rates that were measured. A
        search without a result is described as such. A set rate without p99 and goodput gives an empty text.
        """
        if self.rate is None:
            return self._describe_highest(launched.get(MAX_RATE), phases)
        p99 = "" if p99_ms is None else f"p99 {plain(p99_ms)} ms at {self.rate:g} per s"
        goodput = launched.get(GOODPUT)
        if goodput is None:
            return f"{p99}." if p99 else ""
        within = "" if self.bound_ms is None else f" within {self.bound_ms:g} ms"
        if goodput.value < MIN_ANSWERED_SHARE * self.rate:
            return f"{self.rate:g} per s are not held: {plain(goodput.value)} per s were answered{within}."
        return f"{p99 or f'{self.rate:g} per s are held'}, {plain(goodput.value)} per s answered{within}."

    def _describe_highest(self, rate: Figure | None, phases: Sequence[CellPhase]) -> str:
        bound = f"p99 within {self.bound_ms:g} ms"
        if rate is None:
            return f"No rate that was tried kept its {bound}."
        interval = ""
        if rate.low is not None and rate.high is not None:
            interval = f" (95 % interval {plain(rate.low)} to {plain(rate.high)}, {len(rate.samples)} launches)"
        return f"Keeps its {bound} {format_highest_rate(rate.value, phases)} requests per s{interval}."


@dataclass(frozen=True)
class Closed(Single):
    """A closed loop: each of `streams` streams runs one inference after another. It is stored as concurrency."""

    kind: ClassVar[str] = Load.kind
    is_plain: ClassVar[bool] = False
    is_single_stream: ClassVar[bool] = False
    streams: int

    @classmethod
    def read(cls, options: object, /) -> Scenario:
        """Make a closed load of `closed` streams; of one stream it is `single`. Raises MatrixProblem."""
        written = read_options(cls.kind, options, example="load: {closed: 4}")
        if len(written) > 1:
            raise MatrixProblem("A closed load has no arrivals: write `load:closed=4` alone, or a rate or bound.")
        streams = read_count("closed", written["closed"], minimum=1, maximum=MAX_STREAMS, scenario=cls.kind)
        return cls(streams) if streams > 1 else Single()

    @property
    def text(self) -> str:
        return f"{self.kind}:closed={self.streams}"

    @property
    def label(self) -> str:
        return f"closed loop of {self.streams}"

    @property
    def axis_text(self) -> str:
        return SINGLE

    @property
    def family(self) -> str:
        return SINGLE

    def axes_it_sets(self) -> Mapping[str, str]:
        text = "concurrency says the streams of the scenario load:closed too: leave one of the two out."
        return {"concurrency": text}

    def workload_fields(self, work: Mapping[str, object]) -> dict[str, object]:
        return {**work, "scenario": SINGLE, "concurrency": self.streams}


def format_highest_rate(rate: float, phases: Sequence[CellPhase]) -> str:
    """Write `up to 812`, or `up to at least 812` where phases measured rates, and none higher than this."""
    measured = [phase.metrics["rate_per_s"] for phase in phases if "rate_per_s" in phase.metrics]
    return f"up to {'at least ' if measured and rate >= max(measured) else ''}{plain(rate)}"


def _read_number(name: str, written: object, limits: tuple[float, float], example: str) -> float:
    """Read a number within limits; one with a unit of time becomes milliseconds."""
    lowest, highest = limits
    match = _REAL.match(str(written).strip())
    number = float(match[1]) * _UNITS[match[2]] if match and (name == "bound" or not match[2]) else None
    if name == "bound" and number is not None and number < lowest:
        raise MatrixProblem(
            f"bound of load is {written!r}: below {lowest:g} ms the clock of a shared machine "
            "is not exact enough; write more, such as 20ms."
        )
    if isinstance(written, bool) or number is None or not lowest <= number <= highest:
        raise MatrixProblem(f"{name} of load is {written!r}: write a number from {lowest:g} to {highest:g} {example}.")
    return number
