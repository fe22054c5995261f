"""Reads from the configuration of onnxruntime-genai beside a model what planning needs. Runs in the child only."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from farm.rules.runtimes.genai import CONFIG
from farm.workshop.child.signature import Port
from farm.workshop.problems import Problem, printable

_MOST_BYTES = 1 << 20
_MOST_TOKENS = 1 << 24
_TOKENIZER = "tokenizer.json"
_TOKENIZERS = (_TOKENIZER, "tokenizer.model", "vocab.json", "vocab.txt")
# parts of a configuration that make it another kind of model than a decoder of text
_OTHER_PARTS = ("encoder", "encoder_decoder_init", "vision", "speech", "embedding", "joiner", "transducer")


def read_config(folder: Path, main: str, *, outputs: Sequence[Port]) -> dict[str, object] | None:
    """Read the folder's configuration as the fields of `plans.GenaiFacts`; None where there is none.

    What is wrong with it is a sentence in the field `problem`. `outputs` are the model's: a `vocab_size` above the
    tokens that they score is wrong.
    """
    path = folder / CONFIG
    if not path.is_file():
        return None
    about: dict[str, object] = {"has_tokenizer": any((folder / name).is_file() for name in _TOKENIZERS)}
    try:
        model = _require_part(_read(path), "model")
        decoder = _require_part(model, "decoder", of=" in its model")
        about["type"] = printable(str(model.get("type", "")))[:64]
        _refuse_others(model, decoder)
        about["vocabulary"] = _vocabulary(model, main, outputs)
        about["context"] = _count(model, "context_length")
        _refuse_missing(model, folder=folder, main=main)
    except Problem as problem:
        about["problem"] = problem.text
    return about


def _read(path: Path) -> Mapping[str, object]:
    if path.stat().st_size > _MOST_BYTES:
        raise _bad(f"{CONFIG} has {path.stat().st_size:,} bytes, where {_MOST_BYTES:,} are read: is it another file?")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise _bad(f"{CONFIG} is not JSON: export it again.") from None
    if not isinstance(found, dict):
        raise _bad(f"{CONFIG} is not an object: export it again.")
    return found


def _require_part(parent: Mapping[str, object], name: str, *, of: str = "") -> Mapping[str, object]:
    part = parent.get(name)
    if not isinstance(part, dict):
        raise _bad(f"{CONFIG} has no {name}{of}: export it again.")
    return part


def _count(model: Mapping[str, object], name: str) -> int:
    found = model.get(name)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found <= _MOST_TOKENS:
        raise _bad(
            f"{CONFIG} has {printable(repr(found))} as its {name}: write a whole number from 1 to {_MOST_TOKENS:,}."
        )
    return found


def _vocabulary(model: Mapping[str, object], main: str, outputs: Sequence[Port]) -> int:
    found = _count(model, "vocab_size")
    shapes = [port["shape"] or [] for port in outputs if port["name"] == "logits"]
    scored = next((shape[-1] for shape in shapes if shape), None)
    if isinstance(scored, int) and found > scored:
        raise _bad(
            f"{CONFIG} has a vocab_size of {found:,} where {printable(main)} scores {scored:,} tokens: set "
            "vocab_size to that number at most."
        )
    return found


def _refuse_others(model: Mapping[str, object], decoder: Mapping[str, object]) -> None:
    if (other := next((name for name in _OTHER_PARTS if model.get(name)), None)) is not None:
        text = "an encoder-decoder or a model of more than text"
        raise _bad(f"{CONFIG} names a part {other!r}, {text}: only decoders can generate here yet.")
    if decoder.get("pipeline"):
        raise _bad(f"{CONFIG} runs the model as a pipeline of several: only a decoder in one .onnx is taken yet.")


def _refuse_missing(model: Mapping[str, object], *, folder: Path, main: str) -> None:
    """Raises Problem where a file that the configuration names is missing, lies elsewhere, or is a library."""
    for name, value in _list_named_files(model):
        if name == "custom_ops_library":
            raise _bad(f"{CONFIG} names the library {printable(value)}: custom operators are not loaded, leave it out.")
        if "/" in value or "\\" in value or not value.strip("."):
            raise _bad(f"{CONFIG} names the file {printable(value)}: name one that lies beside it, without a folder.")
        if not (folder / value).is_file():
            raise _bad(
                f"{CONFIG} names {printable(value)}, which is not among the files: add it, or name {printable(main)}."
            )


def _list_named_files(part: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each setting that names a file, with the file's name, in all parts below."""
    for name, value in part.items():
        if isinstance(value, dict):
            yield from _list_named_files(value)
        elif isinstance(value, str) and (name.endswith("filename") or name == "custom_ops_library") and value:
            yield name, value


def _bad(text: str) -> Problem:
    return Problem("bad_genai_config", text)
