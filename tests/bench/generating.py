"""The time per token of `generate` against loops of ten lines on the same runtime.

    python -m tests.bench.generating [--pairs 12] [--seed 1] [--prompt 64] [--new 64]

All run in a process of their own, in random order, on one thread; compared is the processor time of a token behind the
first, which a busy machine leaves alone. `bound` binds anew at each step, outside the timed call, and lets ONNX Runtime
allocate; `run` hands arrays over and takes them back, and pays for that inside the call.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from math import exp, log
from pathlib import Path
from statistics import median

from farm.rules.comparing.signed_ranks import median_interval
from farm.workshop.samples import builders
from worker.agent.installation.stages import stage_runner

_HEAD = """
import sys, time, numpy as np, onnxruntime as ort
model, prompt, new = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
options = ort.SessionOptions(); options.intra_op_num_threads = options.inter_op_num_threads = 1
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
pasts = [one.name for one in session.get_inputs() if one.name.startswith("past")]
names, spent, stop = [one.name for one in session.get_outputs()], [], time.perf_counter() + 1.0
empty = np.zeros((1, 2, 0, 64), np.float32)
while time.perf_counter() < stop:
    ids, total, each = np.random.default_rng(0).integers(0, 1000, (1, prompt)), prompt, []
    past = [ort.OrtValue.ortvalue_from_numpy(empty) for _ in pasts] if BOUND else [empty] * len(pasts)
    for _ in range(new):
        made = {"input_ids": ids, "attention_mask": np.ones((1, total), np.int64),
                "position_ids": np.arange(total - ids.shape[1], total)[None]}
"""
_BOUND = """
        binding = session.io_binding()
        for name, array in made.items(): binding.bind_cpu_input(name, array)
        for name, value in zip(pasts, past): binding.bind_ortvalue_input(name, value)
        for name in names: binding.bind_output(name)
        before = time.thread_time_ns()
        session.run_with_iobinding(binding)
        each.append(time.thread_time_ns() - before)
        first, *past = binding.get_outputs()
        logits = first.numpy()
"""
_PLAIN = """
        before = time.thread_time_ns()
        logits, *past = session.run(names, {**made, **dict(zip(pasts, past))})
        each.append(time.thread_time_ns() - before)
"""
_TAIL = """
        ids = logits[:, -1:].argmax(-1); total += 1
    spent.append(sum(each[1:]) / (new - 1))
print(sorted(spent)[len(spent) // 2] / 1e6)
"""
LOOPS = {
    "bound": _HEAD.replace("BOUND", "True") + _BOUND + _TAIL,
    "run": _HEAD.replace("BOUND", "False") + _PLAIN + _TAIL,
}


def main() -> None:
    """Prints a line a pair, then the ratio with its 95 % interval."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, usual in (("pairs", 12), ("seed", 1), ("prompt", 64), ("new", 64)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked, dice = parser.parse_args(), random.Random(parser.parse_args().seed)
    with tempfile.TemporaryDirectory() as folder:
        stage = stage_runner(Path(folder) / "stage")
        for name in ("decoder", "decoder-gqa"):
            _compare(builders.write_model(name, Path(folder)), stage, asked, dice)


def _compare(model: Path, stage: Path, asked: argparse.Namespace, dice: random.Random) -> None:
    ratios: dict[str, list[float]] = {loop: [] for loop in LOOPS}
    for _ in range(asked.pairs):
        taken = {arm: _taken(arm, model, stage, asked) for arm in dice.sample(["generate", *LOOPS], 3)}
        print(f"{model.stem}: " + ", ".join(f"{arm} {taken[arm]:.4f} ms" for arm in sorted(taken)), flush=True)
        for loop in LOOPS:
            ratios[loop].append(log(taken["generate"] / taken[loop]))
    for loop, some in ratios.items():
        low, high = median_interval(some) or (median(some), median(some))
        interval = f"{exp(low):.3f} to {exp(high):.3f}"
        print(
            f"{model.stem}: generate against {loop} {exp(median(some)):.3f} ({interval}), {len(some)} pairs", flush=True
        )


def _taken(arm: str, model: Path, stage: Path, asked: argparse.Namespace) -> float:
    return _ours(stage, model, asked) if arm == "generate" else _loop(LOOPS[arm], model, asked)


def _ours(stage: Path, model: Path, asked: argparse.Namespace) -> float:
    order = {
        "version": 1,
        "kind": "sample",
        "model": str(model),
        "inputs": "",
        "provider": "CPUExecutionProvider",
        "scenario": {"kind": "generate", "prompt": asked.prompt, "new": asked.new, "seed": 0},
        "budget": {"window_s": 1.0},
        "gate_cpu_share": 0.0,
        "session": {"threads": 1},
    }
    words = [sys.executable, "-c", _RUN, str(stage)]
    done = subprocess.run(words, input=json.dumps(order), capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["sample"]["cpu_p50_ms"])


# the staged runner, its answer on stdout instead of the private pipe
_RUN = """
import sys, json, time; sys.path.insert(0, sys.argv[1])
from worker.runner import entry
entry._prepare_process()
print(json.dumps(entry.answer_order(sys.stdin.buffer.read(), entered_ns=time.monotonic_ns())))
"""


def _loop(program: str, model: Path, asked: argparse.Namespace) -> float:
    words = [sys.executable, "-c", program, str(model), str(asked.prompt), str(asked.new)]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
