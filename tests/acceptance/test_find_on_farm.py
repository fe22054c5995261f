"""A search for the settings to ship on a farm with a real agent: from the command to the answer and its code."""

import json
from pathlib import Path
from typing import Any

import httpx2
import onnxruntime
import pytest

from tests.acceptance.conftest import LiveFarm

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]
MODEL = Path(__file__).parents[1] / "models" / "cnn_dyn.onnx"
# of one thread, so that a busy machine decides too: without optimizations this model takes twice as long
SPACE = {"batch": 1, "runtime": "1.31.1", "threads": 1, "optimization": ["disable", "all"]}


def test_a_real_agent_races_settings_to_an_answer_that_runs(
    farm: LiveFarm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "found.json"
    words = ("find", str(MODEL), "--over", json.dumps(SPACE), "--minutes", "2", "--nodes", "cpu")
    done = farm.command(*words, "--json", str(out))
    found: dict[str, Any] = json.loads(out.read_text())
    (best,) = found["answer"]
    assert (found["state"], found["is_final"], best["settings"]["optimization"]) == ("decided", True, "all")
    assert found["sentence"] in done.stderr
    assert "faster than the default" in found["sentence"]
    # the program sets what was measured, and runs where the model lies
    monkeypatch.chdir(MODEL.parent)
    names: dict[str, Any] = {}
    exec(found["python"], names)
    assert isinstance(names["session"], onnxruntime.InferenceSession)
    assert names["options"].graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    address = next(word for word in done.stderr.split() if "/finds/" in word)
    with httpx2.Client(base_url=farm.url, follow_redirects=True, timeout=60) as browser:
        farm.sign_in(browser)
        assert best["label"] in browser.get(address).text
