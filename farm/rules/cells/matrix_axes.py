"""The axes of a matrix: for each, how one value is read, how it is written, and its JSON schema.

A value is read into the contract's own types; a value that cannot be used raises MatrixProblem with one sentence.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from farm.contract.cells import Optimization, Precision, Runtime
from farm.rules.cells import recipes
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.session_sets import SESSION_SCHEMA, SessionSet, read_session
from farm.rules.runtimes import distributions, providers
from farm.rules.runtimes.nearest import choice_sentence

MAX_BATCH = 65_536
MAX_DIMENSION = 1 << 24
MAX_THREADS = 1024
MAX_CONCURRENCY = 64
MAX_OPSET = 1000
DEFAULT_DISTRIBUTION = distributions.DEFAULT_DISTRIBUTION

OPTIMIZATIONS: tuple[str, ...] = get_args(Optimization)

_TAG = re.compile(r"^[a-z0-9][a-z0-9._-]{0,63}$")
_NODE = re.compile(r"^node:[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")


@dataclass(frozen=True, slots=True)
class ProviderChoice:
    """A provider by ONNX Runtime's name, and the options passed to it verbatim."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PrecisionChoice:
    """A precision, and the options of the recipe that makes it."""

    precision: Precision = "fp32"
    options: Mapping[str, str] = field(default_factory=dict)


Shapes = Mapping[str, int]
Value = int | str | Runtime | ProviderChoice | PrecisionChoice | SessionSet | Shapes


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis. `read` turns a plain value into a typed one; `write` is its inverse, `label` its short form."""

    name: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    label: Callable[[Any], str]
    schema: Mapping[str, Any]


def whole_number(what: str, value: Any, *, most: int) -> int:
    """A whole number from 1 to `most`, also when written as text. Raises MatrixProblem."""
    number = int(value) if isinstance(value, str) and value.strip().isdecimal() and len(value) < 19 else value
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise MatrixProblem(f"{what} is {_shown(value)}: write a whole number from 1 to {most}.")
    return number


def text_options(what: str, value: Any) -> dict[str, str]:
    """Options as ONNX Runtime takes them: text to text. Numbers are written out; true and false are not guessed at."""
    if not isinstance(value, dict):
        raise MatrixProblem(f"{what} is {_shown(value)}: write options as `name: value` pairs.")
    for name, option in value.items():
        if isinstance(option, bool) or not isinstance(option, int | str | float):
            raise MatrixProblem(f"{what} {name!r} is {_shown(option)}: write the text that is passed on, in quotes.")
    return {str(name): str(option) for name, option in value.items()}


def read_opset(value: Any) -> int | str:
    """`as-is`, `max-of-runtime` or a number."""
    if isinstance(value, str) and not value.isdecimal():
        if value not in ("as-is", "max-of-runtime"):
            raise MatrixProblem(choice_sentence("opset", value, ("as-is", "max-of-runtime", "a number")))
        return value
    return whole_number("An opset", value, most=MAX_OPSET)


def read_runtime(value: Any, *, allowed: Collection[str] = ()) -> Runtime:
    """`distribution==version`; a bare version is `onnxruntime`'s. `allowed`: packages beyond the list, by name."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise MatrixProblem(distributions.unclear_sentence(value))
    try:
        return distributions.read(str(value), allowed=allowed)
    except distributions.RuntimeProblem as problem:
        raise MatrixProblem(str(problem)) from None


def read_provider(value: Any) -> ProviderChoice:
    """A name, or a mapping of `name` and `options`."""
    named = _named("provider", value, key="name")
    try:
        entry = providers.resolve(named.pop("name"))
        options = text_options(f"The option of {entry.name}", named.get("options", {}))
        providers.check_options(entry, options)
    except (providers.UnknownProvider, providers.ProviderOptionProblem) as problem:
        raise MatrixProblem(str(problem)) from None
    return ProviderChoice(name=entry.name, options=options)


def read_precision(value: Any) -> PrecisionChoice:
    """A name, with options as `name:option:option=value`, or a mapping of `precision` and `options`."""
    named = _named("precision", value, key="precision")
    precision, options = named["precision"], named.get("options", {})
    if not isinstance(options, dict):
        raise MatrixProblem(f"The options of {precision} are {_shown(options)}: write them as `name: value` pairs.")
    try:
        precision, said = recipes.read_text(precision)
        options = recipes.read_options(precision, {**said, **{str(name): option for name, option in options.items()}})
    except recipes.RecipeProblem as problem:
        raise MatrixProblem(str(problem)) from None
    return PrecisionChoice(precision=cast(Precision, precision), options=options)


def read_shapes(value: Any) -> dict[str, int]:
    """Values for named dynamic dimensions."""
    if not isinstance(value, dict):
        raise MatrixProblem(f"shapes has {_shown(value)}: write `dimension: size` pairs, such as `sequence: 128`.")
    return {
        str(name): whole_number(f"The dimension {name!r}", size, most=MAX_DIMENSION) for name, size in value.items()
    }


def read_optimization(value: Any) -> str:
    """One of ONNX Runtime's graph optimisation levels."""
    if value not in OPTIMIZATIONS:
        raise MatrixProblem(choice_sentence("optimization", str(value), OPTIMIZATIONS))
    return str(value)


def read_hardware(value: Any) -> str:
    """A tag, `node:NAME`, or tags joined by `+` (a node with all of them) or `|` (a node with any of them)."""
    text = value.replace(" ", "") if isinstance(value, str) else ""
    has_both = "+" in text and "|" in text
    if has_both or not (_NODE.match(text) or all(_TAG.match(tag) for tag in re.split(r"[+|]", text))):
        raise MatrixProblem(
            f"The hardware {_shown(value)} is not a tag: write `cpu`, `x86+avx512` (all of them), "
            "`cuda|rocm` (any of them) or `node:NAME`."
        )
    return text


def _named(axis: str, value: Any, *, key: str) -> dict[str, Any]:
    """A value written as text or as {key, options}, as the latter."""
    if isinstance(value, str):
        return {key: value}
    if not isinstance(value, dict) or not isinstance(value.get(key), str):
        raise MatrixProblem(f"{axis} has {_shown(value)}: write a name, or `{key}` and `options`.")
    for found in value:
        if found not in (key, "options"):
            raise MatrixProblem(f"{axis} {value[key]!r}: " + choice_sentence("key", str(found), (key, "options")))
    return dict(value)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"


def _with_options(key: str, name: str, options: Mapping[str, str]) -> Any:
    return {key: name, "options": dict(options)} if options else name


def _pairs(options: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items())


def _labelled(name: str, options: Mapping[str, str]) -> str:
    return f"{name} ({_pairs(options)})" if options else name


def _number_schema(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most}


def _named_schema(key: str, **of_name: Any) -> dict[str, Any]:
    options = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
    full = {
        "type": "object",
        "required": [key],
        "additionalProperties": False,
        "properties": {key: {"type": "string", **of_name}, "options": options},
    }
    return {"anyOf": [{"type": "string", **of_name}, full]}


_PRECISION_SCHEMA: Mapping[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": rf"^({'|'.join(recipes.PRECISIONS)})(:[a-z-]+(=[^:]*)?)*$"},
        {
            "type": "object",
            "required": ["precision"],
            "additionalProperties": False,
            "properties": {
                "precision": {"enum": list(recipes.PRECISIONS)},
                "options": {"type": "object", "additionalProperties": False, "properties": recipes.SCHEMA},
            },
        },
    ]
}


def _number_axis(name: str, most: int) -> Axis:
    return Axis(
        name=name,
        read=lambda value: whole_number(name, value, most=most),
        write=int,
        label=str,
        schema=_number_schema(most),
    )


AXES: Mapping[str, Axis] = {
    axis.name: axis
    for axis in (
        Axis(
            name="opset",
            read=read_opset,
            write=lambda value: value,
            label=str,
            schema={"anyOf": [{"enum": ["as-is", "max-of-runtime"]}, _number_schema(MAX_OPSET)]},
        ),
        Axis(
            name="runtime",
            read=read_runtime,
            write=str,
            label=str,
            schema={"type": "string", "pattern": r"^([a-z0-9][a-z0-9._-]*==)?[0-9][0-9A-Za-z.+-]*$"},
        ),
        Axis(
            name="provider",
            read=read_provider,
            write=lambda value: _with_options("name", value.name, value.options),
            label=lambda value: _labelled(value.name, value.options),
            schema=_named_schema("name", examples=[entry.short for entry in providers.PROVIDERS]),
        ),
        _number_axis("batch", MAX_BATCH),
        Axis(
            name="shapes",
            read=read_shapes,
            write=dict,
            label=lambda value: _pairs(value) or "default",
            schema={"type": "object", "additionalProperties": _number_schema(MAX_DIMENSION)},
        ),
        Axis(
            name="precision",
            read=read_precision,
            write=lambda value: _with_options("precision", value.precision, value.options),
            label=lambda value: recipes.as_text(value.precision, value.options),
            schema=_PRECISION_SCHEMA,
        ),
        _number_axis("threads", MAX_THREADS),
        Axis(
            name="session",
            read=read_session,
            write=lambda value: value.as_plain(),
            label=lambda value: value.name,
            schema=SESSION_SCHEMA,
        ),
        Axis(
            name="optimization",
            read=read_optimization,
            write=str,
            label=str,
            schema={"enum": list(OPTIMIZATIONS)},
        ),
        Axis(name="hardware", read=read_hardware, write=str, label=str, schema={"type": "string"}),
        _number_axis("concurrency", MAX_CONCURRENCY),
    )
}
