"""A round of a watch: one block of the old and the new release, and a fresh block to confirm what would alert."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.rules.changes import watch_rounds
from farm.rules.changes.watch_rounds import Finding, Judgement, Rule
from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.findings import cell_pairs
from farm.rules.findings.kinds import kind_of
from farm.rules.matrices.matrix import Matrix
from farm.rules.presenting.lines import is_by_processor
from farm.rules.searches.confirmation import Confirmation
from farm.rules.searches.search import Measured
from farm.rules.wording.numbers import change_interval, counted


@dataclass(frozen=True, slots=True)
class RoundAnswer:
    """The result of a round.

    `findings` are those that alert, `unconfirmed` those that the fresh block contradicts, and `left_open` those that it
    left undecided, with the reason in their text. `document` is that of the first block, and `again` that of the fresh
    block; None if none was measured.
    """

    judgement: Judgement
    findings: Sequence[Finding] = ()
    unconfirmed: Sequence[Finding] = ()
    left_open: Sequence[Finding] = ()
    document: Document | None = None
    again: Document | None = None

    @property
    def outcome(self) -> Literal["alert", "infra", "unconfirmed", "undecided", "news", "quiet"]:
        """One word for the round: the first that applies of `alert`, `infra`, `undecided` and `unconfirmed`.

        If none applies, it is the outcome of the judgement without its findings.
        """
        if self.findings:
            return "alert"
        if self.judgement.infra:
            return "infra"
        if self.left_open or self.judgement.undecided:
            return "undecided"
        return "unconfirmed" if self.unconfirmed else replace(self.judgement, findings=()).outcome

    @property
    def sentence(self) -> str:
        """The round in words: the worst finding that alerts, a fault of the infrastructure, and what was not confirmed.

        Without any of these it says what is undecided, passed or new.
        """
        judgement, parts = self.judgement, []
        if self.findings:
            others = f" {counted(len(self.findings) - 1, 'more finding')}." if len(self.findings) > 1 else ""
            parts.append(watch_rounds.find_worst(self.findings).text + others)
        parts += judgement.infra[:1]
        if self.left_open:
            parts.append(watch_rounds.find_worst(self.left_open).text)
        elif self.unconfirmed:
            parts.append(f"Not confirmed by a fresh block: {watch_rounds.find_worst(self.unconfirmed).text}")
        if not parts:
            parts += (*judgement.undecided, *judgement.passed)[:1] or judgement.news[:1]
        return " ".join(parts) or f"{counted(judgement.compared, 'pair')} compared, no changes to report."


@dataclass
class Watching(Confirmation[RoundAnswer]):
    """The search of a watch's round.

    `sides` are the old and the new runtime, or two models by name. `found` are the findings of the first block when the
    fresh one was ordered. They stay valid if the rule changes after that.
    """

    sides: tuple[Runtime, Runtime] | tuple[str, str]
    rule: Rule
    found: Sequence[Finding] | None = None
    judgements: list[Judgement] = field(default_factory=list)

    def record(self, outcome: Measured) -> None:
        """Record a block and judge it by the rule."""
        super().record(outcome)
        self.judgements.append(self._judge(outcome))
        if self.found is None:
            self.found = self.judgements[0].findings

    def _judge(self, measured: Measured) -> Judgement:
        """Judge a block without the cells of nodes under review, which cannot raise an alert."""
        document, reviewed = measured.document, measured.reviewed
        trusted = document.model_copy(update={"cells": [c for c in document.cells if c.node not in reviewed]})
        old, new = self.sides
        judgement = watch_rounds.judge(trusted, self.rule, old=old, new=new)
        if not reviewed:
            return judgement
        names = ", ".join(sorted(reviewed))
        return _with_infra(judgement, f"What {names} measured does not count: the node is under review.")

    def is_undecided(self, outcome: Measured) -> bool:
        """Whether the last block that was recorded leaves a finding undecided that more rounds may decide.

        `outcome` itself is not looked at; its block must have been recorded.
        """
        if len(self.judgements) == 1:
            return bool(self.judgements[0].undecided)
        return bool(watch_rounds.sort_by_confirmation(self.found or (), self.judgements[1]).undecided)

    def matrix_to_confirm(self, first: Measured) -> Matrix | None:
        """Return the matrix of the noisy findings' cells, on the nodes where they were found; None without any.

        It has verdicts on operators too, unless the matrix of the watch switches them off.
        """
        noisy = [finding for finding in self.judgements[0].findings if finding.is_noisy]
        if not noisy:
            return None
        nodes = list(dict.fromkeys(f"node:{finding.node}" for finding in noisy if finding.node))
        # two models are on each release of the matrix
        wanted = self.sides if isinstance(self.sides[0], Runtime) else first.matrix.axes["runtime"]
        runtimes = [side for side in wanted if isinstance(side, Runtime)]
        matrix = first.narrow_to([finding.candidate for finding in noisy], runtimes=runtimes, hardware=nodes)
        # operators get verdicts too, because an alert should name the operator that changed
        return replace(matrix, operators=True if matrix.operators is None else matrix.operators)

    def answer(self) -> RoundAnswer:
        """Return the result of the round by its first block and, where there is one, the fresh block.

        Raises IndexError before the first block is recorded.
        """
        judgement, document, found = self.judgements[0], self.measured[0].document, self.found or ()
        if len(self.judgements) == 1:
            return RoundAnswer(judgement, found, document=document)
        again = self.judgements[1]
        holds, gone, unsure = watch_rounds.sort_by_confirmation(found, again)
        if again.infra and unsure:
            judgement = _with_infra(judgement, *again.infra)
        left_open = [replace(each, text=f"Undecided: {each.text} {self._explain_open(each)}") for each in unsure]
        return RoundAnswer(judgement, holds, gone, left_open, document, self.measured[1].document)

    def _explain_open(self, found: Finding) -> str:
        """Say why the fresh block neither confirms nor contradicts a finding."""
        old, new = self.sides
        pairs = cell_pairs.pair_cells(self.measured[1].document, old=old, new=new)
        mine = [pair for pair in pairs if (pair.series, pair.old.node) == found.key[1:]]
        comparison = next((pair.comparison for pair in mine if pair.is_finished), None)
        if comparison is None:
            reasons = [cell.reason.text for pair in mine for cell in (pair.new, pair.old) if cell.reason is not None]
            return f"A fresh block could not compare it: {reasons[0] if reasons else 'it has no such pair.'}"
        size = change_interval(comparison.ci_low, comparison.ci_high, ratio=comparison.ratio, is_directed=False)
        result = f"measured {size}" if kind_of(found.kind).is_headline and size else "does not tell"
        rounds, least = comparison.rounds, PLANNED_LOOKS[0]
        where = f", but in {rounds} of the {least} rounds a verdict takes" if rounds < least else f" in {rounds} rounds"
        return f"A fresh block {result}{where}{': the machine was busy' if is_by_processor(comparison) else ''}."

    def answer_unconfirmed(self, why: str) -> RoundAnswer:
        """Return the answer if no fresh block can be measured: only findings that cannot be noise stay.

        `why` is added as a fault of the infrastructure.
        """
        answer = self.answer()
        certain = [finding for finding in answer.findings if not finding.is_noisy]
        judgement = _with_infra(answer.judgement, f"It could not be confirmed: {why}")
        return replace(answer, judgement=judgement, findings=certain)


def _with_infra(judgement: Judgement, *texts: str) -> Judgement:
    return replace(judgement, infra=(*judgement.infra, *texts))
