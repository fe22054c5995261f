"""A folder of onnxruntime-genai: what is known of its configuration, and each way in which it is bad, in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from farm.rules.runtimes.genai import CONFIG
from farm.rules.runtimes.models import GenaiFacts
from farm.workshop import orders
from farm.workshop.child import genai_config
from farm.workshop.samples import decoder, genai

OUTPUTS: Any = [{"name": "logits", "dtype": "float32", "shape": ["batch", "sequence", 1000]}]


def folder_with(tmp_path: Path, change: Any = None) -> Path:
    """A folder whose configuration was changed."""
    (tmp_path / genai.MAIN).write_bytes(b"onnx")
    told: dict[str, Any] = genai.make_configuration(decoder.VOCABULARY)
    if change is not None:
        change(told)
    (tmp_path / CONFIG).write_text(json.dumps(told))
    return tmp_path


def told(folder: Path) -> GenaiFacts:
    found = genai_config.read_config(folder, genai.MAIN, outputs=OUTPUTS)
    assert found is not None
    return GenaiFacts.model_validate(found)


def test_a_model_alone_has_no_configuration(tmp_path):
    assert genai_config.read_config(tmp_path, genai.MAIN, outputs=OUTPUTS) is None


def test_a_folder_is_inspected_with_its_configuration(tmp_path):
    genai.write_folder(tmp_path, decoder.make())
    found = orders.inspect(tmp_path, genai.MAIN)
    assert found.ok
    assert found.genai == GenaiFacts(type="llama", vocabulary=1000, context=512)


def test_a_tokenizer_belongs_to_the_folder(tmp_path):
    genai.write_folder(tmp_path, decoder.make())
    for name in ("tokenizer.json", "merges.txt", "chat_template.jinja"):
        (tmp_path / name).write_text("{}")
    found = orders.inspect(tmp_path, genai.MAIN)
    assert found.ok
    assert found.genai.has_tokenizer
    (tmp_path / CONFIG).unlink()
    assert orders.inspect(tmp_path, genai.MAIN).problem is not None


def model(**changed: Any) -> Any:
    return lambda told: told["model"].update(changed)


def part_of_decoder(**changed: Any) -> Any:
    return lambda told: told["model"]["decoder"].update(changed)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (model(encoder={"filename": "encoder.onnx"}), "names a part 'encoder', an encoder-decoder or a model of more"),
        (model(vision={"filename": "model.onnx"}), "names a part 'vision', an encoder-decoder or a model of more"),
        (part_of_decoder(pipeline=[{}]), "runs the model as a pipeline of several"),
        (part_of_decoder(filename="other.onnx"), "names other.onnx, which is not among the files: add it, or name mod"),
        (part_of_decoder(filename="../model.onnx"), "names the file ../model.onnx: name one that lies beside it"),
        (part_of_decoder(filename="/etc/passwd"), "names the file /etc/passwd: name one that lies beside it"),
        (part_of_decoder(session_options={"custom_ops_library": "x.so"}), "names the library x.so: custom operators"),
        (model(vocab_size="many"), "has 'many' as its vocab_size: write a whole number from 1 to 16,777,216."),
        (
            model(vocab_size=5000),
            "has a vocab_size of 5,000 where model.onnx scores 1,000 tokens: set vocab_size to that",
        ),
        (model(context_length=0), "has 0 as its context_length: write a whole number from 1 to 16,777,216."),
        (model(decoder=None), "has no decoder in its model: export it again."),
        (lambda told: told.pop("model"), "has no model: export it again."),
    ],
)
def test_a_bad_configuration_is_one_sentence(tmp_path, change, sentence):
    assert told(folder_with(tmp_path, change)).problem.startswith(f"genai_config.json {sentence}")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "is not JSON: export it again."),
        (b"\xff\xfe", "is not JSON: export it again."),
        (b"[" * 100_000, "is not JSON: export it again."),
        (b"[]", "is not an object: export it again."),
        (b" " * ((1 << 20) + 1), "has 1,048,577 bytes, where 1,048,576 are read: is it another file?"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_one_sentence(tmp_path, content, sentence):
    (tmp_path / CONFIG).write_bytes(content)
    assert told(tmp_path).problem == f"genai_config.json {sentence}"
