"""Describes what comparisons say of further metrics than their headline, such as memory beside latency. Pure."""

from collections.abc import Mapping

from farm.base.grouping import group_by
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.contract.verdicts import MetricVerdict
from farm.rules.cells.metric import RATE, SIZE, TIME
from farm.rules.cells.metrics import BY_NAME, JUDGED, OF_CALLS
from farm.rules.cells.scenario_metrics import MAX_RATE, OUTSIDE, OUTSIDE_CPU, TPOT, TTFT, TTFT_CPU
from farm.rules.comparing.look_levels import LOOKS
from farm.rules.comparing.quantities import items_factor, judge_items
from farm.rules.wording import numbers
from farm.rules.wording.numbers import MIB, memory, plain
from farm.rules.wording.vocabulary import CHANGES, GAINS, is_change, sign_of, signed

ITEMS, RESIDENT = "items/s", "peak_memory_bytes"
# of these one figure is the time of one call, whatever its batch
OF_A_CALL = frozenset({"cpu_p50_ms", TPOT, *(metric.name for metric in OF_CALLS.values())})
# metrics that are the processor time of another, which is of the clock
OF_PROCESSOR: Mapping[str, str] = {TTFT_CPU: TTFT, OUTSIDE_CPU: OUTSIDE}


def with_headline(comparison: Comparison, verdict: MetricVerdict) -> list[MetricChange]:
    """Return the metrics with another verdict on the headline metric, which is the comparison's own."""
    return [
        change.model_copy(update={"verdict": verdict}) if change.name == headline_of(comparison) else change
        for change in comparison.metrics
    ]


def headline_of(comparison: Comparison) -> str:
    return MAX_RATE if comparison.verdict_from == "rate" else JUDGED.name


def list_further(comparison: Comparison) -> list[MetricChange]:
    return [change for change in comparison.metrics if change.name != headline_of(comparison)]


def list_beside(comparison: Comparison) -> list[MetricChange]:
    """List the further metrics that add to the verdict.

    Where the verdict rests on processor time, that is not repeated, nor is the same time by the clock.
    """
    further = list_further(comparison)
    if comparison.verdict_from != "processor":
        return further
    known = {change.name for change in further}
    again = {"cpu_p50_ms", TPOT} | {OF_PROCESSOR[name] for name in OF_PROCESSOR.keys() & known}
    return [change for change in further if change.name not in again]


def convert_to_items(comparison: Comparison, cells: Mapping[str, Cell]) -> Comparison:
    """Return the comparison with times of a call as items per second, where batches differ; otherwise unchanged."""
    old, new = cells.get(comparison.baseline), cells.get(comparison.candidate)
    times = items_factor(old, new) if old is not None and new is not None else None
    if old is None or new is None or times is None:
        return comparison
    batches = float(old.batch or 1), float(new.batch or 1)
    metrics = [
        _express_in_items(change, batches) if change.name in OF_A_CALL else change for change in comparison.metrics
    ]
    return comparison.model_copy(update={"metrics": metrics})


def _express_in_items(change: MetricChange, batches: tuple[float, float]) -> MetricChange:
    if change.ratio is None or not change.baseline or not change.candidate:
        return change
    times = batches[1] / batches[0]
    ratio, low, high = (times / (end or change.ratio) for end in (change.ratio, change.ci_high, change.ci_low))
    # before the first look nothing is decided of either
    is_early = change.verdict == "undecided" and change.rounds < LOOKS[0]
    word = "undecided" if is_early else judge_items((ratio, low, high), margin=change.margin)
    verdict = {"more": "higher", "fewer": "lower"}.get(word, word)
    baseline, candidate = 1000.0 * batches[0] / change.baseline, 1000.0 * batches[1] / change.candidate
    figures = {"ratio": ratio, "ci_low": low, "ci_high": high, "baseline": baseline, "candidate": candidate}
    return change.model_copy(update={**figures, "unit": ITEMS, "verdict": verdict})


def find(name: str, comparison: Comparison) -> MetricChange | None:
    return next((change for change in comparison.metrics if change.name == name), None)


def list_changed(comparison: Comparison) -> list[MetricChange]:
    """List further metrics that are decided to have changed, losses before gains."""
    return sorted((change for change in list_further(comparison) if is_change(change.verdict)), key=is_gain)


def find_memory_change(comparison: Comparison) -> MetricChange | None:
    """Return the change of resident memory, as the cells' own column of memory shows it; None without any.

    Address space is hardly what anybody chooses by: it stands among the other metrics.
    """
    found = find(RESIDENT, comparison)
    return found if found is not None and found.ratio else None


def explain_undecided(comparison: Comparison) -> list[str]:
    """Explain, a sentence each, why further metrics are undecided that fewer rounds timed than the verdict has."""
    return [
        f"{title(change)} is undecided: {change.reason}"
        for change in list_further(comparison)
        if change.verdict == "undecided" and change.reason and change.rounds < comparison.rounds
    ]


def is_of_launches(change: MetricChange) -> bool:
    """Whether its medians replace the cells' own figures.

    That holds for processor time, and where a cell's own figure comes only from its check.
    """
    known = BY_NAME.get(change.name)
    return change.is_processor or (known is not None and known.judging is not None and known.judging.by == "fastest")


def is_gain(change: MetricChange) -> bool:
    """Whether the candidate is better in this metric."""
    if change.verdict not in RATE:
        return change.verdict in GAINS
    known = BY_NAME.get(change.name)
    is_more_better = change.unit == ITEMS or (known is not None and known.better == "more")
    return (change.verdict == "higher") == is_more_better


def is_loss(change: MetricChange) -> bool:
    return is_change(change.verdict) and not is_gain(change)


def title(change: MetricChange) -> str:
    """Return the name of a metric: `peak address space`, `session creation (processor time)`.

    A metric unknown here is called by its name in the document.
    """
    known = BY_NAME.get(change.name)
    text = change.name.replace("_", " ") if known is None else known.launch_title or known.title
    if change.unit == ITEMS:
        text = f"{ITEMS} by {text.removeprefix('p50 by ')}"
    return f"{text} (processor time)" if change.is_processor else text


def ratio_with_interval(change: MetricChange) -> tuple[float, float, float]:
    return change.ratio or 1.0, change.ci_low or 1.0, change.ci_high or 1.0


def format_size(change: MetricChange) -> str:
    """Format by how much it changed: `2.6× bigger`, `24 % slower`; empty without a ratio."""
    if change.ratio is None:
        return ""
    known = BY_NAME.get(change.name)
    own = known.judging.words if known is not None and known.judging is not None else TIME
    own = RATE if change.unit == ITEMS else own
    return numbers.change(change.ratio, change.ci_low, change.ci_high, words=own)


def marked(change: MetricChange) -> str:
    """Format a change with its sign: `▲ 2.6× bigger`, `= equal`; `▲ bigger` without a ratio."""
    if change.verdict not in CHANGES or change.ratio is None:
        return signed(change.verdict)
    return f"{sign_of(change.verdict).mark} {format_size(change)}"


def describe(change: MetricChange) -> str:
    """Describe a change by its values: `peak address space 833 MiB instead of 320 MiB`; without values that fit, by its
    size."""
    values = format_sides(change)
    return f"{title(change)} {values[1]} instead of {values[0]}" if values else f"{title(change)} {format_size(change)}"


def format_sides(change: MetricChange) -> tuple[str, str] | None:
    """Format both sides; None where a reader's division would not give the change."""
    if change.ratio is not None and not _agrees(change):
        return None
    return format_value(change, change.baseline), format_value(change, change.candidate)


def _agrees(change: MetricChange) -> bool:
    """Whether the quotient of the medians lies in the interval of the pairs; what a repeat decides is that quotient."""
    low, high = change.ci_low, change.ci_high
    if change.p is None or low is None or high is None:
        return True
    return numbers.format_divisible_pair(change.baseline, change.candidate, low=low, high=high) is not None


def format_value(change: MetricChange, value: float) -> str:
    """Format a value of the change, with its unit."""
    if change.unit != "bytes":
        return f"{plain(value)} {change.unit}".strip()
    return memory(value) if abs(value) >= MIB or not value else f"{value / MIB:.2f} MiB"


def list_changes_in_sentence(comparison: Comparison) -> list[MetricChange]:
    """List the metrics that changed and stand in the run's sentence."""
    return [
        change
        for change in list_changed(comparison)
        if (metric := BY_NAME.get(change.name)) is None or (metric.judging is not None and metric.judging.is_told)
    ]


def sentence(who: str, word: str, comparison: Comparison) -> str:
    """Say `1.27.0 is faster but bigger: peak address space 833 MiB instead of 320 MiB.`; empty where nothing changed.

    `word`: what the comparison says of `who` already. Other metrics than sizes are named before their verdict.
    """
    changes = list_changes_in_sentence(comparison)
    sizes = group_by((change for change in changes if change.verdict in SIZE), lambda change: change.verdict)
    by_size = [
        f"{who} is {_join_verdicts(word, verdict)}: {' and '.join(map(describe, of_verdict))}."
        for verdict, of_verdict in sizes.items()
    ]
    others = [
        f"Its {title(change)} is {change.verdict}: {describe(change).removeprefix(title(change)).strip()}."
        for change in changes
        if change.verdict not in SIZE
    ]
    return " ".join([*by_size, *others])


def _join_verdicts(word: str, verdict: str) -> str:
    """Join the words where the first is one of speed: two gains, or two losses, by `and`, else by `but`."""
    if word not in TIME:
        return verdict
    return f"{word} {'and' if (word == 'faster') == (verdict == 'smaller') else 'but'} {verdict}"
