"""`onnxfarm models list|rename|label|describe|delete|restore`: the models of a farm's registry."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from farm.contract.api.registry import ModelOut, RemovedOut
from farm.rules.wording.numbers import counted
from onnxfarm.commands.listing import show_rows
from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import print_lines
from onnxfarm.problems import Commands, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.lookups import find_model, find_version_by_number


class ListsByDefault(TyperGroup):
    """A group that runs its command `list` unless the first word is a command or `--help`.

    So `onnxfarm models` and `onnxfarm models enc` list models. `list` has to be typed only for a name like “delete”.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_known = bool(args) and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if is_known else ["list", *args])


app = Commands(cls=ListsByDefault, add_completion=False, pretty_exceptions_enable=False)
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="Its number or name, as `onnxfarm models` shows.")]
VersionOption = Annotated[
    int | None, typer.Option("--version", min=1, help="One version alone.", show_default="the whole model")
]


@app.command("list")
def models(
    search: Annotated[str, typer.Argument(help="Part of a name.")] = "",
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the models of your teams."""
    with Client(find_account(server)) as client:
        answer = client.list_rows(operations.MODELS, params={"search": search})

    def format_row(model: ModelOut) -> tuple[str, ...]:
        since, labels = f"{model.created_at:%Y-%m-%d}", ", ".join(model.labels)
        return str(model.id), model.name, model.team, str(model.version_count), labels, since

    heads = ("model", "name", "team", "versions", "labels", "since")
    none = "No models yet. Upload one: onnxfarm submit model.onnx --wait"
    show_rows(answer, heads, format_row, as_json=as_json, none=none)


@app.command()
def rename(
    model: ModelArgument, name: Annotated[str, typer.Argument(help="The new name.")], server: ServerOption = None
) -> None:
    """Give a model another name; existing results keep the old name."""
    with Client(find_account(server)) as client:
        before = find_model(client, model)
        renamed = client.call(operations.DESCRIBE_MODEL, json={"name": name}, model=before.id)
    print_lines(f"{before.name} is now called {renamed.name}.")


@app.command()
def label(
    model: ModelArgument,
    labels: Annotated[list[str], typer.Argument(metavar="LABEL…", help="Labels to add.")],
    remove: Annotated[bool, typer.Option("--remove", help="Remove these labels instead.")] = False,
    server: ServerOption = None,
) -> None:
    """Add labels, by which watches and lists find a model, or take them away."""
    with Client(find_account(server)) as client:
        before = find_model(client, model)
        kept_labels = [label for label in before.labels if label not in labels]
        new_labels = kept_labels if remove else [*before.labels, *labels]
        labelled = client.call(operations.DESCRIBE_MODEL, json={"labels": new_labels}, model=before.id)
    print_lines(f"{labelled.name}: {', '.join(labelled.labels) or 'no labels'}.")


@app.command()
def describe(
    model: ModelArgument,
    text: Annotated[str, typer.Argument(help="The description; for a version, its note.")],
    version: VersionOption = None,
    server: ServerOption = None,
) -> None:
    """Say what a model is, or what is special about a version."""
    with Client(find_account(server)) as client:
        described = find_model(client, model)
        if version is None:
            client.ask(operations.DESCRIBE_MODEL, json={"description": text}, model=described.id)
        else:
            noted = find_version_by_number(client, described.id, version)
            client.ask(operations.NOTE_VERSION, json={"note": text}, version=noted.id)
    print_lines(f"{described.name}{'' if version is None else f' v{version}'} is described.")


@app.command()
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
    with Client(find_account(server)) as client:
        deleted = find_model(client, model)
        name = deleted.name if version is None else f"{deleted.name} v{version}"
        deleted_version = None if version is None else find_version_by_number(client, deleted.id, version)
        _confirm(f"Delete {name}? Versions that were never measured are deleted permanently.", is_sure=yes)
        if deleted_version is None:
            removed = client.call(operations.DELETE_MODEL, model=deleted.id)
        else:
            removed = client.call(operations.DELETE_VERSION, version=deleted_version.id)
    print_lines(_describe_deletion(name, removed))


@app.command()
def restore(model: ModelArgument, version: VersionOption = None, server: ServerOption = None) -> None:
    """Restore a deleted model, or one deleted version, that runs have measured."""
    with Client(find_account(server)) as client:
        if version is None:
            removed = find_model(client, model, is_removed=True)
            name = client.call(operations.RESTORE_MODEL, model=removed.id).name
        else:
            numbered = find_version_by_number(client, find_model(client, model).id, version)
            restored = client.call(operations.RESTORE_VERSION, version=numbered.id)
            name = f"{restored.model} v{restored.number}"
    print_lines(f"{name} is restored.")


def _confirm(question: str, *, is_sure: bool) -> None:
    """Ask the question. Raises Usage unless the user confirms at a terminal. `is_sure`: do not ask."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise Usage(f"{question} Not a terminal: add --yes to confirm.")
    if not typer.confirm(question):
        raise Usage("Nothing was deleted.")


def _describe_deletion(name: str, removed: RemovedOut) -> str:
    gone = counted(removed.deleted, "version")
    parts = [f"{gone} deleted permanently, {removed.freed_bytes:,} bytes freed"]
    if removed.hidden:
        parts.append(f"{removed.hidden} hidden with their runs and results kept: onnxfarm models restore")
    return f"{name} is deleted: {'; '.join(parts)}."
