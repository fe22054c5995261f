"""Repeats a measurement: both runtimes side by side, a fresh process each, in random order. It needs Python and pip.

    python repeat.py [--rounds 8]

It makes two virtual environments in its folder from lock-old.txt and lock-new.txt, runs model/ on inputs.npz as
repeat.json says, and prints the median of the rounds' ratios and how far the outputs differ. It imports nothing of
onnxfarm, because it is copied into reports.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import time
import venv
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime as ort

HERE = Path(__file__).resolve().parent
SIDES = ("old", "new")
WARMUP_S = 0.25
WINDOW_S = 0.5
MIN_RUNS = 5
# a line of a lock: one package in one version, and nothing else that pip would read
PIN = re.compile(r"[a-z0-9][a-z0-9._-]*==[0-9][0-9A-Za-z.+!_-]*")


class Settings(TypedDict):
    """The content of repeat.json."""

    model: str
    runtimes: dict[str, str]
    providers: list[tuple[str, dict[str, str]]]
    threads: int
    inter_op_threads: int
    execution_mode: str
    optimization: str
    arena: bool
    memory_pattern: bool
    disabled_optimizers: list[str]
    config: dict[str, str]
    measured: str
    # settings of the measured session that this script does not know
    left_out: NotRequired[dict[str, object]]


def main() -> int:
    """Measure, and print every round, the ratio and how far the outputs differ; return the exit code."""
    parser = argparse.ArgumentParser(description="Repeat the measurement of this report.")
    parser.add_argument("--rounds", type=int, default=8, help="pairs of processes (default: 8)")
    parser.add_argument("--one", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--outputs", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    settings = json.loads((HERE / "repeat.json").read_text(encoding="utf-8"))
    # called again in the environment of a side
    if options.one:
        print(json.dumps({"p50_ms": measure_p50_ms(settings, options.one)}))
        return 0
    if options.outputs:
        print(*compare_outputs(), sep="\n")
        return 0
    if options.rounds < 1:
        parser.error("--rounds is at least 1")
    pythons = {side: make_environment(side) for side in SIDES}
    pairs = [measure_round(number, pythons, settings) for number in range(1, options.rounds + 1)]
    ratios = sorted(pair["new"] / pair["old"] for pair in pairs)
    runtimes = f"{settings['runtimes']['new']} / {settings['runtimes']['old']}"
    print(f"{runtimes}: x{median(ratios):.3f} (rounds from x{ratios[0]:.3f} to x{ratios[-1]:.3f})")
    print(f"measured before: {settings['measured']}", *describe_left_out(settings), sep="\n", flush=True)
    return subprocess.run([str(pythons["new"]), str(HERE / "repeat.py"), "--outputs"], check=False).returncode


def describe_left_out(settings: Settings) -> list[str]:
    """Say in a line which settings of the measured session this script does not set; empty where it sets all."""
    unset = ", ".join(f"{name} {json.dumps(value)}" for name, value in settings.get("left_out", {}).items())
    return [f"not set here: {unset}; `onnxfarm bench` sets it, with --matrix matrix.json"] if unset else []


def make_environment(side: str) -> Path:
    """Return the Python interpreter of a side, after installing its environment where that is not complete.

    Exits with a message where pip fails.
    """
    folder = HERE / f".venv-{side}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "complete").exists():
        packages = read_lock(side)
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:"]
        if subprocess.run([*install, *packages], check=False).returncode:
            raise SystemExit(f"lock-{side}.txt could not be installed with {sys.executable}: see pip's output above.")
        (folder / "complete").touch()
    return python


def read_lock(side: str) -> list[str]:
    """Read the packages of a side from its lock file, each `name==version`; exits with a message for any other line."""
    lines = (HERE / f"lock-{side}.txt").read_text(encoding="utf-8").splitlines()
    packages = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    wrong = [line for line in packages if not PIN.fullmatch(line)]
    if wrong or not any(line.startswith("onnxruntime") for line in packages):
        problem = (
            f"{wrong[0]!r} is not a package with one exact version" if wrong else "it names no published ONNX Runtime"
        )
        folder = HERE / f".venv-{side}"
        raise SystemExit(
            f"lock-{side}.txt: {problem}. Install it into {folder} yourself, then touch {folder}/complete."
        )
    return packages


def measure_round(number: int, pythons: dict[str, Path], settings: Settings) -> dict[str, float]:
    """Measure the p50 in ms of each side in a fresh process, in random order, print both and return them by side.

    Exits with the error output of a process that fails.
    """
    medians_ms: dict[str, float] = {}
    for side in random.sample(SIDES, len(SIDES)):
        command = [str(pythons[side]), str(HERE / "repeat.py"), "--one", side]
        process = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
        )
        if process.returncode:
            raise SystemExit(f"{settings['runtimes'][side]} failed:\n{process.stderr[-2000:]}")
        medians_ms[side] = json.loads(process.stdout.splitlines()[-1])["p50_ms"]
    old_ms, new_ms = medians_ms["old"], medians_ms["new"]
    print(f"round {number}: old {old_ms:.4g} ms, new {new_ms:.4g} ms, x{new_ms / old_ms:.3f}")
    return medians_ms


def measure_p50_ms(settings: Settings, side: str) -> float:
    """Measure the median time of an inference in this process, in ms, after warming up.

    Numeric outputs are saved to the file `outputs_of` the side; arrays of inputs.npz that are no inputs are ignored.
    """
    import numpy as np
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = settings["threads"]
    options.inter_op_num_threads = settings["inter_op_threads"]
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, settings["optimization"])
    options.execution_mode = getattr(ort.ExecutionMode, settings["execution_mode"])
    options.enable_cpu_mem_arena = settings["arena"]
    options.enable_mem_pattern = settings["memory_pattern"]
    for key, value in settings["config"].items():
        options.add_session_config_entry(key, value)
    providers = [(name, provider_options) for name, provider_options in settings["providers"]]
    extra = {"disabled_optimizers": settings["disabled_optimizers"]} if settings["disabled_optimizers"] else {}
    session = ort.InferenceSession(str(HERE / "model" / settings["model"]), options, providers=providers, **extra)
    input_names = {node.name for node in session.get_inputs()}
    with np.load(HERE / "inputs.npz", allow_pickle=False) as arrays:
        feed = {name: arrays[name] for name in arrays.files if name in input_names}
    outputs = zip(session.get_outputs(), session.run(None, feed), strict=True)
    numeric = {
        output.name: value for output, value in outputs if getattr(value, "dtype", np.dtype(object)).kind in "biuf"
    }
    np.savez(outputs_of(side), *numeric.values(), names=np.array(list(numeric), dtype=str))
    time_inferences(session, feed, seconds=WARMUP_S)
    return median(time_inferences(session, feed, seconds=WINDOW_S)) / 1e6


def outputs_of(side: str) -> Path:
    return HERE / f".outputs-{side}.npz"


def compare_outputs() -> list[str]:
    """Say in a line for each numeric output how far the sides differ, from the files that `measure_p50_ms` saved.

    Outputs are paired by their place among those of the old side.
    """
    import numpy as np

    sentences = []
    with np.load(outputs_of("old")) as old, np.load(outputs_of("new")) as new:
        for index, name in enumerate(old["names"]):
            before, after = (arrays[f"arr_{index}"].astype(np.float64) for arrays in (old, new))
            if before.shape != after.shape:
                sentences.append(f"output {name}: the shape is {after.shape}, before {before.shape}")
                continue
            # where both sides are not a number there is no difference
            gap = np.where(np.isnan(before) & np.isnan(after), 0.0, np.abs(after - before))
            largest_gap, largest_value = np.max(gap, initial=0.0), np.nanmax(np.abs(before), initial=0.0)
            sentences.append(
                f"output {name}: apart by {largest_gap:.3g} at most, its largest value is {largest_value:.3g}"
            )
    return sentences


def time_inferences(session: "ort.InferenceSession", feed: "dict[str, np.ndarray]", *, seconds: float) -> list[int]:
    """Run inferences for at least so many seconds and MIN_RUNS times, and return the duration of each in ns."""
    durations_ns: list[int] = []
    ends_at = time.perf_counter() + seconds
    while len(durations_ns) < MIN_RUNS or time.perf_counter() < ends_at:
        begin_ns = time.perf_counter_ns()
        session.run(None, feed)
        durations_ns.append(time.perf_counter_ns() - begin_ns)
    return durations_ns


if __name__ == "__main__":
    sys.exit(main())
