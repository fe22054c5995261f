"""Scenarios of installed packages, which they declare as entry points of `onnxfarm.scenarios`.

A package declares an `Entry`. The code that runs is a file of the package. Nodes copy it into the folder of the
runner, and only the runner imports it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from farm.base.entry_points import Group, raise_first_problem
from farm.contract.cells import Workload
from farm.rules.cells import outside_metrics
from farm.rules.cells.fields import parse_finite
from farm.rules.cells.outside_metrics import Measure
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.scenario import Scenario
from farm.rules.runtimes.nearest import choice_sentence

GROUP = "onnxfarm.scenarios"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
MAX_LABEL = 80
MAX_LAUNCH_S = 600.0


@dataclass(frozen=True, slots=True)
class Option:
    """A number that a matrix may set: its default, and its smallest and largest value."""

    usual: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Entry:
    """A scenario of a package.

    Its module has a class `Outside`, which `worker.runner.scenarios.protocol` describes. The module is copied as a
    file, so that it may import only the runner, numpy and the standard library.
    """

    # as matrices write it
    name: str
    # the dotted name of the module that runs it
    module: str
    # a few words for people
    label: str
    options: Mapping[str, Option] = field(default_factory=lambda: MappingProxyType({}))
    # how many seconds longer a launch takes than one of `single`
    launch_s: float = 0.0
    # further figures that its launches report, which are judged like ours
    metrics: tuple[Measure, ...] = ()
    schema: ClassVar[Mapping[str, Any]] = Scenario.schema
    takes_value: ClassVar[bool] = False

    def read(self, written: object, /) -> "Outside":
        """Make the scenario from the written options, with defaults for the others.

        Raises MatrixProblem where an option is unknown or out of its limits.
        """
        if not isinstance(written, Mapping):
            raise MatrixProblem(f"The scenario {self.name} has {written!r}: write its options as name: value.")
        if written and not self.options:
            raise MatrixProblem(f"The scenario {self.name} has no options: write `{self.name}` alone.")
        for name in written:
            if name not in self.options:
                raise MatrixProblem(choice_sentence(f"option of {self.name}", str(name), self.options))
        numbers = {
            name: _read_number(self.name, name, written.get(name, option.usual), option)
            for name, option in self.options.items()
        }
        return Outside(self, numbers)


@dataclass(frozen=True)
class Outside(Scenario):
    """A scenario of a package with its options. `Scenario` documents the methods."""

    kind: ClassVar[str] = "outside"
    entry: Entry
    options: Mapping[str, float]

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def text(self) -> str:
        return self._format_text({name: f"{value:.12g}" for name, value in self._changed_options})

    @property
    def label(self) -> str:
        options = ", ".join(f"{name} {value:.12g}" for name, value in self._changed_options)
        return f"{self.entry.label} ({options})" if options else self.entry.label

    @property
    def _changed_options(self) -> list[tuple[str, float]]:
        return [
            (name, self.options[name])
            for name in sorted(self.options)
            if self.options[name] != self.entry.options[name].usual
        ]

    def runner_settings(self, work: Workload) -> dict[str, object]:
        return {**super().runner_settings(work), **self.options}

    def extra_launch_s(self, latency_ms: float | None, *, timed_s: float) -> float:
        return self.entry.launch_s


def entry_point_group(own: Sequence[str]) -> Group[Entry]:
    """Declare the group of entry points. It refuses entries that are malformed or whose name is taken, as by `own`."""

    def check(entry: Entry, taken: Sequence[Entry]) -> Entry:
        raise_first_problem(_find_faults(entry, taken=[*own, *(other.name for other in taken)]))
        return entry

    return Group(GROUP, Entry, "scenario", check)


def _find_faults(entry: Entry, *, taken: Sequence[str]) -> Iterator[str]:
    for what, value, pattern in (("name", entry.name, _NAME), ("module", entry.module, _MODULE)):
        if not isinstance(value, str) or not pattern.fullmatch(value):
            yield f"{what} has {value!r}, which cannot be one."
    if entry.name in taken:
        yield f"{entry.name!r} is taken."
    if not isinstance(entry.label, str) or not 0 < len(entry.label) <= MAX_LABEL:
        yield f"label has {entry.label!r}: write a few words."
    if not 0.0 <= entry.launch_s <= MAX_LAUNCH_S:
        yield f"launch_s has {entry.launch_s!r}: write seconds from 0 to {MAX_LAUNCH_S:.0f}."
    for name, option in entry.options.items():
        if not _NAME.fullmatch(name) or not option.least <= option.usual <= option.most:
            yield f"the option {name!r} has {option}, which cannot be one."
    yield from outside_metrics.find_problems(entry.metrics)


def _read_number(scenario: str, name: str, written: object, option: Option) -> float:
    value = parse_finite(written)
    if value is None or not option.least <= value <= option.most:
        raise MatrixProblem(
            f"{name} of {scenario} is {written!r}: write a number from {option.least:g} to {option.most:g}."
        )
    return value
