"""`onnxfarm schema NAME`: prints the JSON Schema of a document, for validators, editors and generators of types."""

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from farm.contract import document, document_find
from farm.rules.matrices import matrix
from farm.rules.runtimes.nearest import choice_sentence
from onnxfarm.outputs import write_json
from onnxfarm.problems import Usage, exit_with_problem

SCHEMAS: Mapping[str, Callable[[], object]] = {
    "bench": document.make_json_schema,
    "find": document_find.make_json_schema,
    "matrix": matrix.json_schema,
}


@exit_with_problem()
def schema(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="bench, find: what is measured and found, onnxfarm.bench/1 and find/1; matrix: what is asked for.",
        ),
    ],
) -> None:
    """Print the JSON Schema (2020-12) of bench and find documents, or of matrix files."""
    if name not in SCHEMAS:
        raise Usage(choice_sentence("schema", name, SCHEMAS))
    write_json(SCHEMAS[name]())
