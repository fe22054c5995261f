"""Which placement findings stand between neighbouring releases, and what ran differently: real traces.

    python -m tests.bench.placements --json FILE.jsonl [--models DIR] [--seed 1] [--minutes 20] [--runtimes DIR]

Every model of tests/models, stamped copies of the convolutional one, and every .onnx of `--models`, traced with each
release by the product's own trace pass (runner in the sandbox, profile, alignment). Each trace is a line of FILE as
soon as it is taken, so that a second call goes on where the first one ended. What is printed: every finding of
placement between two neighbouring releases with the difference of the two histograms of executed operators, and what
was not traced, with its reason.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from farm.contract.blocks import MAX_ARMS, ArmOrder, BlockOrder
from farm.contract.cells import SessionSettings
from farm.contract.reports import Operator
from farm.rules.tracing.executions import count_kernels
from farm.rules.tracing.placement import compare_placements
from tests.bench import figure
from tests.bench.ledger import Ledger
from tests.integration.worker.making import MODELS, Workbench
from worker.agent.measurement import traces
from worker.agent.measurement.prepared_arms import PreparedArm, prepare_arms
from worker.agent.measurement.runner_process import Launcher

# the last release of each minor one
RELEASES = (
    "1.20.1", "1.21.1", "1.22.1", "1.23.2", "1.24.4", "1.25.1",
    "1.26.0", "1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.1",
)  # fmt: skip
STAMPED = "cnn_fixed_b1"
STAMPS = (21, 22)
# dynamic dimensions by the rank of the input, where no inputs lie beside the model
SIZES = {1: (1,), 2: (1, 512), 3: (1, 1, 128), 4: (1, 3, 64, 192)}
Line = dict[str, Any]


def main() -> None:
    options = _options()
    if options.runtimes:
        os.environ["ONNXFARM_TEST_RUNTIMES"] = options.runtimes
    ledger = Ledger(Path(options.json), head={"seed": options.seed, "releases": list(RELEASES)})
    ends_at = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as name:
        subjects = _subjects(Path(name), options.models, seed=options.seed)
        for release in RELEASES:
            known = {line["model"] for line in ledger.lines() if line["release"] == release}
            todo = [(model, path) for model, path in subjects.items() if model not in known]
            for start in range(0, len(todo), MAX_ARMS):
                if time.monotonic() < ends_at:
                    part = dict(todo[start : start + MAX_ARMS])
                    folder = Path(name) / f"{release}-{start}"
                    _trace_all(part, release, folder=folder, ledger=ledger, ends_at=ends_at)
    figure.publish(
        claim="a placement finding stands on a difference of what was executed",
        seed=options.seed,
        figures=_figures(ledger.lines()),
    )


def _subjects(folder: Path, more: Path | None, *, seed: int) -> dict[str, Path]:
    """Models by name, each with an .inputs.npz beside it."""
    found = {path.stem: path for path in sorted(MODELS.glob("*.onnx")) if _inputs_of(path).exists()}
    stamped = onnx.load(MODELS / f"{STAMPED}.onnx")
    for opset in STAMPS:
        name = f"{STAMPED}, opset {opset}"
        found[name] = _write(stamped, folder / f"{STAMPED}_opset{opset}.onnx", opset=opset)
        _inputs_of(found[name]).write_bytes(_inputs_of(MODELS / f"{STAMPED}.onnx").read_bytes())
    for path in sorted(more.glob("*.onnx")) if more else ():
        found[path.stem] = folder / path.name
        model = onnx.load(path)
        _write(model, found[path.stem])
        np.savez(_inputs_of(found[path.stem]), **_drawn(model, seed=seed))
    return found


def _inputs_of(path: Path) -> Path:
    return path.with_name(f"{path.stem}.inputs.npz")


def _write(model: onnx.ModelProto, path: Path, *, opset: int | None = None) -> Path:
    for stamp in model.opset_import:
        if opset is not None and stamp.domain == "":
            stamp.version = opset
    onnx.save(model, path)
    return path


def _drawn(model: onnx.ModelProto, *, seed: int) -> dict[str, Any]:
    dice = np.random.default_rng(seed)
    weights = {tensor.name for tensor in model.graph.initializer}
    drawn: dict[str, Any] = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        known = [dimension.dim_value for dimension in tensor.shape.dim]
        shape = [size if size > 0 else SIZES[len(known)][at] for at, size in enumerate(known)]
        if value.name == "sr":
            drawn[value.name] = np.array(16_000, dtype)
        elif value.name not in weights:
            is_float = np.issubdtype(dtype, np.floating)
            values = dice.standard_normal(shape) if is_float else dice.integers(0, 9, shape)
            drawn[value.name] = values.astype(dtype)
    return drawn


def _trace_all(subjects: dict[str, Path], release: str, *, folder: Path, ledger: Ledger, ends_at: float) -> None:
    bench = Workbench(folder)
    orders = [_order(bench, number, path, release) for number, path in enumerate(subjects.values())]
    block = BlockOrder(block="placements", attempt=1, arms=tuple(orders))
    ready, refused = prepare_arms(block, environment=bench.environment, folder=folder, is_cancelled=lambda: False)
    names = list(subjects)
    for number, reason in refused.items():
        ledger.add({"model": names[number], "release": release, "reason": reason.text})
    launcher = Launcher(stage=bench.environment.stage, timeout_s=120, memory_bytes=None, is_cancelled=lambda: False)
    with launcher:
        for arm in ready:
            if time.monotonic() < ends_at:
                ledger.add({"model": names[arm.arm], "release": release, **_trace(launcher, arm, folder)})


def _order(bench: Workbench, number: int, path: Path, release: str) -> ArmOrder:
    data = [found for found in path.parent.glob(f"{path.name}.*") if found.suffix == ".data"]
    runtime, session = f"onnxruntime=={release}", SessionSettings(threads=1)
    return bench.arm(number, path, data=data, runtime=runtime, session=session)


def _trace(launcher: Launcher, arm: PreparedArm, folder: Path) -> Line:
    profiled = traces.profile_arm(launcher, arm, trace_round=0)
    mapper = traces.Mapper(work_dir=folder)
    mapper.read_graphs([profiled])
    report = traces.make_report(profiled, mapper, store=lambda *_: None)
    traces.delete_files(profiled)
    if report.reason is not None:
        return {"reason": report.reason.text}
    rows = [[one.op_type, one.provider, one.node, *one.covers] for one in report.operators]
    return {"copies": report.copies_to_device + report.copies_to_host, "executed": rows}


def operators_of(rows: Iterable[Sequence[str]]) -> list[Operator]:
    """The rows of a line as the contract has them; times are not kept."""
    return [
        Operator(op_type=op_type, provider=provider, node=node, covers=tuple(covers), time_us=0.0)
        for op_type, provider, node, *covers in rows
    ]


def _figures(lines: Sequence[Line]) -> Line:
    traced = {(line["model"], line["release"]): line for line in lines if "executed" in line}
    models = list(dict.fromkeys(line["model"] for line in lines))
    pairs = [(m, a, b) for m in models for a, b in pairwise(RELEASES) if (m, a) in traced and (m, b) in traced]
    found = [_finding(*pair, traced) for pair in pairs]
    return {
        "models": len(models),
        "pairs": len(pairs),
        "pairs_that_ran_differently": sum(bool(one["difference"]) for one in found),
        "pairs_with_findings": [one for one in found if one["findings"]],
        "not_traced": [line for line in lines if "reason" in line],
    }


def _finding(model: str, old: str, new: str, traced: dict[tuple[str, str], Line]) -> Line:
    before, after = traced[model, old], traced[model, new]
    olds, news = operators_of(before["executed"]), operators_of(after["executed"])
    counts = count_kernels(olds), count_kernels(news)
    kernels = sorted(kernel for kernel in counts[0] | counts[1] if counts[0][kernel] != counts[1][kernel])
    return {
        "model": model,
        "releases": f"{old} → {new}",
        "findings": [
            change.sentence() for change in compare_placements(olds, news, copies=(before["copies"], after["copies"]))
        ],
        "difference": {
            f"{kernel.op_type} on {kernel.provider}": f"{counts[0][kernel]} → {counts[1][kernel]}" for kernel in kernels
        },
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", required=True, help="traces are kept here, a line each")
    parser.add_argument("--models", type=Path, help="a folder of further .onnx files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=20.0, help="stop tracing after this time")
    parser.add_argument("--runtimes", default="", help="where runtimes are installed")
    return parser.parse_args()


if __name__ == "__main__":
    main()
