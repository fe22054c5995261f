"""Measures a model over many releases, each as a ratio to a reference release, and finds where it changed.

Every block has the reference release. Consecutive blocks also share another release, so that every two neighbouring
releases are planned in one block.

A change point is a verdict between two neighbouring releases. Where both were measured in one block it is their own
paired comparison; across blocks it follows from both ratios to the reference, whose half intervals add in squares.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import exp, hypot, log
from typing import NamedTuple

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
# how many releases a block has in addition to the reference
MAX_RELEASES = MAX_ARMS - 1
MIN_RELEASES = 2


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One release.

    `ratio` is that of its p50 to the reference's, with its 95 % interval. `reason` says why there is no ratio or no
    verdict.
    """

    version: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p50_ms: float | None = None
    verdict: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change between neighbouring releases.

    `ratio` is that of the later to the earlier release, with its 95 % interval. `is_paired` says that both were
    measured in one block.
    """

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
    """One cell over the releases of a distribution, in release order.

    `reference` is the version that all ratios are to. `turns` are the changes between neighbouring releases. Releases
    without a ratio are no neighbours: those on both sides of them are compared.
    """

    series: str
    label: str
    provider: str
    distribution: str
    reference: str
    points: tuple[SweepPoint, ...]
    turns: tuple[ChangePoint, ...]

    def sentence(self) -> str:
        """Say how many releases were measured, and where the cell changed."""
        measured = sum(point.ratio is not None or point.version == self.reference for point in self.points)
        head = f"{self.label}: {measured} of {counted(len(self.points), 'release')} measured"
        turns = [turn.describe() for turn in self.turns]
        changes = f"{counted(len(turns), 'change')}: {', '.join(turns)}" if turns else "no change between neighbours"
        return f"{head}, {changes}."

    def as_plain(self) -> dict[str, object]:
        return {**asdict(self), "sentence": self.sentence()}


@dataclass
class Sweep(Search[Measured, list[Line]]):
    """The search for a line per combination of the matrix's axis values.

    `versions` are in release order. `is_one_block` says whether a matrix is measured in one block. All blocks are
    planned when the search is made, whatever is measured.
    """

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
        for size in range(MAX_RELEASES, MIN_RELEASES, -1):
            parts = self._split(point, size)
            if all(self.is_one_block(part.matrix) for part in parts):
                return parts
        return self._split(point, MIN_RELEASES)

    def _split(self, point: Matrix, size: int) -> list[Experiment]:
        """Split a line into blocks of `size` releases, each with the reference."""
        parts = _split_overlapping(self.versions, size)
        experiments = []
        for number, versions in enumerate(parts, start=1):
            names = dict.fromkeys([self.reference, *versions])
            runtimes = tuple(Runtime(distribution=self.distribution, version=name) for name in names)
            matrix = replace(point, axes={**point.axes, "runtime": runtimes})
            title = f"part {number} of {len(parts)}: {versions[0]} to {versions[-1]} beside {self.reference}"
            experiments.append(Experiment(matrix, title))
        return experiments

    def next(self) -> Experiment | None:
        remaining = self._parts[len(self.documents) :]
        return remaining[0] if remaining else None

    def record(self, outcome: Measured) -> None:
        self.documents.append(outcome.document)

    def answer(self) -> list[Line]:
        return make_lines(self.documents, reference=self.reference)


def _split_overlapping(versions: Sequence[str], size: int) -> list[Sequence[str]]:
    """Split versions into parts of at most `size`, each beginning with the last version of the part before."""
    if len(versions) <= size:
        return [versions]
    return [versions[start : start + size] for start in range(0, len(versions) - 1, size - 1)]


def compare_neighbours(block: PlannedBlock) -> PlannedBlock:
    """Return the block with only the comparisons that a line needs.

    These compare each release with the reference, which is the first runtime, and with its neighbours.
    """
    places = {arm.arm: arm.positions["runtime"] for arm in block.arms}
    needed = tuple(
        pair
        for pair in block.comparisons
        if pair.axis == "runtime"
        and (places[pair.baseline] == 0 or places[pair.candidate] - places[pair.baseline] == 1)
    )
    return block.model_copy(update={"comparisons": needed})


class _Placed(NamedTuple):
    """A cell, with the comparisons of its document."""

    cell: Cell
    pairs: BySides


def make_lines(documents: Iterable[Document], *, reference: str) -> list[Line]:
    """Make a line for each series and hardware, in the order in which documents have them.

    `reference` is the version that is in every block. A/A twins are left out.
    """
    cells: list[_Placed] = []
    for document in documents:
        pairs = index_by_sides(document.comparisons)
        cells += [_Placed(cell, pairs) for cell in document.cells if cell.twin_of is None]
    by_line = group_by(cells, lambda placed: series_and_hardware(placed.cell))
    margins = [comparison.margin for placed in cells for comparison in placed.pairs.values()]
    has_several = len({hardware for _, hardware in by_line}) > 1
    return [
        _make_line(
            placed,
            reference=reference,
            suffix=f", {hardware}" if has_several else "",
            margin=max(margins, default=0.02),
        )
        for (_, hardware), placed in by_line.items()
    ]


def _make_line(cells: Sequence[_Placed], *, reference: str, suffix: str, margin: float) -> Line:
    by_version = group_by(cells, lambda placed: placed.cell.runtime.version)
    versions = sorted(by_version, key=release_order)
    points = [_make_point(version, by_version, reference=reference) for version in versions]
    known = [point for point in points if point.ratio is not None or point.version == reference]
    changes = [
        change
        for before, after in pairwise(known)
        if (change := _find_change(by_version, before=before, after=after, margin=margin)) is not None
    ]
    first = cells[0].cell
    return Line(
        series=series_digest(first),
        label=series_label(first) + suffix,
        provider=first.provider,
        distribution=first.runtime.distribution,
        reference=reference,
        points=tuple(points),
        turns=tuple(changes),
    )


def _make_point(version: str, by_version: Mapping[str, Sequence[_Placed]], *, reference: str) -> SweepPoint:
    cells = [placed.cell for placed in by_version[version]]
    if version == reference:
        p50 = next((cell.p50_ms for cell in cells if cell.p50_ms is not None), None)
        if p50 is not None:
            return SweepPoint(version, 1.0, 1.0, 1.0, p50, "equal")
    for cell, comparison in _find_comparisons(by_version, old=reference, new=version):
        if cell.status is CellStatus.DONE and comparison.ratio is not None:
            figures = (comparison.ratio, comparison.ci_low, comparison.ci_high)
            return SweepPoint(version, *figures, cell.p50_ms, comparison.verdict, comparison.reason or "")
    reasons = [cell.reason.text for cell in cells if cell.reason is not None]
    return SweepPoint(version, reason=(reasons or ["It was not measured beside the reference."])[0])


def _find_comparisons(
    by_version: Mapping[str, Sequence[_Placed]], *, old: str, new: str
) -> list[tuple[Cell, Comparison]]:
    """Return the comparisons from one release to another, whichever is the baseline, each with the cell of `new`."""
    return [
        (cell, comparison)
        for cell, pairs in by_version[new]
        for other, other_pairs in by_version.get(old, ())
        if other_pairs is pairs and (comparison := comparison_between(pairs, other.id, cell.id)) is not None
    ]


def _find_change(
    by_version: Mapping[str, Sequence[_Placed]], *, before: SweepPoint, after: SweepPoint, margin: float
) -> ChangePoint | None:
    """Return the change between two releases by their own comparison, else by their ratios to the reference.

    None without a change.
    """
    for _, comparison in _find_comparisons(by_version, old=before.version, new=after.version):
        if comparison.ratio is None or comparison.ci_low is None or comparison.ci_high is None:
            continue
        if not is_change(comparison.verdict):
            return None
        figures = (comparison.ratio, comparison.ci_low, comparison.ci_high)
        why = explain_change(comparison) or ""
        return ChangePoint(before.version, after.version, comparison.verdict, *figures, is_paired=True, explanation=why)
    return _find_change_across(before, after, margin=margin)


def _find_change_across(before: SweepPoint, after: SweepPoint, *, margin: float) -> ChangePoint | None:
    """Return a change between releases of two blocks, from their ratios to the reference; None where there is none."""
    if None in (before.ratio, before.low, before.high, after.ratio, after.low, after.high):
        return None
    step = log(after.ratio or 1.0) - log(before.ratio or 1.0)
    half = hypot(_half_interval(before), _half_interval(after))
    if abs(step) <= max(log(1.0 + margin), SURE * half):
        return None
    verdict = "slower" if step > 0.0 else "faster"
    ends = (exp(step), exp(step - half), exp(step + half))
    return ChangePoint(before.version, after.version, verdict, *ends, is_paired=False)


def _half_interval(point: SweepPoint) -> float:
    return (log(point.high or 1.0) - log(point.low or 1.0)) / 2.0
