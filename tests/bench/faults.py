"""Whether parity still fails what is wrong: seeded faults in small networks, and twins that are right and must pass.

    python -m tests.bench.faults [--count 200] [--seed 1]

A network of one of four kinds, in fp32 or fp16, of numbers around 1 or around 2,000, gets one fault: a changed weight,
a swapped axis, a lost epsilon or a saturated sum that moves an output by 3 % of their scale or more. Its outputs are
held against those of the right one without optimisations, as a check does. The twins are the right one optimised, and
with a sum in another order. One JSON line.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.transformers.float16 import convert_float_to_float16

from farm.contract.reports import OutputParity
from farm.rules.quality import parity
from tests.bench.figure import publish
from tests.options import read_options
from worker.runner.parity import compare_output, compute_scale

ROWS, WIDTH, DEPTH = 8, 32, 2
# of the scale: what 16 bits tell from rounding in 24 layers
MOVED = 1 / 32
SCALES = (1.0, 2000.0)
Change = Callable[[onnx.ModelProto, np.random.Generator], None]
Numbers = np.ndarray[Any, np.dtype[np.float32]]
ALL, NONE = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


class Network:
    """A small network that is put together node by node."""

    def __init__(self, dice: np.random.Generator, *, scale: float) -> None:
        self.dice, self.scale = dice, scale
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Numbers] = {}

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"t{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(kind, list(inputs), [output], name=f"{kind}_{len(self.nodes)}", **attributes)
        )
        return output

    def weight(self, *shape: int, spread: float = 1.0) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = (spread * self.dice.normal(size=shape)).astype(np.float32)
        return name

    def dense(self, x: str) -> str:
        return self.add("MatMul", x, self.weight(WIDTH, WIDTH, spread=WIDTH**-0.5))

    def normalised(self, x: str) -> str:
        """Of numbers so small that the epsilon counts."""
        small = self.add("Mul", x, self.weight(1, spread=0.003))
        ones, zeros = self.weight(WIDTH), self.weight(WIDTH)
        return self.add("LayerNormalization", small, ones, zeros, axis=-1, epsilon=1e-5)

    def model(self, y: str) -> onnx.ModelProto:
        y = self.add("Mul", y, self.weight(1, spread=0.0))
        self.weights[self.nodes[-1].input[1]][:] = self.scale
        ports = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [ROWS, WIDTH]) for n in ("x", y)]
        stored = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, "network", ports[:1], ports[1:], stored)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def perceptron(net: Network) -> str:
    x = "x"
    for _ in range(DEPTH):
        x = net.add("Relu", net.add("Add", net.dense(x), net.weight(WIDTH)))
    return net.dense(net.normalised(x))


def attention(net: Network) -> str:
    x = net.normalised("x")
    query, key, value = net.dense(x), net.dense(x), net.dense(x)
    scores = net.add("MatMul", query, net.add("Transpose", key, perm=[1, 0]))
    mixed = net.add("MatMul", net.add("Softmax", scores, axis=-1), value)
    return net.dense(net.add("Add", mixed, x))


def gated(net: Network) -> str:
    gate = net.add("Sigmoid", net.dense("x"))
    return net.dense(net.normalised(net.add("Mul", gate, net.add("Tanh", net.dense("x")))))


def residual(net: Network) -> str:
    x = "x"
    for _ in range(DEPTH):
        x = net.add("Add", x, net.dense(net.add("Erf", net.dense(net.normalised(x)))))
    return net.dense(x)


NETWORKS: tuple[Callable[[Network], str], ...] = (perceptron, attention, gated, residual)


def changed_weight(model: onnx.ModelProto, dice: np.random.Generator) -> None:
    tensor = dice.choice([each for each in model.graph.initializer if len(each.dims) == 2])
    array = numpy_helper.to_array(tensor).copy()
    place = tuple(dice.integers(size) for size in array.shape)
    array[place] += dice.choice([-1, 1]) * (1 + dice.random()) * array.std()
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def swapped_axis(model: onnx.ModelProto, dice: np.random.Generator) -> None:
    tensor = dice.choice([each for each in model.graph.initializer if len(each.dims) == 2])
    array = np.ascontiguousarray(numpy_helper.to_array(tensor).T)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def lost_epsilon(model: onnx.ModelProto, dice: np.random.Generator) -> None:
    node = dice.choice([each for each in model.graph.node if each.op_type == "LayerNormalization"])
    next(attribute for attribute in node.attribute if attribute.name == "epsilon").f = 0.0


def saturated_sum(model: onnx.ModelProto, dice: np.random.Generator) -> None:
    """As of an accumulator of too few bits: what is beyond two thirds of the largest stays there."""
    node = dice.choice([each for each in model.graph.node if each.op_type == "MatMul"])
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.append(helper.make_empty_tensor_value_info(node.output[0]))
    (largest,) = run(probe, NONE, names=[node.output[0]]).values()
    limit = np.asarray(np.abs(largest).max() * 2 / 3, largest.dtype)
    model.graph.initializer.extend(
        numpy_helper.from_array(each, name) for each, name in ((-limit, "low"), (limit, "high"))
    )
    at = list(model.graph.node).index(node)
    model.graph.node.insert(at + 1, helper.make_node("Clip", ["unclipped", "low", "high"], [node.output[0]]))
    node.output[0] = "unclipped"


FAULTS: tuple[Change, ...] = (changed_weight, swapped_axis, lost_epsilon, saturated_sum)


def reordered(model: onnx.ModelProto, dice: np.random.Generator) -> None:
    """The same network with its first sum taken in another order."""
    node = next(each for each in model.graph.node if each.op_type == "MatMul" and each.input[1].startswith("w"))
    tensor = next(each for each in model.graph.initializer if each.name == node.input[1])
    order = dice.permutation(WIDTH)
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor)[order], tensor.name))
    model.graph.initializer.append(numpy_helper.from_array(order, "order"))
    at = list(model.graph.node).index(node)
    model.graph.node.insert(at, helper.make_node("Gather", [node.input[0], "order"], ["shuffled"], axis=1))
    node.input[0] = "shuffled"


def run(
    model: onnx.ModelProto, level: onnxruntime.GraphOptimizationLevel, *, names: list[str] | None = None
) -> dict[str, Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.graph_optimization_level, options.log_severity_level = 1, level, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = names or [node.name for node in session.get_outputs()]
    x = np.random.default_rng(5).normal(size=(ROWS, WIDTH)).astype(np.float32)
    return dict(zip(wanted, session.run(wanted, {"x": x}), strict=True))


def verdict(model: onnx.ModelProto, reference: dict[str, Any], *, uploaded: str) -> str:
    """As a check and the farm come to it."""
    preset = parity.preset_for("fp32", uploaded)
    limits = {"atol": preset.tolerance.atol, "rtol": preset.tolerance.rtol}
    outputs = [
        OutputParity.model_validate(compare_output("y", value, reference[name], **limits))
        for name, value in run(model, ALL).items()
    ]
    return parity.judge(outputs, preset).verdict


def found(count: int, seed: int) -> dict[str, Counter[str]]:
    """Verdicts by what was done, in which type: `count` faults, and two twins for each fourth of them."""
    dice = np.random.default_rng(seed)
    verdicts: dict[str, Counter[str]] = {}
    number = 0
    while number < count:
        # every kind of fault meets every network, type and scale
        net = Network(dice, scale=SCALES[number // 32 % 2])
        right = net.model(NETWORKS[number // 4 % 4](net))
        wrong = changed(right, FAULTS[number % 4], dice)
        if not is_moved(right, wrong):
            continue
        uploaded = ("fp32", "fp16")[number // 16 % 2]
        reference = run(stored_as(uploaded, right), NONE)
        twins = {"optimised": right, "reordered": changed(right, reordered, dice)} if number % 4 == 0 else {}
        for name, model in {FAULTS[number % 4].__name__: wrong, **twins}.items():
            judged = verdict(stored_as(uploaded, model), reference, uploaded=uploaded)
            verdicts.setdefault(f"{name}, {uploaded}", Counter())[judged] += 1
        number += 1
    return verdicts


def changed(model: onnx.ModelProto, change: Change, dice: np.random.Generator) -> onnx.ModelProto:
    other = onnx.ModelProto()
    other.CopyFrom(model)
    change(other, dice)
    return other


def is_moved(right: onnx.ModelProto, wrong: onnx.ModelProto) -> bool:
    """Whether an output moves by more than MOVED of their scale: a sum that saturates where nothing listens is none."""
    (before,), (after,) = run(right, NONE).values(), run(wrong, NONE).values()
    return bool(np.abs(after - before).max() > MOVED * compute_scale(before))


def stored_as(precision: str, model: onnx.ModelProto) -> onnx.ModelProto:
    return convert_float_to_float16(model, keep_io_types=True) if precision == "fp16" else model


def main() -> None:
    options = read_options(__doc__, count=200, seed=1)
    verdicts = found(options.count, options.seed)
    publish(
        claim="Parity fails every seeded fault, and passes what is right.",
        seed=options.seed,
        figures={"runtime": f"onnxruntime=={onnxruntime.__version__}", "verdicts": verdicts},
    )


if __name__ == "__main__":
    main()
