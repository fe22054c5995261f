"""The sample models: the same bytes every time, loadable, and the classifier really classifies."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from farm.workshop.child import feed
from farm.workshop.samples import builders, decoder, digits
from tests.conftest import PROJECT


def answered(path: Path, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["y"], {"x": x})[0])


@pytest.mark.parametrize("name", builders.NAMES)
def test_a_sample_is_the_same_bytes_every_time(name: str, tmp_path: Path) -> None:
    once, again = (builders.write_model(name, tmp_path / folder).read_bytes() for folder in ("once", "again"))
    assert hashlib.sha256(once).hexdigest() == hashlib.sha256(again).hexdigest()


@pytest.mark.parametrize("name", builders.NAMES)
def test_a_sample_loads_on_every_runtime_and_names_its_nodes(name: str, tmp_path: Path) -> None:
    model = onnx.load(builders.write_model(name, tmp_path))
    assert (model.ir_version, model.opset_import[0].version) == (8, 17)
    names = [node.name for node in model.graph.node]
    assert all(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("batch", "sequence"), [(1, 64), (3, 17)])
def test_the_transformer_takes_any_batch_and_sequence(batch: int, sequence: int, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((batch, sequence, 256)).astype(np.float32)
    y = answered(builders.write_model("transformer", tmp_path), x)
    assert y.shape == x.shape
    assert np.isfinite(y).all()


def test_the_convolutional_net_takes_any_batch(tmp_path: Path) -> None:
    y = answered(builders.write_model("convnet", tmp_path), np.zeros((5, 3, 32, 32), dtype=np.float32))
    assert y.shape == (5, 10)


def test_the_classifier_knows_digits_it_never_saw(tmp_path: Path) -> None:
    data = digits.make_evaluation_data()
    scores = answered(builders.write_model("digits", tmp_path), data["x"])
    assert data["x"].shape == (540, 1, 8, 8)
    assert (scores.argmax(1) == data["labels"]).mean() > 0.97


def generated(path: Path, prompt: np.ndarray, *, new: int, keeping: bool = True) -> tuple[list[int], np.ndarray]:
    """Greedy tokens, and the scores of each; `keeping` the cache, or else all tokens anew every time."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs() if node.name.startswith("past")]
    empty = [np.zeros((1, decoder.KEY_HEADS, 0, decoder.WIDTH), np.float32) for _ in names]
    given, past, before, scores = prompt, empty, 0, []
    for _ in range(new):
        total = before + given.shape[1]
        places = {"position_ids": np.arange(before, total)[None], "attention_mask": np.ones((1, total), np.int64)}
        logits, *present = session.run(None, {"input_ids": given, **places, **dict(zip(names, past, strict=True))})
        scores.append(logits[0, -1])
        token = scores[-1].argmax().reshape(1, 1)
        past, before, given = (present, total, token) if keeping else (empty, 0, np.concatenate([given, token], 1))
    return [int(one.argmax()) for one in scores], np.array(scores)


def test_both_spellings_of_the_decoder_generate_the_same_with_their_caches_and_without(tmp_path: Path) -> None:
    prompt = np.random.default_rng(1).integers(0, decoder.VOCABULARY, (1, 64))
    plain, grouped = (builders.write_model(name, tmp_path) for name in ("decoder", "decoder-gqa"))
    tokens, scores = generated(plain, prompt, new=64)
    assert generated(grouped, prompt, new=64)[0] == tokens
    assert generated(plain, prompt, new=64, keeping=False)[0] == tokens
    # every token counts, and the head is peaked, as of trained decoders
    other = prompt.copy()
    other[0, 0] += 1
    assert generated(plain, other, new=64)[0] != tokens
    assert len(set(tokens)) > 20
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert (1 / shares.sum(axis=1)).mean() > 0.5


@pytest.mark.parametrize("name", ["decoder", "decoder-gqa"])
def test_a_decoder_runs_as_a_plain_model_with_a_past_of_zeros(name: str, tmp_path: Path) -> None:
    path = builders.write_model(name, tmp_path)
    found = feed.find_feed(onnx.load(path), path)
    assert (found.problem, found.tries) == ("", 1)
    assert found.sizes["total_sequence_length"] == found.sizes["past_sequence_length"] + found.sizes["sequence_length"]
    assert {found.inputs[f"past_key_values.{n}.{part}"] for n in (0, 1) for part in ("key", "value")} == {"0"}
    others = {name: text for name, text in found.inputs.items() if not name.startswith("past")}
    assert others == {"input_ids": "0..999", "attention_mask": "1", "position_ids": "positions:past_sequence_length"}


def test_calibration_pictures_are_many_enough_and_none_is_for_evaluation() -> None:
    calibration = {picture.tobytes() for picture in digits.make_calibration_data()["x"]}
    assert len(digits.make_calibration_data()["x"]) >= 500
    assert not calibration & {picture.tobytes() for picture in digits.make_evaluation_data()["x"]}


def test_the_command_writes_models_and_data(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "farm.workshop.samples", str(tmp_path / "new")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "convnet.onnx", "decoder-gqa.onnx", "decoder.onnx",
        "digits.calibration.npz", "digits.evaluation.npz", "digits.onnx", "transformer.onnx",
    ]  # fmt: skip
    assert len(done.stdout.splitlines()) == 7


@pytest.mark.parametrize(("given", "code"), [([], 2), (["--help"], 0)])
def test_the_command_without_a_folder_says_how_it_is_used(given: list[str], code: int, tmp_path: Path) -> None:
    """It wrote the models to a folder that was called `--help`."""
    words = [sys.executable, "-m", "farm.workshop.samples", *given]
    done = subprocess.run(
        words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(PROJECT)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, [*tmp_path.iterdir()]) == (code, [])
    assert "usage: python -m farm.workshop.samples [-h] OUT_DIR" in done.stdout + done.stderr
