"""Reads values of a matrix by pydantic types: each gives a JSON schema and one sentence for a value that is wrong."""

from collections.abc import Mapping
from functools import cached_property
from math import isfinite
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictInt, TypeAdapter, ValidationError

from farm.rules.cells.problems import MatrixProblem
from farm.rules.runtimes.nearest import choice_sentence, shorten_repr

Schema = Mapping[str, Any]


def _parse_text(written: object) -> object:
    if not isinstance(written, str):
        return written
    is_number = written.strip().isdecimal() and len(written) < 19
    return int(written) if is_number else {"true": True, "false": False}.get(written, written)


# the last annotation of a whole number or a boolean that may also be written as text
AS_TEXT = BeforeValidator(_parse_text)


class Kind:
    """A type of values that a matrix may have; `type_` is anything that pydantic takes as a type."""

    def __init__(self, type_: Any) -> None:
        self._type = type_

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._type)

    @cached_property
    def schema(self) -> Schema:
        """The JSON schema of a value, without pydantic's titles and references, and without null for missing keys."""
        schema = self._adapter.json_schema()
        plain: Schema = _simplify(schema, schema.get("$defs", {}))
        return plain

    def read(self, what: str, written: object) -> Any:
        """Convert a written value to the type.

        Raises MatrixProblem, whose sentence names the value by `what`, or by the key that is wrong in a mapping.
        """
        try:
            return self._adapter.validate_python(written)
        except ValidationError as problem:
            raise _make_matrix_problem(problem, what, written, schema=self.schema) from None


def whole_number(maximum: int, *, minimum: int = 1) -> Kind:
    """Make the kind of a whole number, both limits included; text such as `"3"` is taken too, floats are not."""
    return Kind(Annotated[StrictInt, Field(ge=minimum, le=maximum), AS_TEXT])


def parse_finite(written: object) -> float | None:
    """Read a finite number, also from text; None for anything else, including true and false."""
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        return None
    try:
        number = float(written)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _make_matrix_problem(problem: ValidationError, what: str, written: Any, *, schema: Schema) -> MatrixProblem:
    first = problem.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, MatrixProblem):
        return cause
    for key in first["loc"]:
        if key in schema.get("properties", {}):
            what, written, schema = str(key), written[key], schema["properties"][key]
    if "enum" in schema:
        return MatrixProblem(choice_sentence(what, str(written), schema["enum"]))
    wanted = {
        "boolean": "true or false",
        "integer": f"a whole number from {schema.get('minimum')} to {schema.get('maximum')}",
        "string": f"a text of at most {schema.get('maxLength')} characters",
        "array": "a list of names",
    }
    return MatrixProblem(f"{what} is {shorten_repr(written)}: write {wanted[schema['type']]}.")


def _simplify(node: Any, defs: Schema) -> Any:
    if isinstance(node, list):
        return [_simplify(part, defs) for part in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        node = {**defs[node["$ref"].rpartition("/")[2]], **node}
    if {"type": "null"} in node.get("anyOf", ()):
        [other] = [part for part in node["anyOf"] if part != {"type": "null"}]
        return _simplify(other, defs)
    words = {"title", "description", "$ref", "$defs"}
    wanted = {key: value for key, value in node.items() if key not in words and (key, value) != ("default", None)}
    return {key: _simplify(value, defs) for key, value in wanted.items()}
