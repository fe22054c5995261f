"""PyTorch as a runtime: the framework that a model was exported from, beside the ONNX Runtimes. Pure.

It runs the model's *program*, the `.pt2` of torch.export that came with the .onnx, operator by operator (eager) or by
torch.compile. Which of the two stands in the runtime's version, as PEP 440's local part: `torch==2.13.0+compile`. So
both are values of the one axis, and each is compared with every ONNX Runtime of its block.
"""

import re

from farm.contract.cells import Runtime
from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.provider import Build

DISTRIBUTION = "torch"
BUILD = Build(DISTRIBUTION)
COMPILED = "compile"
# PyPI, November 2026, from the first release whose .pt2 can be read without pickled weights
RELEASES = ("2.8.0", "2.9.0", "2.9.1", "2.10.0", "2.11.0", "2.12.0", "2.12.1", "2.13.0", "2.14.0", "2.14.1", "2.15.0")
# what PyTorch's own builds call themselves, such as 2.13.0+cpu and 2.13.0+cu130
_RELEASE = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)")


def is_framework(runtime: Runtime) -> bool:
    """Whether it runs the model's program, and no .onnx."""
    return runtime.distribution == DISTRIBUTION


def is_compiled(runtime: Runtime) -> bool:
    """Whether the framework compiles the program before it runs it."""
    return is_framework(runtime) and runtime.version.partition("+")[2] == COMPILED


def installed_as(runtime: Runtime) -> Runtime:
    """What is installed of a runtime: the release, whatever is done with it."""
    release = runtime.version.partition("+")[0]
    return runtime.model_copy(update={"version": release}) if is_framework(runtime) else runtime


def in_words(version: str) -> str:
    """A runtime's version in a sentence, with what is done."""
    release, _, local = version.partition("+")
    return f"PyTorch {release} ({'torch.compile' if local == COMPILED else 'eager'})"


def local_problem(runtime: Runtime) -> str | None:
    """Why the local part of a framework's version cannot be meant; None where it can, or there is none."""
    local = runtime.version.partition("+")[2]
    if not is_framework(runtime) or local in ("", COMPILED):
        return None
    release = installed_as(runtime)
    return (
        f"{runtime} names a build, which the package index of each machine decides: write `{release}` (eager) or "
        f"`{release}+{COMPILED}`."
    )


def unknown_sentence(runtime: Runtime, more: set[str]) -> str | None:
    """Why no such release is known; None where there is one. `more`: releases learnt since; newer ones are believed."""
    release = installed_as(runtime).version
    there = sorted({*RELEASES, *more}, key=release_order)
    if release in there or release_order(release) > release_order(there[-1]):
        return None
    if release_order(release) < release_order(RELEASES[0]):
        return f"{runtime} reads no .pt2 without unpickling it: take {DISTRIBUTION}=={RELEASES[0]} or newer."
    return f"{runtime} does not exist as far as this farm knows: there are {', '.join(there)}."


def is_newer(saved_by: str, runtime: Runtime) -> bool:
    """Whether a program was saved by a newer release than the one that is to run it."""
    saved, ours = _RELEASE.match(saved_by), _RELEASE.match(runtime.version)
    if saved is None or ours is None:
        return False
    return tuple(map(int, saved.groups())) > tuple(map(int, ours.groups()))
