"""`onnxfarm search`: everything of a farm that has a page, by what people type."""

from typing import Annotated

import typer

from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import table_of, write_plain
from onnxfarm.problems import main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.registry import RegistryClient
from onnxfarm.screen import console_for


@main_guard()
def search(
    words: Annotated[
        str,
        typer.Argument(help="Part of a name, a run's or alert's number, or the first six characters of a digest."),
    ],
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find models, versions, runs, nodes, alerts and watches of your teams."""
    with RegistryClient(find_account(server)) as client:
        found = client.search(words)
    if as_json:
        write_plain(found)
        return
    console = console_for()
    if not found:
        console.print(f"No results for “{words}”.", highlight=False, markup=False)
        return
    table = table_of("kind", "name", "about", "page")
    for one in found:
        table.add_row(one["kind"], one["name"], one["about"], one["url"])
    console.print(table)
