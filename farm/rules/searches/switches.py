"""Finds work-arounds, session options that undo a regression, by measuring candidates with the old and new runtime.

A candidate is a lower optimisation level, a list of optimizers to leave out (`disabled_optimizers`), a session setting
switched off, another number of threads, or a provider option left out. Each step is one block of candidates with the
old and the new runtime. Optimizers are many, so the first step tries those that resemble what changed one by one and
the rest in groups; later steps split the group that undid most. Settings, threads and options come last, where none of
these undid enough.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, exp, hypot, log
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.verdicts import Word
from farm.rules.cells.session_sets import DEFAULT, SessionSet
from farm.rules.cells.values import ProviderChoice, Value
from farm.rules.comparing.quantities import Change
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import Point
from farm.rules.matrices.product import Selector
from farm.rules.presenting.session_code import LEVELS, OFF, make_optimization_level_line
from farm.rules.wording.numbers import counted, share

# together with the old and the new runtime and an A/A twin they fit in a block of 16
MAX_CANDIDATES = 12
# how many optimizers the first step tries alone
SINGLES = 5
# the search stops once a candidate undoes this share of the change
ENOUGH = 0.8
# from this share on a sentence says that it removes the regression
ALL = 0.95
# below this share it is not worth offering
WORTHWHILE = 0.3

Kind = Literal["level", "optimizers", "setting", "threads", "option"]
# the axis of the matrix that a candidate changes; the least invasive kind comes first
_AXIS: dict[Kind, str] = {
    "optimizers": "session",
    "setting": "session",
    "option": "provider",
    "level": "optimization",
    "threads": "threads",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A session option to try.

    `label` is unique among candidates. `level` is the optimisation level. `names` are the optimizers, the setting or
    the provider option to leave out. `threads` is their number if that is what changes, else 0. `is_final` says that
    the candidate cannot be split into smaller groups.
    """

    kind: Kind
    label: str
    level: str = "all"
    names: tuple[str, ...] = ()
    threads: Annotated[int, Field(exclude_if=lambda threads: not threads)] = 0

    @property
    def is_final(self) -> bool:
        return self.kind != "optimizers" or len(self.names) == 1


@dataclass(frozen=True, slots=True)
class Trial:
    """A measured candidate.

    `undone` is the share of the change that it undoes, 1 for all of it. `comparison` is that of the new runtime without
    it (baseline) and with it. `remaining` is its ratio to the old runtime, with its 95 % `interval`, which trials of
    older farms lack. `keeps_parity` says that it fails no parity that the old runtime passes. `is_worthwhile` says that
    it is decided to be faster, keeps parity, and undoes at least WORTHWHILE.
    """

    candidate: Candidate
    undone: float
    remaining: float
    comparison: Comparison
    keeps_parity: bool
    interval: tuple[float, float] | None = None

    @property
    def remaining_change(self) -> Change | None:
        """The change of latency from the old runtime that remains with it; None where its interval is not known."""
        if self.interval is None:
            return None
        low, high = self.interval
        verdict: Word = "slower" if low > 1 else "faster" if high < 1 else "undecided"
        return Change("latency", verdict, self.remaining, low, high)

    @property
    def is_worthwhile(self) -> bool:
        return self.comparison.verdict == "faster" and self.keeps_parity and self.undone >= WORTHWHILE


# the form in which rows store them
CANDIDATES: TypeAdapter[list[Candidate]] = TypeAdapter(list[Candidate])
TRIALS: TypeAdapter[list[Trial]] = TypeAdapter(list[Trial])


def plan_first_candidates(
    names: Sequence[str], *, level: str = "all", max_candidates: int = MAX_CANDIDATES
) -> list[Candidate]:
    """Return the candidates of the first step: every lower optimisation level, the first names alone, others in groups.

    The next lower level comes first, and up to five names stand alone. There are `max_candidates` at most. `names` are
    optimizers as `rank_names` sorts them, and `level` is the one in use.
    """
    levels = [*LEVELS]
    lower = levels[: levels.index(level)]
    found = [Candidate("level", f"optimization {weaker}", level=weaker) for weaker in reversed(lower)][:max_candidates]
    singles = names[: min(SINGLES, max_candidates - len(found))]
    found += [_without([name], level) for name in singles]
    return [*found, *_split_into_groups(names[len(singles) :], level=level, max_candidates=max_candidates - len(found))]


def plan_next_candidates(trials: Sequence[Trial], *, max_candidates: int = MAX_CANDIDATES) -> list[Candidate]:
    """Return the candidates of a later step: untried parts of the smallest group that undid about as much as the best.

    Empty where no worthwhile group is left to split, or where the best trial is a single optimizer that undoes ENOUGH.
    """
    best = find_best_trial(trials)
    if best is not None and best.candidate.kind == "optimizers" and best.candidate.is_final and best.undone >= ENOUGH:
        return []
    tried = {trial.candidate.names for trial in trials}
    groups = [trial for trial in trials if not trial.candidate.is_final and trial.is_worthwhile]
    if not groups:
        return []
    most_undone = max(group.undone for group in groups)
    smallest = min(
        (group for group in groups if group.undone >= ENOUGH * most_undone),
        key=lambda group: len(group.candidate.names),
    )
    parts = _split_into_groups(smallest.candidate.names, level=smallest.candidate.level, max_candidates=max_candidates)
    return [part for part in parts if part.names not in tried]


def plan_last_candidates(
    point: Point, trials: Sequence[Trial], *, done: Container[str], max_candidates: int = MAX_CANDIDATES
) -> list[Candidate]:
    """Return the session settings, provider options and thread counts to try; empty if the best trial undid ENOUGH.

    Only settings that are on are tried, and as thread counts 1 and twice those of the point, if it sets them.
    `done` has the labels of candidates that were tried before, which are left out.
    """
    best = find_best_trial(trials)
    if best is not None and best.undone >= ENOUGH:
        return []
    return [candidate for candidate in _list_other_switches(point) if candidate.label not in done][:max_candidates]


def _list_other_switches(point: Point) -> list[Candidate]:
    level = str(point.values.get("optimization", "all"))
    plain, provider = point.values.get("session", DEFAULT), point.values.get("provider")
    found = [
        Candidate("setting", f"{name} off", level=level, names=(name,))
        for name in OFF
        if getattr(plain, name.replace("-", "_"))
    ]
    if isinstance(provider, ProviderChoice):
        found += [Candidate("option", f"without {name}", level=level, names=(name,)) for name in provider.options]
    threads = point.values.get("threads")
    if isinstance(threads, int):
        counts = [count for count in (1, 2 * threads) if count != threads]
        found += [Candidate("threads", f"threads {count}", level=level, threads=count) for count in counts]
    return found


def _split_into_groups(names: Sequence[str], *, level: str, max_candidates: int) -> list[Candidate]:
    if not names or max_candidates < 1:
        return []
    size = ceil(len(names) / max_candidates)
    return [_without(names[start : start + size], level) for start in range(0, len(names), size)]


def _without(names: Sequence[str], level: str) -> Candidate:
    label = f"without {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    return Candidate("optimizers", label, level=level, names=tuple(names))


def make_trial_matrix(
    matrix: Matrix, point: Point, *, old: Runtime, new: Runtime, candidates: Sequence[Candidate]
) -> Matrix:
    """Return the matrix of one block: the point on both runtimes, and on the new one with each candidate.

    Raises KeyError for a candidate of threads or of a provider option if the point has no such axis.
    """
    plain: dict[str, Value] = {"session": DEFAULT, "optimization": "all", **point.values}
    tried: dict[str, list[Value]] = {axis: [] for axis in dict.fromkeys(_AXIS.values()) if axis in plain}
    for number, candidate in enumerate(candidates, start=1):
        tried[_AXIS[candidate.kind]].append(_value(plain, candidate, number))
    axes: dict[str, tuple[Value, ...]] = {axis: (value,) for axis, value in plain.items()}
    axes |= {axis: (plain[axis], *values) for axis, values in tried.items()} | {"runtime": (old, new)}
    # each candidate changes one axis, and runs on the new runtime alone
    exclude: list[Selector] = [{"runtime": old, axis: value} for axis, values in tried.items() for value in values]
    exclude += [
        {axis: value, other: another}
        for axis, other in combinations(tried, 2)
        for value in tried[axis]
        for another in tried[other]
    ]
    return replace(matrix, axes=axes, exclude=tuple(exclude), include=(), name=None)


def name_session(candidate: Candidate, number: int) -> str:
    return f"{number} {candidate.label}"[:64]


def _value(plain: Mapping[str, Value], candidate: Candidate, number: int) -> Value:
    """Return the value of the candidate's axis that replaces the plain one."""
    if candidate.kind == "level":
        return candidate.level
    if candidate.kind == "threads":
        return candidate.threads
    if candidate.kind == "option":
        provider = plain["provider"]
        assert isinstance(provider, ProviderChoice)
        kept = {name: value for name, value in provider.options.items() if name not in candidate.names}
        return replace(provider, options=kept)
    session = plain["session"]
    assert isinstance(session, SessionSet)
    return _session(session, candidate, number)


def _session(plain: SessionSet, candidate: Candidate, number: int) -> SessionSet:
    name = name_session(candidate, number)
    if candidate.kind == "setting":
        return replace(plain, name=name, **{name.replace("-", "_"): False for name in candidate.names})  # type: ignore[arg-type]
    disabled = tuple(dict.fromkeys((*plain.disabled_optimizers, *candidate.names)))
    return replace(plain, name=name, disabled_optimizers=disabled)


def read_trials(document: Document, candidates: Sequence[Candidate], *, old: Runtime, new: Runtime) -> list[Trial]:
    """Read the trials from the document of the block that `make_trial_matrix` declares.

    They are in the order of its comparisons. Candidates without a comparison are left out. Empty if the new runtime is
    not slower than the old one, or was not compared with it.
    """
    cells = {cell.id: cell for cell in document.cells if cell.twin_of is None}
    runtimes = {name: cell.runtime for name, cell in cells.items()}
    of_runtimes = (pair for pair in document.comparisons if pair.axis == "runtime")
    sides = (old, new)
    change = next((c for c in of_runtimes if (runtimes.get(c.baseline), runtimes.get(c.candidate)) == sides), None)
    if change is None or change.ratio is None or change.ratio <= 1.0:
        return []
    keys: dict[tuple[str, str], Candidate] = {}
    for number, candidate in enumerate(candidates, start=1):
        axis, names = _AXIS[candidate.kind], "".join(candidate.names)
        named = {"optimization": candidate.level, "threads": str(candidate.threads), "provider": names}
        keys[axis, named.get(axis) or name_session(candidate, number)] = candidate
    found = []
    for comparison in document.comparisons:
        cell = cells.get(comparison.candidate)
        if cell is None or comparison.baseline != change.candidate or comparison.ratio is None:
            continue
        tried = keys.get(_key_of_cell(comparison.axis, cell, cells[change.candidate]))
        if tried is not None:
            undone = -log(comparison.ratio) / log(change.ratio)
            keeps_parity = cell.parity.verdict != "fail" or cells[change.baseline].parity.verdict == "fail"
            remaining, interval = change.ratio * comparison.ratio, _find_interval_of_product(change, comparison)
            found.append(Trial(tried, undone, remaining, comparison, keeps_parity, interval))
    return found


def _find_interval_of_product(*both: Comparison) -> tuple[float, float] | None:
    """Return the interval of the product of two ratios; None if a figure is not known.

    The product no longer depends on the launches that both share, so that the interval is wide enough or too wide.
    """
    centre, width = 0.0, 0.0
    for comparison in both:
        if not comparison.ratio or not comparison.ci_low or not comparison.ci_high:
            return None
        centre += log(comparison.ratio)
        width = hypot(width, log(comparison.ci_high / comparison.ci_low) / 2)
    return exp(centre - width), exp(centre + width)


def _key_of_cell(axis: str, cell: Cell, plain: Cell) -> tuple[str, str]:
    """Return the axis, and the value on it by which a cell with a candidate differs from the `plain` one."""
    given = cell.provider_options.items()
    changed = [name for name, value in plain.provider_options.items() if (name, value) not in given]
    named = {"optimization": cell.optimization, "threads": str(cell.threads), "provider": "".join(changed)}
    return axis, named.get(axis, str(cell.session.get("name", "")))


def find_best_trial(trials: Sequence[Trial]) -> Trial | None:
    """Return the work-around to offer: the least invasive trial of those that undo about as much as the best.

    These undo at least ENOUGH of what the best one does. None if no trial is worthwhile.
    """
    worthwhile = [trial for trial in trials if trial.is_worthwhile]
    if not worthwhile:
        return None
    highest = max(trial.undone for trial in worthwhile)
    near = [trial for trial in worthwhile if trial.undone >= ENOUGH * highest]
    kinds = [*_AXIS]
    return min(near, key=lambda trial: (kinds.index(trial.candidate.kind), len(trial.candidate.names), -trial.undone))


def describe_trial(trial: Trial) -> str:
    removed = "the regression" if trial.undone >= ALL else f"{share(trial.undone)} of the regression"
    return f"{_describe_candidate(trial.candidate)} removes {removed}{_describe_remaining_change(trial)}."


def _describe_remaining_change(trial: Trial) -> str:
    """Say how the work-around compares with the old runtime, with the interval; empty if that is not known."""
    change = trial.remaining_change
    if change is None:
        return ""
    if change.is_decided:
        return f"; it is {change.text} than before ({change.interval})"
    return f"; whether it is slower or faster than before is undecided ({change.interval})"


def _describe_candidate(candidate: Candidate) -> str:
    match candidate.kind:
        case "level":
            return f"The optimization level {candidate.level}"
        case "threads":
            return f"Running on {counted(candidate.threads, 'thread')}"
        case "setting":
            return f"Switching {candidate.names[0]} off"
        case "option":
            return f"Leaving out the provider option {candidate.names[0]}"
    more = f" and {len(candidate.names) - 4} more optimizers" if len(candidate.names) > 4 else ""
    return f"Disabling {', '.join(candidate.names[:4])}{more}"


def describe_remedy(candidate: Candidate) -> str:
    """Write what to do as the end of a headline, such as `disable SkipLayerNormFusion`."""
    match candidate.kind:
        case "level":
            return f"use the optimization level {candidate.level}"
        case "threads":
            return f"run on {counted(candidate.threads, 'thread')}"
        case "setting":
            return f"switch {candidate.names[0]} off"
        case "option":
            return f"leave out the provider option {candidate.names[0]}"
    more = f" and {counted(len(candidate.names) - 1, 'more optimizer')}" if candidate.names[1:] else ""
    return f"disable {candidate.names[0]}{more}"


def write_python(trial: Trial) -> str:
    """Write the lines of Python that make a session with the work-around; for a provider option only a comment."""
    candidate = trial.candidate
    match candidate.kind:
        case "optimizers":
            names = ", ".join(repr(name) for name in candidate.names)
            return f"onnxruntime.InferenceSession(path, disabled_optimizers=[{names}])"
        case "option":
            return f"# without {candidate.names[0]!r} among the provider's options"
        case "setting":
            line = OFF[candidate.names[0]]
        case "threads":
            line = f"options.intra_op_num_threads = {candidate.threads}"
        case _:
            line = make_optimization_level_line(candidate.level)
    return f"options = onnxruntime.SessionOptions()\n{line}\nonnxruntime.InferenceSession(path, options)"
