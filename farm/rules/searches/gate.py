"""A gate from its matrix to its answer: measure, judge, and measure again what would fail it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from farm.base.grouping import group_by
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.changes import gate_reports, watch_rounds
from farm.rules.changes.gate import DEFAULT_METRICS, GateAnswer, confirm_answer, judge_gate
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
        return gate_reports.answer_sentence(self.answer)


@dataclass(frozen=True, slots=True)
class Checks:
    """What fails a gate, and which metrics it looks at besides the headline.

    `max_slowdown`: a p50 that is slower by no more than this fraction is reported, and fails nothing.
    """

    fail_on: Sequence[Check]
    metrics: Sequence[str] = DEFAULT_METRICS
    max_slowdown: float = 0.0

    def judge(self, document: Document, sides: Sequence[Runtime] | None) -> GateAnswer:
        """Judge two runtimes of the document, the old one first; its two models where `sides` is None."""
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
    """The search of a gate. With `confirm`, a noisy failure counts only when a fresh block shows it again.

    A fresh block that leaves it open, as on a busy machine, is measured once more, so that a slower model does not pass
    because of it. Without `sides`, two models are compared on each runtime of the matrix.
    """

    sides: tuple[Runtime, Runtime] | None
    checks: Checks
    confirm: bool = True

    def matrix_to_confirm(self, first: Measured) -> Matrix | None:
        """Return the matrix of the cells that failed by what may be noise; None where there are none, where `confirm`
        is off, or where the machine itself failed."""
        answer = self.checks.judge(first.document, self.sides)
        doubtful = [finding for finding in answer.failures if finding.is_noisy]
        if not self.confirm or not doubtful or _infra(first.document):
            return None
        cells = [finding.candidate for finding in doubtful]
        if self.sides is None:
            # the matrix may name none: then it is the newest
            runtimes = {cell.runtime: None for cell in first.document.cells if cell.id in cells}
            return first.narrow_to(cells, runtimes=list(runtimes))
        found = first.narrow_to(cells, runtimes=self.sides)
        # the baseline first even where it is the later release
        return replace(found, axes={**found.axes, "runtime": self.sides})

    def needs_another_block(self, again: Measured) -> bool:
        """Whether the second block leaves a failure undecided, and not because the machine failed."""
        left = self._confirmed([again.document])
        is_open = any(finding.is_unconfirmed and finding.check == "undecided" for finding in left.findings)
        return is_open and not _infra(again.document)

    def answer(self) -> GateOutcome:
        first, *rest = (measured.document for measured in self.measured)
        return GateOutcome(replace(self._confirmed(rest), infra=_infra([first, *rest][-1])), first)

    def _confirmed(self, rest: Sequence[Document]) -> GateAnswer:
        first = self.measured[0].document
        answer = self.checks.judge(first, self.sides)
        again, decided = set[tuple[str, str]](), set[tuple[str, str]]()
        for document in rest:
            fresh = self.checks.judge(document, self.sides)
            shown = {(finding.check_and_metric, finding.candidate) for finding in fresh.findings}
            again |= _same_points(shown, document, first)
            decided |= _same_points(fresh.decided, document, first)
        return confirm_answer(answer, again=again, decided=decided) if rest else answer


def _same_points(found: Collection[tuple[str, str]], again: Document, first: Document) -> set[tuple[str, str]]:
    """Return what was found of candidates of the second document, under the names that its cells have in the first."""
    places = {cell.id: _place_of(cell) for cell in again.cells}
    known = group_by(first.cells, _place_of)
    return {(what, cell.id) for what, candidate in found for cell in known.get(places[candidate], ())}


def _place_of(cell: Cell) -> tuple[tuple[str, str], Runtime]:
    return cell_pairs.series_and_hardware(cell), cell.runtime


def _infra(document: Document) -> tuple[str, ...]:
    reasons = [cell.reason for cell in document.cells if cell.reason is not None]
    return tuple(dict.fromkeys(reason.text for reason in reasons if reason.code in watch_rounds.INFRA_CODES))
