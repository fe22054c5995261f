"""The programs that set what a search found, run as they are printed: in Python, and by the real onnxruntime-node."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farm.rules.presenting.session_code import make_javascript, make_session_code
from tests.documents import make_cell

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
MODEL = Path(__file__).parents[1] / "models" / "cnn_dyn.onnx"
SESSIONS: tuple[dict[str, Any], ...] = (
    {"threads": 1},
    {"threads": 2, "optimization": "extended", "session": {"arena": False}},
    {"threads": 2, "optimization": "disable", "session": {"spinning": False, "memory_pattern": False}},
    {"threads": 2, "session": {"execution_mode": "parallel", "inter_op_threads": 2}},
)
RUN = """
const x = new ort.Tensor('float32', new Float32Array(3 * 32 * 32).fill(0.5), [1, 3, 32, 32]);
console.log(JSON.stringify([...(await session.run({ x })).y.data]));
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where onnxruntime-node is installed, as npm is set up on this machine."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node or npm is not there.")
    made: Path = tmp_path_factory.mktemp("node")
    # its scripts would fetch CUDA's libraries
    words = ["npm", "install", "--ignore-scripts", "--no-save", "--prefix", ".", "onnxruntime-node"]
    done = subprocess.run(words, cwd=made, capture_output=True, text=True, timeout=500, check=False)
    if done.returncode:
        pytest.skip(f"npm could not install onnxruntime-node: {done.stderr[-200:]}")
    return made


@pytest.mark.parametrize("how", SESSIONS, ids=str)
def test_python_and_javascript_make_sessions_of_the_same_outputs(how: dict[str, Any], folder: Path) -> None:
    cell = make_cell(provider="CPUExecutionProvider", **how)
    names: dict[str, Any] = {}
    exec(make_session_code(cell, str(MODEL)), names)
    assert names["options"].intra_op_num_threads == how["threads"]
    (wanted,) = names["session"].run(None, {"x": np.full((1, 3, 32, 32), 0.5, np.float32)})
    (folder / "program.mjs").write_text(make_javascript(cell, str(MODEL)) + RUN)
    done = subprocess.run(["node", "program.mjs"], cwd=folder, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), wanted[0], rtol=1e-4, atol=1e-5)
