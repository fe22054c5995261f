"""Builds graphs from named nodes and weights."""

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from farm.workshop.arrays import Array

# every ONNX Runtime from 1.15 on loads these versions; the defaults of the onnx package are too new for all of them
OPSET = 17
IR_VERSION = 8
CONTRIB = "com.microsoft"

Port = tuple[int, list[str | int]]


class GraphBuilder:
    """Collects nodes and weights of one graph, and makes the model of them.

    The `add` methods return the name of the new weight or output, except `add_contrib`, which is given the names. A
    linear layer is a MatMul and an Add, a convolution has a kernel of 3 × 3 and padding of 1, and `finish_x_to_y` makes
    a model from floats `x` to floats `y`.
    """

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._is_standard = True

    def add_weight(self, name: str, value: Array) -> str:
        self._initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(
        self, op_type: str, name: str, inputs: list[str], *, output: str = "", **attributes: int | float | list[int]
    ) -> str:
        """Add a node of a standard operator, and return the name of its output: `output`, or `{name}_out`."""
        output = output or f"{name}_out"
        node = helper.make_node(op_type, inputs, [output], name=name)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in sorted(attributes.items()))
        self._nodes.append(node)
        return output

    def add_contrib(self, op_type: str, name: str, inputs: list[str], *, outputs: list[str], **attributes: int) -> None:
        """Add a node of ONNX Runtime's own operators with the named outputs."""
        node = helper.make_node(op_type, inputs, outputs, name=name, domain=CONTRIB)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in sorted(attributes.items()))
        self._nodes.append(node)
        self._is_standard = False

    def add_linear(self, name: str, x: str, *, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        product = self.add("MatMul", f"{name}_matmul", [x, self.add_weight(f"{name}_weight", weight)])
        return self.add("Add", f"{name}_add", [product, self.add_weight(f"{name}_bias", bias)])

    def add_conv(self, name: str, inputs: list[str], *, stride: int) -> str:
        return self.add("Conv", name, inputs, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[stride, stride])

    def finish_x_to_y(self, name: str, *, x: list[str | int], y: list[str | int]) -> onnx.ModelProto:
        kind = onnx.TensorProto.FLOAT
        return self.finish(name, inputs={"x": (kind, x)}, outputs={"y": (kind, y)})

    def finish(self, name: str, *, inputs: dict[str, Port], outputs: dict[str, Port]) -> onnx.ModelProto:
        """Make and check the model; `inputs` and `outputs` give an element type and a shape by name."""
        input_values, output_values = (
            [helper.make_tensor_value_info(port, kind, shape) for port, (kind, shape) in side.items()]
            for side in (inputs, outputs)
        )
        graph = helper.make_graph(self._nodes, name, input_values, output_values, self._initializers)
        opsets = [helper.make_opsetid("", OPSET)]
        opsets += [] if self._is_standard else [helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="onnxfarm-samples")
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=True)
        return model
