"""One model over many releases: each as a ratio to a reference that stands in every block, and where it changed.

Neighbouring blocks share a release, so that every two neighbours stand in one block somewhere.

A change point is a verdict between two neighbouring releases. Where both stood in one block it is their own paired
comparison; across blocks it follows from both ratios to the reference, whose half intervals add in squares.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import exp, log, sqrt

from farm.base.grouping import group_by
from farm.contract.blocks import MAX_ARMS
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.reasons import CellStatus
from farm.rules.comparing.sides import BySides, comparison_between, index_by_sides
from farm.rules.findings.cell_pairs import series_and_hardware, series_digest, series_label
from farm.rules.matrices.matrix import Matrix
from farm.rules.planning.plans import PlannedBlock
from farm.rules.presenting.explanations import explain_change
from farm.rules.runtimes.order import release_order
from farm.rules.searches.search import Experiment, Measured, Search
from farm.rules.wording.numbers import change, counted
from farm.rules.wording.vocabulary import is_change

# a 95 % half interval is 1.96 standard errors; 1.7 half intervals are 3.3 of them, p = .001
SURE = 1.7


# how many releases a block has beside the reference
MAX_TOGETHER = MAX_ARMS - 1
MIN_TOGETHER = 2


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One release. `ratio` of p50 to the reference with its 95 % interval; `reason` where there is none."""

    version: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p50_ms: float | None = None
    verdict: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A change between neighbouring releases. `is_paired`: both stood in one block."""

    before: str
    after: str
    verdict: str
    ratio: float
    low: float
    high: float
    is_paired: bool
    explanation: str = ""

    def describe(self) -> str:
        return f"{change(self.ratio, self.low, self.high)} in {self.after}"


@dataclass(frozen=True, slots=True)
class Line:
    """One cell over the releases of a distribution. `reference`: the version that all ratios are to. `turns`: the
    changes between neighbouring releases."""

    series: str
    label: str
    provider: str
    distribution: str
    reference: str
    points: tuple[SweepPoint, ...]
    turns: tuple[Turn, ...]

    def sentence(self) -> str:
        """Say how many releases were measured, and where the cell changed."""
        measured = sum(point.ratio is not None or point.version == self.reference for point in self.points)
        head = f"{self.label}: {measured} of {counted(len(self.points), 'release')} measured"
        turns = [turn.describe() for turn in self.turns]
        told = f"{counted(len(turns), 'change')}: {', '.join(turns)}" if turns else "no change between neighbours"
        return f"{head}, {told}."

    def as_plain(self) -> dict[str, object]:
        return {**asdict(self), "sentence": self.sentence()}


@dataclass
class Sweep(Search[Measured, list[Line]]):
    """The search for a line for each combination of the matrix's axes. `versions`: in release order. `is_one_block`:
    whether a matrix is measured in one block."""

    matrix: Matrix
    distribution: str
    versions: Sequence[str]
    reference: str
    is_one_block: Callable[[Matrix], bool]
    documents: list[Document] = field(default_factory=list)

    def __post_init__(self) -> None:
        points = [self.matrix]
        for axis, values in self.matrix.axes.items():
            points = [replace(point, axes={**point.axes, axis: (value,)}) for point in points for value in values]
        self._parts = [part for point in points for part in self._plan_blocks(point)]

    def _plan_blocks(self, point: Matrix) -> list[Experiment]:
        """Return the blocks of one line, as large as the planner allows."""
        for together in range(MAX_TOGETHER, MIN_TOGETHER, -1):
            parts = self._cut(point, together)
            if all(self.is_one_block(part.matrix) for part in parts):
                return parts
        return self._cut(point, MIN_TOGETHER)

    def _cut(self, point: Matrix, together: int) -> list[Experiment]:
        """Cut a line into blocks of `together` releases."""
        runs = _overlapping(self.versions, together)
        return [
            Experiment(
                replace(point, axes={**point.axes, "runtime": self._beside_reference(run)}),
                title=f"part {part} of {len(runs)}: {run[0]} to {run[-1]} beside {self.reference}",
            )
            for part, run in enumerate(runs, start=1)
        ]

    def _beside_reference(self, versions: Sequence[str]) -> tuple[Runtime, ...]:
        names = dict.fromkeys([self.reference, *versions])
        return tuple(Runtime(distribution=self.distribution, version=name) for name in names)

    def next(self) -> Experiment | None:
        left = self._parts[len(self.documents) :]
        return left[0] if left else None

    def record(self, outcome: Measured) -> None:
        self.documents.append(outcome.document)

    def answer(self) -> list[Line]:
        return make_lines(self.documents, reference=self.reference)


def _overlapping(versions: Sequence[str], together: int) -> list[Sequence[str]]:
    """Cut versions into runs of `together` releases, each beginning with the last release of the run before."""
    if len(versions) <= together:
        return [versions]
    return [versions[start : start + together] for start in range(0, len(versions) - 1, together - 1)]


def compare_neighbours(block: PlannedBlock) -> PlannedBlock:
    """Return the block with only the comparisons that a line needs: with the reference, and of neighbours."""
    places = {arm.arm: arm.positions["runtime"] for arm in block.arms}
    kept = tuple(
        pair
        for pair in block.comparisons
        if pair.axis == "runtime"
        and (places[pair.baseline] == 0 or places[pair.candidate] - places[pair.baseline] == 1)
    )
    return block.model_copy(update={"comparisons": kept})


def make_lines(documents: Iterable[Document], *, reference: str) -> list[Line]:
    """Make a line for each series and hardware in the documents. `reference`: a version that is in every block."""
    found = list(documents)
    numbered = ((number, cell) for number, document in enumerate(found) for cell in document.cells)
    by_place = group_by(
        (pair for pair in numbered if pair[1].twin_of is None), lambda pair: series_and_hardware(pair[1])
    )
    pairs = [index_by_sides(document.comparisons) for document in found]
    several = len({hardware for _, hardware in by_place}) > 1
    return [
        _line(cells, pairs, reference=reference, where=f", {hardware}" if several else "")
        for (_, hardware), cells in by_place.items()
    ]


def _line(cells: Sequence[tuple[int, Cell]], pairs: Sequence[BySides], *, reference: str, where: str) -> Line:
    places = group_by(cells, lambda pair: pair[1].runtime.version)
    order = sorted(places, key=release_order)
    points = {version: _point(version, places, pairs, reference=reference) for version in order}
    known = [version for version in order if points[version].ratio is not None or version == reference]
    turns = [
        turn
        for before, after in pairwise(known)
        if (turn := _turn(places, pairs, before=points[before], after=points[after])) is not None
    ]
    first = cells[0][1]
    return Line(
        series=series_digest(first),
        label=series_label(first) + where,
        provider=first.provider,
        distribution=first.runtime.distribution,
        reference=reference,
        points=tuple(points[version] for version in order),
        turns=tuple(turns),
    )


def _point(
    version: str, places: Mapping[str, Sequence[tuple[int, Cell]]], pairs: Sequence[BySides], *, reference: str
) -> SweepPoint:
    if version == reference:
        done = [cell for _, cell in places[version] if cell.p50_ms is not None]
        return SweepPoint(version, 1.0, 1.0, 1.0, done[0].p50_ms, "equal") if done else _unmeasured(version, places)
    for cell, comparison in _compared(places, pairs, old=reference, new=version):
        if cell.status is CellStatus.DONE and comparison.ratio is not None:
            figures = (comparison.ratio, comparison.ci_low, comparison.ci_high)
            return SweepPoint(version, *figures, cell.p50_ms, comparison.verdict, comparison.reason or "")
    return _unmeasured(version, places)


def _unmeasured(version: str, places: Mapping[str, Sequence[tuple[int, Cell]]]) -> SweepPoint:
    reasons = [cell.reason.text for _, cell in places[version] if cell.reason is not None]
    return SweepPoint(version, reason=(reasons or ["It was not measured beside the reference."])[0])


def _compared(
    places: Mapping[str, Sequence[tuple[int, Cell]]], pairs: Sequence[BySides], *, old: str, new: str
) -> list[tuple[Cell, Comparison]]:
    """Return the comparisons from one release to another, whichever is the baseline, each with the cell of `new`."""
    return [
        (cell, comparison)
        for number, cell in places.get(new, ())
        for there, other in places.get(old, ())
        if there == number and (comparison := comparison_between(pairs[number], other.id, cell.id)) is not None
    ]


def _turn(
    places: Mapping[str, Sequence[tuple[int, Cell]]], pairs: Sequence[BySides], *, before: SweepPoint, after: SweepPoint
) -> Turn | None:
    for _, comparison in _compared(places, pairs, old=before.version, new=after.version):
        if comparison.ratio is None or comparison.ci_low is None or comparison.ci_high is None:
            continue
        if not is_change(comparison.verdict):
            return None
        figures = (comparison.ratio, comparison.ci_low, comparison.ci_high)
        why = explain_change(comparison) or ""
        return Turn(before.version, after.version, comparison.verdict, *figures, is_paired=True, explanation=why)
    margin = max((comparison.margin for some in pairs for comparison in some.values()), default=0.02)
    return _turn_across(before, after, margin=margin)


def _turn_across(before: SweepPoint, after: SweepPoint, *, margin: float) -> Turn | None:
    """Return a change between releases of two blocks, from their ratios to the reference; None where there is none."""
    if None in (before.ratio, before.low, before.high, after.ratio, after.low, after.high):
        return None
    step = log(after.ratio or 1.0) - log(before.ratio or 1.0)
    half = sqrt(_half(before) ** 2 + _half(after) ** 2)
    if abs(step) <= max(log(1.0 + margin), SURE * half):
        return None
    verdict = "slower" if step > 0.0 else "faster"
    ends = (exp(step), exp(step - half), exp(step + half))
    return Turn(before.version, after.version, verdict, *ends, is_paired=False)


def _half(point: SweepPoint) -> float:
    return (log(point.high or 1.0) - log(point.low or 1.0)) / 2.0
