"""Summaries for launches of all scenarios: of durations, packed timings, and peaks of memory."""

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from worker.runner import memory, windows

# the most raw timings of a sample; of more, every k-th is kept, so that a block's report stays under 1 MB
MAX_TIMINGS = 10_000

Peaks = tuple[int, int | None]


class Phase(TypedDict):
    """A part of a launch with figures of its own."""

    name: str
    metrics: dict[str, float]


def summarise_timings(
    taken: Sequence[windows.Timings], warm: Sequence[windows.Warmup], *, wall_ns: int
) -> dict[str, object]:
    """Make the fields of a Sample that come from timings of one stream or several, over `wall_ns` together."""
    return {
        **summarise([np.array(part.durations) for part in taken]),
        "warmup_runs": sum(part.runs for part in warm),
        "warmup_ms": max(part.wall_ns for part in warm) / 1e6,
        "is_stable": all(part.agreed for part in warm) and all(part.is_stable for part in taken),
        "throughput": sum(len(part.durations) for part in taken) / (wall_ns / 1e9),
    }


def summarise(parts: Sequence[windows.Durations]) -> dict[str, object]:
    """Summarise durations in ns by p50, mean, standard deviation and extremes in ms, and pack the raw timings.

    No outlier is removed.
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
    """Pack at most MAX_TIMINGS durations, evenly spaced: `u4:` or `u8:`, then base64 of zlib of little-endian ns."""
    step = -(-durations.size // MAX_TIMINGS)
    chosen = durations[::step]
    dtype = "u4" if int(chosen.max()) < 1 << 32 else "u8"
    return f"{dtype}:{base64.b64encode(zlib.compress(chosen.astype(f'<{dtype}').tobytes(), 6)).decode()}"


def read_memory_peaks() -> Peaks:
    return memory.read_peak_bytes(), memory.read_peak_address_space_bytes()


def make_other_metrics(peaks: Peaks, metrics: Mapping[str, float | None]) -> dict[str, object]:
    """Make a Sample's fields of memory and of further metrics, without those that are None."""
    resident, addresses = peaks
    all_metrics = {**metrics, "peak_address_space_bytes": addresses}
    return {
        "peak_memory_bytes": resident,
        "metrics": {name: value for name, value in all_metrics.items() if value is not None},
    }
