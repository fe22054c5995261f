"""PyTorch as a runtime: the framework that a model was exported from is compared with ONNX Runtime.

It runs the model's *program*, the `.pt2` of torch.export that came with the .onnx, operator by operator (eager) or by
torch.compile. The runtime's version says which of the two, by PEP 440's local part: `torch==2.13.0+compile`. So both
are values of the runtime axis, and each is compared with every ONNX Runtime of its block.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from farm.contract.cells import PROGRAM_ENDING, CellSpec, Runtime
from farm.contract.reasons import Reason
from farm.rules.runtimes.engine import Engine, Launched, ignored_settings, not_loaded, unsupported
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.order import known_releases, release_order
from farm.rules.runtimes.provider import Build

DISTRIBUTION = "torch"
BUILD = Build(DISTRIBUTION)
COMPILED = "compile"
# PyPI, November 2026, from the first release whose .pt2 can be read without pickled weights
RELEASES = known_releases(DISTRIBUTION)
# the beginning of a version; PyTorch's own builds are called 2.13.0+cpu and 2.13.0+cu130
_RELEASE = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)")


# the seconds that a launch takes beyond a session of ONNX Runtime, for imports and loading; and those of compiling once
LAUNCH_S, COMPILED_S = 5.0, 60.0


@dataclass(frozen=True)
class _PyTorch(Engine):
    """The engine that runs a model's program by PyTorch."""

    def describe(self, runtime: Runtime) -> str:
        return describe_version(runtime.version)

    def installed_as(self, runtime: Runtime) -> Runtime:
        return installed_as(runtime)

    def program(self, runtime: Runtime) -> str:
        return COMPILED if is_compiled(runtime) else "eager"

    def starts_processes(self, runtime: Runtime) -> bool:
        return is_compiled(runtime)

    def check_s(self, runtime: Runtime) -> float:
        return COMPILED_S if is_compiled(runtime) else 0.0

    def refusals(self, spec: CellSpec, model: ModelFacts, scenario: Launched, *, named: str) -> Iterator[Reason]:
        """Yield reasons for settings that would make another .onnx, and for a program that is missing, unfit or too
        new."""
        if unfit := ignored_settings(spec, has_streams=False):
            yield unsupported(
                f"{named} runs the model's program as it was exported, without {', '.join(unfit)}: leave that out."
            )
        source = model.source
        if source is None:
            yield not_loaded(
                f"{named} runs a model's program and not its .onnx: add the {PROGRAM_ENDING} that "
                f"`torch.export.save` wrote of {model.name}, or leave this runtime out."
            )
        elif source.problem:
            yield not_loaded(source.problem)
        elif is_newer(source.saved_by, spec.runtime):
            yield not_loaded(
                f"{source.name} was saved by PyTorch {source.saved_by}, which {named} is too old to read: take that "
                "release or a newer one, or export the model with an older one."
            )


PYTORCH = _PyTorch(
    "torch",
    "torch",
    DISTRIBUTION,
    "PyTorch",
    launch_s=LAUNCH_S,
    runs_program=True,
    has_streams=False,
    names_dimensions=False,
)


def is_framework(runtime: Runtime) -> bool:
    return runtime.distribution == DISTRIBUTION


def is_compiled(runtime: Runtime) -> bool:
    return is_framework(runtime) and runtime.version.partition("+")[2] == COMPILED


def installed_as(runtime: Runtime) -> Runtime:
    release = runtime.version.partition("+")[0]
    return runtime.model_copy(update={"version": release}) if is_framework(runtime) else runtime


def describe_version(version: str) -> str:
    release, _, local = version.partition("+")
    return f"PyTorch {release} ({'torch.compile' if local == COMPILED else 'eager'})"


def local_problem(runtime: Runtime) -> str | None:
    """Say why the local part of a framework's version is not valid; None where it is, or there is none."""
    local = runtime.version.partition("+")[2]
    if not is_framework(runtime) or local in ("", COMPILED):
        return None
    release = installed_as(runtime)
    return (
        f"{runtime} names a build, which the package index of each machine decides: write `{release}` (eager) or "
        f"`{release}+{COMPILED}`."
    )


def unknown_sentence(runtime: Runtime, more: set[str]) -> str | None:
    """Say why this release cannot be used; None where it is known, or newer than all known releases.

    `more` are further releases that the index or nodes have.
    """
    release = installed_as(runtime).version
    there = sorted({*RELEASES, *more}, key=release_order)
    if release in there or release_order(release) > release_order(there[-1]):
        return None
    if release_order(release) < release_order(RELEASES[0]):
        return f"{runtime} reads no .pt2 without unpickling it: take {DISTRIBUTION}=={RELEASES[0]} or newer."
    return f"{runtime} does not exist as far as this farm knows: there are {', '.join(there)}."


def is_newer(saved_by: str, runtime: Runtime) -> bool:
    """Whether a program was saved by a newer release than the runtime that is to run it.

    False where one of the two texts does not begin with a release.
    """
    saved, ours = _RELEASE.match(saved_by), _RELEASE.match(runtime.version)
    if saved is None or ours is None:
        return False
    return tuple(map(int, saved.groups())) > tuple(map(int, ours.groups()))
