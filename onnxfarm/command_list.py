"""The table of the commands of `onnxfarm`: the name and help of each, and where it is imported from."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import typer

Command = Callable[..., None] | typer.Typer


@dataclass(frozen=True)
class Entry:
    """A command. `help`: its line in the list of commands.

    `source`: MODULE:NAME, where MODULE is in onnxfarm.commands, and NAME is a function or a typer app in it.
    """

    help: str
    source: str

    def load(self) -> Command:
        """Import the command's module, and return its function or typer app.

        Raises ModuleNotFoundError if a package that the module needs is missing.
        """
        module, _, name = self.source.partition(":")
        command: Command = getattr(import_module(f"onnxfarm.commands.{module}"), name)
        return command


COMMANDS = {
    "bench": Entry("Measure a model on this machine, without a farm.", "bench:bench"),
    "submit": Entry("Send a model and a matrix to a farm; --wait follows it to its end.", "submit:submit"),
    "plan": Entry("Show what a matrix would measure, how long that takes, and what cannot run.", "plan:plan"),
    "status": Entry("Show your runs, or how far one run is.", "status:status"),
    "results": Entry("Print a run's cells and comparisons, or write them as JSON or CSV.", "results:results"),
    "more": Entry("Measure more rounds of a run's blocks.", "cancel:more"),
    "cancel": Entry("Stop a run.", "cancel:cancel"),
    "models": Entry("List, rename, label, delete and restore the models of your teams.", "models:app"),
    "search": Entry("Find models, runs, nodes and digests of a farm.", "search:search"),
    "login": Entry("Remember a farm's address and your token for it.", "login:login"),
    "inspect": Entry("Show a model's inputs, opsets and findings, on this machine.", "inspect:inspect"),
    "verdict": Entry("Judge samples that anyone measured.", "verdict:verdict"),
    "changepoints": Entry("Find level shifts in a series.", "changepoints:changepoints"),
    "gate": Entry("Measure two runtimes, or two models, side by side and fail when the new one is worse.", "gate:gate"),
    "bisect": Entry("Find the release that made a model slower, wrong or differently placed.", "bisect:bisect"),
    "sweep": Entry("Measure one model over many releases and mark where it changed.", "sweep:sweep"),
    "find": Entry("Find the fastest settings that are accurate enough and fit.", "find:find"),
    "evaluate": Entry("Judge a model and its variants on labelled data, on this machine.", "evaluate:evaluate"),
    "compare": Entry("Measure two models side by side, or compare two files of `bench`.", "compare:compare"),
    "doctor": Entry("Say what is missing on this machine, and what adds it.", "doctor:doctor"),
    "docs": Entry("Explain a refusal by its code.", "docs:docs"),
    "schema": Entry("Print the JSON schema of a document.", "schema:schema"),
    "conformance": Entry("Run ONNX's own operator tests on runtimes.", "conformance:conformance"),
    "tokenize": Entry("Write texts as token ids, by a model's own tokenizer.", "tokenize:tokenize"),
    "diverge": Entry("Find the first tensor that a runtime computes differently.", "diverge:diverge"),
    "watch": Entry("Add, list, run, pause and remove a farm's watches.", "watch:app"),
    "alerts": Entry("List and triage a farm's alerts.", "alerts:app"),
    "release": Entry("Print what a release made slower or wrong on a farm's models.", "release:release"),
    "report": Entry("Download what is needed to report an alert upstream.", "report:report"),
    "serve": Entry("Start a farm on this machine, with a node of its own.", "serve:serve"),
    "farm": Entry("Manage a farm's people, teams and tokens; back it up.", "farm:app"),
    "node": Entry("Make this machine a node of a farm.", "node:app"),
}
