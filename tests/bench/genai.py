"""What onnxruntime-genai's releases do to a token, by blocks of this machine, and its own loop against ours.

    python -m tests.bench.genai blocks [--heads peaked,flat] [--releases R,R] [--sampling S,S] [--blocks 10] [--seed 1]
    python -m tests.bench.genai loop [--processes 8] [--seed 1]

`blocks`: 0.13.1, 0.13.2 and 0.14.0 beside ONNX Runtime 1.29.0 on a seeded decoder of 152,000 tokens, top-p 0.9 or
greedy, on a peaked and on a flat head; each block with windows of a fifth, eight rounds, and up to 24
while something is undecided. `loop`: time per token of ours against ten lines around genai, by turns.
"""

import argparse
import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from farm.contract.document import Document
from farm.rules.comparing.signed_ranks import median_interval
from farm.rules.matrices import matrix
from farm.rules.planning.plans import PlannedBlock
from farm.rules.presenting.explanations import explain_change
from farm.rules.runtimes import distributions
from farm.workshop.samples import decoder, genai
from onnxfarm.here import workbench
from onnxfarm.problems import Stopped
from onnxfarm.subject import Subject
from tests.bench import figure
from tests.bench.blocks import shortened_windows
from worker.agent.installation.runtimes import RuntimeStore
from worker.agent.installation.stages import stage_runner

CORE = "1.29.0"
RELEASES = "0.13.1,0.13.2,0.14.0"
TOP_P = "top-p=0.9"
# what moved, by head, how tokens are chosen, and the newer of two neighbouring releases; all else should be equal
EXPECTED = {("peaked", TOP_P, "0.13.2"): "faster", ("flat", TOP_P, "0.13.2"): "slower"}
OUTSIDE = "outside the graph"


def named(release: str) -> str:
    """A release beside the ONNX Runtime of all."""
    return f"onnxruntime-genai=={release}+onnxruntime=={CORE}"


def blocks(asked: argparse.Namespace) -> None:
    """One line a block, then how many came out as they should."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, shortened_windows():
        for head in asked.heads.split(","):
            model = genai.write_folder(Path(folder) / head, decoder.make_wide(is_flat=head == "flat"))
            opened = workbench.open_workbench(
                Subject(model, seed=asked.seed), home=asked.home, console=Console(file=sys.stderr)
            )
            # what was measured until somebody ends it is told
            with opened as bench, contextlib.suppress(Stopped):
                for number in range(asked.blocks):
                    for row in _measured(bench, head, asked):
                        rows.append({"block": number, **row})
                        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    figure.publish(claim=str(__doc__).splitlines()[0], seed=asked.seed, figures={"totals": totals(rows), "rows": rows})


def _measured(bench: workbench.Workbench, head: str, asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    releases = asked.releases.split(",")
    for sampling in asked.sampling.split(","):
        axes = {
            "runtime": [named(release) for release in releases],
            "scenario": [f"generate:prompt=16:new={asked.new}:sampling={sampling}"],
            "threads": [1],
        }
        plan = bench.plan(matrix.parse({"matrix": axes, "budget": "quick"}))
        found = bench.measure(workbench.reshape_plan(plan, _patient))
        for number, (old, new) in enumerate(itertools.pairwise(releases), start=1):
            expected = EXPECTED.get((head, sampling, new), "equal")
            known = {"head": head, "sampling": sampling, "step": f"{old} → {new}", "expected": expected}
            yield {**known, **_read_new_tokens(found, f"c{number}", f"c{number + 1}")}


def _patient(block: PlannedBlock) -> PlannedBlock:
    """Up to 24 rounds, however long the machine takes for them."""
    return workbench.select_comparisons(block).model_copy(update={"once_s": None, "round_s": None})


def _read_new_tokens(found: Document, old: str, new: str) -> dict[str, Any]:
    (one,) = [pair for pair in found.comparisons if (pair.baseline, pair.candidate) == (old, new)]
    cells = {cell.id: cell for cell in found.cells}
    spent = {name: cells[name].cpu_p50_ms for name in (old, new)}
    why = explain_change(one) or ""
    return {
        "verdict": one.verdict,
        "ratio": one.ratio,
        "from": one.verdict_from,
        "rounds": one.rounds,
        "cpu_ms": [spent[old], spent[new]],
        "outside": why if OUTSIDE in why else "",
        "parity": [cells[name].parity.verdict for name in (old, new)],
    }


def totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each step: how many blocks came out as they should, and how many said that it is outside the graph."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["head"], row["sampling"], row["step"], row["expected"]), []).append(row)
    return [
        {
            **dict(zip(("head", "sampling", "step", "expected"), key, strict=True)),
            "blocks": len(some),
            "as_expected": sum(row["verdict"] == row["expected"] for row in some),
            "outside": sum(bool(row["outside"]) for row in some),
            "cpu_ms": [median(row["cpu_ms"][side] or 0.0 for row in some) for side in (0, 1)],
        }
        for key, some in found.items()
    ]


_LOOP = """
import sys, json, time, numpy as np, onnxruntime_genai as og
sys.path.insert(0, sys.argv[1])
from worker.runner import order
from worker.runner.engines import genai
from worker.runner.scenarios.genai_times import TimedGenerations
folder, prompt, new, turns = sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
ids = np.random.default_rng(0).integers(0, 1000, (1, prompt)).astype(np.int32)
config = og.Config(folder); config.clear_providers()
threads = {"intra_op_num_threads": 1, "inter_op_num_threads": 1}
search = {"do_sample": False, "top_k": 1, "repetition_penalty": 1.0, "min_length": prompt + new}
search["max_length"] = prompt + new
config.overlay(json.dumps({"model": {"decoder": {"session_options": threads}}, "search": search}))
model, spent, walls = og.Model(config), [], []
def loop():
    generator = og.Generator(model, og.GeneratorParams(model))
    generator.append_tokens(ids)
    generator.generate_next_token(); each = []; cpu = time.thread_time_ns()
    while not generator.is_done():
        before = time.perf_counter_ns(); generator.generate_next_token(); each.append(time.perf_counter_ns() - before)
    spent.append((time.thread_time_ns() - cpu) / (new - 1)); walls.append(sorted(each)[len(each) // 2])
timer = order.PhaseTimer(launched_ns=None, entered_ns=0)
asked = order.Order(kind="sample", model=folder + "/model.onnx", inputs="", provider=order.CPU, engine="genai")
ours = TimedGenerations(genai.load_model(asked, genai.GenerationRequest(ids, new), timer=timer))
for turn in range(turns):
    loop(); ours.run()
mid = lambda some: sorted(some)[len(some) // 2]
each = ours.list_step_durations()
print(json.dumps({"processor": [ours.compute_cpu_p50_ms(), mid(spent) / 1e6],
                  "wall": [float(mid(np.median(each, axis=1))) / 1e6, mid(walls) / 1e6]}))
"""
PROMPT, NEW, TURNS = 64, 64, 60


def loop(asked: argparse.Namespace) -> None:
    """Both by turns in each of some processes; a line each, then both ratios with their 95 % intervals."""
    ratios: dict[str, list[float]] = {"processor": [], "wall": []}
    with tempfile.TemporaryDirectory() as folder:
        python = RuntimeStore(asked.home / "runtimes").provide(distributions.parse_runtime(named("0.13.2"))).python
        stage, model = stage_runner(Path(folder) / "stage"), genai.write_folder(Path(folder) / "model", decoder.make())
        words = [str(python), "-I", "-c", _LOOP, str(stage), str(model), str(PROMPT), str(NEW), str(TURNS)]
        for _ in range(asked.processes):
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            print(done.stdout.strip(), file=sys.stderr, flush=True)
            for kind, (ours, theirs) in json.loads(done.stdout).items():
                ratios[kind].append(log(ours / theirs))
    figures = {kind: _ratio(some) for kind, some in ratios.items()}
    figure.publish(
        claim=str(__doc__).splitlines()[0], seed=asked.seed, figures={"processes": asked.processes, **figures}
    )


def _ratio(some: list[float]) -> dict[str, float]:
    low, high = median_interval(some) or (min(some), max(some))
    return {"ours / loop": exp(median(some)), "low": exp(low), "high": exp(high)}


def main() -> None:
    """Measures what was asked for, and prints it as JSON."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("what", choices=("blocks", "loop"))
    for name, some in (("heads", "peaked,flat"), ("releases", RELEASES), ("sampling", f"{TOP_P},greedy")):
        parser.add_argument(f"--{name}", default=some)
    for name, usual in (("blocks", 10), ("processes", 8), ("seed", 1), ("new", 8)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--home", type=Path, default=Path.home() / ".onnxfarm")
    asked = parser.parse_args()
    blocks(asked) if asked.what == "blocks" else loop(asked)


if __name__ == "__main__":
    main()
