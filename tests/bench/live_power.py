"""A change that is really there: twin arms of which one is made slower by a busy-wait in the runner's timed call.

    python -m tests.bench.live_power --blocks 12 --change 0.05 --seed 1 [--whole] [--ungated] [--runtimes DIR]

The staged runner of this script calls `entry.main(wrap_call=…)`: every timed call is followed by a busy-wait of a
share of its own duration, no share in arm 0 and `--change` in arm 1, so that both pay for the wrapping. Everything else
is the product's: blocks of 8 to 24 rounds (the standard budget) that end when the rule decides, with the short windows
of tests/bench/blocks.py, or with those of the quick budget by `--whole`.
"""

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from farm.contract.cells import Budget
from farm.rules.comparing import power, statistics
from farm.rules.comparing.comparisons import MARGIN
from tests.bench import blocks, figure
from worker.agent.installation import stages
from worker.agent.measurement import orders

# models slow enough that a twentieth of a call is far above what the wrapping itself takes
SUBJECTS = ("cnn_dyn", "encoder_dyn", "transformer", "convnet")
SLOWED_ARM = 1

SLOWED_ENTRY = """
import io, json, sys, time

text = sys.stdin.buffer.read()
is_slowed = json.loads(text)["work_dir"].endswith("arm-{arm}")
sys.stdin = io.TextIOWrapper(io.BytesIO(text))

from worker.runner.entry import main


def wrap(call):
    factor, clock = (1.0 + {change} if is_slowed else 1.0), time.perf_counter_ns

    def slowed():
        began = clock()
        call()
        ends_at = began + (clock() - began) * factor
        while clock() < ends_at:
            pass

    return slowed


main(wrap_call=wrap)
"""


def slowed_runner(folder: Path, *, change: float) -> Path:
    """The product's runner with another entry, as a source to stage."""
    source = folder / "slowed-runner"
    shutil.copytree(stages.RUNNER, source, ignore=shutil.ignore_patterns("__pycache__"))
    (source / "__main__.py").write_text(SLOWED_ENTRY.format(arm=SLOWED_ARM, change=change))
    return source


def measure(place: blocks.Workplace, number: int, *, seed: int) -> dict[str, Any]:
    """One block: its verdict, and the estimate beside the truth."""
    subject = blocks.SUBJECTS[SUBJECTS[number % len(SUBJECTS)]]
    order_seed = 1_000 * seed + number
    measured = place.measure(subject, place.twin_block(subject, seed=order_seed, budget="standard"), seed=order_seed)
    (judged,) = measured.judge.comparisons()
    figures = judged.figures
    pairs = np.asarray(measured.pairs).reshape(-1, 2)
    return {
        "model": subject.name,
        "verdict": judged.verdict,
        "ratio": round(figures.ratio, 4) if figures else None,
        "interval": [round(figures.ci_low, 4), round(figures.ci_high, 4)] if figures else None,
        "rounds": judged.rounds,
        "s": round(float(np.std(np.diff(np.log(pairs), axis=1), ddof=1)), 4) if len(pairs) > 1 else None,
        "minutes": round(measured.wall_s / 60.0, 2),
        **measured.sample_counts(),
    }


def summed_up(found: Sequence[dict[str, Any]], *, change: float) -> dict[str, Any]:
    slower = sum(one["verdict"] == "slower" for one in found)
    low, high = statistics.clopper_pearson(slower, len(found))
    estimates = [one["ratio"] for one in found if one["ratio"] is not None]
    covered = [one for one in found if one["interval"] and one["interval"][0] <= 1 + change <= one["interval"][1]]
    s = float(np.median([one["s"] for one in found if one["s"] is not None]))
    return {
        "called_slower": slower,
        "of": len(found),
        "power": [slower / len(found), low, high],
        "median_estimate": round(float(np.median(estimates)), 4),
        "intervals_that_hold_the_truth": len(covered),
        "mean_rounds": float(np.mean([one["rounds"] for one in found])),
        "median_s": s,
        "rounds_promised_at_that_s": power.rounds_for(change, s, MARGIN),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--change", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--whole", action="store_true", help="the quick budget's windows, not the short ones")
    parser.add_argument("--ungated", action="store_true", help="count disturbed launches too")
    parser.add_argument("--runtimes", type=Path, default=blocks.runtimes_of_bench(), metavar="DIR")
    given = parser.parse_args()
    gate = blocks.without_gate() if given.ungated else contextlib.nullcontext()
    windows = orders.make_budget_part(Budget.QUICK) if given.whole else blocks.SHORT
    with tempfile.TemporaryDirectory() as name, blocks.shortened_windows(windows), gate:
        folder = Path(name).resolve()
        runner = slowed_runner(folder, change=given.change)
        place = blocks.Workplace(folder, runtimes=given.runtimes, runner=runner)
        found = []
        for number in range(given.blocks):
            found.append(measure(place, number, seed=given.seed))
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    figure.publish(
        claim=f"A change of {100 * given.change:g} % that is really there is called slower.",
        seed=given.seed,
        figures={
            "change": given.change,
            "is_gated": not given.ungated,
            "windows": windows,
            **summed_up(found, change=given.change),
            "blocks": found,
        },
    )


if __name__ == "__main__":
    main()
