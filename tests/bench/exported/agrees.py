"""Whether the p50 of exporters' models, from defaults, is that of a bare loop on the same wheel by the same call.

    python -m tests.bench.exported.agrees --folder OUT [--pairs 12] [--models A,B] [--seed 1]

OUT is what `build` wrote. Each model is fed what inspection chooses; ours (agent, sandbox, runner) and the bare loop of
tests.bench.fidelity take turns in fresh processes, with one thread on one core. One JSON document; exit 1 where an
interval of ours to the bare loop leaves ±8 %.
"""

import random
import statistics
import sys
import tempfile
from pathlib import Path

from farm.rules.comparing import verdicts
from farm.workshop import orders
from tests.bench.fidelity import Subject, pair
from tests.bench.figure import publish
from tests.bench.workbench import prepared
from tests.integration.worker.making import Workbench
from tests.options import read_options
from worker.agent.machine.affinity import choose_core

MODELS = (
    *("vision_squeezenet", "vision_shufflenet_every", "script_lstm_first", "script_denoiser", "dynamo_tokens"),
    *("hub_bert", "hub_vit", "hub_gpt2", "hub_segformer", "keras_mobilenet"),
)
WITHIN = 0.08


def inputs_of(model: Path, scratch: Path) -> Path:
    """What it is fed from defaults."""
    scratch.mkdir()
    feed = orders.choose_feed(model.parent, model.name, out_dir=scratch)
    if feed.problem:
        raise SystemExit(f"{model}: {feed.problem}")
    made = orders.prepare_inputs(
        model.parent, model.name, out_dir=scratch, batch=None, shapes=feed.sizes, inputs=feed.inputs
    )
    return made.path


def main() -> None:
    options = read_options(__doc__, pairs=12, folder="", models=",".join(MODELS), seed=1)
    names, dice = options.models.split(","), random.Random(options.seed)
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [Path(options.folder, model, "model.onnx").resolve() for model in names]
        models = [(path, inputs_of(path, folder / path.parent.name)) for path in paths]
        bench = Workbench(folder)
        with prepared(bench, models, folder=folder / "block") as (launcher, arms):
            for model, (path, inputs), arm in zip(names, models, arms, strict=True):
                subject = Subject(
                    launcher, arm, path, inputs, loop=folder, core=choose_core(), tools=None, ways=("ours", "bare")
                )
                rounds = [subject.round(dice) for _ in range(options.pairs)]
                timed = [pair(told["bare"], told["ours"]) for told in rounds]
                judged = verdicts.judge_pairs(timed, margin=WITHIN, looks=(options.pairs,))
                found[model] = {
                    "bare_ms": statistics.median(bare for bare, _ in timed),
                    "ours_ms": statistics.median(ours for _, ours in timed),
                    "ratio": judged.ratio,
                    "ci": [judged.ci_low, judged.ci_high],
                    "is_within": (judged.ci_low or 0) >= 1 - WITHIN and (judged.ci_high or 9) <= 1 + WITHIN,
                }
                print(model, found[model], file=sys.stderr, flush=True)
    publish(
        claim=f"From defaults our p50 is a bare loop's, the interval within ±{WITHIN:.0%}.",
        seed=options.seed,
        figures={"runtime": "onnxruntime==1.31.1", "threads": 1, "pairs": options.pairs, "models": found},
    )
    sys.exit(0 if all(figures["is_within"] for figures in found.values()) else 1)


if __name__ == "__main__":
    main()
