"""The graph of a model without its weights."""

import contextlib

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from farm.rules.tracing.outlines import EMPTY_BYTES, KEPT_BYTES, remove_weights

BIG = np.arange(4096, dtype=np.float32)


def model_of(*nodes: onnx.NodeProto, initializers: tuple[onnx.TensorProto, ...] = ()) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4096]) for name in "xy")
    graph = helper.make_graph(list(nodes), "main", [x], [y], list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def outlined(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.load_from_string(remove_weights(memoryview(model.SerializeToString())))


def test_a_large_initialiser_keeps_its_shape_and_loses_its_values() -> None:
    model = model_of(
        helper.make_node("Add", ["x", "w"], ["y"], name="add"), initializers=(numpy_helper.from_array(BIG, "w"),)
    )
    found = outlined(model)
    (kept,) = found.graph.initializer
    assert (kept.name, list(kept.dims), kept.data_type) == ("w", [4096], TensorProto.FLOAT)
    assert kept.raw_data == b""
    assert found.graph.node == model.graph.node
    assert found.graph.input == model.graph.input
    assert len(found.SerializeToString()) < KEPT_BYTES < len(model.SerializeToString())


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE, TensorProto.INT32])
def test_values_in_typed_fields_go_too(kind: int) -> None:
    tensor = helper.make_tensor("w", kind, [2000], [1] * 2000)
    found = outlined(model_of(helper.make_node("Identity", ["x"], ["y"]), initializers=(tensor,)))
    assert found.graph.initializer[0].ByteSize() < 20


SMALL = np.arange(8, dtype=np.float32) + 1.25


@pytest.mark.parametrize("values", [SMALL, SMALL.astype(np.int32), SMALL.astype(np.int8), SMALL.astype(np.float16)])
def test_a_bias_of_eight_numbers_is_a_weight_too(values: np.ndarray) -> None:
    """Wherever it stands: a viewer gets no part of a model, and a small model is made of small tensors."""
    tensor = numpy_helper.from_array(values, "b")
    inner = helper.make_graph([helper.make_node("Constant", [], ["c"], value=tensor)], "then", [], [])
    nodes = (
        helper.make_node("Constant", [], ["c"], value=tensor),
        helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner),
    )
    model = model_of(*nodes, initializers=(tensor,))
    model.functions.add(name="f", domain="d").node.append(nodes[0])
    model.graph.sparse_initializer.add().values.CopyFrom(tensor)
    assert tensor.raw_data in model.SerializeToString()
    found = outlined(model)
    assert tensor.raw_data not in found.SerializeToString()
    (kept,) = found.graph.initializer
    assert (kept.name, list(kept.dims), kept.data_type) == ("b", [8], tensor.data_type)
    assert [node.op_type for node in found.graph.node] == ["Constant", "If"]


def test_a_single_number_without_a_name_is_a_weight_too() -> None:
    """Type and value of a scalar take eight bytes: a scale of a quantised model."""
    scale = TensorProto(data_type=TensorProto.FLOAT, raw_data=np.float32(0.12345).tobytes())
    zero = TensorProto(data_type=TensorProto.INT8, raw_data=b"\x55", name="z")
    assert max(scale.ByteSize(), zero.ByteSize()) <= EMPTY_BYTES
    found = outlined(model_of(helper.make_node("Constant", [], ["c"], value=scale), initializers=(zero,)))
    assert found.graph.node[0].attribute[0].t == TensorProto(data_type=TensorProto.FLOAT)
    assert found.graph.initializer[0] == TensorProto(data_type=TensorProto.INT8, name="z")


def test_small_numbers_in_typed_fields_and_lists_go_too() -> None:
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.25, 2.5])
    node = helper.make_node("LinearRegressor", ["x"], ["y"], coefficients=[1.25, 2.5], targets=1)
    found = outlined(model_of(node, initializers=(tensor,)))
    assert not found.graph.initializer[0].float_data
    assert {one.name: list(one.floats) for one in found.graph.node[0].attribute} == {"coefficients": [], "targets": []}
    # a type said twice, the second time as int64, changes nothing
    twice = tensor.SerializeToString() + bytes([2 << 3, TensorProto.INT64])
    model = bytes([7 << 3 | 2, len(twice) + 2, 5 << 3 | 2, len(twice)]) + twice
    assert not onnx.load_from_string(remove_weights(memoryview(model))).graph.initializer[0].float_data


def test_shapes_and_axes_stay_byte_for_byte() -> None:
    model = model_of(
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
        initializers=(numpy_helper.from_array(np.array([1, 4096]), "shape"),),
    )
    assert outlined(model) == model


def test_constants_and_branches_are_looked_into() -> None:
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(BIG, "inner"))],
        "then",
        [],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, [4096])],
    )
    model = model_of(helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner, name="branch"))
    found = outlined(model)
    assert len(found.SerializeToString()) < 2 * KEPT_BYTES
    assert [attribute.name for attribute in found.graph.node[0].attribute] == ["else_branch", "then_branch"]
    assert found.graph.node[0].attribute[0].g.node[0].op_type == "Constant"


def test_trees_and_compiled_blobs_in_attributes_go_and_their_names_stay() -> None:
    node = helper.make_node("Tree", ["x"], ["y"], values=[0.5] * 4000, blob=b"\1" * 4000, depth=3)
    (found,) = outlined(model_of(node)).graph.node
    values = {one.name: one for one in found.attribute}
    assert (list(values["values"].floats), values["blob"].s, values["depth"].i) == ([], b"", 3)


def test_where_external_data_lie_is_not_told() -> None:
    tensor = TensorProto(name="w", dims=[10**6], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="weights.bin")
    model = model_of(helper.make_node("Identity", ["x"], ["y"]), initializers=(tensor,))
    assert b"weights.bin" not in remove_weights(memoryview(model.SerializeToString()))


@pytest.mark.parametrize(
    "broken", [b"\x3a\x05ab", b"\x00", b"\xff" * 11, b"\x0f\x01", b"\x3a"], ids=["short", "0", "endless", "wire", "end"]
)
def test_what_is_not_protobuf_is_a_value_error(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"field|number"):
        remove_weights(memoryview(broken))


def test_endless_nesting_is_a_value_error() -> None:
    body = b"\0" * (KEPT_BYTES + 1)
    for number in [7, *([1, 5, 6] * 40)][::-1]:
        body = bytes([number << 3 | 2]) + _length(len(body)) + body
    with pytest.raises(ValueError, match="nested deeper"):
        remove_weights(memoryview(body))


def _length(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


@given(st.binary(max_size=300))
def test_any_bytes_give_an_outline_or_a_value_error(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert len(remove_weights(memoryview(content))) <= 3 * len(content)
