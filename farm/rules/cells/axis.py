"""One axis: how a document's cell reads along it, and how a matrix declares it and a CellSpec holds it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from farm.contract.cells import CellSpec, SessionSettings, Workload
from farm.contract.document_cells import Cell
from farm.rules.cells.fields import AS_TEXT, Kind, Schema
from farm.rules.cells.values import Value

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

Part = Literal["session", "workload"]
PARTS: Mapping[Part, type[SessionSettings | Workload]] = {"session": SessionSettings, "workload": Workload}


class _NoDefault:
    """In place of a default: no value of this axis goes without saying."""


NO_DEFAULT: Final = _NoDefault()


@dataclass(frozen=True, slots=True)
class Declared:
    """How a matrix declares an axis: how one value is read, its JSON schema, and what a CellSpec has of it.

    `part`: of a CellSpec that has the value as a field of its own, given and taken as it is; None where planning finds
    out more. `help`: of the option of `bench` that such an axis has;
    `example`: of some values.
    """

    name: str
    read: Callable[[object], Value]
    schema: Schema
    # None: nothing is written
    of: Callable[[CellSpec], Value | None]
    part: Part | None = None
    help: str = ""
    example: str = ""

    @property
    def field(self) -> str:
        """The name of its field in a CellSpec's part and in a document's cell."""
        return _field(self.name)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis. What is not given follows from the value, which is the first of `fields`.

    `name` is its key in a matrix, where a matrix has it; `fields` are the keys of a document's cell that hold it, by
    default the name's own. `default` goes without saying. `is_setting`: part of what is measured, not of where.
    """

    name: str
    heading: str
    value_of: Callable[[Cell], SupportsRichComparison] | None = None
    short_of: Callable[[Cell], str] | None = None
    label_of: Callable[[Cell], str] | None = None
    order_of: Callable[[Cell], SupportsRichComparison] | None = None
    default: object = NO_DEFAULT
    fields: tuple[str, ...] = ()
    is_setting: bool = True
    declared: Declared | None = None

    def __post_init__(self) -> None:
        if not self.fields:
            object.__setattr__(self, "fields", (_field(self.name),))

    def value(self, cell: Cell) -> object:
        return self.value_of(cell) if self.value_of else getattr(cell, self.fields[0])

    def short(self, cell: Cell) -> str:
        """The value's text under the heading."""
        if self.short_of:
            return self.short_of(cell)
        value = self.value(cell)
        return "" if value is None else {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)

    def label(self, cell: Cell) -> str:
        """The value's text on its own; with its heading where the value does not say what it is of."""
        if self.label_of:
            return self.label_of(cell)
        needs_heading = self.declared is not None and self.declared.part
        return f"{self.heading.lower()} {self.short(cell)}" if needs_heading else self.short(cell)

    def order(self, cell: Cell) -> SupportsRichComparison:
        if self.order_of:
            return self.order_of(cell)
        value: SupportsRichComparison = (self.value_of or attrgetter(self.fields[0]))(cell)
        return value

    def is_default(self, cell: Cell) -> bool:
        return bool(self.value(cell) == self.default)


def declare_from_kind(name: str, kind: Kind, *, of: Callable[[CellSpec], Value | None]) -> Declared:
    return Declared(name, partial(kind.read, name), kind.schema, of)


def declare_from_field(name: str, part: Part, *, help: str = "") -> Declared:
    """An axis whose values are those of its field in a CellSpec's part."""
    field = PARTS[part].model_fields[_field(name)]
    written = (Field(strict=True), AS_TEXT) if field.annotation in (int, bool) else (Field(),)
    kind = Kind(Annotated[(field.annotation, *field.metadata, *written)])
    examples = {"integer": "1, 2", "boolean": "true, false"}
    example = ", ".join(kind.schema["enum"]) if "enum" in kind.schema else examples[kind.schema["type"]]
    return replace(declare_from_kind(name, kind, of=_own(part, name)), part=part, help=help, example=example)


def named_schema(key: str, name: Schema, options: Schema, *, text: Schema | None = None) -> Schema:
    """Of a value that is written as its name, or as {key, options}. `text`: of the name alone."""
    full = {
        "type": "object",
        "required": [key],
        "additionalProperties": False,
        "properties": {key: name, "options": options},
    }
    return {"anyOf": [text or name, full]}


def _own(part: Part, name: str) -> Callable[[CellSpec], Value]:
    """What a CellSpec has in the field of this name."""

    def of(spec: CellSpec) -> Value:
        value: Value = getattr(getattr(spec, part), _field(name))
        return value

    return of


def _field(name: str) -> str:
    return name.replace("-", "_")
