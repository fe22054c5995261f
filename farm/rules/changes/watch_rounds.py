"""What a watch makes of a measured block: does something that somebody must look at stand between two runtimes?

Both runtimes were measured in the same block, and what is a number alerts by its verdict over the rounds, never by two
values. Latency, session creation, first inference, memory and endings are noisy, so that a finding among them only
counts once a fresh block has confirmed it; parity and placement are deterministic.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Annotated, Literal

from pydantic import Field

from farm.contract.base import Message, digest_of
from farm.contract.cells import SINGLE, LaterAxes, Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell, ParityOutput
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.contract.reasons import CellStatus, ReasonCode
from farm.rules.cells import label, scenarios
from farm.rules.cells.metrics import ALERTING
from farm.rules.comparing.comparisons import TOTAL_LEVEL
from farm.rules.comparing.sides import BySides, between, by_sides
from farm.rules.findings.kinds import KEYS, KINDS, Key, rank
from farm.rules.presenting import metric_changes, sentences
from farm.rules.runtimes import pairs as package_pairs
from farm.rules.tracing.placement import cell_changes
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
# both sides fail parity: errors that grew by this factor are worse
WORSE_PARITY = 2.0

Fraction = Annotated[float, Field(ge=0.0, le=100.0)]


class Rule(Message):
    """Which changes alert. Thresholds are fractions: 0.05 lets 5 % pass. `kinds`: what alerts at all.

    `latency` is that of the first token too; growth alerts by its verdict alone.
    """

    latency: Fraction = 0.05
    session: Fraction = 0.5
    first: Fraction = 0.5
    memory: Fraction = 0.2
    kinds: tuple[Key, ...] = KEYS

    def allowed(self, kind: Key) -> float:
        """How much of a kind of change passes, as a fraction."""
        limit = KINDS[kind].limit
        allowed: float = 0.0 if limit is None else getattr(self, limit)
        return allowed

    def words(self) -> list[str]:
        """What alerts, a line for each kind."""
        return [KINDS[kind].alerts_on.format(limit=share(self.allowed(kind))) for kind in self.kinds]


@dataclass(frozen=True, slots=True)
class Finding:
    """One change of one series. `size`: new / old, where it is a ratio. `baseline`, `candidate`: cells of the document.

    `series` names the series without its node; `node` measured it.
    """

    kind: Key
    series: str
    baseline: str
    candidate: str
    node: str | None
    text: str
    size: float | None = None

    @property
    def is_noisy(self) -> bool:
        """Whether a fresh block has to show it again."""
        return KINDS[self.kind].is_noisy


@dataclass(frozen=True, slots=True)
class Judgement:
    """What stands between two runtimes in one document. `undecided`: why nothing can be said of a series yet.

    `compared`: pairs of cells that both finished.
    """

    findings: tuple[Finding, ...] = ()
    news: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    infra: tuple[str, ...] = ()
    compared: int = 0
    # (kind, series) of which the measurement says that nothing is wrong: what can resolve an alert
    cleared: frozenset[tuple[Key, str]] = frozenset()

    @property
    def outcome(self) -> Outcome:
        """One word; a broken pipeline is never quiet."""
        if self.findings:
            return "alert"
        if self.infra or not (self.compared or self.undecided):
            return "infra"
        return "undecided" if self.undecided else "news" if self.news else "quiet"


@dataclass(slots=True)
class _Notes:
    findings: list[Finding] = field(default_factory=list)
    news: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    infra: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Pair:
    """The same point measured with two runtimes, in one block where it could be. `comparison` is new / old."""

    old: Cell
    new: Cell
    comparison: Comparison | None = None

    @property
    def series(self) -> str:
        """Which line over time the pair belongs to."""
        return series_of(self.old)


def series_of(cell: Cell) -> str:
    """The series of a cell without its node and without versions: model line, recipe, provider, workload, session."""
    session = {key: value for key, value in cell.session.items() if key != "name"}
    recipe = [cell.precision, cell.recipe]
    workload = [cell.batch, cell.shapes, cell.concurrency]
    provider = [cell.provider, cell.provider_options]
    setting = [cell.threads, session, cell.optimization]
    known = [cell.model, cell.runtime.distribution, recipe, provider, workload, setting]
    # those with other values than their defaults alone: without any the series is the one of before
    later = cell.model_dump(mode="json", include=set(LaterAxes.model_fields))
    scenario = scenarios.said_in(cell.scenario).along_axis
    later |= {"scenario": scenario} if scenario != SINGLE else {}
    return digest_of([*known, later] if later else known)[:32]


def place_of(cell: Cell) -> tuple[str, str]:
    """The series and the hardware that was asked for: what two cells share that may be paired."""
    return series_of(cell), cell.hardware


def series_label(cell: Cell) -> str:
    """The series in words."""
    return ", ".join(part for part in (cell.model, label.series(cell)) if part)


def pairs(document: Document, *, old: Runtime | str, new: Runtime | str, of_models: bool = False) -> list[Pair]:
    """Cells of `old` and `new` that differ in nothing else, of one block if possible.

    A pair for each series and hardware. `old` is what `new` is compared with; it may be the later release of the two.
    `of_models`: both are names of models, and a pair has one release.
    """
    by_place: dict[tuple[str, ...], dict[Runtime | str, list[Cell]]] = {}
    for cell in document.cells:
        side: Runtime | str = (cell.model or "") if of_models else cell.runtime
        if side in (old, new) and cell.twin_of is None:
            place = (
                (*place_of(cell.model_copy(update={"model": None})), str(cell.runtime)) if of_models else place_of(cell)
            )
            by_place.setdefault(place, {}).setdefault(side, []).append(cell)
    comparisons = by_sides(document.comparisons)
    return [
        _pair(sides[old], sides[new], comparisons)
        for sides in by_place.values()
        if old != new and old in sides and new in sides
    ]


def _pair(olds: Sequence[Cell], news: Sequence[Cell], comparisons: BySides) -> Pair:
    together = [(a, b) for a in olds for b in news if a.block and a.block == b.block]
    old, new = together[0] if together else (olds[0], news[0])
    return Pair(old, new, between(comparisons, old.id, new.id))


def judge(document: Document, rule: Rule, *, old: Runtime, new: Runtime) -> Judgement:
    """Judge every pair of `old` and `new` in the document against the rule."""
    found = pairs(document, old=old, new=new)
    notes = _Notes()
    for pair in found:
        _judge_pair(pair, rule, notes)
    finished = [pair for pair in found if _is_done(pair.old) and _is_done(pair.new)]
    wrong = {(one.kind, one.series) for one in notes.findings}
    return Judgement(
        findings=tuple(notes.findings),
        news=tuple(notes.news),
        undecided=tuple(notes.undecided),
        infra=tuple(notes.infra),
        compared=len(finished),
        cleared=frozenset((kind, pair.series) for pair in finished for kind in _cleared(pair)) - wrong,
    )


def _cleared(pair: Pair) -> list[Key]:
    """The kinds that a finished pair was measured for and, apart from findings, is well in."""
    verdict = pair.comparison.verdict if pair.comparison is not None else None
    is_well: dict[Key, bool] = {
        "slower": verdict in ("equal", "faster"),
        "parity": pair.new.parity.verdict == "pass",
        "placement": bool(pair.old.operators and pair.new.operators),
        "failed": True,
    }
    judged = [kind for change, kind, _ in _alerting(pair) if change.verdict != "undecided"]
    return [*(kind for kind, well in is_well.items() if well), *judged]


def _alerting(pair: Pair) -> Iterator[tuple[MetricChange, Key, float]]:
    """The metrics of which a change alerts, by their own verdicts: the kind, and the least change that is one."""
    for change in metric_changes.further(pair.comparison) if pair.comparison is not None else ():
        judging = ALERTING.get(change.name)
        if judging is not None and judging.alerts_as is not None:
            yield change, judging.alerts_as, judging.min_alert


def _judge_pair(pair: Pair, rule: Rule, notes: _Notes) -> None:
    if not (_is_done(pair.old) and _is_done(pair.new)):
        _judge_ending(pair, rule, notes)
        return
    _judge_latency(pair, rule, notes)
    _judge_parity(pair, rule, notes)
    _judge_placement(pair, rule, notes)
    _judge_metrics(pair, rule, notes)


def _is_done(cell: Cell) -> bool:
    return cell.status is CellStatus.DONE


def _judge_ending(pair: Pair, rule: Rule, notes: _Notes) -> None:
    """A cell without numbers on one side or both."""
    broken = [cell for cell in (pair.old, pair.new) if not _is_done(cell)]
    infra = [cell for cell in broken if cell.reason is not None and cell.reason.code in INFRA_CODES]
    if infra:
        notes.infra.append(f"{series_label(infra[0])} on {infra[0].runtime}: {_why(infra[0])}")
    elif _is_done(pair.old):
        text = f"{series_label(pair.new)} worked on {pair.old.runtime} and is {pair.new.status} on {pair.new.runtime}: "
        _note(notes, rule, "failed", pair, text + _why(pair.new))
    elif _is_done(pair.new):
        notes.news.append(f"{series_label(pair.new)} works on {pair.new.runtime}; on {pair.old.runtime} it did not.")
    # failing on both sides is no change


def _why(cell: Cell) -> str:
    return cell.reason.text if cell.reason is not None else "no reason was given."


def _note(notes: _Notes, rule: Rule, kind: Key, pair: Pair, text: str, *, size: float | None = None) -> None:
    """Keeps a finding if the rule alerts on its kind; otherwise it is news. Of two packages it says which moved."""
    text = f"{text} {package_pairs.moved_sentence(pair.old.runtime, pair.new.runtime)}".rstrip()
    if kind in rule.kinds:
        found = Finding(kind, pair.series, pair.old.id, pair.new.id, pair.old.node, text, size)
        notes.findings.append(found)
    else:
        notes.news.append(text)


def _judge_latency(pair: Pair, rule: Rule, notes: _Notes) -> None:
    comparison = pair.comparison
    if comparison is None:
        notes.undecided.append(f"{series_label(pair.new)}: not measured in one block.")
        return
    # without the sign in front: the kind of the finding says it
    signed = sentences.comparison_sentence(comparison, {pair.old.id: pair.old, pair.new.id: pair.new})
    text = signed.partition(": ")[2]
    if comparison.verdict in ("undecided", "not comparable"):
        if not is_surely_let_pass(comparison, rule):
            notes.undecided.append(text)
    elif comparison.verdict == "faster":
        notes.news.append(text)
    elif (
        comparison.verdict == "slower"
        and comparison.ratio is not None
        and comparison.ratio > 1.0 + rule.allowed("slower")
    ):
        _note(notes, rule, "slower", pair, text, size=comparison.ratio)


def is_surely_let_pass(comparison: Comparison, rule: Rule) -> bool:
    """Undecided, with an interval that ends below what the rule lets pass: equal, faster or a little slower."""
    high = comparison.ci_high
    return comparison.verdict == "undecided" and high is not None and high <= 1.0 + rule.latency


def _judge_parity(pair: Pair, rule: Rule, notes: _Notes) -> None:
    before, after = pair.old.parity, pair.new.parity
    what = f"{series_label(pair.new)} on {pair.new.runtime}"
    if after.verdict == "fail" and before.verdict != "fail":
        _note(notes, rule, "parity", pair, f"{what} fails parity, which {pair.old.runtime} keeps: {after.text}")
    elif after.verdict == "fail" and (grown := parity_growth(before.outputs, after.outputs)):
        _note(notes, rule, "parity", pair, f"{what} is further off than on {pair.old.runtime}: {grown}")
    elif after.verdict == "pass" and before.verdict == "fail":
        notes.news.append(f"{what} keeps parity, which {pair.old.runtime} failed.")
    elif after.verdict == "not_measured" and before.verdict != "not_measured":
        notes.undecided.append(f"{what}: its parity was not measured. {after.text}".strip())


def parity_growth(before: Iterable[ParityOutput], after: Iterable[ParityOutput]) -> str:
    """The output whose error grew most, in words; empty when none grew by WORSE_PARITY."""
    known = {output.name: output.rmse for output in before}
    sizes = [(output.name, known.get(output.name), output.rmse) for output in after]
    grown = [(new / old, name, old, new) for name, old, new in sizes if old and new and new > WORSE_PARITY * old]
    if not grown:
        return ""
    factor, name, old, new = max(grown)
    return f"the error of {name} grew ×{factor:.2g}, from RMSE {old:.2g} to {new:.2g}."


def _judge_placement(pair: Pair, rule: Rule, notes: _Notes) -> None:
    if not (pair.old.operators and pair.new.operators):
        return
    changes = cell_changes(pair.old, pair.new)
    worse = [change.sentence() for change in changes if change.is_worse]
    better = [change.sentence() for change in changes if not change.is_worse]
    where = f"{series_label(pair.new)}, {pair.old.runtime} → {pair.new.runtime}"
    if worse:
        _note(notes, rule, "placement", pair, f"{where}: {' '.join(worse)}")
    if better:
        notes.news.append(f"{where}: {' '.join(better)}")


def _judge_metrics(pair: Pair, rule: Rule, notes: _Notes) -> None:
    """Metrics that are decided to be worse, by more than the rule lets pass; what looks so and is undecided needs more
    rounds."""
    for change, kind, least in _alerting(pair):
        if change.verdict == "equal" or abs(change.candidate - change.baseline) < least:
            continue
        text = f"{series_label(pair.new)}: {metric_changes.words(change)}, {change.verdict} from {pair.old.runtime} to "
        text += f"{pair.new.runtime}."
        is_beyond = change.ratio is None or change.ratio > 1.0 + rule.allowed(kind)
        if change.verdict == "undecided":
            if is_beyond and kind in rule.kinds:
                notes.undecided.append(text)
        elif metric_changes.is_gain(change):
            notes.news.append(text)
        elif is_beyond:
            _note(notes, rule, kind, pair, text, size=change.ratio)


def confirmed(findings: Sequence[Finding], again: Judgement) -> tuple[list[Finding], list[Finding]]:
    """Findings that hold, and noisy ones that a fresh block on their node does not show again."""
    shown = {(one.kind, one.series, one.node) for one in again.findings}
    holds = [one for one in findings if not one.is_noisy or (one.kind, one.series, one.node) in shown]
    return holds, [one for one in findings if one not in holds]


def worst(findings: Collection[Finding]) -> Finding:
    """The finding to open with: wrong before failed before slower, then the larger change."""
    return min(findings, key=lambda one: (rank(one.kind), -abs(log(one.size or 1.0))))


def expected_false_alerts(comparisons: int, *, rate: float = TOTAL_LEVEL) -> float:
    """How many alerts on latency so many comparisons of unchanged pairs would raise, on average.

    `rate`: how often an A/A pair is called slower or faster. Half of those are slower, and the fresh block has to err
    the same way again.
    """
    return comparisons * (rate / 2.0) ** 2
