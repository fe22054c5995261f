"""What taking turns gains, and whether it moves a p50.

    python -m tests.bench.turns [--rounds 16] [--model transformer] [--seed 1]

Pairs of the same thing, measured three ways that take turns themselves from round to round: one process after the
other, by turns wherever the scheduler puts them, and by turns on one core, as the product does. s is the standard
deviation of the pairs' log ratios. Beside it: turns of 200 ms, of which the first 20 ms are compared with the rest, so
that a p50 that suffers from the neighbours' use of the caches would show.
"""

import base64
import random
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from farm.contract.cells import Budget
from farm.rules.comparing import verdicts
from tests.bench.figure import publish
from tests.bench.workbench import prepared, write_fixed
from tests.integration.worker.making import Workbench
from tests.options import read_options
from worker.agent.installation.stages import stage_runner
from worker.agent.machine.affinity import choose_core
from worker.agent.measurement.checks import make_runner_order
from worker.agent.measurement.interleaving import measure_in_turns
from worker.agent.measurement.orders import make_budget_part
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Answer, Launcher
from worker.runner.interleaving import TURN_NS

WAYS = ("one after the other", "by turns", "by turns on one core")
LONGER = 10
LONG_WINDOW_S = 2.0


def main() -> None:
    """Prints the figures as JSON."""
    options = read_options(__doc__, rounds=16, model="transformer", seed=1)
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = write_fixed(options.model, folder)
        with prepared(Workbench(folder), [model, model], folder=folder / "block") as (launcher, arms):
            pairs = measure_pairs(launcher, arms, rounds=options.rounds, dice=dice)
        bench = Workbench(folder / "longer", stage=staged_with_turns(folder / "stage", turn_ns=LONGER * TURN_NS))
        with prepared(bench, [model, model], folder=folder / "longer-block") as (launcher, arms):
            shift = measure_shift(launcher, arms, rounds=options.rounds, dice=dice)
    publish(
        claim="Arms that take turns on one core differ less than arms one after the other, and are not slower.",
        seed=options.seed,
        figures={"model": options.model, "rounds": options.rounds, "ways": pairs, "first_20_ms_by_rest": shift},
    )


def measure_pairs(
    launcher: Launcher, arms: list[PreparedArm], *, rounds: int, dice: random.Random
) -> dict[str, dict[str, Any]]:
    """s of A/A pairs each way."""
    core = choose_core()
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in dice.sample(WAYS, len(WAYS)):
            order = order_of(arms[0], core=core if way == WAYS[2] else None)
            if way == WAYS[0]:
                answers = [launcher.launch(arm, order, work_dir=arm.scratch) for arm in arms]
            else:
                answers = measure_in_turns(launcher, [(arm, order) for arm in arms], dice=dice)
            found[way].append([sample_of(answer)["p50_ms"] for answer in answers])
    return {way: _figures(np.log(np.array(pairs))) for way, pairs in found.items()}


def measure_shift(
    launcher: Launcher, arms: list[PreparedArm], *, rounds: int, dice: random.Random
) -> dict[str, float | None]:
    """The p50 of the first 20 ms of long turns by the p50 of the rest."""
    core, found = choose_core(), []
    for _ in range(rounds):
        orders = [(arm, order_of(arm, core=core)) for arm in arms]
        for _, order in orders:
            order["budget"]["window_s"] = LONG_WINDOW_S
        answers = measure_in_turns(launcher, orders, dice=dice)
        found += [_early_and_late(unpacked(sample_of(answer)["timings"])) for answer in answers]
    judged = verdicts.judge_pairs(found, margin=0.005, looks=(len(found),))
    return {"ratio": judged.ratio, "ci_low": judged.ci_low, "ci_high": judged.ci_high, "processes": len(found)}


def order_of(arm: PreparedArm, *, core: int | None) -> dict[str, Any]:
    """A quick sample's order."""
    return {**make_runner_order(arm, "sample"), "budget": make_budget_part(Budget.QUICK), "core": core}


def sample_of(answer: Answer) -> dict[str, Any]:
    """The sample in an answer. Raises SystemExit with the reason why there is none."""
    if answer.reason is not None:
        raise SystemExit(answer.reason.text)
    return dict(answer.reply["sample"])


def unpacked(timings: str) -> "np.ndarray[Any, Any]":
    """Nanoseconds of every inference, in order."""
    dtype, _, packed = timings.partition(":")
    return np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype=f"<{dtype}").astype(np.int64)


def staged_with_turns(folder: Path, *, turn_ns: int) -> Path:
    """The product's runner, staged with turns of another length."""
    source = folder / "source"
    source.mkdir(parents=True)
    for path in (Path(__file__).parents[2] / "worker" / "runner").glob("*.py"):
        text = path.read_text()
        if path.name == "interleaving.py":
            line = f"TURN_NS = {TURN_NS:_}"
            assert line in text
            text = text.replace(line, f"TURN_NS = {turn_ns:_}")
        (source / path.name).write_text(text)
    return stage_runner(folder / "staged", source=source)


def _early_and_late(spent: "np.ndarray[Any, Any]") -> tuple[float, float]:
    """(rest, first) p50 over the long turns of one process, in ns."""
    at = np.cumsum(spent) % (LONGER * TURN_NS)
    return float(np.median(spent[at >= TURN_NS])), float(np.median(spent[at < TURN_NS]))


def _figures(logs: "np.ndarray[Any, Any]") -> dict[str, Any]:
    return {
        "s_pairs": round(float(np.std(logs[:, 1] - logs[:, 0], ddof=1)), 4),
        "s_launches": round(float(np.std(logs, axis=0, ddof=1).mean()), 4),
        "p50_ms": round(float(np.exp(np.median(logs))), 4),
    }


if __name__ == "__main__":
    main()
