"""How often a race finds what a whole grid says: recorded launches, raced again and again, beside halving alone.

    python -m tests.bench.find_replay record GRID.jsonl MODEL.onnx… [--rounds 16] [--ort 1.31.1]
    python -m tests.bench.find_replay replay GRID.jsonl [--times 500] [--seed 1]

`record` measures every setting of a space of 32 in interleaved rounds, in blocks of 16, four rounds at a time. Each
launch is a line as soon as its block is measured, so that a second call goes on where the first one ended. Three models
take about 75 minutes of machine.

`replay` races the odd rounds, drawn with replacement, and holds the answer against the even ones: whether the grid's
best is in the answer, whether the first is within 2 % or the resolution printed, and by what share of the odd launches.
Halving alone has as many launches, and no interval.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.comparing import verdicts
from farm.rules.comparing.signed_ranks import median_interval
from farm.rules.matrices.matrix import Matrix, parse
from farm.rules.searches.contenders import split_contenders
from farm.rules.searches.race import Contender, Race
from farm.rules.searches.search import Experiment, Measured, Search, carry_out
from onnxfarm.here import find, workbench
from onnxfarm.here.home import default_home
from onnxfarm.outputs import make_console
from onnxfarm.subject import Subject

SESSIONS = [{"name": f"{name} off", name: False} for name in ("spinning", "arena", "memory-pattern")]
SPACE = {
    "precision": ["fp32", "int8-dynamic"],
    "threads": [2, 1],
    "session": ["default", *SESSIONS],
    "optimization": ["all", "extended"],
}
PART = 16
ROUNDS_AT_ONCE = 4
# of a final block
FINAL_ROUNDS = 8
NEAR = 0.02

# the p50 of each launch by setting, in the order of rounds
Grid = Mapping[str, Sequence[float]]


def record(path: Path, model: Path, *, rounds: int, ort: str) -> None:
    """Measure what the file does not have yet of a model."""
    space = parse({**SPACE, "runtime": ort})
    with workbench.open_workbench(Subject(model), home=default_home(), console=make_console(stderr=True)) as bench:
        contenders, _ = split_contenders(bench.plan(space), space)
        for first in range(0, rounds, ROUNDS_AT_ONCE):
            for start in range(0, len(contenders), PART):
                part = contenders[start : start + PART]
                if list_settings(path, model.name, first) >= {each.label for each in part}:
                    continue
                matrix = Race(space, part).matrix_of(part)
                asked = Experiment(matrix, asked={"rounds": ROUNDS_AT_ONCE})
                measured = find.RaceMachine(bench, lambda: 1e9).measure(asked, Race(space, part))
                append(path, model.name, first, part, measured.document)


def append(path: Path, model: str, first: int, part: Sequence[Contender], document: Document) -> None:
    labels = {each.digest: each.label for each in part}
    with path.open("a", encoding="utf-8") as file:
        for cell in document.cells:
            # a disturbed block has more rounds than were asked for
            launches = cell.samples_ms[:ROUNDS_AT_ONCE]
            line = {"model": model, "setting": labels[cell.digest], "first": first, "p50_ms": launches}
            file.write(json.dumps(line) + "\n")


def list_settings(path: Path, model: str, first: int) -> set[str]:
    """List the settings of a model whose rounds from this one on are in the file."""
    return {line["setting"] for line in read_lines(path) if (line["model"], line["first"]) == (model, first)}


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def build_grids(lines: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Build the grid of each model; settings that lack launches of others are left out."""
    grids: dict[str, dict[str, list[float]]] = {}
    for line in sorted(lines, key=lambda line: line["first"]):
        grids.setdefault(line["model"], {}).setdefault(line["setting"], []).extend(line["p50_ms"])
    for model, grid in grids.items():
        rounds = max(map(len, grid.values()))
        grids[model] = {setting: launches for setting, launches in grid.items() if len(launches) == rounds}
    return grids


@dataclass
class RecordedBench:
    """A bench whose rounds are drawn from recorded ones: all settings of a block have the same round each time."""

    grid: Grid
    dice: np.random.Generator
    launches: int = 0

    def measure(self, experiment: Experiment, search: Search[Measured, Any]) -> Measured:
        settings: list[str] = list(experiment.asked["settings"])
        rounds: Any = experiment.asked["rounds"]
        samples = self.draw(settings, rounds or FINAL_ROUNDS)
        cells = [_make_cell(setting, samples[setting]) for setting in settings]
        pairs = list(combinations(settings, 2)) if rounds != 1 else []
        samples_of_pairs = [[*zip(samples[old], samples[new], strict=True)] for old, new in pairs]
        judged = verdicts.judge_many(samples_of_pairs, margin=NEAR)
        comparisons = [_make_comparison(*pair, verdict) for pair, verdict in zip(pairs, judged, strict=True)]
        document = Document(machine={}, seed=0, cells=cells, comparisons=comparisons)
        return Measured(experiment.matrix, document, lambda cell: {})

    def draw(self, settings: Sequence[str], rounds: int) -> dict[str, list[float]]:
        """Draw rounds: the launches of each setting in them."""
        self.launches += rounds * len(settings)
        # a block has no round twice; one of all rounds is drawn with replacement, for the spread between replays
        recorded = len(next(iter(self.grid.values())))
        chosen = self.dice.choice(recorded, rounds, replace=rounds >= recorded)
        return {setting: [self.grid[setting][place] for place in chosen] for setting in settings}


def _make_cell(setting: str, samples: list[float]) -> Cell:
    fixed = {"id": setting, "digest": setting, "model_sha256": "", "runtime": "onnxruntime", "precision": "fp32"}
    timed = {"p50_ms": median(samples), "samples_ms": samples, "p50_ci_ms": median_interval(samples)}
    return Cell.model_validate(fixed | timed | {"provider": "CPU", "threads": 1, "status": "done"})


def _make_comparison(old: str, new: str, judged: Any) -> Comparison:
    figures = {"ratio": judged.ratio, "ci_low": judged.ci_low, "ci_high": judged.ci_high, "rounds": judged.rounds_used}
    return Comparison(baseline=old, candidate=new, verdict=judged.verdict, margin=judged.margin, **figures)


def run_halving(bench: RecordedBench, settings: Sequence[str], launches: int) -> str:
    """Return the winner of successive halving with so many launches."""
    left, stages = list(settings), max(1, len(settings).bit_length() - 1)
    logs: dict[str, list[float]] = {setting: [] for setting in settings}
    for _ in range(stages):
        samples = bench.draw(left, max(1, round(launches / stages / len(left))))
        for setting in left:
            logs[setting] += map(log, samples[setting])
        left = sorted(left, key=lambda setting: mean(logs[setting]))[: max(1, len(left) // 2)]
    return left[0]


def replay(grid: Grid, *, times: int, seed: int) -> dict[str, float]:
    """Return the shares of the replays in which each claim held, and the median share of the odd launches that a race
    took."""
    odd = {setting: launches[1::2] for setting, launches in grid.items()}
    truth = {setting: median(launches[::2]) for setting, launches in grid.items()}
    replays = [_replay_once(odd, truth, np.random.default_rng([seed, number])) for number in range(times)]
    shares: dict[str, float] = {name: mean(each[name] for each in replays) for name in replays[0] if name != "launches"}
    return shares | {"launches": median(each["launches"] for each in replays) / sum(map(len, odd.values()))}


def _replay_once(odd: Grid, truth: Mapping[str, float], dice: np.random.Generator) -> dict[str, float]:
    bench = RecordedBench(odd, dice)
    contenders = [Contender(setting, {}, setting) for setting in odd]
    outcome = carry_out(Race(Matrix(), contenders), bench)
    launches, first = bench.launches, outcome.answer[0].digest
    best = min(truth, key=truth.__getitem__)
    winner = run_halving(bench, [*odd], launches)
    allowed = max(NEAR, outcome.resolution or 0.0)
    return {
        "best is in the answer": best in {contender.digest for contender in (*outcome.answer, *outcome.close)},
        "first is near": float(truth[first] <= truth[best] * (1.0 + allowed)),
        "first is within 2 %": float(truth[first] <= truth[best] * (1.0 + NEAR)),
        "answers are one": len(outcome.answer) == 1,
        "halving is within 2 %": float(truth[winner] <= truth[best] * (1.0 + NEAR)),
        "launches": launches,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "replay"))
    parser.add_argument("grid", type=Path)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--ort", default="1.31.1")
    parser.add_argument("--times", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.what == "record":
        for model in given.models:
            record(given.grid, model, rounds=given.rounds, ort=given.ort)
        return 0
    for model, grid in build_grids(read_lines(given.grid)).items():
        print(f"{model}, {len(grid)} settings:")
        for name, value in replay(grid, times=given.times, seed=given.seed).items():
            print(f"  {name}: {value:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
