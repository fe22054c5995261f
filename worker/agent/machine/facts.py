"""Reads facts of this machine just before a block: its hardware, who else measures on it, and whether it is quiet."""

import importlib
import os
import platform
import re
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from farm.contract.reports import OTHERS_SHARE, Facts
from farm.sandbox import confinement
from worker.agent.machine import processor

# limits of the warnings: load over a minute for each core, °C, and the share of memory that is free
LOAD_PER_CORE = 0.3
HOT_C = 85.0
LITTLE_MEMORY = 0.1
# the name of a staged runner's folder, see worker.agent.installation.stages
_STAGE = re.compile(r"^runner-[0-9a-f]{16}$")
# programs that start a runner, so that their arguments contain the runner's
_WRAPPERS = ("bwrap",)
BUSY_WINDOW_S = 0.2
# sensors whose reading is the processor's, in the order of preference
_CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")


@dataclass(frozen=True)
class MachineState:
    """The state of the machine that may disturb a measurement. Shares of the whole machine are 0–1; None: not known."""

    load_1m: float | None = None
    logical_cores: int | None = None
    busy_share: float | None = None
    other_runners: int | None = None
    governor: str | None = None
    turbo: bool | None = None
    temperature_c: float | None = None
    free_memory_share: float | None = None
    is_emulated: bool = False
    is_on_battery: bool = False
    virtualization: str | None = None
    perf_event_restriction: int | None = None


def list_warnings(state: MachineState) -> tuple[str, ...]:
    """List a sentence for each state that makes measurements worse, the most serious first; none for an unknown one."""
    return (*_warn_of_other_programs(state), *_warn_of_clock(state), *_warn_of_machine(state))


def _warn_of_other_programs(state: MachineState) -> Iterator[str]:
    cores = state.logical_cores or 1
    if state.is_emulated:
        yield (
            "The agent runs under emulation: its numbers do not describe this processor; "
            "install an agent that is built for it."
        )
    if state.busy_share is not None and state.busy_share > OTHERS_SHARE:
        yield (
            f"Other programs used {_percent(state.busy_share)} of the processor just before the block: "
            "expect disturbed samples; stop them, or dedicate the machine to the farm."
        )
    if state.other_runners:
        runners = "Another runner" if state.other_runners == 1 else f"{state.other_runners} other runners"
        yield (
            f"{runners} measured on this machine just before the block, by another lock file than this node's: expect "
            "disturbed samples; let all that measure here take turns by one lock file (ONNXFARM_HOST_LOCK)."
        )
    if state.load_1m is not None and state.load_1m > LOAD_PER_CORE * cores:
        yield (
            f"The load was {state.load_1m:.1f} over the last minute on {cores} cores: expect wider intervals; "
            "wait for other work to finish."
        )


def _warn_of_clock(state: MachineState) -> Iterator[str]:
    if state.governor is not None and "powersave" in state.governor:
        yield (
            f"The governor is {state.governor}: expect slower and noisier results; "
            "set it to performance (cpupower frequency-set -g performance)."
        )
    elif state.governor is not None and state.governor != "performance":
        yield (
            f"The governor is {state.governor}: expect the clock to follow the load and first samples to differ; "
            "set it to performance (cpupower frequency-set -g performance)."
        )
    if state.turbo:
        yield (
            "Turbo is on: expect the clock to depend on heat and on how many cores work; "
            "switch it off for steadier, but slower, results."
        )
    if state.temperature_c is not None and state.temperature_c > HOT_C:
        yield (
            f"The processor is at {state.temperature_c:.0f} °C: expect throttling; let it cool or improve its cooling."
        )
    if state.is_on_battery:
        yield "The machine runs on battery: expect lowered clocks; plug it in."


def _warn_of_machine(state: MachineState) -> Iterator[str]:
    if state.free_memory_share is not None and state.free_memory_share < LITTLE_MEMORY:
        yield f"Only {_percent(state.free_memory_share)} of the memory is free: expect large models to run out of it."
    if state.virtualization is not None:
        yield (
            f"This is a virtual machine ({state.virtualization}): other guests on its host may disturb it; "
            "the noise floor of its A/A pairs shows how much."
        )
    if state.perf_event_restriction is not None:
        yield (
            f"kernel.perf_event_paranoid is {state.perf_event_restriction}: instructions are not counted; "
            "set it to 2 or lower (sysctl kernel.perf_event_paranoid=2)."
        )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def count_runners() -> int | None:
    """Count the runners on this machine, this agent's and all others; None if processes cannot be listed."""
    try:
        processes = list(psutil.process_iter(["cmdline"]))
    except (OSError, psutil.Error):
        return None
    return sum(is_runner(process.info["cmdline"] or ()) for process in processes)


def is_runner(argv: "list[str] | tuple[str, ...]") -> bool:
    """Say whether a process with these arguments is an interpreter that runs a staged runner, and not its sandbox."""
    if not argv or os.path.basename(argv[0]) in _WRAPPERS:
        return False
    return any(_STAGE.match(os.path.basename(argument)) for argument in argv[1:])


def read_facts(*, busy_window_s: float = BUSY_WINDOW_S) -> Facts:
    """Read the machine's facts, with warnings under `advice`.

    The load by other programs is measured for `busy_window_s` seconds, in which this waits; 0: not measured.
    """
    busy = psutil.cpu_percent(interval=busy_window_s) / 100 if busy_window_s > 0 else None
    processor_facts = processor.read_processor()
    memory = psutil.virtual_memory()
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    state = MachineState(
        load_1m=_read_load(),
        logical_cores=psutil.cpu_count(logical=True),
        busy_share=busy,
        other_runners=count_runners(),
        governor=processor.read_governor(),
        turbo=processor.is_turbo_enabled(),
        temperature_c=read_temperature_c(),
        free_memory_share=memory.available / memory.total,
        is_emulated=processor.is_emulated(),
        is_on_battery=battery is not None and battery.power_plugged is False,
        virtualization=processor_facts.virtualization,
        perf_event_restriction=processor.find_perf_event_restriction(),
    )
    return Facts(
        hostname=socket.gethostname(),
        os=_read_system_name(),
        arch=platform.machine(),
        cpu_model=processor_facts.model,
        logical_cores=state.logical_cores,
        physical_cores=psutil.cpu_count(logical=False),
        memory_bytes=memory.total,
        governor=state.governor,
        turbo=state.turbo,
        load_1m=state.load_1m,
        temperature_c=state.temperature_c,
        python=platform.python_version(),
        is_emulated=state.is_emulated,
        sandbox=confinement.find_available_level(),
        gpus=list_nvidia_gpus(),
        instruction_sets=processor_facts.instruction_sets,
        advice=list_warnings(state),
        more=_collect_more(processor_facts, state),
    )


def read_temperature_c() -> float | None:
    """Read the highest temperature of the processor's sensor in °C; None where there is none."""
    read = getattr(psutil, "sensors_temperatures", None)
    sensors = read() if read else {}
    for name in _CPU_SENSORS:
        readings = [entry.current for entry in sensors.get(name, ()) if entry.current]
        if readings:
            return float(max(readings))
    return None


def list_nvidia_gpus() -> tuple[str, ...]:
    """List NVIDIA devices with their driver, by NVML; none where its binding or the driver is missing."""
    try:
        # only the requirements of GPU nodes have the binding
        pynvml = importlib.import_module("pynvml")
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        driver = _decode(pynvml.nvmlSystemGetDriverVersion())
        return tuple(f"{_decode(pynvml.nvmlDeviceGetName(handle))}, driver {driver}" for handle in handles)
    except pynvml.NVMLError:
        return ()


def _collect_more(processor_facts: processor.Processor, state: MachineState) -> dict[str, object]:
    """Collect further facts. Those that change from block to block are under `load`, which comparisons ignore."""
    affinity = getattr(os, "sched_getaffinity", None)
    more: dict[str, object] = {"kernel": platform.release(), "usable_cores": len(affinity(0)) if affinity else None}
    if processor_facts.virtualization:
        more["virtualization"] = processor_facts.virtualization
    if processor_facts.caches:
        more["caches"] = list(processor_facts.caches)
    load: dict[str, object] = {"other_runners": state.other_runners}
    if state.busy_share is not None:
        load["busy_share"] = round(state.busy_share, 3)
    return more | {"load": load}


def _read_load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def _read_system_name() -> str:
    release = Path("/etc/os-release")
    if sys.platform == "linux" and release.is_file():
        for line in release.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("PRETTY_NAME="):
                return line.partition("=")[2].strip().strip('"')
    return f"{platform.system()} {platform.release()}"


def _decode(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
