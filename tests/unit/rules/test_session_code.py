"""Lines of Python that make a session: they run as integration; what they say is here."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from farm.rules.presenting.session_code import make_javascript, make_session_code
from tests.documents import make_cell


def test_what_differs_from_the_default_is_set() -> None:
    session = {"execution_mode": "parallel", "inter_op_threads": 2, "spinning": False, "arena": False} | {
        "memory_pattern": False, "config": {"session.set_denormal_as_zero": "1"}, "disabled_optimizers": ["A"],
    }  # fmt: skip
    cell = make_cell(
        threads=3, optimization="basic", session=session, provider="CUDAExecutionProvider", memory_limit_mb=512,
        provider_options={"device_id": "1"}, requested_providers=["CUDAExecutionProvider", "CPUExecutionProvider"],
    )  # fmt: skip
    code = make_session_code(cell, "it's.onnx")
    for line in (
        "options.intra_op_num_threads = 3",
        "options.inter_op_num_threads = 2",
        "options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC",
        "options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL",
        "options.enable_mem_pattern = False",
        "options.enable_cpu_mem_arena = False",
        'options.add_session_config_entry("session.intra_op.allow_spinning", "0")',
        'options.add_session_config_entry("session.inter_op.allow_spinning", "0")',
        "options.add_session_config_entry('session.set_denormal_as_zero', '1')",
        "# beside the session: memory limit 512 MiB",
    ):
        assert line in code.splitlines()
    providers = "[('CUDAExecutionProvider', {'device_id': '1'}), 'CPUExecutionProvider']"
    made = f"""onnxruntime.InferenceSession("it's.onnx", options, providers={providers}, disabled_optimizers=['A'])"""
    assert code.endswith(f"session = {made}")


def test_a_plain_session_sets_little() -> None:
    assert len(make_session_code(make_cell(session={"spinning": True}), "m.onnx").splitlines()) == 7


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not there")
def test_the_javascript_makes_the_same_session(tmp_path: Path) -> None:
    """A module in the place of onnxruntime-node says what it was asked for."""
    session = {"arena": False, "spinning": False, "inter_op_threads": 2, "execution_mode": "parallel"}
    code = make_javascript(make_cell(threads=3, optimization="extended", session=session), "it's.onnx")
    folder = tmp_path / "node_modules" / "onnxruntime-node"
    folder.mkdir(parents=True)
    create = "create: async (path, options) => console.log(JSON.stringify([path, options]))"
    (folder / "index.mjs").write_text(f"export const InferenceSession = {{ {create} }};")
    (folder / "package.json").write_text('{"name": "onnxruntime-node", "main": "index.mjs"}')
    (tmp_path / "made.mjs").write_text(code)
    said = subprocess.run(["node", "made.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    quiet = {"allow_spinning": "0"}
    assert json.loads(said.stdout) == [
        "it's.onnx",
        {
            "executionProviders": ["cpu"],
            "intraOpNumThreads": 3,
            "interOpNumThreads": 2,
            "executionMode": "parallel",
            "graphOptimizationLevel": "extended",
            "enableCpuMemArena": False,
            "extra": {"session": {"intra_op": quiet, "inter_op": quiet}},
        },
    ]


def test_javascript_has_its_own_word_for_no_optimizations() -> None:
    assert '"graphOptimizationLevel": "disabled"' in make_javascript(make_cell(optimization="disable"), "m.onnx")


@pytest.mark.parametrize(
    "other",
    [
        {"provider_options": {"device_id": "1"}},
        {"session": {"disabled_optimizers": ["A"]}},
        {"session": {"config": {"a": "1"}}},
        {"provider": "OpenVINOExecutionProvider"},
    ],
)
def test_what_javascript_cannot_set_has_no_javascript(other: dict[str, object]) -> None:
    assert make_javascript(make_cell(**other), "m.onnx") == ""
