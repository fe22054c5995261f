"""Which time is told of a cell: the one that the verdicts beside it rest on."""

from typing import Any

import pytest

from farm.contract.document_comparisons import Comparison
from farm.rules.presenting.times import Times, latency_of
from tests.documents import NEW, make_cell, make_comparison

BUSY: dict[str, Any] = {
    "p50_ms": 29.0, "p50_ci_ms": (15.0, 43.0), "samples_ms": [29.0] * 8, "throughput": 1000 / 29.0,
    "cpu_p50_ms": 2.7, "cpu_samples_ms": [2.65, 2.66, 2.68, 2.69, 2.71, 2.72, 2.74, 2.75], "disturbed_samples": 8,
}  # fmt: skip
CALM = BUSY | {"p50_ms": 2.72, "p50_ci_ms": (2.7, 2.74), "disturbed_samples": 0}
BY_CLOCK, BY_PROCESSOR = make_comparison(), make_comparison(verdict_from="processor")
NO_FIGURES = make_comparison("not comparable", None)


@pytest.mark.parametrize(
    ("told", "comparisons", "is_by_processor"),
    [
        (BUSY, [], True),
        (CALM, [], False),
        (CALM, [BY_PROCESSOR], True),
        # both sides of a verdict are of one quantity
        (BUSY, [BY_CLOCK], False),
        (BUSY, [NO_FIGURES], True),
        (BUSY, [BY_CLOCK, BY_PROCESSOR], True),
        (CALM | {"cpu_p50_ms": None}, [BY_PROCESSOR], False),
        (CALM | {"p50_ms": None}, [BY_PROCESSOR], False),
    ],
)
def test_a_cell_is_told_by_the_time_that_its_verdicts_rest_on(
    told: dict[str, Any], comparisons: list[Comparison], is_by_processor: bool
) -> None:
    cell = make_cell(**told)
    assert Times.of([cell], comparisons).by_processor == (frozenset({"c1"}) if is_by_processor else frozenset())


def test_of_processor_time_the_interval_the_launches_and_the_items_are_too() -> None:
    cell = make_cell(batch=4, **BUSY | {"throughput": 4000 / 29.0})
    told = Times.of([cell]).told(cell)
    assert (told.p50_ms, told.samples_ms) == (2.7, BUSY["cpu_samples_ms"])
    assert told.p50_ci_ms is not None
    assert 2.65 <= told.p50_ci_ms[0] < 2.7 < told.p50_ci_ms[1] <= 2.75
    assert told.throughput == pytest.approx(4000 / 2.7)


def test_items_per_second_that_were_measured_stay_as_they_are() -> None:
    loaded = make_cell(**BUSY | {"throughput": 50.0})
    assert Times.of([loaded]).told(loaded).throughput == 50.0
    calm = make_cell(**CALM)
    assert Times.of([calm]).told(calm) is calm


def test_an_axis_says_of_what_its_times_are() -> None:
    busy, calm = make_cell("c1", **BUSY), make_cell("c2", runtime=NEW, **CALM)
    times = Times.of([busy, calm])
    assert times.title([busy]) == "processor time"
    assert times.title([calm], "p50 latency") == "p50 latency"
    assert times.title([busy, calm]) == "p50 or processor time"
    assert (times.words(busy), times.words(calm)) == ("2.70 ms ± 0.04 of CPU time", "2.72 ms ± 0.02")
    assert latency_of(calm, [BY_PROCESSOR]).endswith("of CPU time")
