"""What a comparison says of further metrics: memory beside latency. Pure."""

from math import log

from farm.contract.document import Comparison, MetricChange
from farm.rules.cells.metrics import BY_NAME, REPEATED
from farm.rules.cells.numbers import mebibytes
from farm.rules.comparing import repeats
from farm.rules.judging.evidence import Evidence

CHANGED = ("bigger", "smaller")
# what stands for all of them where there is place for one
_FIRST = ("bigger", "undecided", "smaller", "equal")


def changes(evidence: Evidence, baseline: int, candidate: int) -> list[MetricChange]:
    """The verdicts on two arms' further metrics, of those that both arms' launches told at least twice."""
    return [
        MetricChange(
            name=metric.name,
            unit=metric.unit,
            baseline=judged.baseline,
            candidate=judged.candidate,
            ratio=judged.ratio,
            ci_low=judged.low,
            ci_high=judged.high,
            verdict=judged.verdict,
            margin=judged.margin,
            rounds=judged.rounds,
        )
        for metric, alert in REPEATED
        if (pairs := [pair for pair in evidence.launched(baseline, candidate, metric=metric) if min(pair) > 0.0])
        if alert.directions is not None
        if (judged := repeats.judge(pairs, least=alert.least, directions=alert.directions)) is not None
    ]


def changed(one: Comparison) -> list[MetricChange]:
    """Those of a comparison that are decided to have changed, what grew before what shrank."""
    return sorted((change for change in one.metrics if change.verdict in CHANGED), key=lambda one: one.verdict)


def standing_for(one: Comparison) -> MetricChange | None:
    """The one to show where there is place for one: what grew first, then the larger change; None without any."""
    return min(one.metrics, key=lambda change: (_FIRST.index(change.verdict), -abs(log(change.ratio))), default=None)


def title(change: MetricChange) -> str:
    """`peak address space`; a metric that only the farm that wrote the document knows, by its name."""
    known = BY_NAME.get(change.name)
    return change.name.replace("_", " ") if known is None else known.title


def figures(change: MetricChange) -> tuple[float, float, float]:
    """Ratio, and the least and largest of a round."""
    return change.ratio, change.ci_low, change.ci_high


def words(change: MetricChange) -> str:
    """`peak address space 833 MiB instead of 320 MiB`."""
    return f"{title(change)} {mebibytes(change.candidate)} instead of {mebibytes(change.baseline)}"


def sentence(who: str, word: str, one: Comparison) -> str:
    """`1.27.0 is faster but bigger: peak address space 833 MiB instead of 320 MiB.`; empty where nothing changed.

    `word`: what the comparison says of `who` already.
    """
    by_verdict: dict[str, list[str]] = {}
    for change in changed(one):
        by_verdict.setdefault(change.verdict, []).append(words(change))
    return " ".join(f"{who} is {_beside(word, verdict)}: {' and '.join(said)}." for verdict, said in by_verdict.items())


def _beside(word: str, verdict: str) -> str:
    """Both words, where the first is one of speed: two gains or two losses go together."""
    if word not in ("slower", "faster"):
        return verdict
    return f"{word} {'and' if (word == 'faster') == (verdict == 'smaller') else 'but'} {verdict}"
