"""Metrics of installed packages: what a package may declare, and how it becomes an entry of our table.

A scenario of a package declares the metrics of its launches. A metric that is an entry point of `onnxfarm.metrics`
belongs to every launch that reports it under `metrics`.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal, get_args

from farm.base.entry_points import Group, raise_first_problem
from farm.contract.document_cells import Cell
from farm.contract.reports import CheckReport, Sample
from farm.rules.cells.metric import RATE, SIZE, TIME, Judging, Metric, Words

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_UNIT = re.compile(r"[A-Za-z0-9µ%/²³·_-]{0,16}")
MAX_TITLE, MAX_NOTE = 60, 200
# The most metrics of a scenario; a launch may report 32 in all, our own included.
MAX_METRICS = 16
_TIMES = ("s", "ms", "us", "µs", "ns")
# keys that reports and documents use already
_TAKEN = frozenset((*Cell.model_fields, *Sample.model_fields, *CheckReport.model_fields))

By = Literal["ratio", "difference", "repeat"]
Better = Literal["less", "more"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure that launches report under `metrics` by this name, and how two arms are compared in it."""

    name: str
    title: str
    unit: str = ""
    better: Better = "less"
    # the method: `ratio` of launches paired by round, for what is never 0; their `difference`, for what may be 0;
    # `repeat`, for what is the same in every launch
    by: By = "ratio"
    # the largest change that does not matter: a fraction for a ratio, where the block's own margin may be larger, and
    # otherwise an amount in `unit`
    margin: float = 0.0
    note: str = ""
    # whether the run's sentence names it, and a gate judges it by default
    is_told: bool = False
    # the kind of change of the alert that a watch opens where it gets worse by at least `min_alert`, in `unit`
    alerts_as: str = ""
    min_alert: float = 0.0

    @property
    def metric(self) -> Metric:
        """The entry of our table, for scenarios of packages: the median over launches, with its interval."""
        words = self._words
        reads: Literal["latency", "memory", "plain"] = "memory" if words is SIZE else "plain"
        if words is TIME and self.unit == "ms":
            reads = "latency"
        judging = Judging(
            words,
            by=self.by,
            margin=self.margin,
            kinds=("outside",),
            is_told=self.is_told,
            alerts_as=self.alerts_as,
            min_alert=self.min_alert,
        )
        return Metric(
            self.name,
            self.title,
            self.unit,
            self.better,
            summary=median,
            noise="launches",
            reads=reads,
            note=self.note,
            judging=judging,
        )

    @property
    def _words(self) -> Words:
        """The verdict's words: `slower` for a time and `bigger` for bytes where less is better, else `higher`."""
        if self.better == "less" and self.unit in _TIMES:
            return TIME
        return SIZE if self.better == "less" and self.unit == "bytes" else RATE


def find_problems(measures: object) -> Iterator[str]:
    """Say what is wrong with the metrics of a package's scenario, each as the end of a sentence about the scenario."""
    if not isinstance(measures, tuple | list) or not all(isinstance(measure, Measure) for measure in measures):
        yield f"metrics has {measures!r:.80}: write a tuple of {Measure.__name__}."
    elif len(measures) > MAX_METRICS:
        yield f"it has {len(measures)} metrics: at most {MAX_METRICS}."
    else:
        yield from _find_malformed(measures)


def _find_malformed(measures: Sequence[Measure]) -> Iterator[str]:
    names = [measure.name for measure in measures]
    for measure in measures:
        if not isinstance(measure.name, str) or not _NAME.fullmatch(measure.name):
            yield f"the metric {measure.name!r:.80} has no name that one can have: letters, digits and _, 40 at most."
        elif measure.name in _TAKEN or names.count(measure.name) > 1:
            yield f"the metric {measure.name!r} is taken."
        elif problem := _find_problem(measure):
            yield f"the metric {measure.name!r} has {problem}"


def _find_problem(measure: Measure) -> str:
    if not isinstance(measure.title, str) or not 0 < len(measure.title) <= MAX_TITLE:
        return f"the title {measure.title!r:.80}: write a few words."
    if not isinstance(measure.note, str) or len(measure.note) > MAX_NOTE:
        return f"a note that is not a text of at most {MAX_NOTE} characters."
    if not isinstance(measure.unit, str) or not _UNIT.fullmatch(measure.unit):
        return f"the unit {measure.unit!r:.80}: write one such as ms, bytes or 1/s."
    if measure.better not in get_args(Better) or measure.by not in get_args(By):
        written = f"better {measure.better!r:.20} and by {measure.by!r:.20}"
        return f"{written}: write less or more, and ratio, difference or repeat."
    if not isinstance(measure.alerts_as, str) or not (measure.alerts_as == "" or _NAME.fullmatch(measure.alerts_as)):
        return f"alerts_as {measure.alerts_as!r:.80}: write the key of a kind of change."
    for what, number in (("margin", measure.margin), ("min_alert", measure.min_alert)):
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0.0 <= number < 1e15:
            return f"the {what} {number!r:.40}: write a number from 0 on."
    return ""


def _check(entry: Measure, taken: Sequence[Measure]) -> Measure:
    raise_first_problem(_find_malformed([*taken, entry]))
    return entry


GROUP = Group("onnxfarm.metrics", Measure, "metric", _check)


def metrics_for_any_scenario(measures: Iterable[Measure]) -> Iterator[Metric]:
    """Make entries of our table that, unlike `Measure.metric`, are judged in every scenario."""
    for metric in (measure.metric for measure in measures):
        yield metric if metric.judging is None else replace(metric, judging=replace(metric.judging, kinds=()))


def merge_tables(own: Iterable[Metric], declared: Iterable[Metric]) -> tuple[Metric, ...]:
    """Join our entries and the declared ones; a declared metric whose name is taken is left out, and that is logged."""
    table = list(own)
    for metric in declared:
        if any(other.name == metric.name for other in table):
            logger.warning("The metric %r from outside is left out: the name is taken.", metric.name)
        else:
            table.append(metric)
    return tuple(table)
