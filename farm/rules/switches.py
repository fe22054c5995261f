"""Work-arounds: session options that undo a change, found by measuring candidates beside the old and the new runtime.

A candidate is a lower optimisation level or a list of optimizers to leave out (`disabled_optimizers`). All candidates
of a step stand in one block with the old and the new runtime. Names are many, so the first step tries those that
resemble what changed one by one and the rest in groups; later steps part the group that undid most.

No name of an operator or optimizer stands here: names are read off a runtime's own library, or given.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, log
from mmap import mmap
from typing import Any, Literal

from farm.contract.cells import Runtime
from farm.contract.document import Cell, Comparison, Document
from farm.rules.matrices.axes import Value
from farm.rules.matrices.matrix import Matrix, Selector
from farm.rules.matrices.points import Point
from farm.rules.matrices.session_sets import DEFAULT, SessionSet
from farm.rules.reporting.wording import percent

LEVELS = ("disable", "basic", "extended", "all")
# with the old and the new runtime, and an A/A twin, a block of 16
MOST_CANDIDATES = 12
SINGLES = 5
# a switch that gives back so much of the change is good enough to stop searching
ENOUGH = 0.8
# less is not worth offering
WORTHWHILE = 0.3
MOST_STEPS = 4

Kind = Literal["level", "optimizers"]

# Endings by which ONNX Runtime names what rewrites a graph; that a name is one is not known before it was tried, and
# one that is not does nothing.
_REWRITES = (
    "Fusion|Fusions|FusionL1|FusionL2|Elimination|Transformer|Optimizer|Propagation|Folding|Rewrite|Remover|Insertion"
)
_NAME = re.compile(rb"[A-Z][A-Za-z0-9_]{4,62}[A-Za-z0-9]")
_ENDS = re.compile(rf"({_REWRITES})$|^(Eliminate|Fuse)[A-Z]")
_MANGLED = re.compile(r"^N11onnxruntime(\d{1,2})([A-Za-z0-9_]+)E$")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing to switch. `names`: optimizers left out; empty for a level. `level`: the optimisation level."""

    kind: Kind
    label: str
    level: str = "all"
    names: tuple[str, ...] = ()

    @property
    def is_final(self) -> bool:
        """Whether there is nothing left to part."""
        return self.kind == "level" or len(self.names) == 1

    def as_plain(self) -> dict[str, Any]:
        """The candidate as it is kept."""
        return {"kind": self.kind, "label": self.label, "level": self.level, "names": list(self.names)}

    @classmethod
    def of_plain(cls, plain: dict[str, Any]) -> "Candidate":
        """The inverse of `as_plain`."""
        return cls(plain["kind"], plain["label"], plain["level"], tuple(plain["names"]))


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate as measured. `undone`: how much of the change it gave back, 1 all of it. `comparison`: its verdict

    against the new runtime without it. `remaining`: what is left, as a ratio to the old runtime.
    """

    candidate: Candidate
    undone: float
    remaining: float
    comparison: Comparison
    keeps_parity: bool

    @property
    def is_worthwhile(self) -> bool:
        """Whether it may be offered: a decided gain, and outputs that still agree."""
        return self.comparison.verdict == "faster" and self.keeps_parity and self.undone >= WORTHWHILE


def optimizer_names(library: bytes | mmap) -> list[str]:
    """What may be a graph optimizer's name among the texts of a runtime's shared library, sorted."""
    texts = (match.group().decode("ascii") for match in _NAME.finditer(library))
    names = {_demangled(text) for text in texts}
    return sorted(name for name in names if _ENDS.search(name))


def _demangled(text: str) -> str:
    """The class behind the name of a C++ type in the runtime's namespace; the text itself when it is none."""
    found = _MANGLED.match(text)
    return found.group(2)[: int(found.group(1))] if found else text


def ranked(names: Iterable[str], *, words: Iterable[str]) -> list[str]:
    """Names by how much they resemble the words of what changed: shared parts count by how few names have them."""
    parts = {name: set(_parts(name)) for name in dict.fromkeys(names)}
    wanted = {part for word in words for part in _parts(word)}
    weight = {
        part: log(len(parts) / sum(part in own for own in parts.values())) for own in parts.values() for part in own
    }
    score = {name: sum(weight[part] for part in own & wanted) / (1 + len(own - wanted)) for name, own in parts.items()}
    return sorted(parts, key=lambda name: (-score[name], name))


def _parts(word: str) -> list[str]:
    return [part.lower() for part in _WORD.findall(word)]


def first_candidates(names: Sequence[str], *, level: str = "all", most: int = MOST_CANDIDATES) -> list[Candidate]:
    """Every lower level, the names ranked first alone, the others in groups. `names` in the order of `ranked`."""
    lower = LEVELS[: LEVELS.index(level)]
    found = [Candidate("level", f"optimisation {one}", level=one) for one in reversed(lower)][:most]
    room = most - len(found)
    singles = names[: min(SINGLES, room)]
    found += [_without([name], level) for name in singles]
    return [*found, *_groups(names[len(singles) :], level=level, most=most - len(found))]


def next_candidates(trials: Sequence[Trial], *, most: int = MOST_CANDIDATES) -> list[Candidate]:
    """The parts of the group that undid most; empty when the search is over."""
    best = best_of(trials)
    if best is not None and best.candidate.kind == "optimizers" and best.candidate.is_final and best.undone >= ENOUGH:
        return []
    tried = {one.candidate.names for one in trials}
    groups = [one for one in trials if not one.candidate.is_final and one.is_worthwhile]
    if not groups:
        return []
    most_undone = max(one.undone for one in groups)
    smallest = min(
        (one for one in groups if one.undone >= ENOUGH * most_undone), key=lambda one: len(one.candidate.names)
    )
    parts = _groups(smallest.candidate.names, level=smallest.candidate.level, most=most)
    return [part for part in parts if part.names not in tried]


def _groups(names: Sequence[str], *, level: str, most: int) -> list[Candidate]:
    if not names or most < 1:
        return []
    size = ceil(len(names) / most)
    return [_without(names[start : start + size], level) for start in range(0, len(names), size)]


def _without(names: Sequence[str], level: str) -> Candidate:
    label = f"without {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    return Candidate("optimizers", label, level=level, names=tuple(names))


def trial_matrix(
    matrix: Matrix, point: Point, *, old: Runtime, new: Runtime, candidates: Sequence[Candidate]
) -> Matrix:
    """One block: the point with the old runtime, with the new one, and with the new one under each candidate."""
    plain = point.values.get("session", DEFAULT)
    assert isinstance(plain, SessionSet)
    level = str(point.values.get("optimization", "all"))
    sets = [_session(plain, one, number) for number, one in enumerate(candidates, start=1) if one.kind == "optimizers"]
    levels = [one.level for one in candidates if one.kind == "level"]
    axes: dict[str, tuple[Value, ...]] = {
        axis: (value,) for axis, value in point.values.items() if axis not in ("runtime", "session", "optimization")
    }
    axes |= {"runtime": (old, new), "session": (plain, *sets), "optimization": (level, *levels)}
    exclude: list[Selector] = [{"runtime": old, "session": one} for one in sets]
    exclude += [{"runtime": old, "optimization": one} for one in levels]
    exclude += [{"session": one, "optimization": other} for one in sets for other in levels]
    return replace(matrix, axes=axes, exclude=tuple(exclude), include=(), name=None)


def session_name(candidate: Candidate, number: int) -> str:
    """The name of a candidate's session set, at most 64 characters."""
    return f"{number} {candidate.label}"[:64]


def _session(plain: SessionSet, candidate: Candidate, number: int) -> SessionSet:
    disabled = tuple(dict.fromkeys((*plain.disabled_optimizers, *candidate.names)))
    return replace(plain, name=session_name(candidate, number), disabled_optimizers=disabled)


def read_trials(document: Document, candidates: Sequence[Candidate], *, old: str, new: str) -> list[Trial]:
    """What the block of `trial_matrix` came to; candidates that did not finish, or were not compared, are left out."""
    cells = {cell.id: cell for cell in document.cells if cell.twin_of is None}
    change = next((c for c in document.comparisons if _is_change(c, cells, old=old, new=new)), None)
    if change is None or change.ratio is None or change.ratio <= 1.0:
        return []
    keys = {_key_of_candidate(one, number): one for number, one in enumerate(candidates, start=1)}
    found = []
    for one in document.comparisons:
        tried = _tried(one, change, cells)
        candidate = keys.get(_key_of_cell(tried, cells[change.candidate])) if tried is not None else None
        if tried is not None and candidate is not None and one.ratio is not None:
            undone = -log(one.ratio) / log(change.ratio)
            keeps = tried.parity.verdict != "fail" or cells[change.baseline].parity.verdict == "fail"
            found.append(Trial(candidate, undone, change.ratio * one.ratio, one, keeps))
    return found


def _is_change(comparison: Comparison, cells: dict[str, Cell], *, old: str, new: str) -> bool:
    sides = cells.get(comparison.baseline), cells.get(comparison.candidate)
    return [side.runtime if side else None for side in sides] == [old, new] and comparison.axis == "runtime"


def _tried(comparison: Comparison, change: Comparison, cells: dict[str, Cell]) -> Cell | None:
    """The cell with a switch, of a comparison with the new runtime without one."""
    if comparison.axis not in ("session", "optimization") or comparison.baseline != change.candidate:
        return None
    return cells.get(comparison.candidate)


def _key_of_candidate(candidate: Candidate, number: int) -> str:
    return candidate.level if candidate.kind == "level" else session_name(candidate, number)


def _key_of_cell(cell: Cell, plain: Cell) -> str:
    """What tells a tried cell apart from the one without a switch."""
    return cell.optimization if cell.optimization != plain.optimization else str(cell.session.get("name", ""))


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The work-around to offer: of those that give back about as much as the best, the smallest switch."""
    offered = [one for one in trials if one.is_worthwhile]
    if not offered:
        return None
    most = max(one.undone for one in offered)
    near = [one for one in offered if one.undone >= ENOUGH * most]
    return min(near, key=lambda one: (one.candidate.kind == "level", len(one.candidate.names), -one.undone))


def sentence(trial: Trial) -> str:
    """The work-around in words."""
    candidate = trial.candidate
    what = (
        f"The optimisation level {candidate.level}"
        if candidate.kind == "level"
        else f"Leaving out {', '.join(candidate.names[:4])}"
        + (f" and {len(candidate.names) - 4} more optimizers" if len(candidate.names) > 4 else "")
    )
    left = trial.remaining - 1.0
    rest = f"{percent(abs(left))} {'slower' if left > 0 else 'faster'} than before is left"
    return f"{what} gives back {percent(trial.undone)} of the change; {rest}."


def code_for(trial: Trial) -> str:
    """The work-around as lines of Python for whoever makes the session."""
    candidate = trial.candidate
    if candidate.kind == "optimizers":
        names = ", ".join(repr(name) for name in candidate.names)
        return f"onnxruntime.InferenceSession(path, disabled_optimizers=[{names}])"
    level = {"disable": "DISABLE_ALL", "basic": "ENABLE_BASIC", "extended": "ENABLE_EXTENDED", "all": "ENABLE_ALL"}
    return (
        "options = onnxruntime.SessionOptions()\n"
        f"options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_{level[candidate.level]}\n"
        "onnxruntime.InferenceSession(path, options)"
    )
