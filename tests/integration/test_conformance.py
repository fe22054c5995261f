"""The conformance suite on a real runtime, past cases that are wrong, refused, or end their process."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from farm.contract.cells import Runtime
from worker.agent.installation import stages
from worker.agent.installation.runtimes import Installed, RuntimeStore
from worker.agent.measurement import conformance

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    store = RuntimeStore(tmp_path_factory.mktemp("runtimes"))
    return store.provide(Runtime(distribution="onnxruntime", version="1.31.1"))


def _write_case(suite: Path, name: str, *, op_type: str = "Relu", expected: float = 2.0) -> None:
    folder = suite / name
    folder.mkdir(parents=True)
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"])], "g", [value], [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "tolerance.json").write_text(json.dumps({"rtol": 1e-3, "atol": 1e-7}))
    arrays = {"in.x": np.array([2.0], np.float32), "out.y": np.array([expected], np.float32)}
    np.savez(folder / "data_0.npz", **arrays)


def test_each_case_gets_its_outcome_in_words(tmp_path: Path, runtime: Installed) -> None:
    suite, work = tmp_path / "suite", tmp_path / "work"
    work.mkdir()
    _write_case(suite, "a_right")
    _write_case(suite, "b_wrong", expected=3.0)
    _write_case(suite, "c_unknown", op_type="NoSuchOperator")
    stage = stages.stage_runner(tmp_path / "home")
    outcomes = conformance.run_suite(suite, runtime=runtime, stage=stage, work=work)
    assert [one.outcome for one in outcomes] == ["pass", "wrong", "refused"]
    assert outcomes[1].text == "output y: 1 of 1 elements differ, by up to 1"
    assert "NoSuchOperator" in outcomes[2].text


def test_a_case_that_crashes_its_process_is_named_and_the_rest_still_runs(tmp_path: Path, runtime: Installed) -> None:
    suite, work, source = tmp_path / "suite", tmp_path / "work", tmp_path / "runner"
    work.mkdir()
    for name in ("a_right", "b_crashes", "c_right"):
        _write_case(suite, name)
    # a runner whose second case ends in a real segmentation fault
    shutil.copytree(stages.RUNNER, source)
    with (source / "conformance.py").open("a") as code:
        code.write(
            "\n\n_real = _run_case\n\n\ndef _run_case(folder, *, order):\n"
            "    import os, signal\n"
            "    if 'crashes' in folder.name:\n        os.kill(os.getpid(), signal.SIGSEGV)\n"
            "    return _real(folder, order=order)\n"
        )
    stage = stages.stage_runner(tmp_path / "home", source=source)
    outcomes = conformance.run_suite(suite, runtime=runtime, stage=stage, work=work)
    assert [one.outcome for one in outcomes] == ["pass", "crashed", "pass"]
    assert "SIGSEGV" in outcomes[1].text
