"""Facts of this machine, read just before a block."""

import importlib
import os
import platform
import socket
import sys
from pathlib import Path

import psutil

from farm.contract.reports import Facts
from farm.sandbox import confinement
from worker.agent.machine import company, processor, quiet

BUSY_WINDOW_S = 0.2
# sensors whose reading is the processor's, in the order of preference
_CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")


def read_facts(*, busy_window_s: float = BUSY_WINDOW_S) -> Facts:
    """What the machine is and how busy it is. Takes `busy_window_s` seconds to watch other programs."""
    busy = psutil.cpu_percent(interval=busy_window_s) / 100 if busy_window_s > 0 else None
    known = processor.read_processor()
    memory = psutil.virtual_memory()
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    seen = quiet.Surroundings(
        load_1m=_load(),
        logical_cores=psutil.cpu_count(logical=True),
        busy_share=busy,
        other_runners=company.other_runners(),
        governor=processor.governor(),
        turbo=processor.turbo(),
        temperature_c=temperature_c(),
        free_memory_share=memory.available / memory.total,
        is_emulated=processor.is_emulated(),
        is_on_battery=battery is not None and battery.power_plugged is False,
        virtualization=known.virtualization,
        counters_closed_at=processor.counters_closed_at(),
    )
    return Facts(
        hostname=socket.gethostname(),
        os=_system(),
        arch=platform.machine(),
        cpu_model=known.model,
        logical_cores=seen.logical_cores,
        physical_cores=psutil.cpu_count(logical=False),
        memory_bytes=memory.total,
        governor=seen.governor,
        turbo=seen.turbo,
        load_1m=seen.load_1m,
        temperature_c=seen.temperature_c,
        python=platform.python_version(),
        is_emulated=seen.is_emulated,
        sandbox=confinement.available_level(),
        gpus=gpus(),
        instruction_sets=known.instruction_sets,
        advice=quiet.advice(seen),
        more=_more(known, seen),
    )


def temperature_c() -> float | None:
    """The hottest reading of the processor's sensor in °C; None where there is none."""
    read = getattr(psutil, "sensors_temperatures", None)
    sensors = read() if read else {}
    for name in _CPU_SENSORS:
        readings = [entry.current for entry in sensors.get(name, ()) if entry.current]
        if readings:
            return float(max(readings))
    return None


def gpus() -> tuple[str, ...]:
    """Names of NVIDIA devices by NVML, where its binding is installed and a driver answers."""
    try:
        # its binding comes with the requirements of GPU nodes only
        pynvml = importlib.import_module("pynvml")
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        return tuple(f"{_text(pynvml.nvmlDeviceGetName(handle))}, driver {driver}" for handle in handles)
    except pynvml.NVMLError:
        return ()


def _more(known: processor.Processor, seen: quiet.Surroundings) -> dict[str, object]:
    """Further facts; what passes from block to block lies under `load`, which comparisons leave out."""
    more: dict[str, object] = {"kernel": platform.release(), "usable_cores": _usable_cores()}
    if known.virtualization:
        more["virtualization"] = known.virtualization
    if known.caches:
        more["caches"] = list(known.caches)
    load: dict[str, object] = {"other_runners": seen.other_runners}
    if seen.busy_share is not None:
        load["busy_share"] = round(seen.busy_share, 3)
    return more | {"load": load}


def _usable_cores() -> int | None:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else None


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def _system() -> str:
    release = Path("/etc/os-release")
    if sys.platform == "linux" and release.is_file():
        for line in release.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("PRETTY_NAME="):
                return line.partition("=")[2].strip().strip('"')
    return f"{platform.system()} {platform.release()}"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
