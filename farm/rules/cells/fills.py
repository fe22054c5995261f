"""Parses *fills*: texts that say how the array of an input is made, in workloads, matrices and commands.

    VALUE           this number everywhere: a mask's 1, a speed's 1, a state's 0, a sampling rate of 16000
    LOW..HIGH       random between both, HIGH included; whole numbers where the input takes whole numbers
    normal          random, standard normal distribution
    below:DIMENSION random whole numbers from 0, below the size of a dynamic dimension
    of:A|B|…        random numbers, each one of these
    boxes:HIGH      random rows of x0, y0, x1, y1 between 0 and HIGH, with x0 ≤ x1 and y0 ≤ y1
    positions       0, 1, 2, … along the last axis; `positions:DIMENSION` starts at the size of a dynamic dimension
    size:DIMENSION  the size of a dynamic dimension
    text:A|B|…      random strings, each one of these
    words           random strings of a few words; `words:A|B|…` draws from these words

Random forms follow the run's seed; with `@SEED` after them they are the same in every run.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from farm.rules.cells.problems import MatrixProblem

NORMAL, POSITIONS, SIZE = "normal", "positions", "size:"
TEXT, WORDS, BELOW, OF, BOXES = "text", "words", "below", "of", "boxes"
ZERO, ONE, FLAG = "0", "1", "0..1"
GIVEN = "given"
MAX_INPUTS = 1024
MAX_TEXT = 200
# one input's text in a matrix: a number, or one of the forms above
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "maxProperties": MAX_INPUTS,
    "additionalProperties": {"anyOf": [{"type": "number"}, {"type": "string", "maxLength": MAX_TEXT}]},
}

Number = int | float
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"^({_NUMBER})\.\.({_NUMBER})$")
_VALUE = re.compile(rf"^{_NUMBER}$")
_SEEDED = re.compile(r"^(.*)@(\d{1,9})$")
# the smallest and the largest number of 64 bits, with a sign or without
_LOWEST, _HIGHEST = -(2**63), 2**64 - 1
_FRACTIONS = ("float", "bfloat")
_FULL = {"int8": "-128..127", "uint8": "0..255"}


@dataclass(frozen=True, slots=True)
class Fill:
    """How the array of an input is made: one of the forms of the module's docstring, parsed."""

    # one of the constants above, or `value`, `range` or `size`
    kind: str
    # the lowest and the highest number, equal for a single value; 0 where the form has none
    low: Number = 0
    high: Number = 0
    # the dynamic dimension whose size is used; empty where none is
    dimension: str = ""
    # the seed of random values; None: that of the run
    seed: int | None = None
    # the strings or the numbers to draw from
    texts: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()


def parse(text: str) -> Fill:
    """Parse a fill such as `0..99`, `normal` or `0..9@7`. Raises MatrixProblem where the text is none of the forms."""
    if seeded := _SEEDED.match(text):
        random = _parse_random(seeded[1], text)
        fill = None if random is None else replace(random, seed=int(seeded[2]))
    else:
        fill = _parse_random(text, text) or _parse_fixed(text)
    if fill is not None:
        return fill
    raise MatrixProblem(
        f"An input cannot be made of {text!r}: write a number, LOW..HIGH, normal, below:DIMENSION, of:A|B, boxes:HIGH, "
        "positions[:DIMENSION], size:DIMENSION, text:A|B or words[:A|B]."
    )


def _parse_random(plain: str, text: str) -> Fill | None:
    """Parse a form whose values depend on the seed; None for any other. `text` is what errors quote."""
    kind, _, numbers = plain.partition(":")
    if plain in (NORMAL, WORDS):
        return Fill(plain)
    if kind in (TEXT, WORDS) and numbers:
        return Fill(kind, texts=tuple(numbers.split("|")))
    if kind == BELOW and numbers:
        return Fill(BELOW, dimension=numbers)
    if kind in (OF, BOXES) and all(map(_VALUE.match, numbers.split("|"))):
        return _parse_numbers(kind, [_parse_number(number, text) for number in numbers.split("|")], text)
    if (match := _RANGE.match(plain)) is None:
        return None
    low, high = _parse_number(match[1], text), _parse_number(match[2], text)
    if low > high:
        raise MatrixProblem(f"The range {text!r} ends below its start: write LOW..HIGH, such as 0..99.")
    if high - low == float("inf"):
        raise MatrixProblem(f"The range {text!r} is wider than any floating point number: write a narrower one.")
    return Fill("range", low, high)


def _parse_numbers(kind: str, numbers: list[Number], text: str) -> Fill:
    if kind == OF:
        return Fill(OF, min(numbers), max(numbers), numbers=tuple(numbers))
    if len(numbers) > 1 or numbers[0] < 0:
        raise MatrixProblem(f"The boxes of {text!r} end nowhere: write the largest number, such as boxes:1000.")
    return Fill(BOXES, 0, numbers[0])


def _parse_fixed(text: str) -> Fill | None:
    kind, _, dimension = text.partition(":")
    if kind == POSITIONS and bool(dimension) == (":" in text):
        return Fill(POSITIONS, dimension=dimension)
    if text.startswith(SIZE) and dimension:
        return Fill("size", dimension=text.removeprefix(SIZE))
    if _VALUE.match(text):
        value = _parse_number(text, text)
        return Fill("value", value, value)
    return None


def check_text(text: str) -> None:
    """Raise ValueError unless a text can be parsed as a fill and has at most MAX_TEXT characters."""
    try:
        parse(text)
    except MatrixProblem as problem:
        raise ValueError(str(problem)) from problem
    if len(text) > MAX_TEXT:
        raise ValueError(f"The text has {len(text)} characters; at most {MAX_TEXT} are read.")


def default_fill(dtype: str) -> str:
    """Choose a fill, as text, for an input of this dtype of which nothing else is known.

    Strings get words, floats a normal distribution, 8-bit integers their full range, and other types 0 or 1.
    """
    if dtype == "string":
        return WORDS
    if dtype.startswith(_FRACTIONS):
        return NORMAL
    return _FULL.get(dtype, FLAG)


def misfit_reason(fill: Fill, dtype: str) -> str | None:
    """Say why an input of this dtype cannot be filled so, as the end of a sentence; None where it can."""
    is_text = fill.kind in (TEXT, WORDS)
    if is_text or dtype == "string":
        return None if is_text and dtype == "string" else "strings are made by text:A|B or words, and numbers are not."
    if dtype.startswith(_FRACTIONS):
        return None
    if fill.kind == NORMAL:
        return "a normal distribution has fractions; write LOW..HIGH, such as 0..99."
    if (fraction := next((n for n in (fill.low, fill.high, *fill.numbers) if isinstance(n, float)), None)) is not None:
        return f"{fraction} is not a whole number."
    low, high = _find_integer_limits(dtype)
    if fill.kind in ("value", "range", OF, BOXES) and not low <= fill.low <= fill.high <= high:
        return f"write numbers from {low} to {high}."
    return None


def _find_integer_limits(dtype: str) -> tuple[int, int]:
    """Find the smallest and the largest number of an integer type: bool, int8, …, uint64."""
    if dtype == "bool":
        return 0, 1
    # a name without a number of bits is refused elsewhere
    bits = int(re.sub(r"\D", "", dtype) or 64)
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def read_fills(written: object) -> dict[str, str]:
    """Read the `inputs` of a matrix, a fill as text by name of input; empty for None. Raises MatrixProblem."""
    if written is None:
        return {}
    if not isinstance(written, Mapping) or len(written) > MAX_INPUTS:
        raise MatrixProblem(f"inputs is {written!r}: write names and what they are made of, such as `ids: 0..99`.")
    fills = {}
    for name, value in written.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float) or len(str(value)) > MAX_TEXT:
            raise MatrixProblem(f"The input {name!r} is {value!r}: write a number or a range, such as 0..99.")
        parse(str(value))
        fills[str(name)] = str(value)
    return fills


def describe_fill(text: str, *, seed: int) -> str:
    """Describe a fill in words: `random, 0 to 177, seed 0`; `seed` is that of the run.

    A text that this release cannot parse is returned as it is.
    """
    try:
        fill = parse(text)
    except MatrixProblem:
        return text
    seed = seed if fill.seed is None else fill.seed
    words = {
        NORMAL: f"random, standard normal, seed {seed}",
        "range": f"random, {fill.low} to {fill.high}, seed {seed}",
        POSITIONS: f"counted from the size of {fill.dimension}" if fill.dimension else "0, 1, 2, …",
        OF: f"random of {', '.join(map(str, fill.numbers))}, seed {seed}",
        BOXES: f"random boxes, 0 to {fill.high}, seed {seed}",
        BELOW: f"random, 0 to below the size of {fill.dimension}, seed {seed}",
        "size": f"the size of {fill.dimension}",
        "value": f"{fill.low} everywhere",
        TEXT: f"random of {', '.join(fill.texts)}, seed {seed}",
        WORDS: f"random words, seed {seed}",
    }
    return words[fill.kind]


def _parse_number(text: str, whole: str) -> Number:
    try:
        number: Number = int(text)
    except ValueError:
        number = float(text)
    if not _LOWEST <= number <= _HIGHEST and not isinstance(number, float):
        raise MatrixProblem(f"{whole!r} holds a number that does not fit into 64 bits: write a smaller one.")
    if abs(number) == float("inf"):
        raise MatrixProblem(f"{whole!r} is too large for any floating point number: write a smaller one.")
    return number
