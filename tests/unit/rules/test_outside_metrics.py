"""Metrics that scenarios from outside declare: entries of our own table where they are well formed, else left out."""

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dashboard.reading import cell as reading
from farm.contract.cells import Budget
from farm.contract.document import Document
from farm.contract.reports import EndReport
from farm.rules.cells import metrics, outside_metrics, outside_scenarios, scenarios
from farm.rules.cells.metric import RATE, SIZE, TIME
from farm.rules.cells.outside_metrics import Measure
from farm.rules.cells.outside_scenarios import Entry
from farm.rules.judging import metric_verdicts, summaries
from farm.rules.presenting import metric_changes
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from tests.unit.rules.making import make_block, make_check, make_facts, make_model, make_round, make_sample

WORST = Measure("paused_worst_ms", "slowest inference", "ms", margin=0.05, note="of a launch", is_told=True)
HELD = Measure("paused_held_bytes", "held", "bytes", by="repeat", margin=4096.0)
DRIFT = Measure("paused_drift", "drift", "1/s", better="more", by="difference", margin=0.5)
PAUSED = Entry(name="paused", module="acme_paused", label="with pauses", metrics=(WORST, HELD, DRIFT))


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """What importing the table gives where the package is installed."""
    whole = outside_metrics.merge_tables(metrics.OWN, [one.metric for one in PAUSED.metrics])
    monkeypatch.setattr(metrics, "METRICS", whole)
    monkeypatch.setattr(metrics, "BY_NAME", {metric.name: metric for metric in whole})
    monkeypatch.setattr(metric_changes, "BY_NAME", metrics.BY_NAME)
    monkeypatch.setattr(reading, "METRICS", whole)
    monkeypatch.setattr(summaries, "OF_LAUNCHES", [one for one in whole if one.summary is not None])
    monkeypatch.setattr(metric_verdicts, "COMPARED", [(one, one.judging) for one in whole if one.judging is not None])
    monkeypatch.setattr(scenarios, "ENTRIES", {**scenarios.ENTRIES, "paused": PAUSED})


def document(*, scenario: str = "paused") -> Document:
    """Two releases: the newer is as quick, its slowest inference is 30 % slower, and it holds and drifts more."""
    block = make_block(runtime=["1.29.0", "1.31.1"], scenario=scenario)
    dice = np.random.default_rng(7)

    def sample(arm: int) -> Any:
        noise = 1.0 + 0.005 * float(dice.standard_normal())
        told = {
            "paused_worst_ms": (2.0 + 0.6 * arm) * noise,
            "paused_held_bytes": 1e6 + 1e6 * arm,
            "paused_drift": 0.1 * noise + 2.0 * arm,
        }
        return make_sample(noise, metrics=told)

    rounds = [make_round(number, {arm.arm: sample(arm.arm) for arm in block.arms}) for number in range(12)]
    checks = [make_check(arm.arm) for arm in block.arms]
    record = BlockRecord(block=block, reports=[make_facts(), *checks, *rounds, EndReport()], node="a", is_over=True)
    return assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget.QUICK))


@pytest.mark.usefixtures("table")
def test_they_are_told_and_judged_as_our_own_are() -> None:
    found = document()
    cell = next(one for one in found.cells if one.runtime.version.endswith("1.31.1"))
    worst = cell.find_metric("paused_worst_ms")
    assert (worst.unit, worst.better, worst.n) == ("ms", "less", 12)
    assert (worst.ci_low or 0) < worst.value < (worst.ci_high or 0)
    (pair,) = [one for one in found.comparisons if one.axis == "runtime"]
    told = {one.name: one for one in pair.metrics if one.name.startswith("paused")}
    assert {name: one.verdict for name, one in told.items()} == {
        "paused_worst_ms": "slower",
        "paused_held_bytes": "bigger",
        "paused_drift": "higher",
    }
    assert told["paused_worst_ms"].margin == 0.05
    assert [metric_changes.is_gain(told[one.name]) for one in (WORST, HELD, DRIFT)] == [False, False, True]
    assert metric_changes.describe_changes("1.31.1", "equal", pair) == (
        "Its slowest inference is slower: 2.60 ms instead of 2.00 ms."
    )
    rows = {row[0].text: row[1].text for row in reading.metric_table(cell).rows}
    assert rows["held"] == "2 MiB"
    assert float(rows["slowest inference"]) == pytest.approx(2.6, abs=0.05)


@pytest.mark.usefixtures("table")
def test_launches_of_other_scenarios_that_say_one_have_no_verdict_by_it() -> None:
    (pair,) = [one for one in document(scenario="single").comparisons if one.axis == "runtime"]
    assert not [one for one in pair.metrics if one.name.startswith("paused")]


def test_without_the_package_a_document_that_has_them_is_read_by_their_names(
    monkeypatch: pytest.MonkeyPatch, table: None
) -> None:
    (pair,) = [one for one in document().comparisons if one.axis == "runtime"]
    monkeypatch.undo()
    read = {one.name: one for one in pair.metrics}
    assert metric_changes.title(read["paused_worst_ms"]) == "paused worst ms"
    assert metric_changes.is_loss(read["paused_worst_ms"])


@pytest.mark.parametrize(
    ("declared", "words", "reads"),
    [
        (WORST, TIME, "latency"),
        (replace(WORST, unit="us"), TIME, "plain"),
        (replace(WORST, better="more"), RATE, "plain"),
        (HELD, SIZE, "memory"),
        (replace(HELD, better="more"), RATE, "plain"),
        (DRIFT, RATE, "plain"),
    ],
)
def test_words_and_digits_follow_the_unit_and_what_is_better(declared: Measure, words: tuple[str, str], reads: str):
    made = declared.metric
    assert (made.judging.words, made.reads) == (words, reads)


def test_one_whose_name_our_table_has_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    theirs = [replace(WORST, name="instructions"), WORST, WORST]
    table = outside_metrics.merge_tables(metrics.OWN, [measure.metric for measure in theirs])
    assert [metric.name for metric in table[len(metrics.OWN) :]] == ["paused_worst_ms"]
    assert caplog.text.count("is left out: the name is taken.") == 2


def test_the_table_is_our_own_where_no_package_adds_to_it() -> None:
    assert metrics.METRICS[: len(metrics.OWN)] == metrics.OWN
    assert outside_metrics.merge_tables(metrics.OWN, ()) == metrics.OWN


def test_an_entry_whose_metrics_are_well_formed_is_taken_with_them() -> None:
    assert list(outside_metrics.find_problems(PAUSED.metrics)) == []
    assert list(outside_metrics.find_problems([WORST, replace(DRIFT, unit="", note="", margin=0)])) == []


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("worst", "metrics has 'worst': write a tuple of Measure."),
        (("worst",), "metrics has ('worst',): write a tuple of Measure."),
        (tuple(replace(WORST, name=f"m{n}") for n in range(17)), "it has 17 metrics: at most 16."),
        ((replace(WORST, name="Worst ms"),), "the metric 'Worst ms' has no name that one can have"),
        ((replace(WORST, name="x" * 41),), "has no name that one can have"),
        ((replace(WORST, name=7),), "the metric 7 has no name that one can have"),
        ((replace(WORST, name="p50_ms"),), "the metric 'p50_ms' is taken."),
        ((replace(WORST, name="timings"),), "the metric 'timings' is taken."),
        ((WORST, WORST), "the metric 'paused_worst_ms' is taken."),
        ((replace(WORST, title=""),), "the metric 'paused_worst_ms' has the title '': write a few words."),
        ((replace(WORST, title=None),), "has the title None: write a few words."),
        ((replace(WORST, note="x" * 201),), "has a note that is not a text of at most 200 characters."),
        ((replace(WORST, unit="<b>"),), "has the unit '<b>': write one such as ms, bytes or 1/s."),
        ((replace(WORST, better="lower"),), "has better 'lower' and by 'ratio': write less or more"),
        ((replace(WORST, by="vote"),), "has better 'less' and by 'vote': write less or more"),
        ((replace(WORST, margin=-0.1),), "has the margin -0.1: write a number from 0 on."),
        ((replace(WORST, margin=float("nan")),), "has the margin nan: write a number from 0 on."),
        ((replace(WORST, margin=True),), "has the margin True: write a number from 0 on."),
        ((replace(WORST, min_alert=-1.0),), "has the min_alert -1.0: write"),
        ((replace(WORST, alerts_as="Slow!"),), "has alerts_as 'Slow!': write the key of a kind of change."),
        ((replace(WORST, alerts_as=None),), "has alerts_as None: write"),
    ],
)
def test_an_entry_with_a_metric_that_is_malformed_is_left_out_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, declared: Any, words: str
) -> None:
    module = ModuleType("acme_paused")
    module.PAUSED = replace(PAUSED, metrics=declared)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_paused", module)
    point = EntryPoint("paused", "acme_paused:PAUSED", outside_scenarios.GROUP)
    found = outside_scenarios.entry_point_group(scenarios.KINDS).load([point])
    assert not found.entries
    assert found.refused["paused"].startswith("The scenario 'paused' is left out: ")
    assert words in found.refused["paused"]


def test_one_that_is_an_entry_itself_is_of_any_launch_and_may_alert(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("acme_meter")
    module.one = replace(WORST, alerts_as="memory", min_alert=0.5)  # type: ignore[attr-defined]
    module.two = replace(WORST, title="")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_meter", module)
    names = ("one", "two", "one again")
    points = [EntryPoint(name, f"acme_meter:{name.split()[0]}", outside_metrics.GROUP.name) for name in names]
    found = outside_metrics.GROUP.load(points)
    (metric,) = outside_metrics.metrics_for_any_scenario(found.entries)
    assert set(found.refused) == {"two", "one again"}
    judging = metric.judging
    assert judging is not None
    assert (judging.kinds, judging.alerts_as, judging.min_alert) == ((), "memory", 0.5)
    assert WORST.metric.judging.kinds == ("outside",)
