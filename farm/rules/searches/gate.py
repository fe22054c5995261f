"""The search of a gate: measure, judge, and measure again what would fail it."""

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
    """The answer of a gate, and the document of its first block."""

    answer: GateAnswer
    document: Document

    @property
    def headline(self) -> str:
        return gate_reports.describe_answer(self.answer)


@dataclass(frozen=True, slots=True)
class Checks:
    """What fails a gate, and which metrics it judges in addition to the headline.

    A p50 that is slower by at most the fraction `max_slowdown` is reported, but does not fail the gate.
    """

    fail_on: Sequence[Check]
    metrics: Sequence[str] = DEFAULT_METRICS
    max_slowdown: float = 0.0

    def judge(self, document: Document, sides: Sequence[Runtime] | None) -> GateAnswer:
        """Judge two runtimes of the document, the old one first; if `sides` is None, its two models.

        Raises ValueError where there are not exactly two.
        """
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
    """The search of a gate. With `confirm`, a failure that may be noise counts only if a fresh block shows it again.

    If the fresh block leaves it open, as on a busy machine, it is measured once more, so that a slower model does not
    pass because of noise. `sides` are the old and the new runtime; None compares two models on each runtime of the
    matrix.
    """

    sides: tuple[Runtime, Runtime] | None
    checks: Checks
    confirm: bool = True

    def matrix_to_confirm(self, first: Measured) -> Matrix | None:
        """Return the matrix of the cells whose failures may be noise.

        None without such cells, if `confirm` is off, or if the machine itself failed.
        """
        answer = self.checks.judge(first.document, self.sides)
        doubtful = [finding for finding in answer.failures if finding.is_noisy]
        if not self.confirm or not doubtful or _list_infra_faults(first.document):
            return None
        cells = [finding.candidate for finding in doubtful]
        if self.sides is None:
            # the matrix may name no runtime and mean the newest one
            runtimes = {cell.runtime: None for cell in first.document.cells if cell.id in cells}
            return first.narrow_to(cells, runtimes=list(runtimes))
        found = first.narrow_to(cells, runtimes=self.sides)
        # the baseline comes first, even if it is the later release
        return replace(found, axes={**found.axes, "runtime": self.sides})

    def needs_another_block(self, again: Measured) -> bool:
        """Whether the second block leaves a failure undecided, although the machine did not fail."""
        answer = self._judge_with([again.document])
        is_open = any(finding.is_unconfirmed and finding.check == "undecided" for finding in answer.findings)
        return is_open and not _list_infra_faults(again.document)

    def answer(self) -> GateOutcome:
        """Return the judgement of the first block, confirmed by the fresh ones, with the faults of the last block."""
        first, *fresh = (measured.document for measured in self.measured)
        faults = _list_infra_faults([first, *fresh][-1])
        return GateOutcome(replace(self._judge_with(fresh), infra=faults), first)

    def _judge_with(self, fresh: Sequence[Document]) -> GateAnswer:
        """Judge the first block, and confirm its failures by the fresh blocks, if there are any."""
        first = self.measured[0].document
        answer = self.checks.judge(first, self.sides)
        if not fresh:
            return answer
        again, decided = set[tuple[str, str]](), set[tuple[str, str]]()
        for document in fresh:
            judged = self.checks.judge(document, self.sides)
            shown = {(finding.check_and_metric, finding.candidate) for finding in judged.findings}
            again |= _translate_cells(shown, document, first)
            decided |= _translate_cells(judged.decided, document, first)
        return confirm_answer(answer, shown_again=again, decided=decided)


def _translate_cells(found: Collection[tuple[str, str]], fresh: Document, first: Document) -> set[tuple[str, str]]:
    """Replace the second of each pair, a cell's id in the fresh document, by the id of the same cell in the first."""
    keys = {cell.id: _make_key(cell) for cell in fresh.cells}
    known = group_by(first.cells, _make_key)
    return {(what, cell.id) for what, candidate in found for cell in known.get(keys[candidate], ())}


def _make_key(cell: Cell) -> tuple[tuple[str, str], Runtime]:
    return cell_pairs.series_and_hardware(cell), cell.runtime


def _list_infra_faults(document: Document) -> tuple[str, ...]:
    reasons = [cell.reason for cell in document.cells if cell.reason is not None]
    return tuple(dict.fromkeys(reason.text for reason in reasons if reason.code in watch_rounds.INFRA_CODES))
