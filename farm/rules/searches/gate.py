"""A gate from its matrix to its answer: measure, judge, and measure again what would fail it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from farm.base.grouping import group_by
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.changes import gate_reports, watch_rounds
from farm.rules.changes.gate import USUAL, GateAnswer, confirmed, judge_gate, noisy_failures
from farm.rules.findings import cell_pairs
from farm.rules.findings.kinds import Check
from farm.rules.matrices.matrix import Matrix
from farm.rules.searches.confirmation import Confirmation
from farm.rules.searches.search import Measured


@dataclass(frozen=True, slots=True)
class GateOutcome:
    answer: GateAnswer
    document: Document

    @property
    def headline(self) -> str:
        return gate_reports.headline(self.answer)


@dataclass(frozen=True, slots=True)
class Checks:
    """What fails a gate, and which metrics it looks at besides the headline.

    `max_slowdown`: a p50 that is slower by no more than this fraction is told and fails nothing.
    """

    fail_on: Sequence[Check]
    metrics: Sequence[str] = USUAL
    max_slowdown: float = 0.0

    def judge(self, document: Document, sides: Sequence[Runtime] | None) -> GateAnswer:
        """The document's answer about two runtimes; about its two models where `sides` is None."""
        old, new = sides or dict.fromkeys(str(cell.model) for cell in document.cells)
        return judge_gate(
            document,
            old=old,
            new=new,
            fail_on=self.fail_on,
            metrics=self.metrics,
            of_models=sides is None,
            max_slowdown=self.max_slowdown,
        )


@dataclass
class Gate(Confirmation[GateOutcome]):
    """With `confirm`, a noisy failure counts when a fresh block of its points shows it again.

    One that decides nothing, as on a busy machine, is measured once more: a model that is slower does not pass for it.
    Without `sides` two models are compared, on each runtime of the matrix.
    """

    sides: tuple[Runtime, Runtime] | None
    checks: Checks
    confirm: bool = True

    def fresh(self, first: Measured) -> Matrix | None:
        doubtful = noisy_failures(self.checks.judge(first.document, self.sides))
        if not self.confirm or not doubtful or _infra(first.document):
            return None
        cells = [finding.candidate for finding in doubtful]
        if self.sides is None:
            # the matrix may name none: then it is the newest
            runtimes = {cell.runtime: None for cell in first.document.cells if cell.id in cells}
            return first.narrowed(cells, runtimes=list(runtimes))
        found = first.narrowed(cells, runtimes=self.sides)
        # the baseline first even where it is the later release
        return replace(found, axes={**found.axes, "runtime": self.sides})

    def leaves_open(self, again: Measured) -> bool:
        left = confirmed(self.checks.judge(self.measured[0].document, self.sides), again=self._shown(again.document))
        is_undecided = any(pair.verdict == "undecided" for pair in again.document.comparisons)
        return is_undecided and any(finding.is_unconfirmed for finding in left.findings)

    def _shown(self, again: Document) -> set[tuple[str, str]]:
        return _same_points(self.checks.judge(again, self.sides), again, self.measured[0].document)

    def answer(self) -> GateOutcome:
        first, *rest = (measured.document for measured in self.measured)
        answer = self.checks.judge(first, self.sides)
        if rest:
            answer = confirmed(answer, again=set().union(*map(self._shown, rest)))
        return GateOutcome(replace(answer, infra=_infra([first, *rest][-1])), first)


def _same_points(shown: GateAnswer, again: Document, first: Document) -> set[tuple[str, str]]:
    """What the second document shows, under the cells' names in the first."""
    places = {cell.id: _place_of(cell) for cell in again.cells}
    known = group_by(first.cells, _place_of)
    return {(found.what, cell.id) for found in shown.findings for cell in known.get(places[found.candidate], ())}


def _place_of(cell: Cell) -> tuple[tuple[str, str], Runtime]:
    return cell_pairs.place_of(cell), cell.runtime


def _infra(document: Document) -> tuple[str, ...]:
    reasons = [cell.reason for cell in document.cells if cell.reason is not None]
    return tuple(dict.fromkeys(reason.text for reason in reasons if reason.code in watch_rounds.INFRA_CODES))
