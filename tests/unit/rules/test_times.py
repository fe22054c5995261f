"""Which time is told of a cell: the one that the verdicts beside it rest on."""

from typing import Any

import pytest

from farm.contract.document_cells import CellMetric
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.rules.cells.metrics import BY_NAME as METRICS
from farm.rules.cells.scenario_metrics import TTFT, TTFT_CPU
from farm.rules.presenting import sentences
from farm.rules.presenting.key_results import find_key_result
from farm.rules.presenting.lines import BUSY as BUSY_WORDS
from farm.rules.presenting.spreadsheets import list_rows
from farm.rules.presenting.times import Times, format_compared_items, format_latency
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from tests.documents import NEW, make_cell, make_comparison, make_document
from tests.unit.rules.making import make_model, make_round, make_sample, plan_of

CPU_THROUGHPUT = METRICS["cpu_throughput"]
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
    told = Times.of([cell]).with_compared_time(cell)
    assert (told.p50_ms, told.samples_ms) == (2.7, BUSY["cpu_samples_ms"])
    assert told.p50_ci_ms is not None
    assert 2.65 <= told.p50_ci_ms[0] < 2.7 < told.p50_ci_ms[1] <= 2.75
    assert told.throughput == pytest.approx(4000 / 2.7)


def test_items_per_second_that_were_measured_stay_as_they_are() -> None:
    loaded = make_cell(**BUSY | {"throughput": 50.0})
    assert Times.of([loaded]).with_compared_time(loaded).throughput == 50.0
    calm = make_cell(**CALM)
    assert Times.of([calm]).with_compared_time(calm) is calm


def test_items_per_second_say_of_which_time_they_are_and_stand_under_a_key_each() -> None:
    """4 120 items/s on the page and the terminal were 4 440 in the CSV, the JSON and on the cell's own page."""
    busy, calm = make_cell("c1", **BUSY), make_cell("c2", **CALM)
    loaded = make_cell("c3", **BUSY | {"throughput": 50.0})
    assert [CPU_THROUGHPUT.value(cell) for cell in (busy, loaded)] == [pytest.approx(1000 / 2.7), None]
    assert CPU_THROUGHPUT.value(make_cell(p50_ms=2.0, throughput=500.0)) is None
    times = Times.of([busy, calm, loaded])
    for cells, heading in (
        ([calm], "items/s"),
        ([busy], "items/s, processor time"),
        ([busy, calm], "items/s by the clock or processor time"),
        ([loaded], "items/s by the clock"),
    ):
        assert times.heading("items/s", "throughput", [times.with_compared_time(cell) for cell in cells]) == heading
    assert [format_compared_items(cell, []) for cell in (busy, calm, loaded)] == [
        "370 items/s of CPU time",
        "34.5 items/s",
        "50.0 items/s",
    ]
    (row,) = list_rows(make_document(busy))
    assert (row["throughput"], row["cpu_throughput"]) == (busy.throughput, pytest.approx(1000 / 2.7))


def test_an_axis_says_of_what_its_times_are() -> None:
    busy, calm = make_cell("c1", **BUSY), make_cell("c2", runtime=NEW, **CALM)
    times = Times.of([busy, calm])
    assert times.title([busy]) == "processor time"
    assert times.title([calm], "p50 latency") == "p50 latency"
    assert times.title([busy, calm]) == "p50 or processor time"
    assert (times.format_latency(busy), times.format_latency(calm)) == ("2.70 ms ± 0.04 of CPU time", "2.72 ms ± 0.02")
    assert format_latency(calm, [BY_PROCESSOR]).endswith("of CPU time")


def twin(verdict_from: str = "processor", **changes: Any) -> Comparison:
    known = {"candidate": "c1.twin", "axis": "twin", "verdict_from": verdict_from}
    return make_comparison("undecided", 0.996, **known | changes)


def test_a_lone_cell_is_told_by_what_its_own_copy_is_judged_by() -> None:
    """0.01009 ms by the clock led, and the table under it had 0.0112 of processor time: another rule of busyness."""
    lone = make_cell(**CALM)
    assert Times.of([lone], [twin()]).by_processor == {"c1"}
    assert BUSY_WORDS in sentences.cell_sentence(lone, [twin()])
    lead = find_key_result(make_document(lone, make_cell("c1.twin", twin_of="c1", **CALM), comparisons=[twin()]))
    assert (lead.quantity, lead.p50_ms, lead.p50_ci_ms) == (
        "processor",
        2.7,
        Times.of([lone], [twin()]).with_compared_time(lone).p50_ci_ms,
    )
    # beside a verdict by the clock its copy's says nothing
    assert not Times.of([lone], [twin(), BY_CLOCK]).by_processor


@pytest.mark.parametrize("has_twin", [False, True])
@pytest.mark.parametrize("is_disturbed", [False, True])
def test_fewer_launches_than_asked_for_carry_their_reason_and_the_way_out(has_twin: bool, is_disturbed: bool) -> None:
    """Only one lone cell in eight has a copy of its own, and the others said nothing of it."""
    (block,) = plan_of({"runtime": "1.31.1"}, with_null_pair=has_twin).blocks
    assert len(block.arms) == 1 + has_twin
    sample = make_sample(1.0, is_disturbed=is_disturbed)
    rounds = [make_round(number, dict.fromkeys(range(len(block.arms)), sample)) for number in range(6)]
    late = [*rounds[:-1], rounds[-1].model_copy(update={"is_last": True})]
    said, not_late = (
        sentences.describe_run(assemble(RunRecord(model=make_model(), blocks=[BlockRecord(block, reports)])))
        for reports in (late, rounds)
    )
    again = "; other work disturbed 6 launches" if is_disturbed else ""
    assert f"It has 6 of at least 8 launches{again}. Time ran out" in said
    # of a single cell there are no fewer
    assert "fewer cells" not in said
    assert "Time ran out" not in not_late


def change(name: str, old: float, new: float, **changes: Any) -> MetricChange:
    return MetricChange(
        name=name, unit="ms", baseline=old, candidate=new, verdict="slower", margin=0.1, rounds=8, **changes
    )


def test_session_creation_is_told_by_the_launches_that_its_verdict_is_of() -> None:
    """28.2 → 16.9 ms stood beside "session creation 27 % slower": single values of the clock."""
    sides = [make_cell(name, session_ms=ms, first_ms=1.0, **BUSY) for name, ms in (("c1", 28.2), ("c2", 16.9))]
    pair = make_comparison(verdict_from="processor", metrics=[change("session_ms", 5.04, 6.28, is_processor=True)])
    times = Times.of(sides, [pair])
    assert [times.with_compared_figures(cell).session_ms for cell in sides] == [5.04, 6.28]
    assert [times.with_compared_time(cell).session_ms for cell in sides] == [28.2, 16.9]
    assert times.heading("session", "session_ms", sides) == "session, processor time"
    assert times.heading("first", "first_ms", sides) == "first by the clock"
    assert times.heading("memory", "peak_memory_bytes", sides) == "memory"
    assert times.heading("p50", "p50_ms", sides) == "p50, processor time"
    alone = make_cell("c3", session_ms=40.0, **CALM)
    assert times.heading("session", "session_ms", [*sides, alone]) == "session by the clock or processor time"


def test_of_a_calm_machine_session_creation_is_the_median_of_its_launches_too() -> None:
    sides = [make_cell(name, session_ms=ms, **CALM) for name, ms in (("c1", 40.0), ("c2", 12.0))]
    pair = make_comparison(metrics=[change("session_ms", 20.0, 24.0), change("known_elsewhere", 1.0, 2.0)])
    times = Times.of(sides, [pair])
    assert [times.with_compared_figures(cell).session_ms for cell in sides] == [20.0, 24.0]
    assert times.heading("session", "session_ms", sides) == "session"


@pytest.mark.parametrize(("verdict_from", "first_ms"), [("processor", 1.07), ("wall", 1.1)])
def test_the_first_token_of_a_busy_machine_is_told_by_processor_time(verdict_from: str, first_ms: float) -> None:
    """`per token 0.130 ms` by the clock stood above `processor time 0.171 → 0.176 ms`."""
    own = [
        CellMetric(name=TTFT, unit="ms", value=1.1, ci_low=1.0, ci_high=1.2),
        CellMetric(name="tokens_per_s", value=9.0),
    ]
    cell = make_cell(metrics=own, **BUSY)
    pair = make_comparison(verdict_from=verdict_from, metrics=[change(TTFT, 1.1, 0.9), change(TTFT_CPU, 1.07, 0.86)])
    told = Times.of([cell], [pair]).with_compared_figures(cell)
    assert [metric.value for metric in told.metrics] == [first_ms, 9.0]
    assert (told.metrics[0].ci_low is None) == (verdict_from == "processor")
