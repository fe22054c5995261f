"""Reads text and JSON files that the user gives, and checks samples in them."""

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path

from farm.contract.texts import replace_controls_in_json
from onnxfarm.problems import Usage

MAX_FILE_BYTES = 256 * 1024 * 1024
# limits of a sample, wide enough for any unit of time
MIN_SAMPLE = 1e-100
MAX_SAMPLE = 1e100
MAX_SHOWN_CHARACTERS = 40


def read_text(path: Path) -> str:
    """Read a text file, without a byte order mark.

    Raises Usage if it is missing, unreadable, not UTF-8 or larger than MAX_FILE_BYTES.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise Usage(f"{path} is larger than {MAX_FILE_BYTES // 2**20} MiB: give samples, not raw timings.")
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise Usage(f"{path} cannot be read ({problem.strerror}): give the path of a file.") from problem
    except UnicodeDecodeError as problem:
        raise Usage(f"{path} is not a text file in UTF-8.") from problem


def read_object(path: Path) -> Mapping[str, object]:
    """Read a JSON object from a file. Control characters in its texts are replaced.

    Raises Usage if the file cannot be read, is no JSON, or holds another JSON value.
    """
    text = read_text(path)
    try:
        document = json.loads(replace_controls_in_json(text.encode()))
    except (ValueError, RecursionError) as problem:
        raise Usage(f"{path} is not a JSON document ({str(problem) or 'nested too deep'}).") from problem
    if not isinstance(document, dict):
        kind = {list: "a list", str: "a string", type(None): "null"}.get(type(document), "a number")
        raise Usage(f"{path} holds {kind} where a JSON object is needed.")
    return document


def parse_samples(values: object, *, where: str) -> list[float]:
    """Return a list of samples as floats, in the same order. `where` names the list in errors.

    An empty list is allowed. Raises Usage if `values` is no list, or if one of them is no number from MIN_SAMPLE to
    MAX_SAMPLE; the message names the first such value.
    """
    if not isinstance(values, list):
        raise Usage(f"{where} is {_shorten(values)} where a list of samples is needed.")
    for place, value in enumerate(values):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not MIN_SAMPLE <= value <= MAX_SAMPLE:
            raise Usage(f"{where}[{place}] is {_shorten(value)}: every sample must be a finite number above 0.")
    return [float(value) for value in values]


def dump_json_line(value: object) -> str:
    """Return a value as one line of JSON, without a line break. Infinity and NaN in dicts and lists become null.

    In a tuple they raise ValueError.
    """
    return json.dumps(_replace_infinite(value), allow_nan=False, ensure_ascii=False)


def _replace_infinite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _replace_infinite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_replace_infinite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _shorten(value: object) -> str:
    text = "missing (null)" if value is None else json.dumps(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"
