"""A small model as a framework's program and as an .onnx, written by hand: no test needs PyTorch to have one."""

import copy
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, OUT = 16, 8
Change = Callable[[dict[str, Any]], None]


def weights() -> dict[str, "np.ndarray[Any, np.dtype[np.float32]]"]:
    """What both forms of the model compute with: relu(x · weightᵀ + bias)."""
    dice = np.random.default_rng(7)
    return {
        "weight": dice.standard_normal((OUT, WIDTH)).astype(np.float32),
        "bias": dice.standard_normal(OUT).astype(np.float32),
    }


def write_onnx(path: Path, *, input_name: str = "x", outputs: int = 1) -> Path:
    """The model as an .onnx."""
    nodes = [
        helper.make_node("Gemm", [input_name, "weight", "bias"], ["sum"], transB=1),
        *(helper.make_node("Relu", ["sum"], [f"y{number or ''}"]) for number in range(outputs)),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(input_name, TensorProto.FLOAT, ["batch", WIDTH])],
        [helper.make_tensor_value_info(f"y{n or ''}", TensorProto.FLOAT, ["batch", OUT]) for n in range(outputs)],
        [numpy_helper.from_array(array, name) for name, array in weights().items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def graph() -> dict[str, Any]:
    """The program's graph as torch.export.save of PyTorch 2.13 writes it, without its notes."""
    batch = {"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)", "hint": {"as_int": 2}}}
    tensors = {
        "p_weight": _tensor(OUT, WIDTH),
        "p_bias": _tensor(OUT),
        "x": _tensor(batch, WIDTH),
        "linear": _tensor(batch, OUT),
        "relu": _tensor(batch, OUT),
    }
    linear = [("input", "x"), ("weight", "p_weight"), ("bias", "p_bias")]
    module = {
        "graph": {
            "inputs": [{"as_tensor": {"name": name}} for name in ("p_weight", "p_bias", "x")],
            "outputs": [{"as_tensor": {"name": "relu"}}],
            "nodes": [
                _node("torch.ops.aten.linear.default", linear, gives="linear"),
                _node("torch.ops.aten.relu.default", [("self", "linear")], gives="relu"),
            ],
            "tensor_values": tensors,
            "sym_int_values": {},
            "sym_bool_values": {},
            "sym_float_values": {},
            "is_single_tensor_return": False,
            "custom_obj_values": {},
        },
        "signature": {
            "input_specs": [
                {"parameter": {"arg": {"name": "p_weight"}, "parameter_name": "weight"}},
                {"parameter": {"arg": {"name": "p_bias"}, "parameter_name": "bias"}},
                {"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
            ],
            "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "relu"}}}}],
        },
        "module_call_graph": [
            {
                "fqn": "",
                "signature": {
                    "inputs": [],
                    "outputs": [],
                    "in_spec": spec(_inside("builtins.tuple", LEAF), _inside("builtins.dict", context="[]")),
                    "out_spec": json.dumps([1, LEAF]),
                    "forward_arg_names": ["x"],
                },
            }
        ],
        "metadata": {},
        "treespec_namedtuple_fields": {},
    }
    return {
        "graph_module": module,
        "opset_version": {"aten": 10},
        "range_constraints": {"s77": {"min_val": 0, "max_val": None}},
        "schema_version": {"major": 8, "minor": 20},
        "verifiers": ["TRAINING"],
        "torch_version": "2.13.0+cpu",
        "guards_code": [],
    }


LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


def spec(*children: dict[str, Any], type_: str = "builtins.tuple", context: str = "null") -> str:
    """How a program's values lie inside each other, as text."""
    return json.dumps([1, _inside(type_, *children, context=context)])


def _inside(type_: str, *children: dict[str, Any], context: str = "null") -> dict[str, Any]:
    return {"type": type_, "context": context, "children_spec": list(children)}


def members(*, change: Change | None = None, tensors: Change | None = None) -> dict[str, bytes]:
    """The files of the program's archive; `change`: of the graph, `tensors`: of the list of its weights."""
    told = copy.deepcopy(graph())
    if change is not None:
        change(told)
    listed = {
        name: {
            "path_name": f"weight_{place}",
            "is_param": True,
            "use_pickle": False,
            "tensor_meta": _tensor(*one.shape),
        }
        for place, (name, one) in enumerate(weights().items())
    }
    if tensors is not None:
        tensors(listed)
    payloads = {f"data/weights/weight_{place}": one.tobytes() for place, one in enumerate(weights().values())}
    return {
        "archive_format": b"pt2",
        "archive_version": b"0",
        "byteorder": b"little",
        ".data/version": b"6\n",
        "models/model.json": json.dumps(told).encode(),
        "data/weights/model_weights_config.json": json.dumps({"config": listed}).encode(),
        "data/constants/model_constants_config.json": b'{"config": {}}',
        # what a program of torch.export.save has here is pickled; this one tells whoever opens it
        "data/sample_inputs/model.pt": b"cos\nsystem\n(S'touch unpickled'\ntR.",
        **payloads,
    }


def write_program(
    path: Path,
    *,
    change: Change | None = None,
    tensors: Change | None = None,
    files: Mapping[str, bytes | None] | None = None,
    compression: int = zipfile.ZIP_STORED,
) -> Path:
    """The model as a program. `files`: members that are other, more, or (None) left out."""
    content = {**members(change=change, tensors=tensors), **(files or {})}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, data in content.items():
            if data is not None:
                archive.writestr(f"small/{name}", data)
    path.write_bytes(packed.getvalue())
    return path


def _tensor(*sizes: object) -> dict[str, Any]:
    known = [size if isinstance(size, dict) else {"as_int": size} for size in sizes]
    steps = [WIDTH, 1] if len(known) == 2 and known[1] == {"as_int": WIDTH} else [OUT, 1]
    return {
        "dtype": 7,
        "sizes": known,
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": step} for step in steps[-len(known) :]],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def _node(target: str, inputs: list[tuple[str, str]], *, gives: str) -> dict[str, Any]:
    return {
        "target": target,
        "inputs": [{"name": name, "arg": {"as_tensor": {"name": value}}, "kind": 1} for name, value in inputs],
        "outputs": [{"as_tensor": {"name": gives}}],
        "metadata": {"stack_trace": "File somewhere.py, line 1"},
        "is_hop_single_tensor_return": None,
        "name": gives,
    }
