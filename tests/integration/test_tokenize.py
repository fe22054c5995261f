"""Texts as token ids by a real onnxruntime-genai, and what is refused in one sentence."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from farm.workshop import arrays
from farm.workshop.samples import decoder, genai
from onnxfarm.commands import tokenize
from tests.integration.worker import making

pytestmark = pytest.mark.slow
END = "<|end|>"
GENAI = "onnxruntime-genai==0.13.2+onnxruntime==1.29.0"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of one's own with the runtimes that the other tests have made already."""
    making.share_runtimes(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A decoder with a tokenizer by bytes, and three merges: `t h`, `th e`, and ` the`."""
    made = genai.write_folder(tmp_path / "model", decoder.make())
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in kept]
    signs = {byte: chr(byte) for byte in kept} | {byte: chr(256 + place) for place, byte in enumerate(moved)}
    merges = ["t h", "th e", "Ġ the"]
    words = [signs[byte] for byte in range(256)] + [merge.replace(" ", "") for merge in merges] + [END]
    parts = {
        "version": "1.0",
        "added_tokens": [{"id": len(words) - 1, "content": END, "special": True}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {word: place for place, word in enumerate(words)}, "merges": merges},
    }
    (made / "tokenizer.json").write_text(json.dumps(parts))
    told = {"tokenizer_class": "GPT2Tokenizer", "bos_token": END, "eos_token": END, "unk_token": END}
    (made / "tokenizer_config.json").write_text(json.dumps(told))
    return made


def refusal(*words: object, home: Path) -> str:
    """The sentence of a refusal, which ends the command with 2."""
    app = typer.Typer(rich_markup_mode=None)
    app.command()(tokenize.tokenize)
    ended = CliRunner().invoke(app, [*map(str, words), "--home", str(home)])
    assert ended.exit_code == 2, ended.output
    return " ".join(ended.output.split()).removeprefix("onnxfarm: ")


def test_a_text_becomes_the_ids_of_the_models_own_tokenizer(folder: Path, home: Path, tmp_path: Path) -> None:
    scored, out = tmp_path / "scored.txt", tmp_path / "given.npz"
    scored.write_text("the é")
    tokenize.tokenize(folder, prompt="the cat in the hat", text_file=scored, out=out, ort=GENAI, home=home)
    made = arrays.read_npz(out)
    text = [257, *b" cat in", 258, *b" hat"]
    assert made["prompt"].dtype == np.int64
    assert made["prompt"].tolist() == [text]
    assert made["text"].tolist() == [257, 32, *"é".encode()]


def test_what_cannot_be_told_is_refused_in_a_sentence(folder: Path, home: Path, tmp_path: Path) -> None:
    def refused(*words: object) -> str:
        return refusal(*words, "--out", tmp_path / "out.npz", home=home)

    one = ("--prompt", "the cat", "--ort", GENAI)
    assert refused(folder) == "One text is answered: give --prompt or --prompt-file."
    assert refused(folder, "--prompt", "") == "The prompt is empty: give at least a word."
    assert refused(folder, "--prompt", "the", "--ort", "1.31.1").startswith(
        "onnxruntime==1.31.1 has no tokenizer: take "
    )
    alone = folder / genai.MAIN
    assert "has no genai_config.json, and so no tokenizer" in refused(alone, *one)
    bytes_of_no_text = tmp_path / "latin.txt"
    bytes_of_no_text.write_bytes(b"caf\xe9")
    assert "cannot be read as UTF-8: save it as UTF-8." in refused(folder, "--prompt-file", bytes_of_no_text)
    assert refused(tmp_path / "nowhere", *one).endswith("does not exist: give the model's folder or zip.")
    (folder / "tokenizer.json").write_text("{")
    assert "parse error" in refused(folder, *one)
    (folder / "tokenizer.json").unlink()
    assert refused(folder, *one).startswith("The model has no tokenizer (tokenizer.json beside its configuration)")
    assert not (tmp_path / "out.npz").exists()
