"""A cell in numbers: one p50 a process launch, their median with its interval, and what the pooled timings allow."""

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

import numpy as np
from numpy.typing import NDArray

from farm.contract.document_cells import Figure
from farm.contract.reports import Sample
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import JUDGED, OF_LAUNCHES
from farm.rules.comparing import percentiles
from farm.rules.comparing.signed_ranks import median_interval

# a node keeps fewer of each sample
MAX_TIMINGS = 20_000
_DTYPES = {"u4": "<u4", "u8": "<u8"}


class TimingsProblem(ValueError):
    """Packed timings that do not hold what their sample says. The message is one sentence."""


@dataclass(frozen=True, slots=True)
class CellSummary:
    """`launched`: the metrics of which every launch says one figure, by name, as far as the launches said one.

    Mean, std and the higher percentiles are of all timings pooled, in milliseconds per inference; a percentile that so
    many timings do not allow is None. `throughput`: items per second.
    """

    launched: Mapping[str, Figure]
    mean_ms: float
    std_ms: float | None
    p90_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    throughput: float
    timings: int
    is_stable: bool
    is_bimodal: bool
    disturbed_samples: int


def unpack_timings(sample: Sample) -> NDArray[np.float64]:
    """The raw timings of a sample in milliseconds: all n, or evenly spaced ones where a node thinned them.

    Raises TimingsProblem; never unpacks more than n or MAX_TIMINGS of them.
    """
    kind, _, packed = sample.timings.partition(":")
    if kind not in _DTYPES:
        raise TimingsProblem(f"Timings of the kind {kind[:8]!r} are unknown: u4 and u8 are.")
    dtype = np.dtype(_DTYPES[kind])
    most = min(sample.n, MAX_TIMINGS) * dtype.itemsize
    try:
        # one byte more than allowed tells a longer stream from a whole one
        raw = zlib.decompressobj().decompress(base64.b64decode(packed, validate=True), most + 1)
    except (binascii.Error, zlib.error) as problem:
        raise TimingsProblem(f"The timings of a sample cannot be unpacked: {problem}.") from None
    if not raw or len(raw) > most or len(raw) % dtype.itemsize:
        raise TimingsProblem(
            f"A sample of {sample.n} timings unpacks to {len(raw)} bytes: at most {most}, none broken."
        )
    return np.frombuffer(raw, dtype=dtype).astype(np.float64) / 1e6


def pack_timings(nanoseconds: Sequence[int]) -> str:
    """The inverse of `unpack_timings`, from whole nanoseconds."""
    kind = "u4" if max(nanoseconds) < 1 << 32 else "u8"
    raw = np.asarray(nanoseconds, dtype=_DTYPES[kind]).tobytes()
    return f"{kind}:{base64.b64encode(zlib.compress(raw)).decode()}"


def summarise(
    samples: Sequence[Sample], *, batch: int | None = None, concurrency: int = 1, is_loaded: bool = False
) -> CellSummary | None:
    """The summary of a cell's samples, disturbed ones included and counted; None without any.

    Throughput is batch × 1000 / p50, and with concurrent streams, or under a load (`is_loaded`), the batch times the
    median of the inferences per second that were reached together.
    """
    if not samples:
        return None
    launched = {metric.name: figure for metric in OF_LAUNCHES if (figure := launched_figure(metric, samples))}
    judged = launched[JUDGED.name]
    pooled = np.concatenate([unpack_timings(sample) for sample in samples])
    allowed = percentiles.summarise_timings(pooled.tolist())
    mean, std = _pooled(samples)
    together = [s.throughput for s in samples if s.throughput is not None] if concurrency > 1 or is_loaded else []
    return CellSummary(
        launched=launched,
        mean_ms=mean,
        std_ms=std,
        p90_ms=allowed["p90"],
        p95_ms=allowed["p95"],
        p99_ms=allowed["p99"],
        throughput=(batch or 1) * (median(together) if together else 1000.0 / judged.value),
        timings=sum(sample.n for sample in samples),
        is_stable=all(sample.is_stable for sample in samples),
        is_bimodal=percentiles.is_bimodal(judged.samples),
        disturbed_samples=sum(sample.remeasured for sample in samples) + sum(s.is_disturbed for s in samples),
    )


def launched_figure(metric: Metric, samples: Sequence[Sample]) -> Figure | None:
    """One figure of one figure a launch, with its interval where its noise is that of launches; None without any."""
    values = [value for sample in samples if (value := metric.read_figure(sample)) is not None]
    if not values or metric.summary is None:
        return None
    low, high = (metric.noise != "unknown" and median_interval(values)) or (None, None)
    unit, better = metric.unit, metric.better
    return Figure(value=metric.summary(values), unit=unit, better=better, low=low, high=high, samples=values)


def _pooled(samples: Sequence[Sample]) -> tuple[float, float | None]:
    """Mean and standard deviation (n − 1 below) of all timings together, from those of each sample."""
    count = sum(sample.n for sample in samples)
    mean = sum(sample.n * sample.mean_ms for sample in samples) / count
    if count == 1:
        return mean, None
    squares = sum((s.n - 1) * s.std_ms**2 + s.n * (s.mean_ms - mean) ** 2 for s in samples)
    return mean, sqrt(squares / (count - 1))
