"""Values of a matrix as pydantic reads them: a type says how one is written, its JSON schema and what is wrong with it.

A value that cannot be used raises MatrixProblem with one sentence. Pure.
"""

from collections.abc import Mapping
from functools import cached_property
from math import isfinite
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictInt, TypeAdapter, ValidationError

from farm.rules.cells.problems import MatrixProblem
from farm.rules.runtimes.nearest import choice_sentence, shorten_value

Schema = Mapping[str, Any]


def _of_text(written: object) -> object:
    if not isinstance(written, str):
        return written
    is_number = written.strip().isdecimal() and len(written) < 19
    return int(written) if is_number else {"true": True, "false": False}.get(written, written)


# last in the annotation of a whole number or a flag: they may be written as text
AS_TEXT = BeforeValidator(_of_text)


class Kind:
    """A type of values: anything that pydantic takes as a type."""

    def __init__(self, type_: Any) -> None:
        self._type = type_

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._type)

    @cached_property
    def schema(self) -> Schema:
        """Its JSON schema, without pydantic's own titles and references, and without null for what is left out."""
        schema = self._adapter.json_schema()
        plain: Schema = _plain(schema, schema.get("$defs", {}))
        return plain

    def read(self, what: str, written: object) -> Any:
        """The value that is written. `what` names it in a sentence; the key does where it is one of several."""
        try:
            return self._adapter.validate_python(written)
        except ValidationError as problem:
            raise _problem(problem, what, written, schema=self.schema) from None


def whole_number(most: int, *, least: int = 1) -> Kind:
    return Kind(Annotated[StrictInt, Field(ge=least, le=most), AS_TEXT])


def parse_finite(written: object) -> float | None:
    """The finite number that is written, also as text; None for anything else."""
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        return None
    try:
        number = float(written)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _problem(problem: ValidationError, what: str, written: Any, *, schema: Schema) -> MatrixProblem:
    first = problem.errors(include_url=False)[0]
    said = first.get("ctx", {}).get("error")
    if isinstance(said, MatrixProblem):
        return said
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
    return MatrixProblem(f"{what} is {shorten_value(written)}: write {wanted[schema['type']]}.")


def _plain(node: Any, defs: Schema) -> Any:
    if isinstance(node, list):
        return [_plain(part, defs) for part in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        node = {**defs[node["$ref"].rpartition("/")[2]], **node}
    if {"type": "null"} in node.get("anyOf", ()):
        [kept] = [part for part in node["anyOf"] if part != {"type": "null"}]
        return _plain(kept, defs)
    words = {"title", "description", "$ref", "$defs"}
    said = {key: value for key, value in node.items() if key not in words and (key, value) != ("default", None)}
    return {key: _plain(value, defs) for key, value in said.items()}
