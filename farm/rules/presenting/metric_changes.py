"""Describes the metrics of a comparison: that of its verdict, and the secondary ones, such as memory."""

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
from farm.rules.wording.vocabulary import CHANGES, GAINS, is_change, sign_of, with_mark

ITEMS, RESIDENT = "items/s", "peak_memory_bytes"
# metrics whose figure is the time of one call, with its whole batch
OF_A_CALL = frozenset({"cpu_p50_ms", TPOT, *(metric.name for metric in OF_CALLS.values())})
# metrics of processor time, each with the metric of the same time by the clock
OF_PROCESSOR: Mapping[str, str] = {TTFT_CPU: TTFT, OUTSIDE_CPU: OUTSIDE}


def replace_headline_verdict(comparison: Comparison, verdict: MetricVerdict) -> list[MetricChange]:
    """Return the comparison's metrics, with this verdict's word on the headline metric; its figures stay."""
    return [
        change.model_copy(update={"verdict": verdict}) if change.name == headline_metric_name(comparison) else change
        for change in comparison.metrics
    ]


def headline_metric_name(comparison: Comparison) -> str:
    return MAX_RATE if comparison.verdict_from == "rate" else JUDGED.name


def find_headline_change(comparison: Comparison) -> MetricChange | None:
    return find_metric(headline_metric_name(comparison), comparison)


def list_secondary_changes(comparison: Comparison) -> list[MetricChange]:
    """List the changes of all metrics but the headline metric, in the order of the document."""
    return [change for change in comparison.metrics if change.name != headline_metric_name(comparison)]


def list_displayed_changes(comparison: Comparison) -> list[MetricChange]:
    """List the secondary changes to show with the verdict.

    Of a verdict on processor time, that time itself is left out, and so are the time per token and times by the clock
    that are also listed as processor time.
    """
    secondary = list_secondary_changes(comparison)
    if comparison.verdict_from != "processor":
        return secondary
    names = {change.name for change in secondary}
    repeated = {"cpu_p50_ms", TPOT} | {OF_PROCESSOR[name] for name in OF_PROCESSOR.keys() & names}
    return [change for change in secondary if change.name not in repeated]


def convert_to_items(comparison: Comparison, cells: Mapping[str, Cell]) -> Comparison:
    """Return the comparison with times of a call as items per second, where batches differ; otherwise unchanged."""
    old, new = cells.get(comparison.baseline), cells.get(comparison.candidate)
    if old is None or new is None or items_factor(old, new) is None:
        return comparison
    batches = old.batch or 1, new.batch or 1
    metrics = [
        _express_in_items(change, batches) if change.name in OF_A_CALL else change for change in comparison.metrics
    ]
    return comparison.model_copy(update={"metrics": metrics})


def _express_in_items(change: MetricChange, batches: tuple[int, int]) -> MetricChange:
    """Express the change of a time; `batches` are those of baseline and candidate."""
    if change.ratio is None or not change.baseline or not change.candidate:
        return change
    old_batch, new_batch = batches
    factor = new_batch / old_batch
    ratio, low, high = (factor / (end or change.ratio) for end in (change.ratio, change.ci_high, change.ci_low))
    # Before the first look at the rounds nothing is decided.
    is_early = change.verdict == "undecided" and change.rounds < LOOKS[0]
    word = "undecided" if is_early else judge_items(ratio, low, high, margin=change.margin)
    verdict = {"more": "higher", "fewer": "lower"}.get(word, word)
    sides = {"baseline": 1000.0 * old_batch / change.baseline, "candidate": 1000.0 * new_batch / change.candidate}
    figures = {"ratio": ratio, "ci_low": low, "ci_high": high, **sides}
    return change.model_copy(update={**figures, "unit": ITEMS, "verdict": verdict})


def find_metric(name: str, comparison: Comparison) -> MetricChange | None:
    return next((change for change in comparison.metrics if change.name == name), None)


def list_decided_changes(comparison: Comparison) -> list[MetricChange]:
    """List the secondary changes with a decided verdict, losses before gains."""
    return sorted((change for change in list_secondary_changes(comparison) if is_change(change.verdict)), key=is_gain)


def find_memory_change(comparison: Comparison) -> MetricChange | None:
    """Return the change of resident memory; None where it is not known."""
    memory_change = find_metric(RESIDENT, comparison)
    return memory_change if memory_change is not None and memory_change.ratio else None


def explain_undecided(comparison: Comparison) -> list[str]:
    """Say in a sentence each why secondary metrics are undecided, if measured in fewer rounds than the comparison."""
    return [
        f"{title(change)} is undecided: {change.reason}"
        for change in list_secondary_changes(comparison)
        if change.verdict == "undecided" and change.reason and change.rounds < comparison.rounds
    ]


def replaces_cell_figures(change: MetricChange) -> bool:
    """Whether cells show the medians of a change instead of their own figures.

    They do for processor time, and for metrics that a cell itself has from its check alone (judged by `fastest`).
    """
    metric = BY_NAME.get(change.name)
    return change.is_processor or (metric is not None and metric.judging is not None and metric.judging.by == "fastest")


def is_gain(change: MetricChange) -> bool:
    """Whether the candidate is decided to be better in this metric; false where the verdict is equal or undecided."""
    if change.verdict not in RATE:
        return change.verdict in GAINS
    metric = BY_NAME.get(change.name)
    higher_is_better = change.unit == ITEMS or (metric is not None and metric.better == "more")
    return (change.verdict == "higher") == higher_is_better


def is_loss(change: MetricChange) -> bool:
    return is_change(change.verdict) and not is_gain(change)


def title(change: MetricChange) -> str:
    """Return the title of a metric: `peak address space`, `session creation (processor time)`.

    The title of a metric that this release does not know is the metric's name, with spaces for underscores.
    """
    metric = BY_NAME.get(change.name)
    text = change.name.replace("_", " ") if metric is None else metric.launch_title or metric.title
    if change.unit == ITEMS:
        text = f"{ITEMS} by {text.removeprefix('p50 by ')}"
    return f"{text} (processor time)" if change.is_processor else text


def ratio_with_interval(change: MetricChange) -> tuple[float, float, float]:
    """Return the ratio and the ends of its interval, each 1 where it is not known."""
    return change.ratio or 1.0, change.ci_low or 1.0, change.ci_high or 1.0


def format_size(change: MetricChange) -> str:
    """Format by how much it changed: `2.6× bigger`, `24 % slower`; empty without a ratio."""
    if change.ratio is None:
        return ""
    words, metric = TIME, BY_NAME.get(change.name)
    if change.unit == ITEMS:
        words = RATE
    elif metric is not None and metric.judging is not None:
        words = metric.judging.words
    return numbers.change(change.ratio, change.ci_low, change.ci_high, words=words)


def mark_change(change: MetricChange) -> str:
    """Format a change with its sign: `▲ 2.6× bigger`, `= equal`; `▲ bigger` without a ratio."""
    if change.verdict not in CHANGES or change.ratio is None:
        return with_mark(change.verdict)
    return f"{sign_of(change.verdict).mark} {format_size(change)}"


def describe(change: MetricChange) -> str:
    """Describe a change by its values: `peak address space 833 MiB instead of 320 MiB`; without values that fit, by its
    size."""
    sides = format_sides(change)
    if sides is None:
        return f"{title(change)} {format_size(change)}"
    baseline, candidate = sides
    return f"{title(change)} {candidate} instead of {baseline}"


def format_sides(change: MetricChange) -> tuple[str, str] | None:
    """Format baseline and candidate; None where their quotient contradicts the change."""
    if change.ratio is not None and not _has_fitting_quotient(change):
        return None
    return format_value(change, change.baseline), format_value(change, change.candidate)


def _has_fitting_quotient(change: MetricChange) -> bool:
    """Whether the quotient of the medians lies in the change's interval."""
    low, high = change.ci_low, change.ci_high
    if change.p is None or low is None or high is None:
        # Without a test, the ratio is that quotient.
        return True
    return numbers.format_divisible_pair(change.baseline, change.candidate, low=low, high=high) is not None


def format_value(change: MetricChange, value: float) -> str:
    """Format a value of the change with three significant digits and its unit; bytes as MiB."""
    if change.unit != "bytes":
        return f"{plain(value)} {change.unit}".strip()
    return memory(value) if abs(value) >= MIB or not value else f"{value / MIB:.2f} MiB"


def list_summarised_changes(comparison: Comparison) -> list[MetricChange]:
    """List the decided secondary changes that the run's sentence mentions, losses first.

    Metrics that this release does not know are included.
    """
    return [
        change
        for change in list_decided_changes(comparison)
        if (metric := BY_NAME.get(change.name)) is None or (metric.judging is not None and metric.judging.is_told)
    ]


def describe_changes(who: str, word: str, comparison: Comparison) -> str:
    """Say `1.27.0 is faster but bigger: peak address space 833 MiB instead of 320 MiB.`; empty where nothing changed.

    The changes are those of `list_summarised_changes`, sizes first. `who` names the candidate, and `word` is the
    comparison's verdict on it. Metrics other than sizes get a sentence each: `Its p99 is slower: 2.00 ms instead of
    1.00 ms.`
    """
    changes = list_summarised_changes(comparison)
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
    """Join a verdict on speed and one on size: two gains, or two losses, by `and`, else by `but`."""
    if word not in TIME:
        return verdict
    return f"{word} {'and' if (word == 'faster') == (verdict == 'smaller') else 'but'} {verdict}"
