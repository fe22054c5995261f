"""PyTorch as the baseline, for real: a model's program and its .onnx in one block, from the package index.

PyPI's wheel of PyTorch brings CUDA (some 5 GB unpacked); where uv is told of an index or folder with the build for the
processor alone (UV_INDEX, UV_FIND_LINKS), that one is installed.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner, Result

from farm.rules.cells.readers import read_runtime
from onnxfarm.main import app
from tests import programs
from tests.integration.worker.making import runtime_store
from worker.agent.measurement import runner_process

pytestmark = [pytest.mark.slow, pytest.mark.long]

EAGER, COMPILED, PLAIN = "torch==2.13.0", "torch==2.13.0+compile", "1.31.1"
# what torch.export.save itself writes: two inputs, one of them by keyword, a buffer, a constant, a dict of outputs
EXPORT = """
import sys, torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 8)
        self.register_buffer("shift", torch.arange(8.0))
        self.factor = torch.full((1,), 3.0)
    def forward(self, x, *, scale):
        y = torch.relu(self.linear(x)) + self.shift
        return {"y": y * scale, "total": (y * self.factor).sum(-1)}
torch.manual_seed(1)
model = Model().eval()
rows = torch.export.Dim("rows")
program = torch.export.export(model, (torch.randn(2, 16),), {"scale": torch.ones(2, 1)},
    dynamic_shapes={"x": {0: rows}, "scale": {0: rows}})
torch.export.save(program, sys.argv[1])
weight, bias = model.linear.weight.tolist(), model.linear.bias.tolist()
import json; json.dump([weight, bias], open(sys.argv[2], "w"))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose runtimes are shared with the other tests; PyTorch is in it before anything is timed."""
    folder = tmp_path_factory.mktemp("home")
    runtime_store().folder.mkdir(parents=True, exist_ok=True)
    (folder / "runtimes").symlink_to(runtime_store().folder)
    runtime_store().provide(read_runtime(EAGER))
    return folder


def bench(home: Path, folder: Path, *words: object) -> tuple[Result, dict[str, Any]]:
    written = folder / "document.json"
    given = ["bench", folder / "model.onnx", "--source", folder / "model.pt2", *words, "--home", home]
    result = CliRunner().invoke(app, [*map(str, given), "--json", str(written)])
    return result, json.loads(written.read_text()) if written.exists() else {}


def test_a_model_and_its_program_are_measured_side_by_side_to_a_verdict(home: Path, tmp_path: Path) -> None:
    programs.write_onnx(tmp_path / "model.onnx")
    programs.write_program(tmp_path / "model.pt2")
    words = ("--ort", f"{EAGER},{PLAIN}", "--threads", 2, "--batch", 4)
    result, document = bench(home, tmp_path, *words)
    assert result.exit_code == 0, result.output
    eager, plain = document["cells"]
    assert (eager["status"], plain["status"]) == ("done", "done")
    assert eager["parity"]["verdict"] == plain["parity"]["verdict"] == "pass"
    assert eager["packages"]["torch"].startswith("2.13.0")
    assert eager["provider_facts"]["program"] == "eager, saved by PyTorch 2.13.0+cpu"
    assert eager["provider_facts"]["threads"] == "2"
    # the .onnx is not the program that was measured, nor the other way round
    assert eager["model_bytes"] > plain["model_bytes"] == (tmp_path / "model.onnx").stat().st_size
    (engine,) = plain["engines"]
    assert engine["verdict"] == "pass"
    (comparison,) = document["comparisons"]
    # a single operator: PyTorch's own overhead is many times its work
    assert comparison["verdict"] == "faster"
    assert comparison["ratio"] < 0.5
    assert comparison["rounds"] >= 8
    assert "PyTorch 2.13.0 (eager)" in result.output
    assert f"--ort {EAGER} --source model.pt2" in eager["repeat_command"]


def test_a_program_is_compiled_where_there_is_a_compiler(home: Path, tmp_path: Path) -> None:
    programs.write_onnx(tmp_path / "model.onnx")
    programs.write_program(tmp_path / "model.pt2")
    result, document = bench(home, tmp_path, "--ort", COMPILED, "--budget", "glance")
    assert result.exit_code == 0, result.output
    (compiled,) = document["cells"]
    assert compiled["parity"]["verdict"] == "pass"
    assert compiled["provider_facts"]["program"] == "compile, saved by PyTorch 2.13.0+cpu"


def test_without_a_compiler_compiling_is_refused_in_words(home: Path, tmp_path: Path, monkeypatch: Any) -> None:
    programs.write_onnx(tmp_path / "model.onnx")
    programs.write_program(tmp_path / "model.pt2")
    monkeypatch.setitem(runner_process._ENVIRONMENT, "PATH", "/nowhere")
    result, document = bench(home, tmp_path, "--ort", f"{COMPILED},{EAGER}", "--budget", "glance")
    compiled, eager = document["cells"]
    assert (compiled["status"], eager["status"]) == ("refused", "done"), result.output
    assert compiled["reason"]["text"].startswith("Compiling takes a C++ compiler, and this machine has none of g++")


def test_what_torch_export_itself_saves_is_run_without_opening_its_pickled_samples(home: Path, tmp_path: Path) -> None:
    python = runtime_store().provide(read_runtime(EAGER)).python
    words = [str(python), "-c", EXPORT, str(tmp_path / "model.pt2"), str(tmp_path / "weights.json")]
    subprocess.run(words, check=True, capture_output=True, timeout=300)
    write_exported(tmp_path / "model.onnx", *json.loads((tmp_path / "weights.json").read_text()))
    result, document = bench(home, tmp_path, "--ort", f"{EAGER},{PLAIN}", "--budget", "glance", "--batch", 3)
    assert result.exit_code == 0, result.output
    assert [cell["parity"]["verdict"] for cell in document["cells"]] == ["pass", "pass"]
    assert {one["name"] for one in document["cells"][0]["parity"]["outputs"]} == {"y", "total"}


def test_a_batch_that_the_program_was_not_exported_for_is_refused_and_the_others_are_measured(
    home: Path, tmp_path: Path
) -> None:
    def fix(graph: dict[str, Any]) -> None:
        for value in graph["graph_module"]["graph"]["tensor_values"].values():
            if "as_expr" in value["sizes"][0]:
                value["sizes"][0] = {"as_int": 1}
        graph["range_constraints"] = {}

    programs.write_onnx(tmp_path / "model.onnx")
    programs.write_program(tmp_path / "model.pt2", change=fix)
    result, document = bench(home, tmp_path, "--ort", EAGER, "--budget", "glance", "--batch", "1,4")
    one, four = document["cells"]
    assert (one["status"], four["status"]) == ("done", "refused"), result.output
    assert "size 4 in dimension 0 and the program wants 1" in four["reason"]["text"]


def write_exported(path: Path, weight: list[list[float]], bias: list[float]) -> None:
    """The model of EXPORT as an .onnx."""
    tensor, nodes = helper.make_tensor_value_info, helper.make_node
    graph = helper.make_graph(
        [
            nodes("Gemm", ["x", "weight", "bias"], ["sum"], transB=1),
            nodes("Relu", ["sum"], ["positive"]),
            nodes("Add", ["positive", "shift"], ["shifted"]),
            nodes("Mul", ["shifted", "scale"], ["y"]),
            nodes("Mul", ["shifted", "three"], ["tripled"]),
            nodes("ReduceSum", ["tripled", "last"], ["total"], keepdims=0),
        ],
        "exported",
        [tensor("x", TensorProto.FLOAT, ["batch", 16]), tensor("scale", TensorProto.FLOAT, ["batch", 1])],
        [tensor("y", TensorProto.FLOAT, ["batch", 8]), tensor("total", TensorProto.FLOAT, ["batch"])],
        [
            numpy_helper.from_array(np.array(weight, np.float32), "weight"),
            numpy_helper.from_array(np.array(bias, np.float32), "bias"),
            numpy_helper.from_array(np.arange(8, dtype=np.float32), "shift"),
            numpy_helper.from_array(np.array([3.0], np.float32), "three"),
            numpy_helper.from_array(np.array([-1], np.int64), "last"),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
