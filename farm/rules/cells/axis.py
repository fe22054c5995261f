"""The type of an axis: how values are read from documents' cells and from CellSpecs, and how a matrix declares them."""

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
    """Stands for a default where an axis has none, so that every value is shown."""


NO_DEFAULT: Final = _NoDefault()


@dataclass(frozen=True, slots=True)
class MatrixAxis:
    """An axis as a matrix declares it. `field` is its name with underscores, as fields have it."""

    name: str
    # parses one written value; raises MatrixProblem
    read: Callable[[object], Value]
    # the JSON schema of a written value
    schema: Schema
    # reads the value from a CellSpec; the result is None where a matrix need not write it
    value_in: Callable[[CellSpec], Value | None]
    # the part of a CellSpec that has the value as a field; None where planning computes the value
    part: Part | None = None
    # the help text of the option of `bench` for this axis, and a few values
    help: str = ""
    example: str = ""

    @property
    def field(self) -> str:
        return _field(self.name)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis, and how a document's cell is read along it.

    `is_default` says that the cell has the value that sentences leave out; it is False where the axis has none.
    """

    # its key in a matrix
    name: str
    heading: str
    # each of these four replaces what the method below derives from the first of `fields`
    value_of: Callable[[Cell], SupportsRichComparison] | None = None
    short_of: Callable[[Cell], str] | None = None
    label_of: Callable[[Cell], str] | None = None
    sort_key_of: Callable[[Cell], SupportsRichComparison] | None = None
    # the value that sentences leave out
    default: object = NO_DEFAULT
    # the fields of a document's cell that hold it; by default the field of the axis' name
    fields: tuple[str, ...] = ()
    # whether it says what is measured; False where it says on which machine
    is_setting: bool = True
    # None where no matrix declares it
    declared: MatrixAxis | None = None

    def __post_init__(self) -> None:
        if not self.fields:
            object.__setattr__(self, "fields", (_field(self.name),))

    def value(self, cell: Cell) -> object:
        return self.value_of(cell) if self.value_of else getattr(cell, self.fields[0])

    def short(self, cell: Cell) -> str:
        """Write the value as a table column with the axis' heading shows it: `8`, `on`; empty for None."""
        if self.short_of:
            return self.short_of(cell)
        value = self.value(cell)
        if isinstance(value, bool):
            return "on" if value else "off"
        return "" if value is None else str(value)

    def label(self, cell: Cell) -> str:
        """Write the value so that it is clear without the heading: `batch 8`, `optimization all`.

        Where the axis declares no text of its own, the heading stands before a field of a CellSpec's session or
        workload. Other values stand alone, as `short` writes them.
        """
        if self.label_of:
            return self.label_of(cell)
        needs_heading = self.declared is not None and self.declared.part
        return f"{self.heading.lower()} {self.short(cell)}" if needs_heading else self.short(cell)

    def sort_key(self, cell: Cell) -> SupportsRichComparison:
        """Return what cells are sorted by along the axis: the value, unless the axis declares another key."""
        if self.sort_key_of:
            return self.sort_key_of(cell)
        value: SupportsRichComparison = (self.value_of or attrgetter(self.fields[0]))(cell)
        return value

    def is_default(self, cell: Cell) -> bool:
        return bool(self.value(cell) == self.default)


def declare_from_kind(name: str, kind: Kind, *, value_in: Callable[[CellSpec], Value | None]) -> MatrixAxis:
    return MatrixAxis(name, partial(kind.read, name), kind.schema, value_in)


def declare_from_field(name: str, part: Part, *, help: str = "") -> MatrixAxis:
    """Declare an axis whose values are those that the field of its name in this part of a CellSpec accepts."""
    field = PARTS[part].model_fields[_field(name)]
    written = (Field(strict=True), AS_TEXT) if field.annotation in (int, bool) else (Field(),)
    kind = Kind(Annotated[(field.annotation, *field.metadata, *written)])
    examples = {"integer": "1, 2", "boolean": "true, false"}
    example = ", ".join(kind.schema["enum"]) if "enum" in kind.schema else examples[kind.schema["type"]]
    return replace(
        declare_from_kind(name, kind, value_in=_read_field(part, name)), part=part, help=help, example=example
    )


def named_schema(key: str, name: Schema, options: Schema, *, text: Schema | None = None) -> Schema:
    """Build the JSON schema of a value that is written as a name, or as a mapping of `key` (the name) and `options`.

    `text` is the schema of the name where it stands alone; None: `name` again.
    """
    full = {
        "type": "object",
        "required": [key],
        "additionalProperties": False,
        "properties": {key: name, "options": options},
    }
    return {"anyOf": [text or name, full]}


def _read_field(part: Part, name: str) -> Callable[[CellSpec], Value]:
    """Make the function that reads this field of a CellSpec."""

    def value_in(spec: CellSpec) -> Value:
        value: Value = getattr(getattr(spec, part), _field(name))
        return value

    return value_in


def _field(name: str) -> str:
    return name.replace("-", "_")
