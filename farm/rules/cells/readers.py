"""Reads single values of a matrix into the types of the contract.

Each function named `read_…` raises MatrixProblem with one sentence where the value cannot be used.
"""

import re
from collections.abc import Collection
from typing import cast

from farm.contract.cells import Precision, Runtime
from farm.rules.cells import recipes
from farm.rules.cells.fields import whole_number
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.values import PrecisionChoice, ProviderChoice
from farm.rules.runtimes import distributions, providers
from farm.rules.runtimes.nearest import choice_sentence, shorten_repr

MAX_MEMORY_LIMIT_MB = 1 << 24
MAX_DIMENSION = 1 << 24
DIMENSION = whole_number(MAX_DIMENSION, minimum=0)
OPSET = whole_number(1000)
MEMORY_LIMIT = whole_number(MAX_MEMORY_LIMIT_MB)

_TAG = re.compile(r"^[a-z0-9][a-z0-9._-]{0,63}$")
_PROVIDER = re.compile(r"^[A-Za-z0-9_]{1,64}$")
_NODE = re.compile(r"^node:[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")


def read_memory_limit(value: object) -> int:
    """Read a limit in MiB, also from text; 0 for `none` and 0. Raises MatrixProblem."""
    if value in ("none", 0, "0") and not isinstance(value, bool):
        return 0
    limit: int = MEMORY_LIMIT.read("memory-limit-mb", value)
    return limit


def read_count(name: str, written: object, *, minimum: int, maximum: int, scenario: str) -> int:
    """Read the option `name` of a scenario: a whole number within limits, also as text. Raises MatrixProblem."""
    text = str(written).strip()
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
    if isinstance(written, bool) or number is None or not minimum <= number <= maximum:
        raise MatrixProblem(f"{name} of {scenario} is {written!r}: write a whole number from {minimum} to {maximum}.")
    return number


def read_text_options(what: str, value: object) -> dict[str, str]:
    """Read options as ONNX Runtime takes them, text by name. Numbers become text; true and false are refused.

    Raises MatrixProblem, whose sentence names the option as `what`, followed by its name.
    """
    if not isinstance(value, dict):
        raise MatrixProblem(f"{what} is {shorten_repr(value)}: write options as `name: value` pairs.")
    for name, option in value.items():
        if isinstance(option, bool) or not isinstance(option, int | str | float):
            raise MatrixProblem(
                f"{what} {name!r} is {shorten_repr(option)}: write the text that is passed on, in quotes."
            )
    return {str(name): str(option) for name, option in value.items()}


def read_opset(value: object) -> int | str:
    """Read `as-is`, `max-of-runtime` or a number, also from text. Raises MatrixProblem."""
    if isinstance(value, str) and not value.isdecimal():
        if value not in ("as-is", "max-of-runtime"):
            raise MatrixProblem(choice_sentence("opset", value, ("as-is", "max-of-runtime", "a number")))
        return value
    opset: int = OPSET.read("An opset", value)
    return opset


def read_runtime(value: object, *, allowed: Collection[str] = ()) -> Runtime:
    """Read `distribution==version`; a version alone is a release of `onnxruntime`.

    `allowed` names the packages that may be used beyond the known distributions. Raises MatrixProblem.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise MatrixProblem(distributions.unclear_sentence(value))
    try:
        return distributions.parse_runtime(str(value), allowed=allowed)
    except distributions.RuntimeProblem as problem:
        raise MatrixProblem(str(problem)) from None


def read_provider(value: object, *, allowed: Collection[str] = ()) -> ProviderChoice:
    """Read a provider's name, or a mapping of `name` and `options`, and check the options.

    An unknown provider is accepted where `allowed` names any package, because its plug-in may register the provider.
    Raises MatrixProblem.
    """
    name, written = _split_name("provider", value, key="name")
    try:
        entry = providers.provider_of(name) if allowed and _PROVIDER.match(name) else providers.resolve(name)
        options = read_text_options(f"The option of {entry.name}", written)
        providers.check_options(entry, options)
    except (providers.UnknownProvider, providers.ProviderOptionProblem) as problem:
        raise MatrixProblem(str(problem)) from None
    return ProviderChoice(name=entry.name, options=options)


def read_precision(value: object) -> PrecisionChoice:
    """Read `name:option:option=value`, or a mapping of `precision` and `options`. Raises MatrixProblem."""
    text, written = _split_name("precision", value, key="precision")
    if not isinstance(written, dict):
        raise MatrixProblem(f"The options of {text} are {shorten_repr(written)}: write them as `name: value` pairs.")
    try:
        precision, options_in_text = recipes.parse_precision(text)
        options = recipes.read_options(precision, options_in_text | {str(name): written[name] for name in written})
    except recipes.RecipeProblem as problem:
        raise MatrixProblem(str(problem)) from None
    return PrecisionChoice(precision=cast(Precision, precision), options=options)


def read_shapes(value: object) -> dict[str, int]:
    """Read a mapping from names of dynamic dimensions to sizes from 0 on, also as text. Raises MatrixProblem."""
    if not isinstance(value, dict):
        raise MatrixProblem(
            f"shapes has {shorten_repr(value)}: write `dimension: size` pairs, such as `sequence: 128`."
        )
    return {str(name): DIMENSION.read(f"The dimension {name!r}", size) for name, size in value.items()}


def read_hardware(value: object) -> str:
    """Read a tag, `node:NAME`, or tags joined by `+` (a node has all of them) or `|` (any of them).

    Spaces are removed. Raises MatrixProblem, also where both signs are used.
    """
    text = value.replace(" ", "") if isinstance(value, str) else ""
    has_both = "+" in text and "|" in text
    if has_both or not (_NODE.match(text) or all(_TAG.match(tag) for tag in re.split(r"[+|]", text))):
        raise MatrixProblem(
            f"The hardware {shorten_repr(value)} is not a tag: write `cpu`, `x86+avx512` (all of them), "
            "`cuda|rocm` (any of them) or `node:NAME`."
        )
    return text


def _split_name(axis: str, value: object, *, key: str) -> tuple[str, object]:
    """Split a value that is written as text, or as a mapping of `key` and `options`, into name and options."""
    if isinstance(value, str):
        return value, {}
    name = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(name, str):
        raise MatrixProblem(f"{axis} has {shorten_repr(value)}: write a name, or `{key}` and `options`.")
    for entry in value:
        if entry not in (key, "options"):
            raise MatrixProblem(f"{axis} {name!r}: " + choice_sentence("key", str(entry), (key, "options")))
    return name, value.get("options", {})
