"""Is a model judged rightly against its twins: pruned, int8, exported again, broken?

    python -m tests.bench.twins [--times 3]        # here, at `quick`; exit code 1 where one is judged wrongly
    python -m tests.bench.twins --farm             # once, on a farm of its own, as versions of a model

Two models with seeded weights. What is right: exported again is never slower or faster, its outputs pass; pruned to
a quarter is faster, its outputs not judged; int8 has outputs within a tolerance; broken fails by its outputs.
"""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import onnxfarm
from farm.contract.document import Document
from tests.acceptance.conftest import live_farm

SEED = 35
TWINS = ("exported", "pruned", "int8", "broken")
OUTPUT, TOLERANCE = "y", 0.5
MATRIX: dict[str, Any] = {"budget": "quick", "threads": 1, "provider": "cpu"}


def perceptron(path: Path, *, width: int = 1024) -> Path:
    """Eight rows of 512 features through two hidden layers; `width`: of each, the first of its units kept."""
    make = np.random.default_rng(SEED)
    whole = 1024
    sizes = ((512, whole), (whole, whole), (whole, 64))
    kept = ((512, width), (width, width), (width, 64))
    weights = [
        (make.standard_normal(size) / np.sqrt(size[0])).astype(np.float32)[: part[0], : part[1]]
        for size, part in zip(sizes, kept, strict=True)
    ]
    nodes, last = [], "x"
    for number in range(len(weights)):
        ending = OUTPUT if number == len(weights) - 1 else f"h{number}"
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"m{number}"], name=f"layer_{number}"))
        nodes.append(helper.make_node("Relu" if ending != OUTPUT else "Identity", [f"m{number}"], [ending]))
        last = ending
    return _saved(path, nodes, {f"w{n}": weight for n, weight in enumerate(weights)}, (8, 512), (8, 64))


def convolutions(path: Path, *, width: int = 64) -> Path:
    """A picture of 32 × 32 through three convolutions and a mean."""
    make = np.random.default_rng(SEED + 1)
    shapes = ((64, 3, 3, 3), (64, 64, 3, 3), (16, 64, 3, 3))
    kept = ((width, 3), (width, width), (16, width))
    weights = {
        f"w{number}": (make.standard_normal(shape) / np.sqrt(9 * shape[1])).astype(np.float32)[: part[0], : part[1]]
        for number, (shape, part) in enumerate(zip(shapes, kept, strict=True))
    }
    nodes, last = [], "x"
    for number in range(len(weights)):
        pads = {"pads": [1, 1, 1, 1]}
        nodes.append(helper.make_node("Conv", [last, f"w{number}"], [f"c{number}"], name=f"conv_{number}", **pads))
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"r{number}"]))
        last = f"r{number}"
    nodes.append(helper.make_node("GlobalAveragePool", [last], ["p"]))
    nodes.append(helper.make_node("Flatten", ["p"], [OUTPUT]))
    return _saved(path, nodes, weights, (1, 3, 32, 32), (1, 16))


def _saved(
    path: Path, nodes: list[Any], weights: dict[str, Any], takes: tuple[int, ...], gives: tuple[int, ...]
) -> Path:
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, takes)],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, gives)],
        [numpy_helper.from_array(np.ascontiguousarray(weight), name) for name, weight in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


MODELS: dict[str, tuple[Callable[..., Path], int]] = {
    "perceptron": (perceptron, 256),
    "convolutions": (convolutions, 16),
}


def twin_of(base: Path, kind: str, *, name: str, folder: Path) -> Path:
    """The model's twin of a kind, under the model's own file name in a folder of its own."""
    path = folder / kind / base.name
    path.parent.mkdir(exist_ok=True)
    make, width = MODELS[name]
    if kind == "pruned":
        return make(path, width=width)
    if kind == "int8":
        quantize_dynamic(base, path, weight_type=QuantType.QUInt8)
        return path
    model = onnx.load(base)
    if kind == "broken":
        weights = model.graph.initializer[0]
        values = numpy_helper.to_array(weights).copy()
        values.flat[0] = np.nan
        weights.CopyFrom(numpy_helper.from_array(values, weights.name))
    else:
        for number, node in enumerate(model.graph.node):
            node.name = f"exported_again_{number}"
    onnx.save(model, path)
    return path


def mistake(kind: str, document: Document) -> str:
    """What is wrong with how a twin was judged; empty where nothing is."""
    (comparison,) = [found for found in document.comparisons if found.axis == "model"]
    new = next(cell for cell in document.cells if cell.id == comparison.candidate)
    outputs = [beside.verdict for beside in new.engines if beside.cell == comparison.baseline]
    said = f"{comparison.verdict} ×{comparison.ratio or 0:.3f} over {comparison.rounds} rounds, outputs {outputs}"
    right = {
        "exported": comparison.verdict in ("equal", "undecided") and outputs == ["pass"],
        "pruned": comparison.verdict == "faster" and outputs in (["not_measured"], []),
        "int8": outputs == ["pass"],
        "broken": outputs == ["fail"],
    }
    print(f"{kind:9} {'right' if right[kind] else 'WRONG'}: {said}", flush=True)
    return "" if right[kind] else said


def here(times: int, folder: Path) -> Iterator[str]:
    for name, (make, _) in MODELS.items():
        base = make(folder / f"{name}.onnx")
        for kind in TWINS:
            twin = twin_of(base, kind, name=name, folder=folder)
            for _ in range(times):
                yield mistake(kind, onnxfarm.compare(base, twin, quiet=True, **_matrix(kind)))


def on_farm(folder: Path) -> Iterator[str]:
    """Each twin as the newest version of a model of its own, beside the version before."""
    with contextlib.contextmanager(live_farm)(folder / "home") as farm:
        for name, (make, _) in MODELS.items():
            base = make(folder / f"{name}.onnx")
            for kind in TWINS:
                twin = twin_of(base, kind, name=name, folder=folder)
                for place, path in (("base", base), ("twin", twin)):
                    target = folder / place / f"{name}-{kind}.onnx"
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(path.read_bytes())
                farm.document_of(farm.start_run(folder / "base" / target.name, {"budget": "glance"}), within_s=300)
                wanted = {**_matrix(kind), "models": "previous"}
                run = farm.start_run(target, wanted)
                yield mistake(kind, Document.model_validate(farm.document_of(run, within_s=300)))
                page = farm.api("GET", f"/runs/{run}")
                assert page.is_success, page.text


def _matrix(kind: str) -> dict[str, Any]:
    """Pruned has other outputs by design: nobody says how near they should be."""
    return MATRIX if kind == "pruned" else {**MATRIX, "tolerance": {OUTPUT: TOLERANCE}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--farm", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="twins-") as name:
        folder = Path(name)
        mistakes = [found for found in (on_farm(folder) if asked.farm else here(asked.times, folder)) if found]
    print(f"{len(mistakes)} judged wrongly")
    return int(bool(mistakes))


if __name__ == "__main__":
    sys.exit(main())
