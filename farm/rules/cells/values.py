"""The types of values on the axes of a matrix, and how matrix files and sentences write them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.contract.cells import Precision, Runtime
from farm.rules.cells import recipes
from farm.rules.cells.session_sets import SessionSet


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
# a value as a matrix file writes it
Plain = int | str | dict[str, object]


def to_plain(value: Value) -> Plain:
    """Write a value as a matrix file does, so that its axis can read it back."""
    match value:
        case ProviderChoice(name, options):
            return {"name": name, "options": dict(options)} if options else name
        case PrecisionChoice(precision, options):
            return {"precision": precision, "options": dict(options)} if options else precision
        case SessionSet():
            return value.as_plain()
        case Runtime():
            return str(value)
        case int() | str():
            return value
        case _:
            return dict(value)


def comparison_key(value: Value) -> str:
    """Make a text that is the same exactly for equal values of an axis, because many values cannot be hashed."""
    return json.dumps(to_plain(value), sort_keys=True)


def format_value(value: Value) -> str:
    """Write a value in a few words for people; a session set by its name, and shapes without any as `default`."""
    match value:
        case bool():
            return "true" if value else "false"
        case ProviderChoice(name, options):
            return f"{name} ({_format_options(options)})" if options else name
        case PrecisionChoice(precision, options):
            return recipes.format_precision(precision, options)
        case SessionSet():
            return value.name
        case Runtime() | int() | str():
            return str(value)
        case _:
            return _format_options(value) or "default"


def _format_options(options: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items())
