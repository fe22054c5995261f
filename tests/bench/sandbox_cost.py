"""What the sandbox costs: its start, and whether a runner's p50 is another inside than outside.

    python -m tests.bench.sandbox_cost [--launches 40] [--pairs 24] [--seed 2026]

Start: a fresh interpreter that ends at once, plain and confined, and the same with onnxruntime imported. Shift: the
sample transformer, one thread, half a second of timed inferences a launch; inside and outside in random order, a pair a
round, and the ratio of the p50s with its interval. Both run this very interpreter.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from farm.rules.comparing import verdicts
from farm.sandbox import child, confinement, interpreters
from farm.sandbox.policy import Policy
from farm.workshop.samples import builders
from tests.bench.figure import publish
from tests.options import read_options

_CONFINED = """
import os
started, closed = map(int, os.environ["ONNXFARM_CONFINED_NS"].split())
os.write(int(os.environ["ONNXFARM_REPLY_FD"]), str((closed - started) / 1e6).encode())
"""
_IMPORT = "import onnxruntime"
_SAMPLE = """
import os, statistics, sys, time
import numpy as np, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
binding = session.io_binding()
binding.bind_cpu_input("x", np.random.default_rng(0).standard_normal((1, 64, 256)).astype(np.float32))
binding.bind_output("y")
def window(seconds):
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter_ns()
        session.run_with_iobinding(binding)
        times.append(time.perf_counter_ns() - started)
    return statistics.median(times) / 1e6
window(0.3)
answer = str(window(0.5)).encode()
os.write(int(os.environ.get("ONNXFARM_REPLY_FD", "1")), answer)
"""
PYTHON = os.path.abspath(sys.executable)


def main() -> None:
    """Prints the figures as JSON."""
    options = read_options(__doc__, launches=40, pairs=24, seed=2026)
    with tempfile.TemporaryDirectory() as folder:
        model = builders.write_model("transformer", Path(folder))
        shift = _shift(model, pairs=options.pairs, order=random.Random(options.seed))
    figures = {"level": confinement.find_available_level(), **_start(options.launches), **shift}
    publish(claim="The sandbox shifts p50 by less than 0.5 %.", seed=options.seed, figures=figures)


def _start(launches: int) -> dict[str, float]:
    """Medians in milliseconds."""
    closing = [float(_inside(_CONFINED)) for _ in range(launches)]
    times: dict[str, tuple[list[float], list[float]]] = {"pass": ([], []), _IMPORT: ([], [])}
    for _ in range(launches):
        for code, (plain, confined) in times.items():
            plain.append(_timed(_outside, code))
            confined.append(_timed(_inside, code))
    start, imported = ([statistics.median(values) for values in times[code]] for code in ("pass", _IMPORT))
    return {
        "close_sandbox_ms": round(statistics.median(closing), 2),
        "plain_start_ms": round(start[0], 1),
        "confined_start_ms": round(start[1], 1),
        "plain_import_ms": round(imported[0], 1),
        "confined_import_ms": round(imported[1], 1),
        "added_ms": round(imported[1] - imported[0], 1),
    }


def _shift(model: Path, *, pairs: int, order: random.Random) -> dict[str, object]:
    found = []
    for _ in range(pairs):
        measured = {}
        for place in order.sample(["inside", "outside"], 2):
            run = _inside if place == "inside" else _outside
            measured[place] = float(run(_SAMPLE, str(model)))
        found.append((measured["outside"], measured["inside"]))
    judged = verdicts.judge_pairs(found, margin=0.005, looks=(pairs,))
    return {
        "pairs": pairs,
        "inside_by_outside": round(judged.ratio or 0, 5),
        "ci": [judged.ci_low, judged.ci_high],
        "ci_level": judged.ci_level,
        "verdict": judged.verdict,
        "p50_ms": [round(statistics.median(column), 4) for column in zip(*found, strict=True)],
    }


def _inside(code: str, *arguments: str) -> str:
    reads = (*interpreters.list_interpreter_paths(Path(PYTHON)), *(Path(name).parent for name in arguments))
    ending = child.run_command([PYTHON, "-c", code, *arguments], policy=Policy(read_only=reads), timeout_s=60)
    if not ending.is_done:
        raise SystemExit(ending.describe())
    return ending.reply.decode()


def _outside(code: str, *arguments: str) -> str:
    done = subprocess.run([PYTHON, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def _timed(run: Callable[[str], str], code: str) -> float:
    started = time.perf_counter()
    run(code)
    return (time.perf_counter() - started) * 1e3


if __name__ == "__main__":
    main()
