"""How many of the exporters' models run from defaults, and how many on what a person would have fed them?

    python -m tests.bench.exported.fair OUT [--set stranger] [--only PREFIX] [--json FILE]

OUT is what `build` wrote. Each is inspected in the sandbox, its sizes and inputs are chosen, made and fed to the
measuring runner's own binding, as `bench` does from defaults; `wanted.toml`, or `stranger.toml`, says what is fair. A
refusal counts as both where it is wanted and names what it must.
"""

import argparse
import json
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from farm.contract.reasons import ReasonedError
from farm.workshop import arrays, orders
from farm.workshop.arrays import Array
from tests.bench.exported import stranger
from worker.runner.engines import onnxruntime as measured


def judged(folder: Path, wanted: dict[str, Any], scratch: Path) -> tuple[bool, str]:
    """Whether the model ran, and what is unfair; an empty text: nothing."""
    found = orders.inspect(folder, "model.onnx")
    problem = found.problem.text if found.problem else ""
    if not problem:
        feed = orders.choose_feed(folder, "model.onnx", out_dir=scratch)
        problem = feed.problem
    if "refused" in wanted:
        return bool(problem), "" if wanted["refused"] in problem else f"refused without {wanted['refused']}: {problem}"
    if problem:
        return False, problem
    try:
        made = orders.prepare_inputs(folder, "model.onnx", out_dir=scratch, shapes=feed.sizes, inputs=feed.inputs)
        given = arrays.read_npz(made.path)
        run(folder, given)
    except (ReasonedError, Exception) as why:
        return False, str(why).splitlines()[0]
    if "exporter" in wanted:
        return True, stranger.unfair(wanted, given)
    return True, "; ".join(unfair(name, text, given) for name, text in wanted.items() if unfair(name, text, given))


def run(folder: Path, given: arrays.Arrays) -> None:
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    opened = measured.Engine(session, requested=[], active=[], device="cpu")
    feed = measured.Feed(opened, measured.choose_inputs(opened, given))
    feed.run_first()
    feed.settle()


def unfair(name: str, text: str, given: arrays.Arrays) -> str:
    """What is wrong with an input; empty: nothing."""
    sizes, _, values = (part.strip() for part in text.partition(":"))
    if name not in given:
        return f"{name} is not fed"
    array = given[name]
    ranges = sizes.split()
    if len(ranges) != array.ndim or not all(map(_fits, ranges, array.shape)):
        return f"{name} is {'×'.join(map(str, array.shape))}, not {sizes}"
    return "" if not values or _holds(array, values) else f"{name} holds {_shown(array)}, not {values}"


def _fits(wanted: str, size: int) -> bool:
    low, dash, high = wanted.partition("-")
    return int(low) <= size <= int(high) if dash else str(size) in wanted.split("|")


def _holds(array: Array, values: str) -> bool:
    kind, *rest = values.split()
    if kind == "below":
        limit = int(rest[0])
        one = array.size < 3
        return array.min() >= 0 and limit // 4 * (not one) <= array.max() < limit and (one or len(np.unique(array)) > 1)
    if kind == "from":
        return bool((array == np.arange(int(rest[0]), int(rest[0]) + array.shape[-1])).all())
    if kind == "of":
        return {str(value) for value in array.reshape(-1)} <= set(rest)
    return bool((array == (kind == "ones")).all())


def _shown(array: Array) -> str:
    return ", ".join(map(str, array.reshape(-1)[:6]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--set", choices=("wanted", "stranger", "stranger2", "stranger3"), default="wanted")
    parser.add_argument("--only", default="", metavar="PREFIX")
    parser.add_argument("--json", type=Path, metavar="FILE")
    read = parser.parse_args()
    found: dict[str, tuple[bool, str]] = {}
    for name, wanted in tomllib.loads(Path(__file__).with_name(f"{read.set}.toml").read_text()).items():
        if not name.startswith(read.only) or not (read.out / name / "model.onnx").exists():
            continue
        with tempfile.TemporaryDirectory() as scratch:
            found[name] = judged(read.out / name, wanted, Path(scratch))
        ran, why = found[name]
        print(
            f"{name}: {'fair' if ran and not why else 'ran, unfair: ' + why if ran else 'did not run: ' + why}",
            flush=True,
        )
    ran_count, fair_count = (sum(many) for many in zip(*((r, r and not w) for r, w in found.values()), strict=True))
    print(f"{len(found)} models: {ran_count} ran, {fair_count} fair")
    if read.json:
        read.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
