"""The child that asks a tokenizer has limits of its own: here one that takes more memory than it should."""

import sys
from pathlib import Path

import pytest

from farm.contract.cells import Runtime
from farm.contract.reasons import ReasonCode
from worker.agent.installation.runtimes import Installed
from worker.agent.measurement import tokens

# in pieces, so that the watch sees it grow; to 2 GiB, should nobody watch
GREEDY = "held = []\nwhile len(held) < 512:\n    held.append(bytearray(b'x' * (4 << 20)))\n"


@pytest.fixture
def runtime(tmp_path: Path) -> Installed:
    """This Python, as an installed runtime."""
    binary = tmp_path / "runtime" / "bin"
    binary.mkdir(parents=True)
    (binary / "python").symlink_to(sys.executable)
    return Installed(runtime=Runtime(distribution="onnxruntime-genai", version="0.13.2"), folder=binary.parent)


def test_a_tokenizer_that_takes_too_much_memory_is_ended_in_a_sentence(tmp_path: Path, runtime: Installed) -> None:
    stage, model, work = (tmp_path / name for name in ("stage", "model", "work"))
    for folder in (stage, model, work):
        folder.mkdir()
    (stage / "__main__.py").write_text(GREEDY)
    (model / "model.onnx").write_bytes(bytes(8 << 20))
    place = {"runtime": runtime, "stage": stage, "work": work, "base_bytes": 256 << 20}
    with pytest.raises(tokens.TokenizationError) as refused:
        tokens.write_token_ids({"prompt": "the"}, model=model / "model.onnx", **place)
    reason = refused.value.reason
    assert reason.code is ReasonCode.OUT_OF_MEMORY
    assert reason.text.startswith("The tokenizer ran out of memory after ")
    # the model's 8 MiB four times beside the base
    assert "its limit is 288 MiB" in reason.text
    assert reason.text.endswith("Give shorter texts, or token ids in a .npz (prompt, int64) in place of a text.")
