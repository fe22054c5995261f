"""What stayed in float when a quantised variant ran, and the advice that follows."""

from farm.contract.document_cells import OperatorTime
from farm.rules.quality.quantisation import advise, find_float_operators


def executed(op_type: str, time_us: float, node: str = "") -> OperatorTime:
    return OperatorTime(node=node or op_type.lower(), op_type=op_type, provider="CPUExecutionProvider", time_us=time_us)


TRACE = [
    executed("Conv", 30, "conv1"), executed("FusedConv", 10, "conv2"), executed("QLinearConv", 20),
    executed("MatMulIntegerToFloat", 10), executed("Relu", 30),
]  # fmt: skip


def test_what_ran_in_float_is_counted_by_family_with_its_share_of_the_time() -> None:
    conv, matmul = find_float_operators(TRACE)
    assert (conv.family, conv.ran, conv.in_float, conv.time_share) == ("Conv", 3, ("conv1", "conv2"), 0.4)
    assert conv.sentence() == "2 of 3 Conv stayed FP32, 40 % of the time."
    assert (matmul.family, matmul.ran, matmul.in_float, matmul.time_share) == ("MatMul", 1, (), 0.0)


def test_without_operators_nothing_is_said() -> None:
    assert find_float_operators([]) == []
    assert advise([], precision="int8-qdq", activation="uint8", hardware="x86") == []


def test_a_trace_without_time_has_no_shares() -> None:
    assert find_float_operators([executed("Conv", 0)])[0].time_share == 0.0


def test_signed_activations_on_x86_are_advised_against() -> None:
    found = find_float_operators(TRACE)
    assert "activation uint8" in advise(found, precision="int8-qdq", activation="int8", hardware="x86")[0]


def test_dynamic_quantisation_of_convolutions_is_advised_against() -> None:
    found = find_float_operators(TRACE)
    assert "int8-qdq" in advise(found, precision="int8-dynamic", activation="", hardware="x86")[0]


def test_otherwise_the_nodes_to_look_at_are_named() -> None:
    found = find_float_operators(TRACE)
    said = advise(found, precision="int8-qdq", activation="int8", hardware="arm")
    assert said[0].startswith("Look at conv1, conv2: Conv runs in float")
