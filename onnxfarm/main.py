"""The `onnxfarm` command. Each subcommand's module is imported when it is called, so that help is quick."""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from farm.sandbox import unconfined
from onnxfarm.problems import main_guard, needs_extra

# name: (module, function or typer app, one line for the help page)
COMMANDS = {
    "bench": ("onnxfarm.commands.bench", "bench", "Measure a model on this machine, without a farm."),
    "submit": (
        "onnxfarm.commands.submit",
        "submit",
        "Send a model and a matrix to a farm; --wait follows it to its end.",
    ),
    "plan": ("onnxfarm.commands.plan", "plan", "Show what a matrix would measure, for how long, and what it cannot."),
    "status": ("onnxfarm.commands.status", "status", "Show your runs, or how far one run is."),
    "results": (
        "onnxfarm.commands.results",
        "results",
        "Print a run's cells and comparisons, or write them as JSON or CSV.",
    ),
    "more": ("onnxfarm.commands.cancel", "more", "Measure more rounds of a run's blocks."),
    "cancel": ("onnxfarm.commands.cancel", "cancel", "Stop a run."),
    "models": ("onnxfarm.commands.models", "models", "List the models of your teams."),
    "login": ("onnxfarm.remote.account", "login", "Remember a farm's address and your token for it."),
    "inspect": ("onnxfarm.commands.inspect", "inspect", "Show a model's inputs, opsets and findings, on this machine."),
    "verdict": ("onnxfarm.commands.verdict", "verdict", "Judge samples that anyone measured."),
    "changepoints": ("onnxfarm.commands.changepoints", "changepoints", "Find level shifts in a series."),
    "gate": ("onnxfarm.commands.gate", "gate", "Measure two runtimes side by side and fail when the new one is worse."),
    "bisect": (
        "onnxfarm.commands.bisect",
        "bisect",
        "Find the release that made a model slower, wrong or differently placed.",
    ),
    "sweep": ("onnxfarm.commands.sweep", "sweep", "Measure one model over many releases and mark where it changed."),
    "evaluate": (
        "onnxfarm.commands.evaluate",
        "evaluate",
        "Judge a model and its variants on labelled data, on this machine.",
    ),
    "compare": ("onnxfarm.commands.compare", "compare", "Compare two files of `bench`, unpaired."),
    "conformance": ("onnxfarm.commands.conformance", "conformance", "Run ONNX's own operator tests on runtimes."),
    "diverge": ("onnxfarm.commands.diverge", "diverge", "Find the first tensor that a runtime computes otherwise."),
    "watch": ("onnxfarm.commands.watch", "app", "Make, list, call, pause and remove a farm's watches."),
    "alerts": ("onnxfarm.commands.alerts", "app", "List a farm's alerts, and say what becomes of them."),
    "report": ("onnxfarm.commands.report", "report", "Fetch what is needed to file an alert upstream."),
    "node": ("onnxfarm.commands.node", "app", "Make this machine a node of a farm."),
}


class LazyGroup(TyperGroup):
    """Lists commands from the table; imports one when it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (module, _, line) in COMMANDS.items():
            if find_spec(module):
                self.commands[name] = TyperCommand(name, help=line)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        return name, _load(name) if name else found, rest


def _load(name: str) -> Any:
    """The real command behind a name."""
    module, attribute, _ = COMMANDS[name]
    with main_guard(), needs_extra("node"):
        target = getattr(import_module(module), attribute)
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        target.command(name)(function)
    return typer.main.get_command(target)


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        from onnxfarm.release import release

        print(f"onnxfarm {release()}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Benchmarks of ONNX models: latency, accuracy and operator placement side by side.

    Exit codes: 0 done, 1 a gate failed, 2 usage, 3 infrastructure, 4 timeout.
    """
    # the files are one's own here: where nothing can confine what reads them, that is said and it goes on
    unconfined.accept(lambda why: print(f"Warning: models run with all your rights. {why}", file=sys.stderr))


if __name__ == "__main__":
    app()
