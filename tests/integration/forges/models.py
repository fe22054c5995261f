"""A model that a pull request changes: made slower by layers that change no output, exported again, or broken."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, BATCH = 384, 32


def write(path: Path, *, layers: int = 10, idle: int = 0, prefix: str = "layer", factor: float = 1.0) -> Path:
    """So many products of matrices of one size; `idle` more have weights of an identity, so that outputs stay.

    `prefix`: what nodes and weights are called; `factor`: of the last weights.
    """
    dice = np.random.default_rng(0)
    weights = [dice.standard_normal((WIDTH, WIDTH)).astype(np.float32) / np.float32(WIDTH**0.5) for _ in range(layers)]
    weights[-1] *= np.float32(factor)
    weights += [np.eye(WIDTH, dtype=np.float32)] * idle
    names = ["x", *(f"{prefix}_{number}_out" for number in range(len(weights) - 1)), "y"]
    nodes = [
        helper.make_node(
            "MatMul", [names[number], f"{prefix}_{number}_w"], [names[number + 1]], name=f"{prefix}_{number}"
        )
        for number in range(len(weights))
    ]
    tensors = [numpy_helper.from_array(weight, f"{prefix}_{number}_w") for number, weight in enumerate(weights)]
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [BATCH, WIDTH]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "encoder", sides[:1], sides[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path
