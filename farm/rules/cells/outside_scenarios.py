"""Scenarios of other people: entries that installed packages offer as entry points of `onnxfarm.scenarios`.

Such an entry is an `Entry`. Farm, node and client read it alike, each where its package is installed beside them. What
runs is a file of the package, which nodes copy beside the runner's own: it is imported there alone. An entry that is
malformed is left out, with a sentence in the log and where somebody asks for it.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from farm.rules.cells import outside_metrics
from farm.rules.cells.outside_metrics import Measure
from farm.rules.cells.problems import MatrixProblem
from farm.rules.runtimes.nearest import choice_sentence

GROUP = "onnxfarm.scenarios"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
LONGEST_LABEL = 80
LONGEST_LAUNCH_S = 600.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Option:
    """A number that a matrix may set: what it is where nothing is said, and its limits."""

    usual: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Entry:
    """A scenario: its `name` in matrices, the dotted name of the module that runs it, and what it is called in words.

    The module has a class `Outside`, which `worker.runner.scenarios.protocol` describes. It is copied as a file: it may
    import the runner, numpy and the standard library. `launch_s`: what a launch takes beyond one of `single`.
    `metrics`: figures that its launches say besides, which are judged as our own are.
    """

    name: str
    module: str
    label: str
    options: Mapping[str, Option] = field(default_factory=lambda: MappingProxyType({}))
    launch_s: float = 0.0
    metrics: tuple[Measure, ...] = ()

    def read(self, given: object) -> dict[str, float]:
        """All options from those that were written. Raises MatrixProblem."""
        if not isinstance(given, Mapping):
            raise MatrixProblem(f"The scenario {self.name} has {given!r}: write its options as name: value.")
        for name in given:
            if name not in self.options:
                raise MatrixProblem(
                    choice_sentence(f"option of {self.name}", str(name), self.options)
                    if self.options
                    else f"The scenario {self.name} has no options: write `{self.name}` alone."
                )
        return {name: _number(self.name, name, given.get(name, one.usual), one) for name, one in self.options.items()}

    def text(self, values: Mapping[str, float]) -> str:
        """As the command line spells it, without what goes without saying."""
        said = [f"{name}={value:.12g}" for name, value in sorted(values.items()) if value != self.options[name].usual]
        return ":".join([self.name, *said])


@dataclass(frozen=True, slots=True)
class Installed:
    """`entries` that were taken, by name, and of each other one a sentence that says why it was not."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


class EntryProblem(ValueError):
    """An entry that cannot be taken. The message is the end of a sentence about it."""


@cache
def installed(own: Sequence[str]) -> Installed:
    """The entries of the packages that are installed here, beside the `own` names."""
    found = read(entry_points(group=GROUP), own=own)
    for sentence in found.refused.values():
        logger.warning("%s", sentence)
    return found


def read(points: Iterable[EntryPoint], *, own: Sequence[str]) -> Installed:
    """The entries that these points give; the first one of a name has it."""
    taken: dict[str, Entry] = {}
    refused: dict[str, str] = {}
    for point in sorted(points):
        try:
            entry = _taken(point, beside=(*own, *taken))
            taken[entry.name] = entry
        except EntryProblem as problem:
            by = f"of {point.dist.name} " if point.dist is not None else ""
            refused[point.name.lower()] = f"The scenario {point.name!r} {by}is left out: {problem}"
    return Installed(taken, refused)


def _taken(point: EntryPoint, *, beside: Sequence[str]) -> Entry:
    try:
        given = point.load()
    except Exception as error:  # whatever other people's modules raise
        raise EntryProblem(f"{point.value} cannot be imported ({type(error).__name__}: {error}).") from error
    if not isinstance(given, Entry):
        raise EntryProblem(f"{point.value} is a {type(given).__name__} and has to be an {Entry.__name__}.")
    for problem in _malformed(given, beside=beside):
        raise EntryProblem(problem)
    return given


def _malformed(entry: Entry, *, beside: Sequence[str]) -> Iterator[str]:
    for what, value, pattern in (("name", entry.name, _NAME), ("module", entry.module, _MODULE)):
        if not isinstance(value, str) or not pattern.fullmatch(value):
            yield f"{what} has {value!r}, which cannot be one."
    if entry.name in beside:
        yield f"{entry.name!r} is taken."
    if not isinstance(entry.label, str) or not 0 < len(entry.label) <= LONGEST_LABEL:
        yield f"label has {entry.label!r}: write a few words."
    if not 0.0 <= entry.launch_s <= LONGEST_LAUNCH_S:
        yield f"launch_s has {entry.launch_s!r}: write seconds from 0 to {LONGEST_LAUNCH_S:.0f}."
    for name, option in entry.options.items():
        if not _NAME.fullmatch(name) or not option.least <= option.usual <= option.most:
            yield f"the option {name!r} has {option}, which cannot be one."
    yield from outside_metrics.malformed(entry.metrics)


def _number(scenario: str, name: str, written: object, option: Option) -> float:
    try:
        value = float(written) if isinstance(written, int | float | str) and not isinstance(written, bool) else None
    except ValueError:
        value = None
    if value is None or not option.least <= value <= option.most:
        raise MatrixProblem(
            f"{name} of {scenario} is {written!r}: write a number from {option.least:g} to {option.most:g}."
        )
    return value
