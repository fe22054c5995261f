"""The `onnxfarm` command. A subcommand's module is imported only when it is called, so that help is quick."""

import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from farm.contract.texts import strip_pydantic_prefix
from farm.sandbox import unconfined
from onnxfarm.command_list import COMMANDS
from onnxfarm.examples import find_example
from onnxfarm.problems import exit_with_problem, require_extra


def read_release() -> str:
    """Return the version of onnxfarm: of the installed package, or of the checkout, followed by `(checkout)`."""
    try:
        return version("onnxfarm")
    except PackageNotFoundError:
        # a checkout that is not installed has no metadata
        project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
        return f"{project['project']['version']} (checkout)"


class LazyGroup(TyperGroup):
    """The group of the commands in COMMANDS. A command's module is imported only when the command is called.

    `invoke` removes pydantic's own prefix from the message of a BadParameter, and raises it again.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=entry.help)
        _add_example(self, "onnxfarm")

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as problem:
            problem.message = strip_pydantic_prefix(problem.message)
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, arguments = super().resolve_command(ctx, args)
        return name, _load_command(name) if name else command, arguments


def _load_command(name: str) -> Any:
    """Import a command by its name. Raises typer.Exit, after printing why, if a package is missing."""
    with exit_with_problem(), require_extra("node"):
        target = COMMANDS[name].load()
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        target.command(name)(function)
    command = typer.main.get_command(target)
    _add_example(command, f"onnxfarm {name}")
    return command


def _add_example(command: Any, full_name: str) -> None:
    """Put an example before the help of a command and of its subcommands. Their lines in lists do not change."""
    for name, subcommand in getattr(command, "commands", {}).items():
        _add_example(subcommand, f"{full_name} {name}")
    command.short_help = command.short_help or command.help
    command.help = f"Example: {find_example(full_name)}\n\n{command.help or ''}"


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(f"onnxfarm {read_release()}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Benchmarks of ONNX models: latency, accuracy and operator placement side by side.

    Exit codes: 0 done, 1 a cell or a gate failed, 2 usage, 3 infrastructure, 4 timeout, 70 internal error,
    130 stopped by Ctrl-C.
    """
    # the user reads their own files here, so a machine without a sandbox gets a warning only
    unconfined.accept_unconfined(lambda why: print(f"Warning: models run with all your rights. {why}", file=sys.stderr))


if __name__ == "__main__":
    app()
