"""Reads the settings of a matrix: all of its keys that are not axes."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PlainValidator, StrictBool, StrictInt, StrictStr, WithJsonSchema
from pydantic.dataclasses import dataclass

from farm.contract.blocks import Tolerance
from farm.contract.cells import Budget
from farm.rules.cells import fills
from farm.rules.cells.fields import AS_TEXT, Kind, parse_finite
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.single import Sustained
from farm.rules.runtimes.nearest import shorten_repr

MAX_PARALLEL = 1_000
# the measurements cannot resolve smaller changes
MIN_WISH = 0.0001
MAX_TOLERANCES = 64
# in addition to the submitted model, so that a block has room for two settings of each
MAX_MODELS = 7
PREVIOUS = "previous"
# a version is written as PREVIOUS or as NAME@VERSION
_MODEL = r"^(previous|[^@].*@v?[0-9]{1,9})$"
_MODELS = {
    "anyOf": [
        {"type": "string", "pattern": _MODEL},
        {"type": "array", "maxItems": MAX_MODELS, "uniqueItems": True, "items": {"type": "string", "pattern": _MODEL}},
    ]
}
_TOLERANCE = {"type": "number", "minimum": 0}
_TOLERANCES = {
    "type": "object",
    "maxProperties": MAX_TOLERANCES,
    "additionalProperties": {
        "anyOf": [
            _TOLERANCE,
            {"type": "object", "properties": {"atol": _TOLERANCE, "rtol": _TOLERANCE}, "additionalProperties": False},
        ]
    },
}
_WISH = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "string", "pattern": r"^[0-9]+([.][0-9]+)? ?%$"},
    ]
}


def read_fraction(written: object) -> float | None:
    """Read a change, written `3%` or 0.03 (a number or text), as a fraction; None where nothing is written.

    Raises MatrixProblem for other text, and for a fraction below MIN_WISH or of 1 and more.
    """
    if written is None:
        return None
    text = written.strip() if isinstance(written, str) else ""
    change = parse_finite(text.removesuffix("%").strip() if text.endswith("%") else written)
    change = change / 100.0 if change is not None and text.endswith("%") else change
    if change is None or not MIN_WISH <= change < 1.0:
        raise MatrixProblem(f"wish is {written!r}: write the change to be seen, such as 3% or 0.03, under 100%.")
    return change


def read_models(written: object) -> tuple[str, ...]:
    """Read one version of a model or a list of them, each NAME@VERSION or `previous`; empty where nothing is written.

    Raises MatrixProblem for more than MAX_MODELS, for the same one twice, and for any other text.
    """
    if written is None:
        return ()
    named = [written] if isinstance(written, str) else written
    if not isinstance(named, list | tuple) or len(named) > MAX_MODELS:
        raise MatrixProblem(
            f"models is {shorten_repr(written)}: write up to {MAX_MODELS} versions, such as [encoder@2]."
        )
    for name in named:
        if not isinstance(name, str) or not re.match(_MODEL, name) or not name.isprintable() or len(name) > 120:
            raise MatrixProblem(
                f"models has {shorten_repr(name)}: write NAME@VERSION, such as encoder@2, or {PREVIOUS}."
            )
    if twice := next((name for name in named if named.count(name) > 1), None):
        raise MatrixProblem(f"models names {twice} twice: leave one of them out.")
    return tuple(named)


def read_tolerances(written: object) -> dict[str, Tolerance]:
    """Read the tolerances of outputs, by name. A missing atol or rtol is 0, and a number alone is the atol.

    Empty where nothing is written. Raises MatrixProblem for more than MAX_TOLERANCES outputs, an output with neither
    number or with other keys, and for numbers that are negative or not finite.
    """
    if written is None:
        return {}
    if not isinstance(written, Mapping) or len(written) > MAX_TOLERANCES:
        raise MatrixProblem(
            f"tolerance is {written!r}: write outputs and their tolerances, such as `y: {{atol: 0.001, rtol: 0.01}}`."
        )
    return {str(name): _read_tolerance(str(name), tolerance) for name, tolerance in written.items()}


@dataclass(
    frozen=True,
    config=ConfigDict(alias_generator=lambda name: name.replace("_", "-"), validate_by_name=True, extra="forbid"),
)
class Settings:
    """The settings of a matrix. In a file, their keys have dashes, and `tolerances` is called `tolerance`."""

    budget: Budget = Budget.QUICK
    fail_fast: StrictBool = False
    max_parallel: Annotated[StrictInt, Field(ge=1, le=MAX_PARALLEL), AS_TEXT] | None = None
    name: Annotated[StrictStr, Field(max_length=100)] | None = None
    # where no runtime is named, the newest may be a release candidate or a development build
    pre: StrictBool = False
    # whether each launch traces a few inferences too, for verdicts on operators; None: as the budget has it
    operators: StrictBool | None = None
    # the smallest change that its comparisons should see, a fraction
    wish: Annotated[float | None, PlainValidator(read_fraction), WithJsonSchema(_WISH)] = None
    # outputs that are judged by a tolerance of their own, whatever the precision
    tolerances: Annotated[
        Mapping[str, Tolerance], PlainValidator(read_tolerances), WithJsonSchema(_TOLERANCES), Field(alias="tolerance")
    ] = field(default_factory=dict)
    # versions of the farm that are measured in the same blocks, which the submitted one is compared with
    models: Annotated[tuple[str, ...], PlainValidator(read_models), WithJsonSchema(_MODELS)] = ()
    # how inputs are made, by name: texts of farm.rules.cells.fills
    inputs: Annotated[Mapping[str, str], PlainValidator(fills.read_fills), WithJsonSchema(dict(fills.SCHEMA))] = field(
        default_factory=dict
    )

    def as_plain(self) -> dict[str, object]:
        """Return the settings by the keys of a file: `budget` and `fail-fast` always, the others if they are set."""
        written = {
            "max-parallel": self.max_parallel,
            "name": self.name,
            "pre": self.pre or None,
            "operators": self.operators,
            "wish": self.wish,
            "tolerance": {name: tolerance.model_dump() for name, tolerance in self.tolerances.items()} or None,
            "models": list(self.models) or None,
            "inputs": dict(self.inputs) or None,
        }
        changed = {key: value for key, value in written.items() if value is not None}
        return {"budget": self.budget.value, "fail-fast": self.fail_fast, **changed}


_KIND = Kind(Settings)
SCHEMAS: Mapping[str, Any] = {**_KIND.schema["properties"], Sustained.kind: Sustained.schema}


def read_settings(written: Mapping[str, object]) -> Settings:
    """Read the settings among the keys of a matrix; the other keys are ignored. Raises MatrixProblem."""
    read: Settings = _KIND.read("matrix", {key: value for key, value in written.items() if key in SCHEMAS})
    return read


def with_scenario(keys: Mapping[str, object]) -> dict[str, object]:
    """Return the keys with the scenario that `sustained: MINUTES` means in its place; without it where it is null.

    The minutes are not checked. Raises MatrixProblem where `scenario` is there too.
    """
    minutes = keys.get(Sustained.kind)
    if minutes is not None and "scenario" in keys:
        raise MatrixProblem(
            "sustained is a scenario: write `sustained: MINUTES` among those of `scenario`, or leave it out."
        )
    others = {name: value for name, value in keys.items() if name != Sustained.kind}
    return others if minutes is None else {**others, "scenario": [{Sustained.kind: minutes}]}


def _read_tolerance(name: str, written: object) -> Tolerance:
    fields = written if isinstance(written, Mapping) else {"atol": written}
    numbers = {key: parse_finite(value) for key, value in fields.items()}
    if not numbers or not set(numbers) <= {"atol", "rtol"} or any(n is None or n < 0 for n in numbers.values()):
        raise MatrixProblem(
            f"The tolerance of the output {name!r} is {written!r}: write an absolute one, such as 0.001, or "
            "{atol: 0.001, rtol: 0.01}."
        )
    return Tolerance(atol=numbers.get("atol") or 0.0, rtol=numbers.get("rtol") or 0.0)
