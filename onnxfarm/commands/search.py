"""`onnxfarm search WORDS`: finds what has a page on a farm, by name, number or digest."""

from typing import Annotated

import typer

from onnxfarm.commands.listing import show_rows
from onnxfarm.commands.options import JsonOption
from onnxfarm.problems import exit_with_problem
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption
from onnxfarm.remote.client import ask_farm


@exit_with_problem()
def search(
    words: Annotated[
        str, typer.Argument(help="Part of a name, a run's or alert's number, or the first six characters of a digest.")
    ],
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find models, versions, runs, nodes, alerts and watches of your teams."""
    hits = ask_farm(server, operations.SEARCH, params={"q": words})
    heads, none = ("kind", "name", "about", "page"), f"No results for “{words}”."
    show_rows(hits, heads, lambda hit: (hit.kind, hit.name, hit.about, hit.url), as_json=as_json, none=none)
