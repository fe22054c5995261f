"""Summaries for launches of all scenarios: of durations, packed timings, and peaks of memory."""

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypedDict

import numpy as np

from worker.runner import memory, windows

# the maximum of raw timings in a sample; beyond it every k-th is kept, so that a block's report stays under 1 MB
MAX_TIMINGS = 10_000


class MemoryPeaks(NamedTuple):
    """The peaks of this process's memory in bytes. The address space is None on other systems than Linux."""

    resident: int
    address_space: int | None


class Phase(TypedDict):
    """A part of a launch, such as a shape, a rate or the prompt, with its own figures."""

    name: str
    metrics: dict[str, float]


def summarise_timings(
    timings: Sequence[windows.Timings], warmups: Sequence[windows.Warmup], *, wall_ns: int
) -> dict[str, object]:
    """Make the fields of a Sample that come from the timings and warm-ups of one or several streams.

    `wall_ns` is from the first stream's start to the last one's end; throughput is all inferences per second.
    """
    return {
        **summarise([np.array(stream.durations) for stream in timings]),
        "warmup_runs": sum(warmup.runs for warmup in warmups),
        "warmup_ms": max(warmup.wall_ns for warmup in warmups) / 1e6,
        "is_stable": all(warmup.agreed for warmup in warmups) and all(stream.is_stable for stream in timings),
        "throughput": sum(len(stream.durations) for stream in timings) / (wall_ns / 1e9),
    }


def summarise(parts: Sequence[windows.Durations]) -> dict[str, object]:
    """Summarise durations in ns, of one part or several, as the fields of a Sample: statistics in ms and raw timings.

    No outlier is removed. `timings` are packed by `pack_timings`.
    """
    durations = np.concatenate(parts)
    scale = 1e-6
    return {
        "p50_ms": float(np.median(durations)) * scale,
        "mean_ms": float(np.mean(durations)) * scale,
        "std_ms": float(np.std(durations, ddof=1)) * scale if durations.size > 1 else 0.0,
        "min_ms": float(durations.min()) * scale,
        "max_ms": float(durations.max()) * scale,
        "n": int(durations.size),
        "timings": pack_timings(durations),
    }


def pack_timings(durations: windows.Durations) -> str:
    """Pack at most MAX_TIMINGS evenly spaced durations as text. Raises ValueError for no durations.

    The text is the kind, `u4` or `u8`, a colon, and base64 of zlib-compressed little-endian integers in ns.
    """
    step = -(-durations.size // MAX_TIMINGS)
    chosen = durations[::step]
    dtype = "u4" if int(chosen.max()) < 1 << 32 else "u8"
    return f"{dtype}:{base64.b64encode(zlib.compress(chosen.astype(f'<{dtype}').tobytes(), 6)).decode()}"


def read_memory_peaks() -> MemoryPeaks:
    return MemoryPeaks(memory.read_peak_bytes(), memory.read_peak_address_space_bytes())


def make_other_metrics(peaks: MemoryPeaks, metrics: Mapping[str, float | None]) -> dict[str, object]:
    """Make the fields `peak_memory_bytes` and `metrics` of a Sample. Metrics that are None are left out.

    The peak of the address space, where it is known, is one of the metrics.
    """
    all_metrics = {**metrics, "peak_address_space_bytes": peaks.address_space}
    return {
        "peak_memory_bytes": peaks.resident,
        "metrics": {name: value for name, value in all_metrics.items() if value is not None},
    }
