"""Models of the reports: the reported operator, and beside it a branch of work that no report is about.

The branch is there so that naming the operator is a finding: a model of one operator would leave no choice.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
Attributes = dict[str, Any]
Fill = Callable[[np.random.Generator], Array]
# what the reported nodes are called
REPORTED = "reported"
# ONNX Runtime 1.15 loads it
IR_VERSION = 8
# with what a newer opset needs at least
IR_OF_OPSET = {19: 9, 21: 10, 23: 11}
MODELS = Path(__file__).parents[2] / "models"


class Made(NamedTuple):
    """A model with what it is fed, by name."""

    model: onnx.ModelProto
    feeds: dict[str, Array]


Maker = Callable[[np.random.Generator], Made]


class Part(NamedTuple):
    """Nodes with what they read; `outputs` leave the graph."""

    nodes: list[onnx.NodeProto]
    feeds: dict[str, Array]
    constants: dict[str, Array]
    outputs: list[str]


def written(name: str, maker: Maker, folder: Path) -> tuple[Path, Path]:
    """The model's file and its inputs' file, the same bytes whenever they are written."""
    made = maker(np.random.default_rng(crc32(name.encode())))
    folder.mkdir(parents=True, exist_ok=True)
    model, inputs = folder / f"{name}.onnx", folder / f"{name}.npz"
    model.write_bytes(made.model.SerializeToString(deterministic=True))
    np.savez(inputs, allow_pickle=False, **made.feeds)
    return model, inputs


def floats(*shape: int, dtype: str = "float32", low: float = -3.0, high: float = 3.0) -> Fill:
    """Evenly spread numbers."""
    return lambda dice: dice.uniform(low, high, size=shape).astype(dtype)


def whole(*shape: int, low: int = -100, high: int = 100, dtype: str = "int64") -> Fill:
    """Whole numbers, `high` excluded."""
    return lambda dice: dice.integers(low, high, size=shape).astype(dtype)


def coins(*shape: int) -> Fill:
    """True or false, evenly."""
    return lambda dice: dice.integers(0, 2, size=shape).astype(bool)


def one(
    op_type: str,
    feeds: Mapping[str, Fill],
    *,
    constants: Mapping[str, Fill | Array] | None = None,
    inputs: Sequence[str] | None = None,
    opset: int = 13,
    domain: str = "",
    outputs: int = 1,
    copies: int = 1,
    side: int = 64,
    **attributes: Any,
) -> Maker:
    """The reported node, `copies` times on inputs of their own. Its inputs are feeds, then constants, or `inputs`."""

    def made(dice: np.random.Generator) -> Made:
        part = Part([], {}, {}, [])
        for number in range(copies):
            mark = f"_{number}" if copies > 1 else ""
            part.feeds.update({name + mark: fill(dice) for name, fill in feeds.items()})
            for name, value in (constants or {}).items():
                part.constants[name + mark] = value(dice) if callable(value) else np.asarray(value)
            read = [name and name + mark for name in inputs or [*feeds, *(constants or {})]]
            results = [f"y{place}{mark}" for place in range(outputs)]
            name = REPORTED + mark
            part.nodes.append(helper.make_node(op_type, read, results, name=name, domain=domain, **attributes))
            part.outputs.extend(results)
        return graph(part, beside(dice, size=side), opset=opset, domains=(domain,))

    return made


def several(
    nodes: Sequence[onnx.NodeProto],
    feeds: Mapping[str, Fill],
    *,
    outputs: Sequence[str],
    constants: Mapping[str, Fill] | None = None,
    opset: int = 13,
    side: int = 64,
) -> Maker:
    """A reported pattern of nodes."""

    def made(dice: np.random.Generator) -> Made:
        filled = {name: fill(dice) for name, fill in feeds.items()}
        known = {name: fill(dice) for name, fill in (constants or {}).items()}
        part = Part(list(nodes), filled, known, list(outputs))
        return graph(part, beside(dice, size=side), opset=opset, domains=[node.domain for node in nodes])

    return made


def stored(name: str) -> Maker:
    """A reference model of tests/models, as it is."""

    def made(dice: np.random.Generator) -> Made:
        del dice
        with np.load(MODELS / f"{name}.inputs.npz") as feeds:
            return Made(onnx.load(MODELS / f"{name}.onnx"), dict(feeds))

    return made


def beside(dice: np.random.Generator, *, size: int) -> Part:
    """Work that no report is about: a product of two square matrices, turned over."""
    square = dice.standard_normal((2, size, size)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["beside", "beside_weights"], ["beside_product"], name="beside_matmul"),
        helper.make_node("Transpose", ["beside_product"], ["beside_out"], name="beside_transpose", perm=[1, 0]),
    ]
    return Part(nodes, {"beside": square[0]}, {"beside_weights": square[1]}, ["beside_out"])


def graph(*parts: Part, opset: int, domains: Sequence[str] = ()) -> Made:
    """One model of several parts that share nothing."""
    feeds = {name: value for part in parts for name, value in part.feeds.items()}
    constants = {name: value for part in parts for name, value in part.constants.items()}
    drawn = helper.make_graph(
        [node for part in parts for node in part.nodes],
        "report",
        [helper.make_tensor_value_info(name, _type(value), value.shape) for name, value in feeds.items()],
        [onnx.ValueInfoProto(name=name) for part in parts for name in part.outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    versions = {"": opset, **{domain: 3 if domain == "ai.onnx.ml" else 1 for domain in domains if domain}}
    model = helper.make_model(
        drawn,
        ir_version=max([IR_VERSION, *(ir for least, ir in IR_OF_OPSET.items() if opset >= least)]),
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in versions.items()],
    )
    model = onnx.shape_inference.infer_shapes(model)
    for output in model.graph.output:
        # operators that only ONNX Runtime knows: all of them here answer in float32
        if not output.HasField("type"):
            output.type.tensor_type.elem_type = TensorProto.FLOAT
    return Made(model, feeds)


def _type(value: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(value.dtype)) if value.dtype != bool else int(TensorProto.BOOL)
