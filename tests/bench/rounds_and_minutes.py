"""How many rounds and minutes it takes to see a change on this machine, from its own A/A launches.

    python -m tests.bench.rounds_and_minutes --recorded FILE.json [--seed 1] [--runtimes DIR]

FILE is what `tests.bench.real_aa` wrote: s of each model is its, and the rounds are those that a plan names for it
(`rounds_for`), with the smallest change that 8 and 24 rounds see. The minutes are measured: one block of each model and
its twin in the quick budget with its real windows, so many seconds a round, once for checks and traces; the plan's own
estimate stands beside it.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from farm.contract.cells import Budget
from farm.rules.comparing import margins, power
from farm.rules.comparing.comparisons import MARGIN
from farm.rules.planning import estimates
from tests.bench import blocks, figure
from tests.options import read_options

CHANGES = (0.03, 0.05, 0.10)
ARMS = 2


def deviations(path: Path) -> dict[str, float]:
    """s of each model in the file, pooled over its blocks."""
    found: dict[str, list[list[float]]] = {}
    for entry in json.loads(path.read_text())["comparisons"]:
        pairs = np.asarray(entry["pairs"], dtype=np.float64)
        if len(pairs) > 1:
            found.setdefault(entry["model"], []).append(np.log(pairs[:, 1] / pairs[:, 0]).tolist())
    floors = {name: margins.estimate_noise_floor(logs) for name, logs in found.items()}
    return {name: floor.deviation for name, floor in floors.items() if floor is not None}


def timed(place: blocks.Workplace, subject: blocks.Subject, *, seed: int) -> dict[str, float]:
    """Seconds of a real block: of a round of two arms, and of what comes once (checks, traces, preparation)."""
    measured = place.measure(subject, place.twin_block(subject, seed=seed), seed=seed)
    samples = [sample for arm in range(ARMS) for sample in measured.judge.evidence.samples(arm)]
    # a process lives through the turns of the others, which are counted as theirs
    alone_ms = [sample.phases_ms["process"] - sample.phases_ms.get("others", 0.0) for sample in samples]
    launch_s = float(np.median(alone_ms)) / 1000.0
    p50_ms = float(np.median([sample.p50_ms for sample in samples]))
    once_s = max(0.0, measured.wall_s - measured.launches * launch_s)
    planned_s = ARMS * estimates.estimate_arm_s(Budget.QUICK, p50_ms)
    return {"p50_ms": p50_ms, "launch_s": launch_s, "once_s": once_s, "wall_s": measured.wall_s, "planned_s": planned_s}


def answer(change: float, *, deviation: float, times: dict[str, float]) -> dict[str, Any]:
    """Rounds for a wished change and the minutes of two arms; None where no number of rounds within 24 will do."""
    rounds = power.rounds_for(change, deviation, MARGIN)
    if rounds is None:
        return {"rounds": None, "minutes": None}
    return {"rounds": rounds, "minutes": round((times["once_s"] + ARMS * rounds * times["launch_s"]) / 60.0, 2)}


def main() -> None:
    given = read_options(__doc__, required=("recorded",), recorded=Path, seed=1, runtimes=blocks.runtimes_of_bench())
    models: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, blocks.without_gate():
        place = blocks.Workplace(Path(folder).resolve(), runtimes=given.runtimes)
        for name, s in deviations(given.recorded).items():
            times = timed(place, blocks.SUBJECTS[name], seed=given.seed)
            models[name] = {
                "s": round(s, 4),
                **{key: round(value, 3) for key, value in times.items()},
                "smallest": {rounds: round(power.smallest_detectable(s, rounds, MARGIN), 4) for rounds in (8, 24)},
                "wished": {f"{100 * one:g} %": answer(one, deviation=s, times=times) for one in CHANGES},
            }
    claim = "The rounds and minutes for a wished change are known before it is measured."
    figure.publish(claim=claim, seed=given.seed, figures={"margin": MARGIN, "arms": ARMS, "models": models})


if __name__ == "__main__":
    main()
