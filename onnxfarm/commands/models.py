"""`onnxfarm models`: the registry in the terminal."""

from typing import Annotated

import typer
from rich.console import Console

from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import table_of, write_plain
from onnxfarm.problems import main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client


@main_guard()
def models(
    search: Annotated[str, typer.Argument(help="Part of a name.")] = "",
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the models of your teams."""
    with Client(find_account(server)) as client:
        found = client.models(search=search)
    if as_json:
        write_plain(found)
        return
    console = Console()
    if not found:
        console.print("No models yet. Upload one: onnxfarm submit model.onnx --wait", highlight=False)
        return
    table = table_of("model", "name", "team", "versions", "since")
    for model in found:
        since = model["created_at"][:10]
        table.add_row(str(model["id"]), model["name"], model["team"], str(model["version_count"]), since)
    console.print(table)
