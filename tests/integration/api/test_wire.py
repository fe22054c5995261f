"""What goes over the wire of `/api/v1/`, as `openapi.txt` beside this file has it: scripts of others rest on it.

After a change that is meant, write it anew with ONNXFARM_WRITE=1 in the environment of this test.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ninja import Schema
from pydantic import BaseModel

from farm.api.api import api
from farm.contract.api.answer import Answer

WIRE = Path(__file__).with_name("openapi.txt")
# said of a value on the wire; titles and descriptions are not
LIMITS = ("default", "enum", "const", "format", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
ROOMS = ("farm.api.", "farm.contract.api.")
Plain = Mapping[str, Any]


def kind(said: Plain) -> str:
    """A schema in short: `integer(minimum=0)`, `[RunOut]`, `string|null`."""
    if "$ref" in said:
        return str(said["$ref"]).rpartition("/")[2]
    for word in ("anyOf", "allOf", "oneOf"):
        if word in said:
            return "|".join(kind(each) for each in said[word])
    if said.get("type") == "array":
        return f"[{', '.join(kind(each) for each in said.get('prefixItems', [said.get('items', {})]))}]"
    limits = ", ".join(f"{name}={said[name]!r}" for name in LIMITS if name in said)
    values = said.get("additionalProperties")
    of = f" of {kind(values)}" if isinstance(values, dict) else ""
    return f"{said.get('type', 'anything')}{of}{f'({limits})' if limits else ''}"


def lines() -> Iterator[str]:
    """Each address and method, then each schema that is named there."""
    document = api.get_openapi_schema()
    for path, methods in sorted(document["paths"].items()):
        for method, operation in sorted(methods.items()):
            asked = sorted(f"{each['name']}: {kind(each['schema'])}" for each in operation.get("parameters", ()))
            yield f"{method.upper()} {path}({', '.join(asked)})"
            for what, body in (("takes", operation.get("requestBody")), *sorted(operation["responses"].items())):
                for media, content in sorted((body or {}).get("content", {}).items()):
                    yield f"    {what} {media}: {kind(content['schema'])}"
    spoken = "\n".join(str(methods) for methods in document["paths"].values())
    schemas = document["components"]["schemas"]
    for name, schema in sorted(schemas.items()):
        if f"schemas/{name}'" not in spoken + str(schemas):
            continue
        needed = schema.get("required", ())
        yield name if "properties" in schema else f"{name}: {kind(schema)}"
        for field, said in sorted(schema.get("properties", {}).items()):
            yield f"    {field}{'' if field in needed else '?'}: {kind(said)}"


def test_what_goes_over_the_wire_is_what_scripts_of_others_were_written_for() -> None:
    text = "\n".join(lines()) + "\n"
    if os.environ.get("ONNXFARM_WRITE"):
        WIRE.write_text(text)
    assert text == WIRE.read_text()


def test_no_two_schemas_share_a_name() -> None:
    """The document has one place a name: of two, one would be described as the other."""
    schemas = [each for each in (*_below(Schema), *_below(Answer)) if each.__module__.startswith(ROOMS)]
    names = Counter(each.__name__ for each in schemas)
    assert [name for name, count in names.items() if count > 1] == []


def _below(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
