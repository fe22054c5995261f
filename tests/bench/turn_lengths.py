"""Whether shorter or longer turns make pairs steadier.

    python -m tests.bench.turn_lengths [--rounds 64] [--model transformer] [--lengths 5,10,20,40] [--seed 1]

A/A pairs of one model by turns on one core, as the product measures, with the runner's turns staged at each length. The
lengths take turns themselves: each has one round in every rotation, in random order, so that all of them see the same
machine. s is the standard deviation of the pairs' log ratios, of wall time and of processor time; beside it stand its
ratio to the s of 20 ms with a bootstrap interval over rotations, and what a round takes.
"""

import random
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tests.bench.figure import publish
from tests.bench.turns import order_of, sample_of, staged_with_turns
from tests.bench.workbench import prepared, write_fixed
from tests.integration.worker.making import Workbench
from tests.options import read_options
from worker.agent.machine.affinity import choose_core
from worker.agent.measurement.interleaving import measure_in_turns
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Launcher
from worker.agent.measurement.samples import CPU_SHARE_GATE
from worker.runner.interleaving import TURN_NS

SHIPPED_MS = TURN_NS // 1_000_000
BOOTSTRAPS = 4_000
TIMES = ("p50_ms", "cpu_p50_ms")

# of one length: a row a rotation of (old, new), by the time it is of
Pairs = dict[str, list[list[float]]]
Logs = np.ndarray[Any, np.dtype[np.float64]]


def main() -> None:
    """Prints the figures as JSON."""
    options = read_options(__doc__, rounds=64, model="transformer", lengths=("5,10,20,40", "milliseconds"), seed=1)
    lengths = sorted({SHIPPED_MS, *(int(length) for length in options.lengths.split(","))})
    pairs, seconds = measure(options.model, lengths, rounds=options.rounds, dice=random.Random(options.seed))
    publish(
        claim=f"Turns of {SHIPPED_MS} ms give pairs as steady as any other length.",
        seed=options.seed,
        figures={
            "model": options.model,
            "rounds": options.rounds,
            "turns": {
                f"{length} ms": {
                    **{time: figures_of(pairs, length, time=time, seed=options.seed) for time in TIMES},
                    "round_s": round(median(seconds[length]), 2),
                }
                for length in lengths
            },
        },
    )


def measure(
    model: str, lengths: list[int], *, rounds: int, dice: random.Random
) -> tuple[dict[int, Pairs], dict[int, list[float]]]:
    """Pairs of every length, and the seconds that their rounds took."""
    found: dict[int, Pairs] = {length: {of: [] for of in TIMES} for length in lengths}
    seconds: dict[int, list[float]] = {length: [] for length in lengths}
    core = choose_core()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        written = write_fixed(model, folder)
        benches = {}
        for length in lengths:
            stage = staged_with_turns(folder / f"stage{length}", turn_ns=length * 1_000_000)
            bench = Workbench(folder / f"bench{length}", stage=stage)
            benches[length] = stack.enter_context(prepared(bench, [written] * 2, folder=folder / f"block{length}"))
        while len(seconds[SHIPPED_MS]) < rounds:
            rotation = {}
            for length in dice.sample(lengths, len(lengths)):
                began = time.monotonic()
                samples = _round(*benches[length], core=core, dice=dice)
                rotation[length] = samples, time.monotonic() - began
            if not all(samples for samples, _ in rotation.values()):
                continue
            for length, (samples, spent_s) in rotation.items():
                seconds[length].append(spent_s)
                for of in TIMES:
                    found[length][of].append([sample[of] for sample in samples])
    return found, seconds


def _round(
    launcher: Launcher, arms: list[PreparedArm], *, core: int | None, dice: random.Random
) -> list[dict[str, Any]]:
    """A sample of each arm; none where a process was lost, as on a machine that is far too busy."""
    orders = [(arm, order_of(arm, core=core)) for arm in arms]
    for _, order in orders:
        order["gate_cpu_share"] = CPU_SHARE_GATE
    answers = measure_in_turns(launcher, orders, dice=dice)
    lost = [answer.reason.text for answer in answers if answer.reason is not None]
    if lost:
        print(lost[0], file=sys.stderr)
    return [] if lost else [sample_of(answer) for answer in answers]


def figures_of(pairs: dict[int, Pairs], length: int, *, time: str, seed: int) -> dict[str, Any]:
    """s, its ratio to the s of the shipped length with a 95 % interval over rotations, and the p50."""
    logs, shipped = (np.log(np.array(pairs[of][time])) for of in (length, SHIPPED_MS))
    draws = np.random.default_rng(seed).integers(len(logs), size=(BOOTSTRAPS, len(logs)))
    ratios = _s(logs[draws]) / _s(shipped[draws])
    low, high = np.percentile(ratios, [2.5, 97.5])
    return {
        "s": round(float(_s(logs)), 4),
        "s_trimmed": round(float(_steady_s(logs)), 4),
        f"by_{SHIPPED_MS}_ms": [round(float(value), 3) for value in (_s(logs) / _s(shipped), low, high)],
        "p50_ms": round(float(np.exp(np.median(logs))), 4),
    }


def _s(logs: Logs) -> Logs:
    """The standard deviation of ln(new / old) over the last but one dimension."""
    spread: Logs = np.std(logs[..., 1] - logs[..., 0], axis=-1, ddof=1)
    return spread


def _steady_s(logs: Logs) -> float:
    """The same from the middle half alone, as of normal noise: without the few rounds that others disturbed."""
    low, high = np.percentile(logs[:, 1] - logs[:, 0], [25, 75])
    return float(high - low) / 1.349


if __name__ == "__main__":
    main()
