"""Checks prompts that the user gave as token ids of a decoder, and a text to score. Runs in the child only."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from farm.rules.cells.generate import MAX_BATCH, MAX_PROMPT
from farm.rules.generation import decoders
from farm.workshop import arrays
from farm.workshop.child import genai_config, model_file, payloads, signature
from farm.workshop.problems import Problem, answer_problems, printable

_PROMPT, _TEXT = "prompt", "text"
# limits of a text to score, in tokens, and of the whole file when it is unpacked
MAX_TEXT = 1 << 20
_MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class _Port:
    """An input or output for the rules."""

    name: str
    dtype: str
    shape: list[int | str] | None


@answer_problems
def accept_prompts(payload: payloads.GivenPrompts) -> dict[str, object]:
    """Check prompts for the payload's model, write them to `out`, and return the numbers of rows and tokens.

    `out` holds `prompt` [row, token], and `text` where one was given, whose tokens are counted apart (0 without).
    Returns a problem with the code bad_arrays or bad_prompts where they do not fit.
    """
    folder, main, path = Path(payload["folder"]), payload["main"], Path(payload["prompts"])
    vocabulary = _count_tokens(folder, main)
    stored = arrays.read_npz(path, limit_bytes=_MAX_BYTES)
    if _PROMPT not in stored:
        raise _problem(f"{printable(path.name)} has no array called {_PROMPT}: save the token ids as {_PROMPT}.")
    if (foreign := next((name for name in stored if name not in (_PROMPT, _TEXT)), None)) is not None:
        raise _problem(
            f"{printable(path.name)} has an array {printable(foreign)!r}: it holds {_PROMPT}, and perhaps {_TEXT}."
        )
    rows = np.atleast_2d(_check_ids(_PROMPT, stored[_PROMPT], ranks=(1, 2), vocabulary=vocabulary))
    _check_lengths(rows)
    accepted: arrays.Arrays = {_PROMPT: rows}
    if _TEXT in stored:
        accepted[_TEXT] = text = _check_ids(_TEXT, stored[_TEXT], ranks=(1,), vocabulary=vocabulary)
        if not 2 <= text.size <= MAX_TEXT:
            raise _problem(f"The array {_TEXT} has {text.size:,} tokens: a text to score has 2 to {MAX_TEXT:,}.")
    arrays.write_npz(Path(payload["out"]), accepted)
    return {"rows": rows.shape[0], "tokens": rows.shape[1], "text_tokens": accepted.get(_TEXT, rows[:0, 0]).size}


def _count_tokens(folder: Path, main: str) -> int:
    """Count the tokens that the model scores and that its onnxruntime-genai configuration, if any, knows."""
    facts = signature.read_signature(model_file.read_model(folder, main))
    inputs, outputs = ([_Port(**port) for port in facts[side]] for side in ("inputs", "outputs"))
    if problem := decoders.generation_problem(inputs, outputs):
        raise _problem(f"Prompts are for models that generate: {problem}")
    decoder = decoders.find_decoder(inputs, outputs)
    assert decoder is not None
    assert decoder.vocabulary is not None
    config = genai_config.read_config(folder, main, outputs=facts["outputs"]) or {}
    vocabulary = config.get("vocabulary")
    return min(decoder.vocabulary, vocabulary) if isinstance(vocabulary, int) else decoder.vocabulary


def _check_ids(name: str, ids: arrays.Array, *, ranks: tuple[int, ...], vocabulary: int) -> arrays.Array:
    if ids.dtype not in (np.int64, np.int32):
        raise _problem(f"The array {name} is {ids.dtype}: token ids are int64, convert it.")
    if ids.ndim not in ranks:
        shapes = " or ".join(["[tokens]", "[rows, tokens]"][rank - 1] for rank in ranks)
        raise _problem(f"The array {name} has the shape {list(ids.shape)}: token ids have {shapes}.")
    if not ids.size:
        raise _problem(f"The array {name} has the shape {list(ids.shape)} and holds no token: give at least one.")
    beyond = np.argwhere((ids < 0) | (ids >= vocabulary))
    if len(beyond):
        place = tuple(beyond[0].tolist())
        raise _problem(
            f"{name}[{', '.join(map(str, place))}] is the token id {ids[place]}, and the vocabulary has "
            f"{vocabulary:,}: ids are 0 to {vocabulary - 1}."
        )
    return np.ascontiguousarray(ids, dtype=np.int64)


def _check_lengths(rows: arrays.Array) -> None:
    count, length = rows.shape
    if count > MAX_BATCH:
        raise _problem(f"The array {_PROMPT} has {count:,} rows: at most {MAX_BATCH} are generated at once.")
    if length > MAX_PROMPT:
        raise _problem(f"The prompts have {length:,} tokens: at most {MAX_PROMPT:,} are taken.")


def _problem(text: str) -> Problem:
    return Problem("bad_prompts", text)
