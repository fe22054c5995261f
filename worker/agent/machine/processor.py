"""Reads the processor and its settings from the system. What is not known is None, never a guess."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LSCPU_TIMEOUT_S = 5.0
# above this value of kernel.perf_event_paranoid, only root may open counters
MAX_PARANOID_FOR_ALL = 2

# flags, by their Linux names, that decide which kernels ONNX Runtime picks
RELEVANT_FLAGS = (
    "sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx_vnni", "avx512_bf16",
    "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "asimd", "asimddp", "i8mm", "bf16", "sve", "sve2",
)  # fmt: skip


@dataclass(frozen=True)
class Processor:
    """The processor's model and instruction sets, its caches, and the virtual machine that it is in."""

    model: str | None = None
    instruction_sets: tuple[str, ...] = ()
    virtualization: str | None = None
    caches: tuple[str, ...] = ()


def read_processor() -> Processor:
    """Read the processor from `lscpu -J`, which takes 8 ms; where that is not installed, from sysctl or from Python.

    From those (macOS, others) only the model is known. Where lscpu fails, everything is unknown.
    """
    if shutil.which("lscpu"):
        return parse_lscpu(_run(["lscpu", "-J"]))
    if sys.platform == "darwin":
        model = _run(["sysctl", "-n", "machdep.cpu.brand_string"]).strip()
        return Processor(model=model or None)
    return Processor(model=platform.processor() or None)


def parse_lscpu(text: str) -> Processor:
    """Parse the JSON of lscpu, whose newer versions nest fields; an empty Processor where it is invalid.

    Of the instruction sets, those of RELEVANT_FLAGS count, in that order. A cache is a text such as "L2 1 MiB".
    """
    try:
        fields = dict(_flatten_fields(json.loads(text)["lscpu"]))
    except (ValueError, KeyError, TypeError):
        return Processor()
    flags = set(fields.get("Flags", "").split())
    return Processor(
        model=fields.get("Model name"),
        instruction_sets=tuple(name for name in RELEVANT_FLAGS if name in flags),
        virtualization=fields.get("Hypervisor vendor"),
        caches=tuple(
            f"{name.split()[0]} {re.sub(r' *[(].*', '', value)}"
            for name, value in fields.items()
            if re.match(r"L\d\w? cache", name)
        ),
    )


def read_governor(root: Path = Path("/sys/devices/system/cpu")) -> str | None:
    """Read the cores' frequency governors, each once, joined by commas; None without one, as in virtual machines."""
    governors = {_read(path) for path in root.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {None}
    return ", ".join(sorted(name for name in governors if name)) or None


def find_perf_event_restriction(
    setting: Path = Path("/proc/sys/kernel/perf_event_paranoid"), *, is_root: bool | None = None
) -> int | None:
    """Return kernel.perf_event_paranoid if it keeps this user from counting instructions.

    Return None if it does not, which holds for root, or if it cannot be read. `is_root` None: look at this process.
    """
    is_root = os.geteuid() == 0 if is_root is None else is_root
    level = _read(setting)
    is_closed = level is not None and level.isdecimal() and int(level) > MAX_PARANOID_FOR_ALL
    return int(level) if level and is_closed and not is_root else None


def is_turbo_enabled(root: Path = Path("/sys/devices/system/cpu")) -> bool | None:
    """Say whether the clock may rise above its base; None where it cannot be read."""
    disabled = _read(root / "intel_pstate" / "no_turbo")
    if disabled in ("0", "1"):
        return disabled == "0"
    boost = _read(root / "cpufreq" / "boost")
    return boost == "1" if boost in ("0", "1") else None


def is_emulated(proc: Path = Path("/proc")) -> bool:
    """Say whether this process runs on an emulated processor.

    Under qemu's user mode, platform.machine() and /proc/self/exe show the guest, but the link of the thread does not.
    Rosetta counts as emulation, and a virtual machine does not. Where nothing can be read, return False.
    """
    try:
        if os.path.basename(os.readlink(proc / "thread-self" / "exe")).startswith("qemu-"):
            return True
    except OSError:
        # no /proc here (macOS, or hidden): it counts as not emulated
        pass
    return sys.platform == "darwin" and _run(["sysctl", "-n", "sysctl.proc_translated"]).strip() == "1"


def _flatten_fields(entries: list[dict[str, object]]) -> list[tuple[str, str]]:
    fields: list[tuple[str, str]] = []
    for entry in entries:
        if entry.get("data") is not None:
            fields.append((str(entry["field"]).rstrip(":"), str(entry["data"])))
        children = entry.get("children")
        if isinstance(children, list):
            fields += _flatten_fields(children)
    return fields


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _run(argv: list[str]) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=LSCPU_TIMEOUT_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
