"""The verdicts of comparisons, metric by metric: each that both arms' launches say, by the way its noise is judged."""

from collections.abc import Sequence
from statistics import median

from farm.contract.document_comparisons import MetricChange
from farm.contract.verdicts import MetricVerdict, Verdict
from farm.rules.cells import scenarios
from farm.rules.cells.metric import Judging, Metric
from farm.rules.cells.metrics import BY_NAME, COMPARED, JUDGED
from farm.rules.comparing import differences, fastest, look_levels, repeats, verdicts
from farm.rules.comparing.comparisons import Comparison
from farm.rules.comparing.pooled import pool_rounds
from farm.rules.comparing.repeats import Repeated, Way
from farm.rules.judging import counted_rounds
from farm.rules.judging.block_verdicts import FEWEST_PAIRS, BlockJudge, Judged
from farm.rules.judging.counted_rounds import RATE, Pair
from farm.rules.planning.estimates import ROUNDS
from farm.rules.wording.numbers import counted, percent


def judge_metrics(judge: BlockJudge, judged: Sequence[Judged]) -> list[list[MetricChange]]:
    """List for each comparison the headline, then every further metric; nothing for arms that cannot be compared.

    A metric is there where both arms' launches say it in two rounds at least; one that a repeat decides, and that one
    round says, is there as undecided with the reason.
    """
    found = [_headline(judge, comparison) for comparison in judged]
    for metric, judging in COMPARED:
        places = []
        for place, comparison in enumerate(judged):
            headline = RATE if comparison.verdict_from == "rate" else JUDGED
            kind = scenarios.of_cell(judge.block.arms[comparison.planned.candidate].spec).kind
            is_measured = comparison.verdict != "not comparable" and (not judging.kinds or kind in judging.kinds)
            places += [place] if metric is not headline and is_measured else []
        changes = _BY[judging.by](judge, [judged[place] for place in places], metric, judging)
        for place, change in zip(places, changes, strict=True):
            found[place] += [] if change is None else [change]
    return found


def find_pairs(judge: BlockJudge, judged: Judged, change: MetricChange) -> list[Pair]:
    """Find the (baseline, candidate) pairs of launches that a change rests on."""
    if change.name == JUDGED.name:
        return judge.paired(judged.planned).deciding
    return _pairs(judge, judged, BY_NAME[change.name])[0]


def _headline(judge: BlockJudge, judged: Judged) -> list[MetricChange]:
    """Return the headline as the comparison's own fields say it."""
    figures = judged.figures
    if figures is None or judged.verdict == "not comparable":
        return []
    pairs = judge.paired(judged.planned).deciding
    if judged.verdict_from != "rate":
        return [_with_ratio(_change_of_medians(pairs, figures, JUDGED, judged.verdict, rounds=judged.rounds), figures)]
    rates = [(1000.0 / old, 1000.0 / new) for old, new in pairs]
    told = _change_of_medians(
        rates, figures, RATE, _choose_word(judged.verdict, ("lower", "higher")), rounds=judged.rounds
    )
    turned = {"ratio": 1.0 / figures.ratio, "ci_low": 1.0 / figures.ci_high, "ci_high": 1.0 / figures.ci_low}
    return [told.model_copy(update=turned)]


def _by_repeat(
    judge: BlockJudge, judged: Sequence[Judged], metric: Metric, judging: Judging
) -> list[MetricChange | None]:
    found: list[MetricChange | None] = []
    for comparison in judged:
        # other programs do not change what a launch takes
        every = judge.evidence.all_pairs(comparison.planned.baseline, comparison.planned.candidate, metric=metric)
        pairs = [pair for pair in every if min(pair) > 0.0]
        middle = median(old for old, _ in pairs) if pairs else 0.0
        least = judging.margin * (middle if judging.is_share and pairs else 1.0)
        repeated = repeats.judge(pairs, least=max(least, judge.block.margins.get(metric.name, 0.0) * middle))
        is_short = repeated is not None and repeated.rounds < repeats.MIN_ROUNDS
        lack = counted_rounds.single_round_sentence(is_out_of_time=judge.evidence.is_out_of_time) if is_short else ""
        found.append(None if repeated is None else _repeated(repeated, metric, judging, reason=lack))
    return found


def _repeated(told: Repeated, metric: Metric, judging: Judging, *, reason: str) -> MetricChange:
    return MetricChange(
        name=metric.name,
        unit=metric.unit,
        baseline=told.baseline,
        candidate=told.candidate,
        ratio=told.ratio,
        ci_low=told.low,
        ci_high=told.high,
        verdict=_choose_word(told.way, judging.words),
        margin=told.margin,
        rounds=told.rounds,
        reason=reason,
    )


def _by_difference(
    judge: BlockJudge, judged: Sequence[Judged], metric: Metric, judging: Judging
) -> list[MetricChange | None]:
    per_pair = ROUNDS[judge.block.budget].per_pair
    pairs = [_pairs(judge, comparison, metric)[0] for comparison in judged]
    starts = [range(0, len(some) - per_pair + 1, per_pair) for some in pairs]
    whole = [[_mean(some[start : start + per_pair]) for start in own] for some, own in zip(pairs, starts, strict=True)]
    enough = [len(some) >= FEWEST_PAIRS for some in whole]
    judged_whole = iter(
        differences.judge_many(
            [some for some, is_enough in zip(whole, enough, strict=True) if is_enough], margin=judging.margin
        )
    )
    found: list[MetricChange | None] = []
    for some, is_enough in zip(pairs, enough, strict=True):
        if not is_enough:
            found.append(None)
            continue
        difference = next(judged_whole)
        word = _choose_word(difference.comparison.verdict, judging.words)
        change = _change_of_medians(
            some, difference.comparison, metric, word, rounds=difference.comparison.rounds_used * per_pair
        )
        figures = {
            "margin": judging.margin,
            "change": difference.change,
            "change_low": difference.low,
            "change_high": difference.high,
        }
        found.append(change.model_copy(update=figures))
    return found


def _by_ratio(
    judge: BlockJudge, judged: Sequence[Judged], metric: Metric, judging: Judging
) -> list[MetricChange | None]:
    per_pair = ROUNDS[judge.block.budget].per_pair
    told = [_pairs(judge, comparison, metric) for comparison in judged]
    pairs = [[pair for pair in some if min(pair) > 0.0] for some, _ in told]
    whole = [pool_rounds(some, per_pair=per_pair) for some in pairs]
    # what is of no consequence, and what the metric's own A/A pairs on the node differ by
    margin = max(judging.margin, judge.block.margins.get(metric.name, judge.block.margin))
    judge_many = fastest.judge_many if judging.by == "fastest" else verdicts.judge_many
    judged_whole = iter(judge_many([some for some in whole if len(some) >= FEWEST_PAIRS], margin=margin))
    found: list[MetricChange | None] = []
    for comparison, some, chunks, (_, by_processor) in zip(judged, pairs, whole, told, strict=True):
        if len(chunks) < FEWEST_PAIRS:
            found.append(None)
            continue
        figures = next(judged_whole)
        word = _choose_word(figures.verdict, judging.words)
        change = _with_ratio(
            _change_of_medians(some, figures, metric, word, rounds=figures.rounds_used * per_pair), figures
        )
        why = _why_open(figures, timed=len(some), of=comparison.rounds)
        found.append(change.model_copy(update={"is_processor": by_processor, "reason": why}))
    return found


def _why_open(found: Comparison, *, timed: int, of: int) -> str:
    """Say what keeps a metric undecided: rounds in which a launch did not time it, too few of them, or their noise."""
    if found.verdict != "undecided":
        return ""
    if found.rounds_used >= look_levels.LOOKS[0]:
        return f"Changes under {percent(found.smallest_detectable)} cannot be detected yet."
    few = look_levels.too_few_sentence(found.rounds_used)
    return f"{timed} of {counted(of, 'round')} timed it: {few}" if timed < of else few.capitalize()


_BY = {"repeat": _by_repeat, "difference": _by_difference, "ratio": _by_ratio, "fastest": _by_ratio}


def _pairs(judge: BlockJudge, judged: Judged, metric: Metric) -> tuple[list[Pair], bool]:
    """Those of the rounds that count for latency, where both launches say it, and whether they are processor times: of
    a phase where latency rests on them, if every launch has one."""
    arms = judged.planned.baseline, judged.planned.candidate
    counted = counted_rounds.pair_rounds(judge.evidence, *arms, least=judge.block.min_rounds)
    told = judge.evidence.pairs_of_rounds(*arms, read=metric.read_figure, numbers=counted.numbers)
    if counted.verdict_from != "processor":
        return told, False
    spent = judge.evidence.pairs_of_rounds(*arms, read=metric.read_processor_time, numbers=counted.numbers)
    return (spent, True) if spent and len(spent) == len(told) else (told, False)


def _change_of_medians(
    pairs: Sequence[Pair], figures: Comparison, metric: Metric, verdict: MetricVerdict, *, rounds: int
) -> MetricChange:
    """Without ratio or difference. Of the `rounds` that the verdict is of: later ones came after its last look."""
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


def _with_ratio(change: MetricChange, figures: Comparison) -> MetricChange:
    return change.model_copy(update={"ratio": figures.ratio, "ci_low": figures.ci_low, "ci_high": figures.ci_high})


def _choose_word(found: Verdict | Way, words: tuple[MetricVerdict, MetricVerdict]) -> MetricVerdict:
    """Say the verdict in the metric's own words for more and for less of it."""
    if found in ("slower", "more"):
        return words[0]
    return words[1] if found in ("faster", "less") else "equal" if found == "equal" else "undecided"


def _mean(pairs: Sequence[Pair]) -> Pair:
    return sum(old for old, _ in pairs) / len(pairs), sum(new for _, new in pairs) / len(pairs)
