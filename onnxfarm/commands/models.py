"""`onnxfarm models`: the registry in the terminal; listed, renamed, labelled, deleted and restored."""

import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from farm.rules.wording.numbers import counted
from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import say, table_of, write_plain
from onnxfarm.problems import Usage, main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.registry import RegistryClient
from onnxfarm.remote.rows import Removed


class ListsByDefault(TyperGroup):
    """`onnxfarm models`, with or without a part of a name, lists; `onnxfarm models list delete` finds “delete”."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_known = bool(args) and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if is_known else ["list", *args])


app = typer.Typer(cls=ListsByDefault, add_completion=False, pretty_exceptions_enable=False)
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="Its number or name, as `onnxfarm models` shows.")]
VersionOption = Annotated[
    int | None, typer.Option("--version", min=1, help="One version alone.", show_default="the whole model")
]


@app.command("list")
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
    table = table_of("model", "name", "team", "versions", "labels", "since")
    for model in found:
        since, labels = model["created_at"][:10], ", ".join(model["labels"])
        table.add_row(str(model["id"]), model["name"], model["team"], str(model["version_count"]), labels, since)
    console.print(table)


@app.command()
@main_guard()
def rename(
    model: ModelArgument, name: Annotated[str, typer.Argument(help="The new name.")], server: ServerOption = None
) -> None:
    """Give a model another name; existing results keep the old name."""
    with RegistryClient(find_account(server)) as client:
        found = client.model_named(model)
        renamed = client.rename_model(found["id"], name)
    say(f"{found['name']} is now called {renamed['name']}.")


@app.command()
@main_guard()
def label(
    model: ModelArgument,
    labels: Annotated[list[str], typer.Argument(metavar="LABEL…", help="Labels to add.")],
    remove: Annotated[bool, typer.Option("--remove", help="Remove these labels instead.")] = False,
    server: ServerOption = None,
) -> None:
    """Add labels, by which watches and lists find a model, or take them away."""
    with RegistryClient(find_account(server)) as client:
        found = client.model_named(model)
        kept = [one for one in found["labels"] if one not in labels]
        labelled = client.label_model(found["id"], kept if remove else [*found["labels"], *labels])
    say(f"{labelled['name']}: {', '.join(labelled['labels']) or 'no labels'}.")


@app.command()
@main_guard()
def describe(
    model: ModelArgument,
    text: Annotated[str, typer.Argument(help="The description; for a version, its note.")],
    version: VersionOption = None,
    server: ServerOption = None,
) -> None:
    """Say what a model is, or what is special about a version."""
    with RegistryClient(find_account(server)) as client:
        found = client.model_named(model)
        if version is None:
            client.describe_model(found["id"], text)
        else:
            client.note_version(client.version_numbered(found["id"], version)["id"], text)
    say(f"{found['name']}{'' if version is None else f' v{version}'} is described.")


@app.command()
@main_guard()
def delete(
    model: ModelArgument,
    version: VersionOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    server: ServerOption = None,
) -> None:
    """Delete a model, or one version of it.

    Versions that no run has measured are deleted permanently, with files that nothing else uses. Those that runs have
    measured are hidden and can be restored; the runs and their results stay.
    """
    with RegistryClient(find_account(server)) as client:
        found = client.model_named(model)
        name = found["name"] if version is None else f"{found['name']} v{version}"
        one = None if version is None else client.version_numbered(found["id"], version)
        _confirm(f"Delete {name}? Versions that were never measured are deleted permanently.", is_sure=yes)
        removed = client.delete_model(found["id"]) if one is None else client.delete_version(one["id"])
    say(_done(name, removed))


@app.command()
@main_guard()
def restore(model: ModelArgument, version: VersionOption = None, server: ServerOption = None) -> None:
    """Restore a deleted model, or one deleted version, that runs have measured."""
    with RegistryClient(find_account(server)) as client:
        if version is None:
            name = client.restore_model(client.model_named(model, is_removed=True)["id"])["name"]
        else:
            number = client.version_numbered(client.model_named(model)["id"], version)["id"]
            restored = client.restore_version(number)
            name = f"{restored['model']} v{restored['number']}"
    say(f"{name} is restored.")


def _confirm(question: str, *, is_sure: bool) -> None:
    """Raises Usage where nobody says yes."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise Usage(f"{question} Not a terminal: add --yes to confirm.")
    if not typer.confirm(question):
        raise Usage("Nothing was deleted.")


def _done(name: str, removed: Removed) -> str:
    gone = counted(removed["deleted"], "version")
    parts = [f"{gone} deleted permanently, {removed['freed_bytes']:,} bytes freed"]
    if removed["hidden"]:
        parts.append(f"{removed['hidden']} hidden with their runs and results kept: onnxfarm models restore")
    return f"{name} is deleted: {'; '.join(parts)}."
