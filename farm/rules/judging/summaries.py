"""Summarises a cell: the median of its launches' p50 with its interval, and the figures of all timings together."""

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

# the most timings of a sample; a node keeps fewer
MAX_TIMINGS = 20_000
_DTYPES = {"u4": "<u4", "u8": "<u8"}


class TimingsProblem(ValueError):
    """Packed timings that cannot be read, or do not fit their sample. The message is one sentence."""


@dataclass(frozen=True, slots=True)
class CellSummary:
    """A cell's figures over all its launches."""

    # figures of the metrics that have one value in each launch, by name of metric
    launched: Mapping[str, Figure]
    # milliseconds per inference over all timings together; a percentile that needs more timings is None
    mean_ms: float
    std_ms: float | None
    p90_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    # items per second
    throughput: float
    # how many timings there are
    timings: int
    # whether the timings of every launch were stable
    is_stable: bool
    is_bimodal: bool
    # how many launches were disturbed; repeated measurements count too
    disturbed_samples: int


def unpack_timings(sample: Sample) -> NDArray[np.float64]:
    """Unpack the timings of a sample in milliseconds: all `n`, or evenly spaced ones where the node sent fewer.

    Raises TimingsProblem where there are none, where they cannot be read, or where there are more than `n` or
    MAX_TIMINGS.
    """
    kind, _, packed = sample.timings.partition(":")
    if kind not in _DTYPES:
        raise TimingsProblem(f"Timings of the kind {kind[:8]!r} are unknown: u4 and u8 are.")
    dtype = np.dtype(_DTYPES[kind])
    max_bytes = min(sample.n, MAX_TIMINGS) * dtype.itemsize
    try:
        # one byte more than allowed tells a longer stream from a whole one
        raw = zlib.decompressobj().decompress(base64.b64decode(packed, validate=True), max_bytes + 1)
    except (binascii.Error, zlib.error) as problem:
        raise TimingsProblem(f"The timings of a sample cannot be unpacked: {problem}.") from None
    if not raw or len(raw) > max_bytes or len(raw) % dtype.itemsize:
        raise TimingsProblem(
            f"A sample of {sample.n} timings unpacks to {len(raw)} bytes: at most {max_bytes}, none broken."
        )
    return np.frombuffer(raw, dtype=dtype).astype(np.float64) / 1e6


def pack_timings(nanoseconds: Sequence[int]) -> str:
    """Pack whole nanoseconds, one at least, as `u4:BASE64` or `u8:BASE64`, which `unpack_timings` reads."""
    kind = "u4" if max(nanoseconds) < 1 << 32 else "u8"
    raw = np.asarray(nanoseconds, dtype=_DTYPES[kind]).tobytes()
    return f"{kind}:{base64.b64encode(zlib.compress(raw)).decode()}"


def summarise_cell(
    samples: Sequence[Sample], *, batch: int | None = None, concurrency: int = 1, is_loaded: bool = False
) -> CellSummary | None:
    """Summarise a cell's samples, disturbed ones included; None without any. Raises TimingsProblem.

    Throughput is batch × 1000 / p50; with concurrent streams, or under a load (`is_loaded`), it is the batch times the
    median of the launches' inferences per second, if any launch reports them. A batch of None counts as 1.
    """
    if not samples:
        return None
    launched = {metric.name: figure for metric in OF_LAUNCHES if (figure := summarise_launches(metric, samples))}
    p50 = launched[JUDGED.name]
    timings_ms = np.concatenate([unpack_timings(sample) for sample in samples])
    percentiles_ms = percentiles.summarise_timings(timings_ms.tolist())
    mean, std = _pool_moments(samples)
    has_rates = concurrency > 1 or is_loaded
    rates = [sample.throughput for sample in samples if has_rates and sample.throughput is not None]
    return CellSummary(
        launched=launched,
        mean_ms=mean,
        std_ms=std,
        p90_ms=percentiles_ms["p90"],
        p95_ms=percentiles_ms["p95"],
        p99_ms=percentiles_ms["p99"],
        throughput=(batch or 1) * (median(rates) if rates else 1000.0 / p50.value),
        timings=sum(sample.n for sample in samples),
        is_stable=all(sample.is_stable for sample in samples),
        is_bimodal=percentiles.is_bimodal(p50.samples),
        disturbed_samples=sum(sample.remeasured + sample.is_disturbed for sample in samples),
    )


def summarise_launches(metric: Metric, samples: Sequence[Sample]) -> Figure | None:
    """Summarise the launches' figures as the metric says, with an interval of their median where its noise is known.

    None without figures, and for a metric that is not summarised over launches.
    """
    values = [value for sample in samples if (value := metric.read_figure(sample)) is not None]
    if not values or metric.summary is None:
        return None
    interval = None if metric.noise == "unknown" else median_interval(values)
    low, high = interval or (None, None)
    unit, better = metric.unit, metric.better
    return Figure(value=metric.summary(values), unit=unit, better=better, low=low, high=high, samples=values)


def _pool_moments(samples: Sequence[Sample]) -> tuple[float, float | None]:
    """Compute mean and standard deviation (divided by n − 1) of all timings from those of each sample."""
    count = sum(sample.n for sample in samples)
    mean = sum(sample.n * sample.mean_ms for sample in samples) / count
    if count == 1:
        return mean, None
    squares = sum((s.n - 1) * s.std_ms**2 + s.n * (s.mean_ms - mean) ** 2 for s in samples)
    return mean, sqrt(squares / (count - 1))
