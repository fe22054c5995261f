"""Judges comparisons metric by metric, each by the method that fits its noise."""

from collections.abc import Sequence
from functools import partial
from statistics import fmean, median
from typing import NamedTuple

from farm.contract.document_comparisons import MetricChange
from farm.contract.verdicts import MetricVerdict, Verdict
from farm.rules.cells import scenarios
from farm.rules.cells.metric import Judging, Metric
from farm.rules.cells.metrics import BY_NAME, COMPARED, JUDGED
from farm.rules.comparing import differences, fastest, look_levels, repeats, verdicts
from farm.rules.comparing.comparisons import Comparison
from farm.rules.comparing.pooled import Pair, judge_enough, pool_rounds
from farm.rules.comparing.repeats import Direction, Repeated
from farm.rules.judging import counted_rounds
from farm.rules.judging.block_verdicts import BlockJudge, Judged
from farm.rules.judging.counted_rounds import RATE
from farm.rules.judging.evidence import read_pairs
from farm.rules.planning.estimates import ROUNDS
from farm.rules.wording.numbers import counted, percent


class _PairedLaunches(NamedTuple):
    """The figures of a metric in launches of both arms, by wall-clock time or by processor time."""

    pairs: list[Pair]
    is_processor: bool


def judge_metrics(judge: BlockJudge, judged: Sequence[Judged]) -> list[list[MetricChange]]:
    """List the changes of metrics for each comparison: the headline, then every further metric in the table's order.

    `judged` are comparisons of this judge. A comparison that is not comparable has an empty list.

    A metric of the comparison's scenario is listed if launches of both arms report it in at least two rounds that
    count, or four where the budget pools rounds. Figures of 0 or below count only where differences are judged. A
    metric that is judged by repeat is listed after a single round too, as undecided with the reason.
    """
    by_comparison = [_list_headline(judge, comparison) for comparison in judged]
    kinds = [scenarios.of_cell(judge.block.arms[comparison.planned.candidate].spec).kind for comparison in judged]
    for metric, judging in COMPARED:
        places = [
            place
            for place, (comparison, kind) in enumerate(zip(judged, kinds, strict=True))
            if metric is not (RATE if comparison.verdict_from == "rate" else JUDGED)
            and comparison.verdict != "not comparable"
            and (not judging.kinds or kind in judging.kinds)
        ]
        changes = _JUDGES[judging.by](judge, [judged[place] for place in places], metric, judging)
        for place, change in zip(places, changes, strict=True):
            by_comparison[place] += [] if change is None else [change]
    return by_comparison


def find_pairs(judge: BlockJudge, judged: Judged, change: MetricChange) -> list[Pair]:
    """Return the (baseline, candidate) pairs of launches, of all rounds that count, for the metric of a change.

    For latency these are the pairs that the headline rests on. For a metric that is judged by repeat they may lack
    disturbed rounds that its change includes. Raises KeyError for the name of no metric.
    """
    if change.name == JUDGED.name:
        return judge.pair_rounds(judged.planned).deciding
    return _pair_launches(judge, judged, BY_NAME[change.name]).pairs


def _list_headline(judge: BlockJudge, judged: Judged) -> list[MetricChange]:
    """List the change of latency, or of the highest rate where that is looked for; empty without figures."""
    figures = judged.figures
    if figures is None or judged.verdict == "not comparable":
        return []
    pairs = judge.pair_rounds(judged.planned).deciding
    if judged.verdict_from != "rate":
        return [_add_ratio(_make_change(pairs, figures, JUDGED, judged.verdict, rounds=judged.rounds), figures)]
    rates = [(1000.0 / old, 1000.0 / new) for old, new in pairs]
    word = _choose_word(judged.verdict, ("lower", "higher"))
    change = _make_change(rates, figures, RATE, word, rounds=judged.rounds)
    inverse = {"ratio": 1.0 / figures.ratio, "ci_low": 1.0 / figures.ci_high, "ci_high": 1.0 / figures.ci_low}
    return [change.model_copy(update=inverse)]


def _judge_by_repeat(
    judge: BlockJudge, judged: Sequence[Judged], metric: Metric, judging: Judging
) -> list[MetricChange | None]:
    changes: list[MetricChange | None] = []
    for comparison in judged:
        arms = comparison.planned.baseline, comparison.planned.candidate
        # other programs do not change how much memory a launch takes
        all_pairs = judge.evidence.pairs(*arms, metric=metric, with_disturbed=True)
        pairs = [pair for pair in all_pairs if min(pair) > 0.0]

        # the larger of the metric's margin and that of its A/A pairs on the node, in the metric's unit
        baseline = median(old for old, _ in pairs) if pairs else 0.0
        margin = judging.margin * (baseline if judging.is_share else 1.0)
        repeated = repeats.judge(pairs, margin=max(margin, judge.block.margins.get(metric.name, 0.0) * baseline))
        if repeated is None:
            changes.append(None)
            continue
        reason = ""
        if repeated.rounds < repeats.MIN_ROUNDS:
            reason = counted_rounds.explain_single_pair(is_out_of_time=judge.evidence.is_out_of_time)
        changes.append(_make_repeat_change(repeated, metric, judging, reason=reason))
    return changes


def _make_repeat_change(repeated: Repeated, metric: Metric, judging: Judging, *, reason: str) -> MetricChange:
    return MetricChange(
        name=metric.name,
        unit=metric.unit,
        baseline=repeated.baseline,
        candidate=repeated.candidate,
        ratio=repeated.ratio,
        ci_low=repeated.low,
        ci_high=repeated.high,
        verdict=_choose_word(repeated.direction, judging.words),
        margin=repeated.margin,
        rounds=repeated.rounds,
        reason=reason,
    )


def _judge_by_difference(
    judge: BlockJudge, judged: Sequence[Judged], metric: Metric, judging: Judging
) -> list[MetricChange | None]:
    per_pair = ROUNDS[judge.block.budget].per_pair
    blocks = [_pair_launches(judge, comparison, metric).pairs for comparison in judged]
    pooled = [pool_rounds(pairs, per_pair=per_pair, mean=fmean) for pairs in blocks]
    results = judge_enough(pooled, partial(differences.judge_many, margin=judging.margin))
    changes: list[MetricChange | None] = []
    for pairs, difference in zip(blocks, results, strict=True):
        if difference is None:
            changes.append(None)
            continue
        figures = difference.comparison
        word = _choose_word(figures.verdict, judging.words)
        change = _make_change(pairs, figures, metric, word, rounds=figures.rounds_used * per_pair)
        interval = {"change": difference.change, "change_low": difference.low, "change_high": difference.high}
        changes.append(change.model_copy(update={"margin": judging.margin, **interval}))
    return changes


def _judge_by_ratio(
    judge: BlockJudge, judged: Sequence[Judged], metric: Metric, judging: Judging
) -> list[MetricChange | None]:
    per_pair = ROUNDS[judge.block.budget].per_pair
    launches = [_pair_launches(judge, comparison, metric) for comparison in judged]
    blocks = [[pair for pair in paired.pairs if min(pair) > 0.0] for paired in launches]
    # the larger of the metric's margin and that of its A/A pairs on the node
    margin = max(judging.margin, judge.block.margins.get(metric.name, judge.block.margin))
    judge_many = fastest.judge_many if judging.by == "fastest" else verdicts.judge_many
    pooled = [pool_rounds(pairs, per_pair=per_pair) for pairs in blocks]
    results = judge_enough(pooled, partial(judge_many, margin=margin))
    changes: list[MetricChange | None] = []
    for comparison, pairs, figures, paired in zip(judged, blocks, results, launches, strict=True):
        if figures is None:
            changes.append(None)
            continue
        word = _choose_word(figures.verdict, judging.words)
        change = _make_change(pairs, figures, metric, word, rounds=figures.rounds_used * per_pair)
        reason = _explain_undecided(figures, timed=len(pairs), rounds=comparison.rounds)
        update = {"is_processor": paired.is_processor, "reason": reason}
        changes.append(_add_ratio(change, figures).model_copy(update=update))
    return changes


def _explain_undecided(figures: Comparison, *, timed: int, rounds: int) -> str:
    """Say what keeps a metric undecided: noise, or too few rounds, some of which did not time it; empty if decided."""
    if figures.verdict != "undecided":
        return ""
    if figures.rounds_used >= look_levels.LOOKS[0]:
        return f"Changes under {percent(figures.smallest_detectable)} cannot be detected yet."
    too_few = look_levels.explain_too_few_rounds(figures.rounds_used)
    return f"{timed} of {counted(rounds, 'round')} timed it: {too_few}" if timed < rounds else too_few.capitalize()


_JUDGES = {
    "repeat": _judge_by_repeat,
    "difference": _judge_by_difference,
    "ratio": _judge_by_ratio,
    "fastest": _judge_by_ratio,
}


def _pair_launches(judge: BlockJudge, judged: Judged, metric: Metric) -> _PairedLaunches:
    """Pair the launches of the rounds that count for latency, where both report the metric.

    The pairs are processor times if the verdict on latency rests on them and every launch has one for this metric.
    """
    arms = judged.planned.baseline, judged.planned.candidate
    paired = counted_rounds.pair_rounds(
        judge.evidence, *arms, min_rounds=judge.block.min_rounds, by_processor=judge.block.is_of_pipeline
    )
    by_round = judge.evidence.sample_pairs(*arms)
    samples = [by_round[number] for number in paired.numbers]
    by_clock = read_pairs(samples, metric.read_figure)
    if paired.verdict_from != "processor":
        return _PairedLaunches(by_clock, is_processor=False)
    by_processor = read_pairs(samples, metric.read_processor_time)
    is_processor = 0 < len(by_processor) == len(by_clock)
    return _PairedLaunches(by_processor if is_processor else by_clock, is_processor)


def _make_change(
    pairs: Sequence[Pair], figures: Comparison, metric: Metric, verdict: MetricVerdict, *, rounds: int
) -> MetricChange:
    """Make a change of medians, without ratio or difference, over the `rounds` up to the verdict's last look."""
    baseline, candidate = (median(side) for side in zip(*pairs[:rounds], strict=True))
    return MetricChange(
        name=metric.name,
        unit=metric.unit,
        baseline=baseline,
        candidate=candidate,
        verdict=verdict,
        margin=figures.margin,
        rounds=rounds,
        p=figures.p_total,
    )


def _add_ratio(change: MetricChange, figures: Comparison) -> MetricChange:
    return change.model_copy(update={"ratio": figures.ratio, "ci_low": figures.ci_low, "ci_high": figures.ci_high})


def _choose_word(verdict: Verdict | Direction, words: tuple[MetricVerdict, MetricVerdict]) -> MetricVerdict:
    """Return the verdict in the metric's own words, which are those for more of it and for less."""
    if verdict in ("slower", "more"):
        return words[0]
    if verdict in ("faster", "less"):
        return words[1]
    return "equal" if verdict == "equal" else "undecided"
