"""Reads the options about inputs, scenarios and operators, and puts them into a matrix in plain values."""

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from farm.rules.cells import fills, scenarios
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.readers import MAX_DIMENSION, read_memory_limit
from farm.rules.matrices.matrix_text import read_text
from onnxfarm.problems import Usage

# the keys under which a matrix file may have its axes
_NESTED = ("matrix", "strategy")
_SEVERAL = re.compile(r"[^=,]+=[^=,]*,[^=,]+=")
_MAX_DIGITS = 12


def apply_feed_options(
    declared: Mapping[str, object] | None,
    *,
    shape: Sequence[str] | None,
    inputs: Sequence[str] | None,
    scenario: str | None = None,
    memory_limit_mb: str | None = None,
    operators: bool = False,
    pre: bool = False,
) -> dict[str, object] | None:
    """Return a matrix, in plain values, with the values of these options.

    They replace the matrix's own; `inputs` replace those of the same inputs only, and `scenario` replaces `sustained`
    too. `operators` and `pre`: whether that option was given; if not, the matrix decides. `declared` None: the farm's
    default matrix, which is filled in if an option was given. Return None if `declared` is None and no option was
    given. An empty list counts as not given. Raises Usage for a wrong option, and for `pre` if the matrix names
    runtimes.
    """
    sizes, fills_by_input = parse_sizes(shape), parse_fills(inputs)
    if (sizes, fills_by_input, scenario, memory_limit_mb) == (None,) * 4 and not (operators or pre):
        return None if declared is None else dict(declared)
    plain = dict(declared) if declared is not None else _load_default_matrix()
    if pre:
        plain = _select_newest(plain, is_default=declared is None)
    if sizes is not None:
        plain = {**_remove_axis(plain, "shapes"), "shapes": sizes}
    if fills_by_input is not None:
        own_fills = plain.get("inputs")
        plain["inputs"] = {**own_fills, **fills_by_input} if isinstance(own_fills, Mapping) else fills_by_input
    if scenario is not None:
        plain = {**_remove_axis(_remove_axis(plain, "sustained"), "scenario"), "scenario": parse_scenarios(scenario)}
    if memory_limit_mb is not None:
        plain = _remove_axis(_remove_axis(plain, "memory_limit_mb"), "memory-limit-mb")
        plain["memory-limit-mb"] = parse_memory_limits(memory_limit_mb)
    if operators:
        plain = {**_remove_axis(plain, "operators"), "operators": True}
    return plain


def refuse_unused_prompts(prompts: Path | None, texts: Iterable[object]) -> None:
    """Raise Usage if there are prompts, but no scenario takes them. `texts`: the valid scenarios of a matrix."""
    if prompts is not None and not any(scenarios.parse(text).takes_prompts for text in texts):
        raise Usage("--prompts are generated from: add --scenario generate:new=64.")


def parse_scenarios(text: str) -> list[str]:
    """Parse the text of --scenario, scenarios separated by commas, into texts as a matrix has them. Raises Usage."""
    try:
        return [scenarios.normalise_text(scenario.strip()) for scenario in text.split(",")]
    except MatrixProblem as problem:
        raise Usage(str(problem)) from problem


def parse_memory_limits(text: str) -> list[int]:
    """Parse the text of --memory-limit-mb, limits in MiB separated by commas. Raises Usage."""
    try:
        return [read_memory_limit(limit.strip()) for limit in text.split(",")]
    except MatrixProblem as problem:
        raise Usage(f"--{problem}") from problem


def parse_sizes(texts: Sequence[str] | None) -> list[dict[str, int]] | None:
    """Parse the texts of --shape, NAME=SIZE, into a matrix's `shapes`: a list of one mapping of sizes by dimension.

    None if there are no texts. Raises Usage, also for a dimension given twice.
    """
    if not texts:
        return None
    sizes: dict[str, int] = {}
    for text in texts:
        name, sign, size = text.rpartition("=")
        if _SEVERAL.match(text):
            raise Usage(f"--shape {text!r} holds several sizes: give --shape once for each.")
        if not sign or not name or not size.isdecimal():
            raise Usage(f"--shape {text!r} is not NAME=SIZE, like sequence=64.")
        if len(size) > _MAX_DIGITS or int(size) > MAX_DIMENSION:
            raise Usage(f"--shape {name} is {size[:_MAX_DIGITS]}: write a size from 0 to {MAX_DIMENSION}.")
        if name in sizes:
            raise Usage(f"--shape {name} is given twice, with {sizes[name]} and {size}: keep one of them.")
        sizes[name] = int(size)
    return [sizes]


def parse_fills(texts: Sequence[str] | None) -> dict[str, str] | None:
    """Parse the texts of --input, NAME=VALUE or NAME=LOW..HIGH, into a matrix's `inputs`: fills by input.

    The fills stay texts, but are checked. None if there are no texts. Raises Usage, also for an input given twice.
    """
    if not texts:
        return None
    fills_by_input: dict[str, str] = {}
    for text in texts:
        name, sign, fill = text.rpartition("=")
        if not sign or not name or not fill:
            raise Usage(f"--input {text!r} is not NAME=VALUE or NAME=LOW..HIGH, like speed=1 or ids=0..99.")
        try:
            fills.parse(fill)
        except MatrixProblem as problem:
            raise Usage(f"--input {text!r}: {problem}") from problem
        if name in fills_by_input:
            raise Usage(f"--input {name} is given twice, with {fills_by_input[name]} and {fill}: keep one of them.")
        fills_by_input[name] = fill
    return fills_by_input


def _remove_axis(plain: Mapping[str, object], axis: str) -> dict[str, object]:
    """Return the matrix without an axis, whether it is on the top level or under a key in _NESTED."""
    return {
        key: _remove_axis(value, axis) if key in _NESTED and isinstance(value, Mapping) else value
        for key, value in plain.items()
        if key != axis
    }


def _select_newest(plain: Mapping[str, object], *, is_default: bool) -> dict[str, object]:
    """Return the matrix for the newest release, pre-releases included. Raises Usage if it names other runtimes."""
    without = _remove_axis(plain, "runtime")
    if without != plain and not is_default:
        raise Usage("--pre is about the newest release, and the matrix names its runtimes: leave out one of the two.")
    return {**without, "pre": True}


def _load_default_matrix() -> dict[str, object]:
    text = resources.files("farm.rules.matrices").joinpath("default_matrix.yaml").read_text(encoding="utf-8")
    plain = read_text(text)
    assert isinstance(plain, dict)
    return plain
