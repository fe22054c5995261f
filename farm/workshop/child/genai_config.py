"""Reads from the configuration of onnxruntime-genai beside a model what planning needs. Runs in the child only."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from farm.rules.runtimes.genai import CONFIG
from farm.workshop.child.signature import Port
from farm.workshop.problems import Problem, printable

_MAX_BYTES = 1 << 20
_MAX_TOKENS = 1 << 24
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
# parts of a configuration that a decoder of text does not have
_OTHER_PARTS = ("encoder", "encoder_decoder_init", "vision", "speech", "embedding", "joiner", "transducer")


def read_config(folder: Path, main: str, *, outputs: Sequence[Port]) -> dict[str, object] | None:
    """Read the folder's configuration as the fields of `plans.GenaiFacts`; None if there is none.

    If it cannot be used, the field `problem` says why, and fields that were not read yet are missing. `outputs` are the
    model's; the configuration must not have a larger `vocab_size` than the tokens that they score.
    """
    path = folder / CONFIG
    if not path.is_file():
        return None
    config: dict[str, object] = {"has_tokenizer": any((folder / name).is_file() for name in _TOKENIZERS)}
    try:
        model = _require_part(_read_json_object(path), "model")
        decoder = _require_part(model, "decoder", of=" in its model")
        config["type"] = printable(str(model.get("type", "")))[:64]
        _refuse_others(model, decoder)
        config["vocabulary"] = _read_vocabulary(model, main, outputs)
        config["context"] = _read_count(model, "context_length")
        _refuse_missing(model, folder=folder, main=main)
    except Problem as problem:
        config["problem"] = problem.text
    return config


def _read_json_object(path: Path) -> Mapping[str, object]:
    if path.stat().st_size > _MAX_BYTES:
        raise _problem(f"has {path.stat().st_size:,} bytes, where {_MAX_BYTES:,} are read: is it another file?")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise _problem("is not JSON: export it again.") from None
    if not isinstance(content, dict):
        raise _problem("is not an object: export it again.")
    return content


def _require_part(parent: Mapping[str, object], name: str, *, of: str = "") -> Mapping[str, object]:
    part = parent.get(name)
    if not isinstance(part, dict):
        raise _problem(f"has no {name}{of}: export it again.")
    return part


def _read_count(model: Mapping[str, object], name: str) -> int:
    count = model.get(name)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= _MAX_TOKENS:
        raise _problem(f"has {printable(repr(count))} as its {name}: write a whole number from 1 to {_MAX_TOKENS:,}.")
    return count


def _read_vocabulary(model: Mapping[str, object], main: str, outputs: Sequence[Port]) -> int:
    vocabulary_size = _read_count(model, "vocab_size")
    shapes = [port["shape"] or [] for port in outputs if port["name"] == "logits"]
    scored_tokens = next((shape[-1] for shape in shapes if shape), None)
    if isinstance(scored_tokens, int) and vocabulary_size > scored_tokens:
        raise _problem(
            f"has a vocab_size of {vocabulary_size:,} where {printable(main)} scores {scored_tokens:,} "
            "tokens: set vocab_size to that number at most."
        )
    return vocabulary_size


def _refuse_others(model: Mapping[str, object], decoder: Mapping[str, object]) -> None:
    if (other := next((name for name in _OTHER_PARTS if model.get(name)), None)) is not None:
        text = "an encoder-decoder or a model of more than text"
        raise _problem(f"names a part {other!r}, {text}: only decoders can generate here yet.")
    if decoder.get("pipeline"):
        raise _problem("runs the model as a pipeline of several: only a decoder in one .onnx is taken yet.")


def _refuse_missing(model: Mapping[str, object], *, folder: Path, main: str) -> None:
    """Check that each file that the configuration names lies beside it and is no library. Raises Problem."""
    for name, value in _list_named_files(model):
        if name == "custom_ops_library":
            raise _problem(f"names the library {printable(value)}: custom operators are not loaded, leave it out.")
        if "/" in value or "\\" in value or not value.strip("."):
            raise _problem(f"names the file {printable(value)}: name one that lies beside it, without a folder.")
        if not (folder / value).is_file():
            raise _problem(
                f"names {printable(value)}, which is not among the files: add it, or name {printable(main)}."
            )


def _list_named_files(part: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each setting that names a file, with the file's name, in all parts below."""
    for name, value in part.items():
        if isinstance(value, dict):
            yield from _list_named_files(value)
        elif isinstance(value, str) and (name.endswith("filename") or name == "custom_ops_library") and value:
            yield name, value


def _problem(text: str) -> Problem:
    return Problem("bad_genai_config", f"{CONFIG} {text}")
