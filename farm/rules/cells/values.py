"""Values of a matrix's axes: their types, how a matrix file writes each, and how it reads there. Pure."""

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
# a value as a file has it
Plain = int | str | dict[str, object]


def plain_of(value: Value) -> Plain:
    """The value as a matrix file writes it; its axis reads it back."""
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


def key_of(value: Value) -> str:
    """The same text for equal values of one axis, and another one for others: many of them cannot be hashed."""
    return json.dumps(plain_of(value), sort_keys=True)


def format_value(value: Value) -> str:
    """The value in a few words."""
    match value:
        case bool():
            return "true" if value else "false"
        case ProviderChoice(name, options):
            return f"{name} ({_pairs(options)})" if options else name
        case PrecisionChoice(precision, options):
            return recipes.format_precision(precision, options)
        case SessionSet():
            return value.name
        case Runtime() | int() | str():
            return str(value)
        case _:
            return _pairs(value) or "default"


def _pairs(options: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items())
