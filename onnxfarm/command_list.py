"""The commands of `onnxfarm`: the name and the help line of each, and where it is imported from once it is called."""

from collections.abc import Callable
from dataclasses import dataclass

import typer

Command = Callable[..., None] | typer.Typer


@dataclass(frozen=True)
class Entry:
    """`load` imports the command's module, which costs what help must not: a function, or a typer app of its own."""

    line: str
    load: Callable[[], Command]


def _bench() -> Command:
    from onnxfarm.commands.bench import bench

    return bench


def _submit() -> Command:
    from onnxfarm.commands.submit import submit

    return submit


def _plan() -> Command:
    from onnxfarm.commands.plan import plan

    return plan


def _status() -> Command:
    from onnxfarm.commands.status import status

    return status


def _results() -> Command:
    from onnxfarm.commands.results import results

    return results


def _more() -> Command:
    from onnxfarm.commands.cancel import more

    return more


def _cancel() -> Command:
    from onnxfarm.commands.cancel import cancel

    return cancel


def _models() -> Command:
    from onnxfarm.commands.models import app

    return app


def _search() -> Command:
    from onnxfarm.commands.search import search

    return search


def _login() -> Command:
    from onnxfarm.commands.login import login

    return login


def _inspect() -> Command:
    from onnxfarm.commands.inspect import inspect

    return inspect


def _verdict() -> Command:
    from onnxfarm.commands.verdict import verdict

    return verdict


def _changepoints() -> Command:
    from onnxfarm.commands.changepoints import changepoints

    return changepoints


def _gate() -> Command:
    from onnxfarm.commands.gate import gate

    return gate


def _bisect() -> Command:
    from onnxfarm.commands.bisect import bisect

    return bisect


def _sweep() -> Command:
    from onnxfarm.commands.sweep import sweep

    return sweep


def _evaluate() -> Command:
    from onnxfarm.commands.evaluate import evaluate

    return evaluate


def _compare() -> Command:
    from onnxfarm.commands.compare import compare

    return compare


def _conformance() -> Command:
    from onnxfarm.commands.conformance import conformance

    return conformance


def _tokenize() -> Command:
    from onnxfarm.commands.tokenize import tokenize

    return tokenize


def _diverge() -> Command:
    from onnxfarm.commands.diverge import diverge

    return diverge


def _watch() -> Command:
    from onnxfarm.commands.watch import app

    return app


def _alerts() -> Command:
    from onnxfarm.commands.alerts import app

    return app


def _report() -> Command:
    from onnxfarm.commands.report import report

    return report


def _node() -> Command:
    from onnxfarm.commands.node import app

    return app


def _farm() -> Command:
    from onnxfarm.commands.farm import app

    return app


def _serve() -> Command:
    from onnxfarm.commands.serve import serve

    return serve


COMMANDS = {
    "bench": Entry("Measure a model on this machine, without a farm.", _bench),
    "submit": Entry("Send a model and a matrix to a farm; --wait follows it to its end.", _submit),
    "plan": Entry("Show what a matrix would measure, how long that takes, and what cannot run.", _plan),
    "status": Entry("Show your runs, or how far one run is.", _status),
    "results": Entry("Print a run's cells and comparisons, or write them as JSON or CSV.", _results),
    "more": Entry("Measure more rounds of a run's blocks.", _more),
    "cancel": Entry("Stop a run.", _cancel),
    "models": Entry("List, rename, label, delete and restore the models of your teams.", _models),
    "search": Entry("Find models, runs, nodes and digests of a farm.", _search),
    "login": Entry("Remember a farm's address and your token for it.", _login),
    "inspect": Entry("Show a model's inputs, opsets and findings, on this machine.", _inspect),
    "verdict": Entry("Judge samples that anyone measured.", _verdict),
    "changepoints": Entry("Find level shifts in a series.", _changepoints),
    "gate": Entry("Measure two runtimes side by side and fail when the new one is worse.", _gate),
    "bisect": Entry("Find the release that made a model slower, wrong or differently placed.", _bisect),
    "sweep": Entry("Measure one model over many releases and mark where it changed.", _sweep),
    "evaluate": Entry("Judge a model and its variants on labelled data, on this machine.", _evaluate),
    "compare": Entry("Compare two files of `bench`, unpaired.", _compare),
    "conformance": Entry("Run ONNX's own operator tests on runtimes.", _conformance),
    "tokenize": Entry("Write texts as token ids, by a model's own tokenizer.", _tokenize),
    "diverge": Entry("Find the first tensor that a runtime computes differently.", _diverge),
    "watch": Entry("Add, list, run, pause and remove a farm's watches.", _watch),
    "alerts": Entry("List and triage a farm's alerts.", _alerts),
    "report": Entry("Download what is needed to report an alert upstream.", _report),
    "serve": Entry("Start a farm on this machine without measuring anything.", _serve),
    "farm": Entry("Manage a farm's people, teams and tokens; back it up.", _farm),
    "node": Entry("Make this machine a node of a farm.", _node),
}
