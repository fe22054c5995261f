"""`onnxfarm schema bench`: the JSON Schema of a document, for validators, editors and generators of types."""

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from farm.contract import document
from farm.rules.matrices import matrix
from farm.rules.runtimes.nearest import choice_sentence
from onnxfarm.outputs import write_plain
from onnxfarm.problems import Usage, main_guard

SCHEMAS: Mapping[str, Callable[[], object]] = {"bench": document.json_schema, "matrix": matrix.json_schema}


@main_guard()
def schema(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="bench: what is measured, onnxfarm.bench/1; matrix: what is asked for."),
    ],
) -> None:
    """Print the JSON Schema (2020-12) of bench documents, or of matrix files."""
    if name not in SCHEMAS:
        raise Usage(choice_sentence("schema", name, SCHEMAS))
    write_plain(SCHEMAS[name]())
