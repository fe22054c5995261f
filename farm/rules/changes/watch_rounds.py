"""Judges a block of a watch: whether two runtimes differ in something that somebody must look at.

Both runtimes were measured in the same block. A figure alerts by its verdict over all rounds, and never because two
values differ. Parity, accuracy and placement are deterministic. The other built-in kinds, such as latency, memory and
failures, are noisy: a finding on one of them counts only once a fresh block has confirmed it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Annotated, Literal, NamedTuple

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

# failures of the pipeline itself, which say nothing about the model or the runtime's speed
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
    """Which kinds of change alert, and from which size on.

    Limits are fractions: 0.05 allows 5 %. Forms show them by their titles. `latency` also limits the time to the first
    token.
    """

    latency: Fraction = Field(0.05, title="Latency beyond")
    session: Fraction = Field(0.5, title="Session creation")
    first: Fraction = Field(0.5, title="First inference")
    memory: Fraction = Field(0.2, title="Peak memory")
    kinds: tuple[Key, ...] = KEYS

    def allowed(self, kind: Key) -> float:
        """Return how large a change of this kind may be without alerting, as a fraction; 0 for a kind without limit."""
        limit = kind_of(kind).limit
        allowed: float = 0.0 if limit is None else getattr(self, limit)
        return allowed

    @property
    def as_stored(self) -> dict[str, object]:
        """The rule as a row stores it: without `kinds` where all alert, so that kinds added later alert too."""
        return self.model_dump(mode="json", exclude={"kinds"} if set(self.kinds) >= set(KEYS) else None)

    @classmethod
    def from_stored(cls, plain: Mapping[str, object]) -> "Rule":
        """Read a stored rule, without the kinds of packages that are not installed here."""
        rule = {**plain}
        if isinstance(kinds := plain.get("kinds"), list):
            rule["kinds"] = [kind for kind in kinds if kind in KINDS]
        return cls.model_validate(rule)

    def describe_kinds(self) -> list[str]:
        """Describe each kind of change that alerts, with its limit and whether a fresh block confirms it."""
        return [
            kind.alerts_on.format(limit=share(self.allowed(kind.key))) + (CONFIRMED if kind.is_noisy else "")
            for kind in map(KINDS.__getitem__, self.kinds)
        ]


@dataclass(frozen=True, slots=True)
class Finding:
    """One change of one series on one node."""

    kind: Key
    # the digest of the series
    series: str
    # the ids of both cells
    baseline: str
    candidate: str
    node: str | None
    text: str
    # new / old; None where the change is no ratio
    size: float | None = None
    # whether the fresh block found it; both cells are then in that block's document
    is_of_fresh_block: bool = False

    @property
    def key(self) -> tuple[Key, str, str | None]:
        return self.kind, self.series, self.node

    @property
    def is_noisy(self) -> bool:
        return KINDS[self.kind].is_noisy


class SortedFindings(NamedTuple):
    """Findings by the result of a fresh block, each list in the order of the findings."""

    confirmed: list[Finding]
    contradicted: list[Finding]
    undecided: list[Finding]


@dataclass(frozen=True, slots=True)
class Judgement:
    """How two runtimes compare in one document."""

    findings: tuple[Finding, ...] = ()
    # sentences on changes that do not alert
    news: tuple[str, ...] = ()
    # sentences on series that need more rounds
    undecided: tuple[str, ...] = ()
    # sentences on undecided series whose change is surely smaller than the rule allows
    passed: tuple[str, ...] = ()
    # sentences on cells that the farm itself failed to measure
    infra: tuple[str, ...] = ()
    # how many pairs of cells finished on both sides
    compared: int = 0
    # (kind, series) that the measurement shows to be in order: they may resolve an alert
    cleared: frozenset[tuple[Key, str]] = frozenset()
    # (kind, series, node) of finished pairs without an undecided change of the kind: they may contradict a finding
    settled: frozenset[tuple[Key, str, str | None]] = frozenset()

    @property
    def outcome(self) -> Outcome:
        """The most important part of the judgement. `passed` series make it `undecided` too.

        Where nothing was compared and nothing is undecided, it is `infra` and never `quiet`.
        """
        if self.findings:
            return "alert"
        if self.infra or not (self.compared or self.undecided):
            return "infra"
        if self.undecided or self.passed:
            return "undecided"
        return "news" if self.news else "quiet"


def judge(document: Document, rule: Rule, *, old: Runtime | str, new: Runtime | str) -> Judgement:
    """Judge every pair of cells of two runtimes, or of two models by their names, by the rule.

    A pair that the pipeline itself failed is only in `infra`. Worse changes of kinds that the rule does not name are
    `news`, as are all better ones. What is cleared or settled is so for every kind, whatever the rule names.
    """
    pairs = pair_cells(document, old=old, new=new, of_models=isinstance(old, str))
    infra = [_find_infra_reason(pair) for pair in pairs]
    by_kind = [
        (kind.key, pair, list(find_changes(kind, pair, allowed=rule.allowed(kind.key))))
        for pair, reason in zip(pairs, infra, strict=True)
        if not reason
        for kind in KINDS.values()
    ]
    changes = [(key, pair, change) for key, pair, changes_of_kind in by_kind for change in changes_of_kind]
    alerting = [(key, pair, change) for key, pair, change in changes if key in rule.kinds]
    findings = [_make_finding(key, pair, change) for key, pair, change in alerting if change.verdict == "worse"]
    cleared = {
        (key, pair.series) for key, pair, change in changes if change.verdict in ("better", "well") and pair.is_finished
    }
    return Judgement(
        findings=tuple(findings),
        news=tuple(
            _describe_worse(pair, change) if change.verdict == "worse" else change.text
            for key, pair, change in changes
            if change.verdict == "better" or (change.verdict == "worse" and key not in rule.kinds)
        ),
        undecided=tuple(change.text for _, _, change in alerting if change.verdict == "undecided"),
        passed=tuple(
            f"{change.text} It is surely within what the rule lets pass."
            for _, _, change in alerting
            if change.verdict == "passed"
        ),
        infra=tuple(filter(None, infra)),
        compared=sum(pair.is_finished for pair in pairs),
        cleared=frozenset(cleared - {(finding.kind, finding.series) for finding in findings}),
        settled=frozenset(
            (key, pair.series, pair.old.node)
            for key, pair, changes_of_kind in by_kind
            if pair.is_finished and all(change.verdict != "undecided" for change in changes_of_kind)
        ),
    )


def _find_infra_reason(pair: Pair) -> str:
    """Say why the pipeline itself failed a cell of the pair; empty where it did not."""
    for cell in (pair.old, pair.new):
        if cell.reason is not None and cell.reason.code in INFRA_CODES and cell.status is not CellStatus.DONE:
            return f"{series_label(cell)} on {cell.runtime}: {cell.reason.text}"
    return ""


def _make_finding(kind: Key, pair: Pair, change: Change) -> Finding:
    text = _describe_worse(pair, change)
    return Finding(kind, pair.series, pair.old.id, pair.new.id, pair.old.node, text, change.size)


def _describe_worse(pair: Pair, change: Change) -> str:
    return f"{change.text} {package_pairs.moved_sentence(pair.old.runtime, pair.new.runtime)}".rstrip()


def sort_by_confirmation(findings: Sequence[Finding], fresh: Judgement) -> SortedFindings:
    """Sort findings by the judgement of a fresh block.

    A finding that is not noisy is always confirmed. A noisy one that is confirmed is replaced by the fresh block's own
    finding, whose size was not selected for being large.
    """
    shown_again = {finding.key: replace(finding, is_of_fresh_block=True) for finding in fresh.findings}
    result = SortedFindings([], [], [])
    for finding in findings:
        if not finding.is_noisy:
            result.confirmed.append(finding)
        elif finding.key in shown_again:
            result.confirmed.append(shown_again[finding.key])
        elif finding.key in fresh.settled:
            result.contradicted.append(finding)
        else:
            result.undecided.append(finding)
    return result


def find_worst(findings: Collection[Finding]) -> Finding:
    """Return the finding of the most serious kind, and among several the one with the largest change.

    Raises ValueError without findings.
    """
    return min(findings, key=lambda finding: (rank(finding.kind), -abs(log(finding.size or 1.0))))


def expected_false_alerts(comparisons: int, *, rate: float = TOTAL_LEVEL) -> float:
    """Compute how many false alerts on latency so many comparisons raise on average.

    `rate` is the share of A/A pairs that are called slower or faster. Half of these are called slower, and an alert
    takes a fresh block with the same error.
    """
    return comparisons * (rate / 2.0) ** 2
