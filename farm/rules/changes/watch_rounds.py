"""How a watch judges a measured block: whether two runtimes differ in something that somebody must look at.

Both runtimes were measured in the same block, and a number alerts by its verdict over the rounds, never by two values.
Latency, session creation, first inference, memory and endings are noisy: a finding of these counts only once a fresh
block has confirmed it. Parity and placement are deterministic.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log
from typing import Annotated, Literal

from pydantic import Field

from farm.contract.base import Message
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.reasons import CellStatus, ReasonCode
from farm.rules.comparing.comparisons import TOTAL_LEVEL
from farm.rules.findings.cell_pairs import Pair, pair_cells, series_label
from farm.rules.findings.checks import find_changes
from farm.rules.findings.kind import Change
from farm.rules.findings.kinds import KEYS, KINDS, Key, kind_of, rank
from farm.rules.runtimes import pairs as package_pairs
from farm.rules.wording.numbers import share

Outcome = Literal["alert", "infra", "undecided", "news", "quiet"]

# the pipeline's own endings: they say nothing of the model or the runtime's speed
INFRA_CODES = frozenset(
    {
        ReasonCode.RUNTIME_INSTALL_FAILED,
        ReasonCode.ARTIFACT_UNAVAILABLE,
        ReasonCode.NODE_LOST,
        ReasonCode.NO_NODE,
        ReasonCode.SANDBOX_MISSING,
        ReasonCode.UNKNOWN_RUNTIME,
        ReasonCode.CANCELLED,
        ReasonCode.FAIL_FAST,
        ReasonCode.GARBLED,
        ReasonCode.INTERNAL,
    }
)
CONFIRMED = ", shown again by a fresh block"
Fraction = Annotated[float, Field(ge=0.0, le=100.0)]


class Rule(Message):
    """Which changes alert. Limits are fractions: 0.05 lets 5 % pass; a form shows them by their titles.

    `kinds`: the kinds of change that alert at all. `latency` also limits the first token; growth has no limit.
    """

    latency: Fraction = Field(0.05, title="Latency beyond")
    session: Fraction = Field(0.5, title="Session creation")
    first: Fraction = Field(0.5, title="First inference")
    memory: Fraction = Field(0.2, title="Peak memory")
    kinds: tuple[Key, ...] = KEYS

    def allowed(self, kind: Key) -> float:
        """Find how large a change of this kind may be without alerting, as a fraction; 0 for a kind without limit."""
        limit = kind_of(kind).limit
        allowed: float = 0.0 if limit is None else getattr(self, limit)
        return allowed

    @property
    def as_stored(self) -> dict[str, object]:
        """The rule as a row stores it: without `kinds` where all alert, so that kinds added later alert too."""
        return self.model_dump(mode="json", exclude={"kinds"} if set(self.kinds) >= set(KEYS) else None)

    @classmethod
    def stored(cls, plain: Mapping[str, object]) -> "Rule":
        """Read a stored rule, without the kinds of packages that are not installed here."""
        rule = {**plain}
        if isinstance(kinds := plain.get("kinds"), list):
            rule["kinds"] = [kind for kind in kinds if kind in KINDS]
        return cls.model_validate(rule)

    def words(self) -> list[str]:
        found = [(KINDS[kind], share(self.allowed(kind))) for kind in self.kinds]
        return [kind.alerts_on.format(limit=limit) + (CONFIRMED if kind.is_noisy else "") for kind, limit in found]


@dataclass(frozen=True, slots=True)
class Finding:
    """One change of one series. `size`: new / old, where it is a ratio. `baseline`, `candidate`: ids of the cells.

    `series`: the digest of the series, which leaves out the node. `is_again`: the ids are of the document of the fresh
    block that showed the change again.
    """

    kind: Key
    series: str
    baseline: str
    candidate: str
    node: str | None
    text: str
    size: float | None = None
    is_again: bool = False

    @property
    def place(self) -> tuple[Key, str, str | None]:
        return self.kind, self.series, self.node

    @property
    def is_noisy(self) -> bool:
        return KINDS[self.kind].is_noisy


@dataclass(frozen=True, slots=True)
class Judgement:
    """How two runtimes compare in one document.

    `news` are sentences on changes that do not alert. `undecided` are those on series that need more rounds, `passed`
    those on undecided ones that are surely within the rule. `infra`: why the pipeline itself failed. `compared`: how
    many pairs of cells finished on both sides.
    """

    findings: tuple[Finding, ...] = ()
    news: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    infra: tuple[str, ...] = ()
    compared: int = 0
    # (kind, series) that the measurement shows to be well: they may resolve an alert
    cleared: frozenset[tuple[Key, str]] = frozenset()
    # (kind, series, node) of finished pairs without an undecided change of the kind: they may contradict a finding
    settled: frozenset[tuple[Key, str, str | None]] = frozenset()

    @property
    def outcome(self) -> Outcome:
        """One word for the judgement; where the pipeline failed it is never `quiet`."""
        if self.findings:
            return "alert"
        if self.infra or not (self.compared or self.undecided):
            return "infra"
        return "undecided" if self.undecided or self.passed else "news" if self.news else "quiet"


@dataclass(slots=True)
class _Notes:
    findings: list[Finding] = field(default_factory=list)
    news: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    infra: list[str] = field(default_factory=list)
    cleared: set[tuple[Key, str]] = field(default_factory=set)
    settled: set[tuple[Key, str, str | None]] = field(default_factory=set)


def judge(document: Document, rule: Rule, *, old: Runtime | str, new: Runtime | str) -> Judgement:
    """Judge every pair of cells of `old` and `new` by the rule: two runtimes, or two models where they are text."""
    found = pair_cells(document, old=old, new=new, of_models=isinstance(old, str))
    notes = _Notes()
    for pair in found:
        _judge_pair(pair, rule, notes)
    wrong = {(finding.kind, finding.series) for finding in notes.findings}
    return Judgement(
        findings=tuple(notes.findings),
        news=tuple(notes.news),
        undecided=tuple(notes.undecided),
        passed=tuple(notes.passed),
        infra=tuple(notes.infra),
        compared=sum(pair.is_finished for pair in found),
        cleared=frozenset(notes.cleared - wrong),
        settled=frozenset(notes.settled),
    )


def _judge_pair(pair: Pair, rule: Rule, notes: _Notes) -> None:
    reasons = [(cell, cell.reason) for cell in (pair.old, pair.new) if cell.reason is not None]
    for cell, reason in reasons:
        if reason.code in INFRA_CODES and cell.status is not CellStatus.DONE:
            notes.infra.append(f"{series_label(cell)} on {cell.runtime}: {reason.text}")
            return
    for kind in KINDS.values():
        found = list(find_changes(kind, pair, allowed=rule.allowed(kind.key)))
        for change in found:
            _note(notes, rule, kind.key, pair, change)
        if pair.is_finished and all(change.verdict != "undecided" for change in found):
            notes.settled.add((kind.key, pair.series, pair.old.node))


def _note(notes: _Notes, rule: Rule, kind: Key, pair: Pair, change: Change) -> None:
    """Note a change under its verdict; one that is worse is a finding if the rule alerts on its kind, else news."""
    match change.verdict:
        case "worse":
            moved = package_pairs.moved_sentence(pair.old.runtime, pair.new.runtime)
            text = f"{change.text} {moved}".rstrip()
            if kind not in rule.kinds:
                notes.news.append(text)
                return
            found = Finding(kind, pair.series, pair.old.id, pair.new.id, pair.old.node, text, change.size)
            notes.findings.append(found)
        case "undecided" if kind in rule.kinds:
            notes.undecided.append(change.text)
        case "passed" if kind in rule.kinds:
            notes.passed.append(f"{change.text} It is surely within what the rule lets pass.")
        case "better":
            notes.news.append(change.text)
    if change.verdict in ("better", "well") and pair.is_finished:
        notes.cleared.add((kind, pair.series))


def sort_by_confirmation(
    findings: Sequence[Finding], again: Judgement
) -> tuple[list[Finding], list[Finding], list[Finding]]:
    """Sort findings by what a fresh block on their node shows: those that hold, those it contradicts, those left open.

    A finding that is not noisy always holds. A noisy one that holds is replaced by that of the fresh block, whose size
    was not selected for being large.
    """
    shown = {finding.place: replace(finding, is_again=True) for finding in again.findings}
    holds = [shown.get(finding.place) if finding.is_noisy else finding for finding in findings]
    others = [finding for finding, held in zip(findings, holds, strict=True) if held is None]
    gone = [finding for finding in others if finding.place in again.settled]
    return [held for held in holds if held is not None], gone, [finding for finding in others if finding not in gone]


def find_worst(findings: Collection[Finding]) -> Finding:
    return min(findings, key=lambda finding: (rank(finding.kind), -abs(log(finding.size or 1.0))))


def expected_false_alerts(comparisons: int, *, rate: float = TOTAL_LEVEL) -> float:
    """Compute how many false alerts on latency so many comparisons raise on average.

    `rate`: how often an A/A pair is called slower or faster. Half of these are slower, and the fresh block has to err
    in the same way again.
    """
    return comparisons * (rate / 2.0) ** 2
