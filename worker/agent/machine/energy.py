"""Measures the energy of an inference by counters of the processor (RAPL) or of an NVIDIA device (NVML).

Both count the whole package or device, with everything else that runs on it, and with its idling.
"""

import ctypes
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from farm.contract.cells import CellSpec
from farm.rules.runtimes import providers

POWERCAP = Path("/sys/class/powercap")
NVML = "libnvidia-ml.so.1"
NOT_READABLE = "not readable here"
# the time between two readings; counters change every millisecond (RAPL) to every tenth of a second (NVML)
PERIOD_S = 0.05


class EnergyUnreadableError(RuntimeError):
    """The energy cannot be read. The message begins with NOT_READABLE."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"{NOT_READABLE}: {cause}")


@dataclass(frozen=True)
class Meter:
    """An energy counter that only grows. `read_j` returns joules since some moment, and `name` says what it counts."""

    name: str
    read_j: Callable[[], float]


@dataclass
class Readings:
    """Readings of a meter over time, in joules and nanoseconds of CLOCK_MONOTONIC."""

    at_ns: list[int] = field(default_factory=list)
    joules: list[float] = field(default_factory=list)
    clock: Callable[[], int] = time.monotonic_ns

    def take(self, meter: Meter) -> None:
        """Read the meter once. A reading that fails is left out."""
        try:
            joules = meter.read_j()
        except (OSError, ValueError):
            return
        self.joules.append(joules)
        self.at_ns.append(self.clock())

    def compute_joules_between(self, began_ns: int, ended_ns: int) -> float | None:
        """Compute the joules between two moments, interpolated between readings; None outside of the readings."""
        first, last = self._interpolate_joules(began_ns), self._interpolate_joules(ended_ns)
        return None if first is None or last is None else last - first

    def _interpolate_joules(self, moment: int) -> float | None:
        if not self.at_ns or not self.at_ns[0] <= moment <= self.at_ns[-1]:
            return None
        place = bisect_left(self.at_ns, moment)
        if self.at_ns[place] == moment:
            return self.joules[place]
        before, after = self.at_ns[place - 1], self.at_ns[place]
        share = (moment - before) / (after - before)
        return self.joules[place - 1] + share * (self.joules[place] - self.joules[place - 1])


@contextmanager
def read_during(
    meter: Meter | None, *, period_s: float = PERIOD_S, clock: Callable[[], int] = time.monotonic_ns
) -> Iterator[Readings]:
    """Read the meter every `period_s` seconds inside the `with`, and once before and after.

    The readings are complete after the `with`. They stay empty for no meter (None).
    """
    readings = Readings(clock=clock)
    if meter is None:
        yield readings
        return
    ended = threading.Event()

    def read_on() -> None:
        while not ended.wait(period_s):
            readings.take(meter)

    readings.take(meter)
    thread = threading.Thread(target=read_on, daemon=True, name="energy")
    thread.start()
    try:
        yield readings
    finally:
        ended.set()
        thread.join()
        readings.take(meter)


def find_meter(cell: CellSpec, *, powercap: Path = POWERCAP, nvml: str = NVML) -> Meter:
    """Open the energy meter of the processor or device that a cell runs on.

    Raises EnergyUnreadableError where its provider has no known meter, or where the meter cannot be read. A device id
    that is missing or not a number counts as 0.
    """
    entry = providers.find(cell.provider)
    meter = entry.meter if entry is not None else None
    if meter == "processor":
        return open_processor_meter(powercap)
    if meter == "nvidia":
        number = cell.provider_options.get("device_id", "0")
        return open_nvidia_meter(int(number) if number.isdecimal() else 0, library=nvml)
    raise EnergyUnreadableError(f"no energy counter is known for {cell.provider}")


def open_processor_meter(powercap: Path = POWERCAP) -> Meter:
    """Open the RAPL counters of all processor packages as one meter. Raises EnergyUnreadableError."""
    # intel-rapl:0 is a package, and intel-rapl:0:0 a part of it; AMD's counters have the same names
    folders = sorted(path for path in powercap.glob("*-rapl:*") if path.name.count(":") == 1)
    packages = [folder for folder in folders if _read_text(folder / "name").startswith("package")]
    if not packages:
        raise EnergyUnreadableError(f"{powercap} shows no RAPL package, as on most virtual machines")
    counters = [_Counter(folder) for folder in packages]
    return Meter(f"RAPL, {len(counters)} package(s)", lambda: sum(counter.read_j() for counter in counters))


class _Counter:
    """A RAPL counter, which starts again from 0 at the end of its range."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "energy_uj"
        try:
            self._range = int(_read_text(folder / "max_energy_range_uj") or 0)
            self._last = int(self._path.read_text())
        except PermissionError:
            raise EnergyUnreadableError(f"{self._path} is for root only; let the agent's user read it") from None
        except (OSError, ValueError) as problem:
            raise EnergyUnreadableError(f"{self._path} cannot be read ({problem})") from None
        self._sum = 0

    def read_j(self) -> float:
        now = int(self._path.read_text())
        self._sum += now - self._last if now >= self._last else now - self._last + self._range
        self._last = now
        return self._sum / 1e6


def open_nvidia_meter(device: int, *, library: str = NVML) -> Meter:
    """Open the driver's energy counter of an NVIDIA device, Volta or newer. Raises EnergyUnreadableError.

    A later reading that fails returns the count of the one before.
    """
    try:
        nvml = ctypes.CDLL(library)
        handle, count = ctypes.c_void_p(), ctypes.c_ulonglong()
        codes = (
            nvml.nvmlInit_v2(),
            nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(device), ctypes.byref(handle)),
            nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(count)),
        )
    except (OSError, AttributeError) as problem:
        raise EnergyUnreadableError(f"no NVML of this driver ({problem})") from None
    if any(codes):
        raise EnergyUnreadableError(f"NVML answered {next(code for code in codes if code)} for device {device}")

    def read_j() -> float:
        nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(count))
        return count.value / 1000.0

    return Meter(f"NVML, device {device}", read_j)


def compute_energy_per_inference_mj(readings: Readings, points: Sequence[tuple[int, int, int]]) -> list[float | None]:
    """Compute the millijoules of an inference for each point (began_ns, ended_ns, inferences), in the same order.

    None where the readings do not cover that time, or the counter did not move in it. Each point needs at least one
    inference.
    """
    parts = [(readings.compute_joules_between(began, ended), runs) for began, ended, runs in points]
    return [1000.0 * joules / runs if joules is not None and joules > 0 else None for joules, runs in parts]


def _read_text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
