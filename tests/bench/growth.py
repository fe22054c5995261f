"""What `fresh` says of memory on real models: the same bytes, fresh ones, random and ever larger shapes, and a leak.

Every arm is measured by the product's own path in eight launches. All are expected to settle but the double, which
leaks 1 MiB in 1,000 inferences where bytes change. Memory does not need a quiet machine:

    python -m tests.bench.growth --seed 1 [--models encoder_dyn,transformer]
"""

import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from farm.contract.blocks import ArmOrder
from farm.contract.document_cells import Figure
from farm.contract.reports import RoundReport, Sample
from farm.rules.cells import growth
from farm.rules.cells.scenario_metrics import DIFFERING, GROWTH
from farm.rules.judging.summaries import summarise_cell
from farm.rules.wording.numbers import MIB
from farm.workshop.samples import builders
from tests.bench import figure
from tests.bench.blocks import REFERENCE_MODELS, without_gate
from tests.integration.worker.making import Workbench, of_kind
from tests.options import read_options
from worker.agent.installation.stages import stage_runner

ROUNDS = 8
LEAKING = Path(__file__).resolve().parents[1] / "integration" / "worker" / "leaking.py"
LARGER = "+".join(str(16 * size) for size in range(1, 17))
BATCHES = "+".join(str(size) for size in range(1, 17))


@dataclass(frozen=True)
class Subject:
    """A model, the shape of a sample's only input, and the sizes of its dynamic dimension in turn."""

    name: str
    shape: tuple[int, ...] = ()
    few: str = ""
    larger: str = ""


SUBJECTS = (
    Subject("encoder_dyn", few="seq=16+64+128+random", larger=f"seq={LARGER}"),
    Subject("transformer", (1, 32, 256), few="sequence=16+64+128+random", larger=f"sequence={LARGER}"),
    Subject("convnet", (1, 3, 32, 32), few="batch=1+4+16+random", larger=f"batch={BATCHES}"),
    Subject("cnn_dyn", few="batch=1+4+16+random", larger=f"batch={BATCHES}"),
    Subject("lstm", few="batch=1+4+16+random", larger=f"batch={BATCHES}"),
)


def load_arms(bench: Workbench, subject: Subject, folder: Path, *, seed: int) -> dict[str, ArmOrder]:
    """What is fed, by name."""
    model = REFERENCE_MODELS / f"{subject.name}.onnx"
    if subject.shape:
        model = builders.write_model(subject.name, folder)
        drawn = np.random.default_rng(seed).standard_normal(subject.shape, dtype=np.float32)
        np.savez(folder / f"{subject.name}.inputs.npz", x=drawn)
    asked: dict[str, tuple[str, Mapping[str, str]]] = {
        "same": ("fresh", {"test.same": "1"}),
        "fresh": ("fresh", {}),
        "random shapes": (f"fresh:{subject.few}", {}),
        "ever larger shapes": (f"fresh:{subject.larger}", {}),
        "leaking double": ("fresh", {"test.leak": "1"}),
        "leaking double, same": ("fresh", {"test.leak": "1", "test.same": "1"}),
    }
    return {
        name: bench.arm(
            number, model, workload={"batch": 1, "scenario": scenario, "seed": seed}, session={"config": dict(config)}
        )
        for number, (name, (scenario, config)) in enumerate(asked.items())
    }


def told(samples: Sequence[Sample]) -> dict[str, Any]:
    """What the launches say together, and how memory went in the middle one."""
    launched = summarise_cell(samples).launched
    found: Figure = launched[GROWTH]
    courses = [
        [phase.metrics["resident_bytes"] for phase in one.phases if "resident_bytes" in phase.metrics]
        for one in samples
    ]
    risen = sorted((course[-1] - course[0]) / MIB for course in courses)
    low, high = (None if one is None else round(one / MIB, 4) for one in (found.low, found.high))
    return {
        "growth_mib_per_1000": round(found.value / MIB, 4),
        "interval_mib": [low, high],
        "launches": len(found.samples),
        "inferences": min(one.n for one in samples),
        "risen_mib_in_a_launch": round(risen[len(risen) // 2], 3),
        "peak_mib": round(max(one.peak_memory_bytes or 0 for one in samples) / MIB, 1),
        "differing_answers": launched[DIFFERING].value if DIFFERING in launched else None,
        "is_growing": growth.is_growing(found),
        "sentence": growth.describe_growth(found),
    }


def measure(subject: Subject, folder: Path, *, seed: int, rounds: int) -> dict[str, Any]:
    """Every way of feeding a model, in rounds of one launch each."""
    stage = folder / "double"
    shutil.copytree(stage_runner(folder / "stage"), stage)
    shutil.copyfile(LEAKING, stage / "__main__.py")
    bench = Workbench(folder, stage=stage)
    arms = load_arms(bench, subject, folder / "models", seed=seed)
    with without_gate():
        reports = bench.execute(list(arms.values()), rounds=rounds)
    samples: dict[int, list[Sample]] = {}
    for report in of_kind(reports, RoundReport):
        for place in report.samples:
            if place.sample is None:
                raise SystemExit(f"{subject.name}, arm {place.arm}: {place.reason}")
            samples.setdefault(place.arm, []).append(place.sample)
    found = {name: told(samples[arm.arm]) for name, arm in arms.items()}
    for name, one in found.items():
        print(subject.name, name, one["sentence"], file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Prints one JSON object; 1 where a plain arm grows, or the double's leak is not found."""
    asked = read_options(__doc__, seed=1, rounds=ROUNDS, models=",".join(one.name for one in SUBJECTS))
    found = {}
    for subject in (one for one in SUBJECTS if one.name in asked.models.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            found[subject.name] = measure(subject, Path(folder), seed=asked.seed, rounds=asked.rounds)
    misses = [
        f"{model}, {name}: {one['sentence']}"
        for model, arms in found.items()
        for name, one in arms.items()
        if one["is_growing"] != (name == "leaking double")
    ]
    claim = "memory settles on the same, fresh, random and ever larger inputs, and a leak by changing bytes is found"
    figure.publish(claim=claim, seed=asked.seed, figures={"models": found, "misses": misses})
    return int(bool(misses))


if __name__ == "__main__":
    sys.exit(main())
