"""Judges a block while it is measured and afterwards: whether another round follows, which arms to trace, the verdicts.

The farm judges each round's report as it comes, `onnxfarm bench` does the same on one machine, and a page judges the
stored reports again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import log
from typing import Literal

from farm.contract.reports import (
    AccuracyReport,
    CheckReport,
    EnginesReport,
    FactsReport,
    Reply,
    Report,
    RoundReport,
    TraceReport,
)
from farm.contract.verdicts import Verdict
from farm.rules.cells import scenarios
from farm.rules.cells.axes import ASKED_ORDER
from farm.rules.comparing import look_levels, margins, slow_launches, verdicts
from farm.rules.comparing.comparisons import Comparison
from farm.rules.comparing.pooled import Pair, judge_enough, pool_rounds
from farm.rules.comparing.slow_launches import SlowLaunches
from farm.rules.judging import comparability, counted_rounds
from farm.rules.judging.counted_rounds import Paired, VerdictFrom
from farm.rules.judging.evidence import Evidence
from farm.rules.planning.blocks import TWIN
from farm.rules.planning.estimates import ROUNDS
from farm.rules.planning.plans import MAX_ORDERED_ROUNDS, PlannedBlock, PlannedComparison, max_rounds_to_order
from farm.rules.wording.vocabulary import is_change

# comparisons along these axes are explained by their operators where they are called slower or faster
EXPLAINED_AXES = frozenset({"model", "runtime", "provider", "session"})
# an explanation takes the first trace of each arm and this many interleaved ones
MORE_TRACES = 4
# the kinds of reports that come before the rounds
BEFORE_ROUNDS = (FactsReport, CheckReport, EnginesReport, AccuracyReport)


@dataclass(frozen=True, slots=True)
class Judged:
    """A comparison of a block with its verdict."""

    planned: PlannedComparison
    verdict: Verdict
    # by wall time, processor time or the highest rate, as `verdict_from` says; None if there are too few pairs
    figures: Comparison | None = None
    # how many rounds the figures rest on
    rounds: int = 0
    # after how many rounds it was decided or is expected to be; None if no number of rounds will, or if not known
    rounds_needed: int | None = None
    # how many launches of each arm were slow; None without figures
    slow: SlowLaunches | None = None
    # sentences on why there is no verdict, or on what limits it; empty where the figures say enough
    reason: str = ""
    verdict_from: VerdictFrom = "wall"
    # the figures of wall time and of processor time; None where there are too few pairs
    wall: Comparison | None = None
    processor: Comparison | None = None
    # how many rounds other programs disturbed, up to the last look
    disturbed: int = 0

    @property
    def rounds_set_aside(self) -> int:
        """How many of `rounds` do not count, because they fell on a slow launch."""
        if self.figures is None:
            return 0
        return self.figures.set_aside * self.rounds // self.figures.rounds_used

    @property
    def is_decided(self) -> bool:
        """Whether the verdict is anything but undecided: `not comparable` counts as decided."""
        return self.verdict != "undecided"

    @property
    def smallest_detectable(self) -> float | None:
        """The smallest change that these rounds detect, as a fraction; None where they are too few to detect any."""
        figures = self.figures
        return None if figures is None or figures.rounds_used < look_levels.LOOKS[0] else figures.smallest_detectable


class BlockJudge:
    """Judges one block while it is measured: takes its reports and answers each of them.

    `max_rounds` replaces the limit of the block's budget. `reports` are those made before, in order. `round_count`
    counts the rounds so far, disturbed ones too.
    """

    def __init__(self, block: PlannedBlock, *, max_rounds: int | None = None, reports: Iterable[Report] = ()) -> None:
        self.block = block
        self.max_rounds = block.max_rounds if max_rounds is None else max_rounds
        self.evidence = Evidence.of(reports)
        self._comparisons: list[Judged] | None = None

    def take(self, report: Report) -> Reply:
        """Add a report and answer it, as `reply` does. Adding the same report again changes nothing."""
        self.evidence.take(report)
        self._comparisons = None
        return self.reply(report)

    def reply(self, report: Report) -> Reply:
        """Answer an added report: whether the node goes on, and after the last round which arms it traces again.

        The answer to such a further trace, and to a report of any later kind, is to stop.
        """
        if isinstance(report, BEFORE_ROUNDS):
            return Reply(go_on=True)
        if isinstance(report, TraceReport):
            return Reply(go_on=report.trace_round == 0)
        if not isinstance(report, RoundReport):
            return Reply(go_on=False)
        if self.wants_more_rounds():
            return Reply(go_on=True)
        arms = self.arms_to_explain()
        return Reply(go_on=False, trace_arms=arms, trace_rounds=MORE_TRACES if arms else 0)

    @property
    def round_count(self) -> int:
        return len(self.evidence.rounds)

    @property
    def noise(self) -> tuple[float, Literal["node", "block", "assumed"]]:
        """The standard deviation of ln(new / old) of identical launches, and where it is from.

        It is the node's own, or that of this block's A/A pairs, or assumed.
        """
        if not self.block.is_noise_assumed:
            return self.block.noise, "node"
        twins = [self.pair_rounds(planned).deciding for planned in self.twins]
        floor = margins.estimate_noise_floor([[log(new / old) for old, new in pairs] for pairs in twins])
        return (floor.deviation, "block") if floor is not None else (self.block.noise, "assumed")

    @cached_property
    def twins(self) -> list[PlannedComparison]:
        """The comparisons of a cell with itself. They are cached, because a digest takes longer than a comparison."""
        digests = [arm.spec.digest for arm in self.block.arms]
        return [
            comparison
            for comparison in self.block.comparisons
            if digests[comparison.baseline] == digests[comparison.candidate]
        ]

    def wants_more_rounds(self) -> bool:
        """Whether the node should measure another round, within the budget: a comparison is still undecided.

        Below the minimum number of rounds it should in any case, unless its time is over or every arm failed. For a
        pipeline a comparison of twins need not be decided.
        """
        has_measured_arm = any(self.evidence.failure(arm.arm) is None for arm in self.block.arms)
        is_at_limit = self.round_count >= rounds_to_order(self.block, max_rounds=self.max_rounds)
        if self.evidence.is_out_of_time or is_at_limit or not has_measured_arm:
            return False
        if self.round_count < self.block.min_rounds:
            return True
        undecided = [judged.planned for judged in self.comparisons() if not judged.is_decided]
        if self.block.is_of_pipeline:
            undecided = [planned for planned in undecided if planned.axis != TWIN]
        return any(len(self.pair_rounds(planned).deciding) < self.max_rounds for planned in undecided)

    def pair_rounds(self, planned: PlannedComparison) -> Paired:
        """Pair the rounds of a comparison that count for its verdict, up to now."""
        arms, block = (planned.baseline, planned.candidate), self.block
        if scenarios.of_cell(block.arms[planned.candidate].spec).looks_for_a_rate:
            return counted_rounds.pair_rates(self.evidence, *arms)
        return counted_rounds.pair_rounds(
            self.evidence, *arms, min_rounds=block.min_rounds, by_processor=block.is_of_pipeline
        )

    def traced_rounds(self, planned: PlannedComparison) -> list[tuple[Sequence[float], Sequence[float]]]:
        """List the times of both arms' nodes in µs of the rounds that count and traced both arms, in order."""
        old, new = (self.evidence.node_times(arm) for arm in (planned.baseline, planned.candidate))
        numbers = self.pair_rounds(planned).numbers
        return [(old[number], new[number]) for number in numbers if number in old and number in new]

    def arms_to_explain(self) -> tuple[int, ...]:
        """List the arms that need more traces: those of comparisons that are slower or faster, or that have two phases.

        Only comparisons along the axes model, runtime, provider and session count, and only those with at most four
        traced rounds. They are ordered by the axis that readers ask for first, then slower ones before others, then the
        largest changes first, because busy nodes trace fewer arms. Both arms of a comparison follow each other.
        """
        explained = [
            judged
            for judged in self.comparisons()
            if judged.planned.axis in EXPLAINED_AXES
            and (is_change(judged.verdict) or self._has_phases(judged))
            and len(self.traced_rounds(judged.planned)) <= MORE_TRACES
        ]
        ordered = [judged.planned for judged in sorted(explained, key=_sort_key)]
        return tuple(dict.fromkeys(arm for planned in ordered for arm in (planned.baseline, planned.candidate)))

    def _has_phases(self, judged: Judged) -> bool:
        """Whether the verdict is about one phase of two, the prompt or the tokens, and the other may have changed."""
        spec = self.block.arms[judged.planned.baseline].spec
        is_comparable = judged.verdict != "not comparable" and judged.figures is not None
        return is_comparable and scenarios.of_cell(spec).takes_prompts

    def comparisons(self) -> list[Judged]:
        """Judge every planned comparison by the reports so far, in the order of the plan."""
        if self._comparisons is None:
            self._comparisons = self.judge(self.block.comparisons)
        return self._comparisons

    def judge(self, comparisons: Sequence[PlannedComparison]) -> list[Judged]:
        """Judge these planned comparisons by the reports so far, in the order given."""
        per_pair = ROUNDS[self.block.budget].per_pair
        paired = [self.pair_rounds(planned) for planned in comparisons]
        # comparisons are judged together because that is faster
        by_wall = self._judge_pairs([rounds.wall for rounds in paired], per_pair=per_pair)
        by_processor = self._judge_pairs([rounds.processor for rounds in paired], per_pair=per_pair)
        results = []
        for planned, rounds, wall, processor in zip(comparisons, paired, by_wall, by_processor, strict=True):
            obstacle = comparability.find_obstacle(planned, self.block, self.evidence)
            too_few = "" if obstacle else self._explain_too_few(rounds)
            note = " ".join(filter(None, (comparability.describe_confounders(planned, self.evidence), too_few)))

            figures = processor if rounds.verdict_from == "processor" else wall
            judged = _make_judged(planned, figures, obstacle=obstacle, note=note, per_pair=per_pair)
            covered = rounds.limit_to_pairs(judged.rounds)
            judged = replace(
                judged,
                verdict_from=rounds.verdict_from,
                wall=None if rounds.verdict_from == "rate" else wall,
                processor=processor,
                disturbed=len(covered.disturbed),
            )
            results.append(_add_explanations(judged, covered))
        return results

    def _judge_pairs(self, blocks: Sequence[Sequence[Pair]], *, per_pair: int) -> list[Comparison | None]:
        pooled = [pool_rounds(pairs, per_pair=per_pair) for pairs in blocks]
        return judge_enough(pooled, partial(verdicts.judge_many, margin=self.block.margin))

    def _explain_too_few(self, paired: Paired) -> str:
        """Say that a comparison has fewer rounds than the first look takes; empty if it has enough."""
        counting, min_rounds = len(paired.deciding), look_levels.LOOKS[0] * ROUNDS[self.block.budget].per_pair
        if counting >= min_rounds:
            return ""
        is_out_of_time = self.evidence.is_out_of_time and self.round_count < min_rounds
        return counted_rounds.explain_too_few_pairs(
            counting, measured=self.round_count, min_rounds=min_rounds, is_out_of_time=is_out_of_time
        )


def goes_on_in_any_case(report: Report, block: PlannedBlock, *, max_rounds: int) -> bool:
    """Whether the node goes on after this report whatever the earlier ones say, so that they need not be loaded.

    It does after reports that come before the rounds, and after a round with a sample before the minimum number of
    rounds, unless the node says that this round is its last. Rounds are numbered from 0 without gaps.
    """
    if isinstance(report, BEFORE_ROUNDS):
        return True
    if not isinstance(report, RoundReport) or report.is_last:
        return False
    if not any(entry.sample for entry in report.samples if not entry.reason):
        return False
    return report.round + 1 < min(block.min_rounds, max_rounds_to_order(max_rounds))


def rounds_to_order(block: PlannedBlock, *, max_rounds: int | None = None) -> int:
    """Return how many rounds a node may measure: `max_rounds`, and more where disturbed rounds are replaced.

    `max_rounds` is that of the block unless it is given.
    """
    wanted = block.max_rounds if max_rounds is None else max_rounds
    return max_rounds_to_order(wanted) if block.is_replacing else wanted


def _make_judged(
    planned: PlannedComparison, figures: Comparison | None, *, obstacle: str, note: str, per_pair: int
) -> Judged:
    if figures is None:
        verdict: Verdict = "not comparable" if obstacle else "undecided"
        return Judged(planned, verdict, reason=obstacle or note)
    needed = None if figures.rounds_needed is None else figures.rounds_needed * per_pair
    if needed is not None and needed > MAX_ORDERED_ROUNDS:
        needed = None
    texts = (obstacle, note) if obstacle else (figures.reason, note, look_levels.describe_looks(figures.rounds_used))
    return Judged(
        planned,
        "not comparable" if obstacle else figures.verdict,
        figures=figures,
        rounds=figures.rounds_used * per_pair,
        rounds_needed=None if obstacle else needed,
        reason=" ".join(filter(None, texts)),
    )


def _sort_key(judged: Judged) -> tuple[int, bool, float]:
    size = 0.0 if judged.figures is None else abs(log(judged.figures.ratio))
    return ASKED_ORDER.index(judged.planned.axis), judged.verdict != "slower", -size


def _add_explanations(judged: Judged, paired: Paired) -> Judged:
    """Add to the reason what is known of rounds that do not count and of slow launches, and count the latter."""
    if judged.figures is None:
        return judged
    slow = slow_launches.count_slow_launches(paired.deciding)
    sentences = (
        judged.reason,
        slow_launches.describe_slow_launches(slow, set_aside=judged.rounds_set_aside, rounds=judged.rounds),
        counted_rounds.describe_disturbance(paired, wall=judged.wall),
        look_levels.describe_later_rounds(len(paired.deciding) - judged.rounds, look=judged.rounds),
    )
    return replace(judged, slow=slow, reason=" ".join(filter(None, sentences)))
