"""How outputs are judged on labelled data: the table of accuracy metrics, our own and those of installed packages.

A module of the runner computes a figure for each sample, whose mean over the samples is the metric. Every metric
therefore has an interval, and two cells are compared sample by sample.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, get_args

from farm.base.entry_points import Group, raise_first_problem
from farm.contract.evaluation import LabelShape
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.contract.document_cells import Accuracy

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
MAX_TITLE, MAX_NOTE, MAX_AT_ONCE = 60, 200, 4096


@dataclass(frozen=True, slots=True)
class AccuracyMetric:
    """A metric of accuracy."""

    # as recipes name it
    name: str
    # as pages name it
    title: str
    # the module whose class `Outside` computes it, and which is copied to the runner; our own are `module:name` there
    judge: str
    labels: LabelShape
    # what the figure of a sample means
    note: str
    higher_is_better: bool = True
    # whether it is written in percent, and a difference in points
    is_share: bool = True
    # whether each sample is right or wrong, and how sentences describe right ones
    is_yes_or_no: bool = False
    right: str = "right"
    # the smallest and the largest value that the metric can have
    least: float = 0.0
    most: float = 1.0
    # how many samples are judged in a batch
    at_once: int = 64

    def format_value(self, value: float | None) -> str:
        """Format a value as a percentage, `98.1 %`, or with three digits; None becomes `not measured`."""
        if value is None:
            return numbers.NOT_MEASURED
        return numbers.accuracy(value) if self.is_share else numbers.plain(value)

    def format_interval(self, low: float | None, high: float | None) -> str:
        """Format an interval, cut at the bounds of the metric: `96.6–99.0 %`; empty where an end is None."""
        if low is None or high is None:
            return ""
        low, high = max(self.least, low), min(self.most, high)
        return f"{self.format_value(low).removesuffix(' %')}{' to ' if low < 0 else '–'}{self.format_value(high)}"

    def format_with_interval(self, accuracy: "Accuracy") -> str:
        """Format a cell's value, with its interval where it has one: `98.1 % (96.6–99.0 %)`."""
        value = self.format_value(accuracy.value)
        interval = self.format_interval(accuracy.ci_low, accuracy.ci_high)
        return f"{value} ({interval})" if interval else value

    def format_difference(self, accuracy: "Accuracy") -> str:
        """Format the difference from the baseline, `−1.20 points (−2.10 to −0.30)`; empty where none is known."""
        if accuracy.difference is None:
            return ""
        difference = self._format_signed(accuracy.difference) + (" points" if self.is_share else "")
        low, high = accuracy.difference_low, accuracy.difference_high
        if low is None or high is None:
            return difference
        return f"{difference} ({self._format_signed(low)} to {self._format_signed(high)})"

    def format_change(self, accuracy: "Accuracy") -> str:
        """Format the values of the baseline and of this cell: `top-1 98.0 → 0.6 %`; empty where one is not known."""
        if accuracy.value is None or accuracy.difference is None:
            return ""
        before, after = self.format_value(accuracy.value - accuracy.difference), self.format_value(accuracy.value)
        return f"{self.title} {before.removesuffix(' %') if self.is_share else before} → {after}"

    def describe(self, accuracy: "Accuracy") -> str:
        """Describe the value of a cell in one sentence, or say why it has none."""
        if accuracy.value is None:
            return accuracy.text
        if self.is_yes_or_no:
            interval = self.format_interval(accuracy.ci_low, accuracy.ci_high)
            share = f"{self.format_value(accuracy.value)} of {accuracy.n:,} samples are {self.right}"
            return f"{share} ({interval})." if interval else f"{share}."
        title = f"{self.title[0].upper()}{self.title[1:]}"
        sha256 = accuracy.judge_sha256
        by = f", by the user's own {accuracy.recipe} (sha256 {sha256[:12]})" if sha256 else ""
        return f"{title} {self.format_with_interval(accuracy)} over {accuracy.n:,} samples{by}."

    def _format_signed(self, number: float) -> str:
        text = numbers.fixed(100 * number, 2) if self.is_share else numbers.plain(number)
        return text if number <= 0 else f"+{text}"


def _make_recall(count: int) -> AccuracyMetric:
    nearest, right = "the most similar other sample (by cosine)", "nearest to one of their label"
    if count > 1:
        nearest = f"one of the {count} most similar other samples (by cosine)"
        right = f"found among their {count} nearest"
    note = f"right when {nearest} has its label"
    module = f"judges.embeddings:RECALL{count}"
    return AccuracyMetric(f"recall{count}", f"recall@{count}", module, "group", note, is_yes_or_no=True, right=right)


OWN = (
    AccuracyMetric(
        "top1",
        "top-1",
        "judges.classes:TOP1",
        "class",
        "right when its label has the highest score, or is the class that the output names",
        is_yes_or_no=True,
    ),
    AccuracyMetric(
        "top5",
        "top-5",
        "judges.classes:TOP5",
        "class",
        "right when its label is among the five best",
        is_yes_or_no=True,
        right="among its five best",
    ),
    AccuracyMetric(
        "f1",
        "macro F1",
        "judges.classes:F1",
        "class",
        "its part in the mean of the classes' F1; the class is the one of the highest score, or that the output names",
    ),
    AccuracyMetric(
        "f1-multilabel",
        "multi-label macro F1",
        "judges.classes:F1_MULTILABEL",
        "flags",
        "its part in the mean of the classes' F1; a class is said by a score above 0.5, or by the bound of `threshold`",
    ),
    AccuracyMetric(
        "mse",
        "mean squared error",
        "judges.values:MSE",
        "like-output",
        "off by the mean of its squared differences",
        higher_is_better=False,
        is_share=False,
        most=inf,
    ),
    AccuracyMetric(
        "cosine",
        "cosine similarity",
        "judges.embeddings:COSINE",
        "like-output",
        "as near as the cosine of the angle between its output and its label",
        is_share=False,
        least=-1.0,
    ),
    *map(_make_recall, (1, 5, 10)),
    AccuracyMetric(
        "wer",
        "word error rate",
        "judges.texts:WER",
        "texts",
        "its part in all words that are wrong, too many or missing, over all words of the labels",
        higher_is_better=False,
        most=inf,
    ),
    AccuracyMetric(
        "cer",
        "character error rate",
        "judges.texts:CER",
        "texts",
        "its part in all characters that are wrong, too many or missing, over all characters of the labels",
        higher_is_better=False,
        most=inf,
    ),
    AccuracyMetric(
        "map50",
        "mAP@.5",
        "judges.boxes:MAP50",
        "boxes",
        "its part in the mean of the classes' average precision; a box is right that overlaps its label by half",
    ),
    AccuracyMetric(
        "perplexity",
        "perplexity",
        "judges.tokens:PERPLEXITY",
        "tokens",
        "its part in e to the mean of −log p of all tokens",
        higher_is_better=False,
        is_share=False,
        least=1.0,
        most=inf,
        # a batch of scores of 50,000 tokens is large
        at_once=4,
    ),
)


def _find_malformed(entry: AccuracyMetric, taken: Sequence[AccuracyMetric]) -> Iterator[str]:
    for field, value, pattern in (("name", entry.name, _NAME), ("judge", entry.judge, _MODULE)):
        if not isinstance(value, str) or not pattern.fullmatch(value):
            yield f"{field} has {value!r:.80}, which cannot be one."
    for field, value, max_length in (("title", entry.title, MAX_TITLE), ("note", entry.note, MAX_NOTE)):
        if not isinstance(value, str) or not 0 < len(value) <= max_length:
            yield f"{field} has {value!r:.80}: write a few words."
    shapes, batches = get_args(LabelShape), range(1, MAX_AT_ONCE + 1)
    for is_wrong, sentence in (
        (entry.name in (metric.name for metric in (*OWN, *taken)), f"{entry.name!r} is taken."),
        (entry.labels not in shapes, f"labels has {entry.labels!r:.80}: write one of {', '.join(shapes)}."),
        (entry.at_once not in batches, f"at_once has {entry.at_once!r:.80}: write a number from 1 to {MAX_AT_ONCE}."),
        (not entry.least < entry.most, f"least is {entry.least} and most {entry.most}: the first has to be smaller."),
    ):
        if is_wrong:
            yield sentence


def _check(entry: AccuracyMetric, taken: Sequence[AccuracyMetric]) -> AccuracyMetric:
    raise_first_problem(_find_malformed(entry, taken))
    return entry


GROUP = Group("onnxfarm.accuracies", AccuracyMetric, "accuracy metric", _check)
OUTSIDE = GROUP.load_installed()
METRICS: Mapping[str, AccuracyMetric] = {entry.name: entry for entry in (*OWN, *OUTSIDE.entries)}


def metric_of(accuracy: "Accuracy") -> AccuracyMetric:
    """Return the metric of a cell's accuracy.

    One that is not in the table, of a package that is not installed or of a user's own judge, is a plain number.
    """
    return METRICS.get(accuracy.metric) or AccuracyMetric(
        accuracy.metric,
        accuracy.metric,
        "",
        "any",
        "",
        higher_is_better=accuracy.higher_is_better,
        is_share=False,
        least=-inf,
        most=inf,
    )
