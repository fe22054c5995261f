"""A round of a watch: the old and the new release in one block, what alerts is shown again, and what it came to."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.rules.changes import watch_rounds
from farm.rules.changes.watch_rounds import Finding, Judgement, Rule
from farm.rules.matrices.matrix import Matrix
from farm.rules.searches.confirmation import Confirmation, explained_by
from farm.rules.searches.search import Measured
from farm.rules.wording.numbers import counted


@dataclass(frozen=True, slots=True)
class RoundAnswer:
    """What a round came to. `unconfirmed`: what a fresh block did not show again. `document`: None where none is."""

    judgement: Judgement
    findings: Sequence[Finding] = ()
    unconfirmed: Sequence[Finding] = ()
    document: Document | None = None

    @property
    def outcome(self) -> Literal["alert", "infra", "unconfirmed", "undecided", "news", "quiet"]:
        if self.findings:
            return "alert"
        judged = replace(self.judgement, findings=()).outcome
        return "unconfirmed" if self.unconfirmed and judged != "infra" else judged

    @property
    def sentence(self) -> str:
        """Most telling first."""
        judgement, parts = self.judgement, []
        if self.findings:
            others = f" {counted(len(self.findings) - 1, 'more finding')}." if len(self.findings) > 1 else ""
            parts.append(watch_rounds.worst(self.findings).text + others)
        parts += judgement.infra[:1]
        if self.unconfirmed:
            parts.append(f"Not confirmed by a fresh block: {watch_rounds.worst(self.unconfirmed).text}")
        if not parts:
            parts += judgement.undecided[:1] or judgement.news[:1]
        return " ".join(parts) or f"{counted(judgement.compared, 'pair')} compared, no changes to report."


@dataclass
class Watching(Confirmation[RoundAnswer]):
    """`found`: what the first block showed when the fresh one was asked for; the rule may be another one since."""

    sides: tuple[Runtime, Runtime] | tuple[str, str]
    rule: Rule
    found: Sequence[Finding] | None = None
    judgements: list[Judgement] = field(default_factory=list)

    def record(self, outcome: Measured) -> None:
        super().record(outcome)
        self.judgements.append(self._judged(outcome))
        if self.found is None:
            self.found = self.judgements[0].findings

    def _judged(self, measured: Measured) -> Judgement:
        """A node under review raises no alert."""
        document, reviewed = measured.document, measured.reviewed
        trusted = document.model_copy(update={"cells": [c for c in document.cells if c.node not in reviewed]})
        old, new = self.sides
        judgement = watch_rounds.judge(trusted, self.rule, old=old, new=new)
        if not reviewed:
            return judgement
        names = ", ".join(sorted(reviewed))
        return _with_infra(judgement, f"What {names} measured does not count: the node is under review.")

    def is_undecided(self, outcome: Measured) -> bool:
        return bool(self.judgements[-1].undecided)

    def fresh(self, first: Measured) -> Matrix | None:
        """What was found alone, on the node it was found on."""
        noisy = [finding for finding in self.judgements[0].findings if finding.is_noisy]
        if not noisy:
            return None
        nodes = list(dict.fromkeys(f"node:{finding.node}" for finding in noisy if finding.node))
        # two models are on each release of the matrix
        wanted = self.sides if isinstance(self.sides[0], Runtime) else first.matrix.axes["runtime"]
        runtimes = [side for side in wanted if isinstance(side, Runtime)]
        matrix = first.narrowed([finding.candidate for finding in noisy], runtimes=runtimes, hardware=nodes)
        # somebody will ask which operator it was: a verdict on each of them
        return replace(matrix, operators=True if matrix.operators is None else matrix.operators)

    def answer(self) -> RoundAnswer:
        judgement, document, found = self.judgements[0], self.measured[0].document, self.found or ()
        if len(self.judgements) == 1:
            return RoundAnswer(judgement, found, document=document)
        again = self.judgements[1]
        holds, gone = watch_rounds.confirmed(found, again)
        if again.infra and gone:
            judgement = _with_infra(judgement, *again.infra)
        return RoundAnswer(judgement, holds, gone, explained_by(document, self.measured[1].document))

    def unconfirmable(self, why: str) -> RoundAnswer:
        """The answer where no fresh block can be measured: what is no noise."""
        answer = self.answer()
        certain = [finding for finding in answer.findings if not finding.is_noisy]
        judgement = _with_infra(answer.judgement, f"It could not be confirmed: {why}")
        return replace(answer, judgement=judgement, findings=certain)


def _with_infra(judgement: Judgement, *texts: str) -> Judgement:
    return replace(judgement, infra=(*judgement.infra, *texts))
