"""Does a tenth more of an operator that takes a twentieth of the time get called at that operator, and at no other?

    python -m tests.bench.operators record --subject transformer --rounds 32 --seed 1
    python -m tests.bench.operators recorded --blocks 100 --pairs 24 --seed 1
    python -m tests.bench.operators real --blocks 10 --seed 1 --ledger FILE.jsonl

`record` measures a model against itself with traced rounds, by the product's own path with short windows, and writes
the times of its nodes, round by round, to operators.json beside this file.

`recorded` draws blocks from them: rounds with replacement, each with its arms swapped or not, and the logarithms of all
ratios scaled so that the whole model's s is 2 %. Into the group whose part is nearest to 5 % it puts a tenth more. A
block is `called` when that group is slower, and `wrong` when any other is called. `aa`: the same without the tenth.

`real` measures blocks of a made-up runtime (onnxfarm.testing) whose every step keeps the processor busy for so long;
in the later release one that takes 5 % takes a tenth more. Each block is a line of the ledger once it is measured,
and a second call goes on where the first one ended.
"""

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typer.testing import CliRunner

from farm.contract.document import Document
from farm.rules.comparing import flips
from farm.rules.tracing.node_verdicts import judge_nodes
from farm.rules.tracing.round_times import group_own_nodes, list_own_nodes
from farm.rules.wording.vocabulary import is_change
from onnxfarm.main import app
from onnxfarm.testing import FakeRuntime, Step
from tests.bench import blocks, figure
from tests.bench.ledger import Ledger, Line

RECORDED = Path(__file__).with_name("operators.json")
INJECTED = 1.1
SHARE = 0.05
DEVIATION = 0.02
MARGIN = 0.02
# µs of an inference: the step that changes takes 5 % of it
STEPS = {"qkv": 300.0, "scores": 130.0, "softmax": 110.0, "mix": 120.0, "norm_1": 60.0, "up": 250.0, "down": 230.0}
CHANGED = "norm_1"
FAKE_MODEL = blocks.REFERENCE_MODELS / "relu_op13_ir7.onnx"
Floats = NDArray[np.float64]


class Recorded:
    """Times of groups of own nodes in rounds of a model against itself: shape (rounds, arms, groups), in µs."""

    def __init__(self, told: Line) -> None:
        self.model, self.runtime, self.groups = told["model"], told["runtime"], list(told["groups"])
        self.neighbours = {name: frozenset(others) for name, others in told["neighbours"].items()}
        self.times: Floats = np.array(told["hundredths_us"], dtype=np.float64) / 100.0
        self.ratios: Floats = np.log(self.times[:, 1] / self.times[:, 0])

    @classmethod
    def read(cls, path: Path = RECORDED) -> "Recorded":
        """What was recorded."""
        return cls(json.loads(path.read_text()))

    @property
    def deviation(self) -> float:
        """s of the whole model's traced time, of the rounds that count: slow launches are set aside as in a verdict."""
        whole = self.times.sum(axis=2)
        ratios = np.log(whole[:, 1] / whole[:, 0])
        return float(np.std(ratios[flips.mark_counting_pairs(ratios[None])[0]], ddof=1))

    @property
    def changed(self) -> int:
        """The group whose part of the time is nearest to 5 %."""
        shares = np.median(self.times[:, 0], axis=0) / np.median(self.times[:, 0], axis=0).sum()
        return int(np.argmin(np.abs(shares - SHARE)))

    def draw(self, dice: np.random.Generator, *, pairs: int, factor: float) -> dict[str, list[tuple[float, float]]]:
        """One block: the changed group's later times are `factor` as long."""
        rows = dice.integers(0, len(self.times), pairs)
        signs = dice.choice([-1.0, 1.0], pairs)[:, None]
        old = self.times[rows, 0]
        new = old * np.exp(signs * self.ratios[rows] * DEVIATION / self.deviation)
        new[:, self.changed] *= factor
        return {
            name: list(zip(old[:, at].tolist(), new[:, at].tolist(), strict=True))
            for at, name in enumerate(self.groups)
        }


def judge_recorded(recorded: Recorded, *, count: int, pairs: int, seed: int) -> dict[str, float]:
    """Of so many blocks with the change and without: how many call it, another group, or any."""
    dice = np.random.default_rng(seed)
    changed = recorded.groups[recorded.changed]
    found: Counter[str] = Counter(called=0, wrong=0, aa=0)
    for factor in (INJECTED, 1.0):
        for _ in range(count):
            drawn = recorded.draw(dice, pairs=pairs, factor=factor)
            judged = judge_nodes(drawn, neighbours=recorded.neighbours, margin=MARGIN)
            named = {name for name, one in judged.items() if is_change(one.verdict)}
            found["called"] += factor > 1.0 and changed in named and judged[changed].verdict == "slower"
            found["wrong"] += factor > 1.0 and bool(named - {changed})
            found["aa"] += factor == 1.0 and bool(named)
    return {"blocks": count, "pairs": pairs, **found}


def record(subject_name: str, *, rounds: int, seed: int, runtimes: Path) -> Line:
    """Measures a block of the model and its A/A twin with traced rounds."""
    subject = blocks.SUBJECTS[subject_name]
    with tempfile.TemporaryDirectory() as folder, blocks.shortened_windows(), blocks.without_gate():
        place = blocks.Workplace(Path(folder), runtimes=runtimes)
        changes = {"min_rounds": rounds, "max_rounds": rounds, "is_replacing": False, "is_tracing_rounds": True}
        block = place.twin_block(subject, seed=seed).model_copy(update=changes)
        judge = place.measure(subject, block, seed=seed).judge
    (planned,) = block.comparisons
    firsts = [judge.evidence.traces_of(arm)[0] for arm in (planned.baseline, planned.candidate)]
    group_of, neighbours = group_own_nodes(firsts)
    traced = judge.traced_rounds(planned)
    names = sorted(set(group_of.values()))
    times = [
        [_by_group(names, first, arm, group_of) for first, arm in zip(firsts, both, strict=True)] for both in traced
    ]
    return {
        "model": subject_name,
        "runtime": blocks.RUNTIME,
        "command": f"python -m tests.bench.operators record --subject {subject_name} --rounds {rounds} --seed {seed}",
        "machine": figure.machine(),
        "load_1m": round(os.getloadavg()[0], 1),
        "groups": names,
        "neighbours": {name: sorted(others) for name, others in sorted(neighbours.items())},
        "hundredths_us": times,
    }


def _by_group(names: Sequence[str], first: Any, times: Sequence[float], group_of: dict[str, str]) -> list[int]:
    """Hundredths of a µs of each group."""
    spent = dict.fromkeys(names, 0.0)
    for node, time_us in zip(list_own_nodes(first), times, strict=True):
        spent[group_of[node]] += time_us
    return [round(100.0 * spent[name]) for name in names]


def measure_real(home: Path, *, seed: int) -> Line:
    """One block of a made-up runtime against one whose changed step takes a tenth more, by `onnxfarm bench`."""
    for version, factor in (("1.30.0", 1.0), ("1.31.1", INJECTED)):
        steps = [Step(name, name.title(), us * (factor if name == CHANGED else 1.0)) for name, us in STEPS.items()]
        FakeRuntime(
            inputs={"x": ("tensor(float)", (2, 8))},
            outputs={"y": ("tensor(float)", (2, 8))},
            steps=steps,
            version=version,
        ).install(home / "runtimes")
    began, out = time.monotonic(), home / "document.json"
    options = ["--ort", "1.30.0,1.31.1", "--threads", "1", "--budget", "standard", "--operators", "--seed", str(seed)]
    words = ["bench", str(FAKE_MODEL), *options, "--home", str(home), "--json", str(out)]
    with blocks.shortened_windows(), blocks.without_gate():
        done = CliRunner().invoke(app, words)
    if not out.exists():
        raise SystemExit(done.output)
    (comparison,) = Document.model_validate_json(out.read_text()).comparisons
    return {
        "seed": seed,
        "verdict": comparison.verdict,
        "ratio": comparison.ratio,
        "rounds": comparison.rounds,
        "noise": comparison.noise,
        "traced_rounds": comparison.traces,
        "operators": {
            one.node: [one.verdict, one.ratio and round(one.ratio, 4), one.reason] for one in comparison.operators
        },
        "wall_s": round(time.monotonic() - began, 1),
        "load_1m": round(os.getloadavg()[0], 1),
    }


def measure_blocks(ledger: Ledger, *, count: int, seed: int) -> Line:
    """Measures what is missing and counts all blocks."""
    for number in range(len(ledger.lines()), count):
        with tempfile.TemporaryDirectory() as folder:
            ledger.add(measure_real(Path(folder), seed=1_000 * seed + number))
    lines = ledger.lines()
    named = [{node for node, (verdict, *_) in line["operators"].items() if is_change(verdict)} for line in lines]
    right = [line["operators"].get(CHANGED, [None])[0] == "slower" for line in lines]
    return {
        "blocks": len(lines),
        "called": sum(right),
        "wrong": sum(bool(nodes - {CHANGED}) for nodes in named),
        "model_verdicts": dict(Counter(line["verdict"] for line in lines)),
        "rounds": [line["traced_rounds"] for line in lines],
        "lines": lines,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["record", "recorded", "real"])
    parser.add_argument("--subject", default="transformer", choices=sorted(blocks.SUBJECTS))
    parser.add_argument("--rounds", type=int, default=32)
    parser.add_argument("--blocks", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runtimes", type=Path, default=blocks.runtimes_of_bench())
    parser.add_argument("--ledger", type=Path, default=Path("operators.jsonl"))
    given = parser.parse_args()
    if given.what == "record":
        told = record(given.subject, rounds=given.rounds, seed=given.seed, runtimes=given.runtimes)
        RECORDED.write_text(json.dumps(told, separators=(",", ":")) + "\n")
        return
    claim = "a tenth more of an operator that takes a twentieth of the time is called at it, and at no other"
    if given.what == "real":
        ledger = Ledger(given.ledger, head={"seed": given.seed, "injected": INJECTED, "steps_us": STEPS})
        figures = measure_blocks(ledger, count=given.blocks, seed=given.seed)
    else:
        recorded = Recorded.read()
        figures = judge_recorded(recorded, count=given.blocks, pairs=given.pairs, seed=given.seed)
        figures |= {"model": recorded.model, "groups": len(recorded.groups), "recorded_s": recorded.deviation}
    figure.publish(claim=claim, seed=given.seed, figures=figures)


if __name__ == "__main__":
    main()
