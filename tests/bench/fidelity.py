"""Whether a cell's p50 is the model's: our whole path against leaner ways to time the same wheel.

    python -m tests.bench.fidelity [--pairs 24] [--models …] [--others] [--seed 1]

Ours: agent, sandbox and runner, as on a node; the server only receives what they report. Against it, in fresh
processes with one thread on one core, on the same model with fixed shapes: a loop in C over the C API of the wheel's
own shared library (fidelity_loop.c) and a bare Python script with `run_with_iobinding`. They take turns, as the arms of
a block do. A wheel carries ONNX Runtime twice, as that library and inside the Python module: what of a difference is
the process's, and what the copy's, is told by a fourth way, the same C code called by a Python process. With `--others`
also `polygraphy run` and `onnxruntime_test`, which can take no turns, run before or after them, tell means only and are
compared with our means. Needs a C compiler (`cc`); `--others` needs a package index.
"""

import contextlib
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from farm.contract.cells import Budget
from farm.rules.comparing import verdicts
from tests.bench.figure import publish
from tests.bench.workbench import SIZES, prepared, write_fixed
from tests.integration.worker.making import Workbench
from tests.options import read_options
from worker.agent.installation import installer
from worker.agent.machine.affinity import choose_core
from worker.agent.measurement.checks import make_runner_order
from worker.agent.measurement.interleaving import Launch, interleave_processes
from worker.agent.measurement.orders import make_budget_part
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Answer, Launcher
from worker.runner.interleaving import TURN_NS

TARGET_RATIO = 0.005
TARGET_US = 1.5
# models of this p50 and more are held to the ratio, others to the difference
LARGE_MS = 0.5
WARMUP_S, WINDOW_S = 0.3, 0.5
OTHER_RUNS = 2000
LIMIT_S = 120.0

_BARE = """
import json, os, sys, time
import numpy as np, onnxruntime
model, inputs, turns = sys.argv[1], sys.argv[2], sys.argv[5]
warmup_s, window_s, core = float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[6])
if core >= 0:
    os.sched_setaffinity(0, {core})
go, said = os.open(turns + "/go", os.O_RDONLY), os.open(turns + "/said", os.O_WRONLY)
def hand_over(word):
    os.write(said, word)
    os.read(go, 1)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
binding = session.io_binding()
given = dict(np.load(inputs))
for name, array in given.items():
    binding.bind_cpu_input(name, array)
outputs = session.run(None, given)
for node, array in zip(session.get_outputs(), outputs):
    binding.bind_output(node.name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
clock, run = time.perf_counter_ns, session.run_with_iobinding
until = clock() + int(warmup_s * 1e9)
while clock() < until:
    run(binding)
spent, total = [], 0
while total < window_s * 1e9:
    hand_over(b"m")
    run(binding)
    began = clock()
    while True:
        before = clock()
        run(binding)
        after = clock()
        spent.append(after - before)
        if after - began >= TURN_NS:
            break
    total += after - began
hand_over(b"d")
print(json.dumps([float(np.median(spent)) / 1e6, float(np.mean(spent)) / 1e6]))
""".replace("TURN_NS", str(TURN_NS))

# the C loop's own main, in a Python process that has NumPy and ONNX Runtime in memory as a runner has
_C_IN_PYTHON = """
import ctypes, sys
import numpy, onnxruntime
words = [word.encode() for word in sys.argv[1:]]
sys.exit(ctypes.CDLL(sys.argv[1]).main(len(words), (ctypes.c_char_p * len(words))(*words)))
"""

# both tools leave the number of threads to ONNX Runtime; this is imported before them and sets it to one
_ONE_THREAD = """
import onnxruntime
class SessionOptions(onnxruntime.SessionOptions):
    def __init__(self):
        super().__init__()
        self.intra_op_num_threads = self.inter_op_num_threads = 1
onnxruntime.SessionOptions = SessionOptions
"""


@dataclass(frozen=True)
class Timed:
    """What one process said; p50 is None where a tool tells its mean only."""

    p50_ms: float | None
    mean_ms: float


Way = Callable[[], Timed]


@dataclass(frozen=True)
class Subject:
    """One model and everything that is needed to time it."""

    launcher: Launcher
    arm: PreparedArm
    model: Path
    inputs: Path
    loop: Path
    core: int | None
    tools: Path | None
    # of those that take turns
    ways: tuple[str, ...] = ("ours", "c_loop", "c_in_python", "bare")

    def round(self, dice: random.Random) -> dict[str, Timed]:
        """Every way once: ours, the C loops and the bare script by turns, the other tools before or after them."""
        others: dict[str, Way] = {}
        if self.tools is not None:
            tools = self.tools
            others["polygraphy"] = lambda: run_polygraphy(tools, self.model)
            others["onnxruntime_test"] = lambda: run_onnxruntime_test(tools, self.model)
        found: dict[str, Timed] = {}
        for name in dice.sample(["by turns", *others], 1 + len(others)):
            found |= self._by_turns(dice) if name == "by turns" else {name: others[name]()}
        return found

    def _by_turns(self, dice: random.Random) -> dict[str, Timed]:
        core = -1 if self.core is None else self.core
        times = [str(WARMUP_S), str(WINDOW_S)]
        library = next(self.arm.installed.folder.glob("lib/python*/site-packages/onnxruntime/capi/libonnxruntime.so.*"))
        spec = write_spec(self.model, self.inputs) if "c_loop" in self.ways else self.model
        python = [str(self.arm.installed.python), "-I", "-c"]
        c_words = [str(library), str(self.model), str(spec), *times]
        c_loop = [str(self.loop), *c_words]
        c_in_python = [*python, _C_IN_PYTHON, str(self.loop.with_suffix(".so")), *c_words]
        bare = [*python, _BARE, str(self.model), str(self.inputs), *times]
        order = {**make_runner_order(self.arm, "sample"), "budget": make_budget_part(Budget.QUICK), "core": self.core}
        ways: dict[str, Launch] = {
            "ours": lambda folder, started: self.launcher.launch(
                self.arm, {**order, "turns": folder}, work_dir=self.arm.scratch, on_started=started
            ),
            "c_loop": lambda folder, started: Answer(reply=_read_loop(run([*c_loop, folder, str(core)]))),
            "c_in_python": lambda folder, started: Answer(reply=_read_loop(run([*c_in_python, folder, str(core)]))),
            "bare": lambda folder, started: Answer(reply=_read_bare(run([*bare, folder, str(core)]))),
        }
        names = dice.sample(self.ways, len(self.ways))
        launches = [(ways[name], self.arm.scratch / f"turns-{name}") for name in names]
        answers = interleave_processes(launches, dice=dice, limit_s=LIMIT_S)
        return {name: _timed(answer) for name, answer in zip(names, answers, strict=True)}


def _timed(answer: Answer) -> Timed:
    if answer.reason is not None:
        raise SystemExit(answer.reason.text)
    return Timed(answer.reply["sample"]["p50_ms"], answer.reply["sample"]["mean_ms"])


def _read_loop(said: str) -> dict[str, Any]:
    p50_ns, mean_ns, *_ = map(int, said.split())
    return {"sample": {"p50_ms": p50_ns / 1e6, "mean_ms": mean_ns / 1e6}}


def _read_bare(said: str) -> dict[str, Any]:
    p50_ms, mean_ms = json.loads(said)
    return {"sample": {"p50_ms": p50_ms, "mean_ms": mean_ms}}


def main() -> None:
    """Prints the figures as JSON."""
    options = read_options(__doc__, pairs=24, models=",".join(SIZES), others=False, seed=1)
    names, dice = options.models.split(","), random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = [write_fixed(model, folder) for model in names]
        loop = compile_loop(folder)
        tools = install_others(folder) if options.others else None
        bench = Workbench(folder)
        found = {}
        with prepared(bench, models, folder=folder / "block") as (launcher, arms):
            for model, (path, inputs), arm in zip(names, models, arms, strict=True):
                subject = Subject(launcher, arm, path, inputs, loop=loop, core=choose_core(), tools=tools)
                found[model] = compare(subject, pairs=options.pairs, dice=dice)
    publish(
        claim="Our p50 is within 0.5 % of a C loop's from 0.5 ms on, and within 1.5 µs below.",
        seed=options.seed,
        figures={"runtime": "onnxruntime==1.31.1", "threads": 1, "models": found},
    )


def compare(subject: Subject, *, pairs: int, dice: random.Random) -> dict[str, Any]:
    """Ratio and difference of ours to every other way, over rounds."""
    rounds = [subject.round(dice) for _ in range(pairs)]
    figures: dict[str, Any] = {}
    for name in rounds[0].keys() - {"ours"}:
        found = [pair(one[name], one["ours"]) for one in rounds]
        judged = verdicts.judge_pairs(found, margin=TARGET_RATIO, looks=(pairs,))
        other_ms = statistics.median(other for other, _ in found)
        difference_us = statistics.median(1000 * (ours - other) for other, ours in found)
        figures[name] = {
            "of": "p50" if rounds[0][name].p50_ms is not None else "mean",
            "theirs_ms": other_ms,
            "ours_ms": statistics.median(ours for _, ours in found),
            "ratio": judged.ratio,
            "ci": [judged.ci_low, judged.ci_high],
            "ci_level": judged.ci_level,
            "difference_us": difference_us,
        }
    loop = figures["c_loop"]
    is_large = loop["theirs_ms"] >= LARGE_MS
    is_met = abs(loop["ratio"] - 1) < TARGET_RATIO if is_large else abs(loop["difference_us"]) < TARGET_US
    return {"pairs": pairs, "is_met": is_met, "held_to": "ratio" if is_large else "difference", **figures}


def pair(other: Timed, ours: Timed) -> tuple[float, float]:
    if other.p50_ms is not None and ours.p50_ms is not None:
        return other.p50_ms, ours.p50_ms
    return other.mean_ms, ours.mean_ms


def run_polygraphy(tools: Path, model: Path) -> Timed:
    runs = ["--iterations", str(OTHER_RUNS), "--warm-up", "200", "--sequential-runners"]
    said = run([str(tools / "bin" / "polygraphy"), "run", str(model), "--onnxrt", *runs])
    found = re.search(r"Average inference time: ([\d.e+-]+) ms", said)
    assert found, said[-500:]
    return Timed(None, float(found[1]))


def run_onnxruntime_test(tools: Path, model: Path) -> Timed:
    said = run([str(tools / "bin" / "onnxruntime_test"), str(model), str(OTHER_RUNS)])
    found = re.search(r"avg latency: ([\d.e+-]+) ms", said)
    assert found, said[-500:]
    return Timed(None, float(found[1]))


def compile_loop(folder: Path) -> Path:
    """The C loop as a program and, beside it with the suffix .so, as a library."""
    program = folder / "fidelity_loop"
    source = Path(__file__).with_name("fidelity_loop.c")
    compiler = [os.environ.get("CC", "cc"), "-O2", str(source), "-ldl"]
    run([*compiler, "-o", str(program)])
    run([*compiler, "-shared", "-fPIC", "-o", str(program.with_suffix(".so"))])
    return program


def install_others(folder: Path) -> Path:
    """An environment with the two other tools and the same ONNX Runtime."""
    place = folder / "others"
    uv = installer.find_uv()
    run([uv, "venv", "--quiet", str(place)])
    packages = ["polygraphy", "onnx", "onnxruntime==1.31.1", "numpy"]
    run([uv, "pip", "install", "--quiet", "--python", str(place / "bin" / "python"), *packages])
    site = next(place.glob("lib/python*/site-packages"))
    (site / "one_thread.py").write_text(_ONE_THREAD)
    (site / "one_thread.pth").write_text("import one_thread\n")
    return place


def write_spec(model: Path, inputs: Path) -> Path:
    """Tensors of the model for the C loop; written once."""
    spec = model.with_suffix(".spec")
    if spec.exists():
        return spec
    lines = []
    with np.load(inputs) as given:
        for name in given.files:
            raw = model.with_suffix(f".{name}.bin")
            given[name].tofile(raw)
            lines.append(_line("in", name, given[name], str(raw)))
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        outputs = session.run(None, dict(given))
    for value, array in zip(onnx.load(model).graph.output, outputs, strict=True):
        lines.append(_line("out", value.name, np.asarray(array), "-"))
    spec.write_text("".join(lines))
    return spec


def _line(side: str, name: str, array: "np.ndarray[Any, Any]", file: str) -> str:
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    words = [side, name, kind, array.nbytes, file, array.ndim, *array.shape]
    return " ".join(map(str, words)) + "\n"


def run(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{words[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    return done.stdout + (done.stderr if "polygraphy" in words[0] else "")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
