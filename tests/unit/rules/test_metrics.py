"""The table of metrics, and one from the launch that counts it to the document, the CSV and the cell's page."""

import csv
import io
from statistics import median

import pytest
from pydantic import ValidationError

from dashboard.metrics import metric_text
from dashboard.reading import cell as reading
from farm.contract.cells import Budget
from farm.contract.document import Document
from farm.contract.document_cells import Cell, CellMetric, Figure
from farm.contract.reports import EndReport, Sample
from farm.rules.cells import metrics
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import METRICS
from farm.rules.changes.watch_rounds import Rule
from farm.rules.findings.kinds import KINDS
from farm.rules.judging.evidence import Evidence
from farm.rules.presenting import spreadsheets
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from tests.unit.rules.making import make_block, make_check, make_facts, make_model, make_round, make_sample

FAULTS = Metric("minor_faults", "minor page faults", "faults", "less", summary=median, noise="launches", reads="count")


def measured(*, counts=(900, 1000, 1100, 1000), **check):
    """A document of one cell whose launches counted so many instructions."""
    block = make_block(runtime="1.31.1")
    launches = [make_sample(1.0, metrics={} if count is None else {"instructions": count}) for count in counts]
    rounds = [make_round(number, {0: sample}) for number, sample in enumerate(launches)]
    reports = [make_facts(), make_check(0, **check), *rounds, EndReport()]
    record = BlockRecord(block=block, reports=reports, node="bench-1", is_over=True)
    return assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget.QUICK))


def page(cell):
    return {row[0].text: tuple(entry.text for entry in row[1:]) for row in reading.metric_table(cell).rows}


def test_a_metric_of_launches_reaches_the_document_the_csv_and_the_page():
    document = measured()
    figure = document.cells[0].figures["instructions"]
    assert (figure.value, figure.better) == (1000, "less")
    assert figure.samples == [900, 1000, 1100, 1000]
    # four launches are too few for an interval of 95 %
    assert (figure.low, figure.high) == (None, None)
    assert Document.model_validate_json(document.to_json()) == document
    (line,) = csv.DictReader(io.StringIO(spreadsheets.make_csv(document)))
    assert (float(line["instructions"]), line["memory_per_session_bytes"]) == (1000.0, "")
    assert page(document.cells[0])[metrics.INSTRUCTIONS.title][0] == "1000"


def test_a_metric_of_the_check_pass_is_told_once():
    document = measured(counts=(None,) * 4, metrics={"memory_per_session_bytes": 7.0 * 2**20})
    told = document.cells[0].find_metric("memory_per_session_bytes")
    assert (told.value, told.n, told.samples) == (7.0 * 2**20, 1, [])
    assert page(document.cells[0])[metrics.BY_NAME[told.name].title][0] == "7 MiB"


def test_a_launch_that_did_not_count_it_is_left_out_of_the_summary():
    figure = measured(counts=(None, 10, None, 30)).cells[0].figures["instructions"]
    assert (figure.value, figure.samples) == (20, [10, 30])


def test_a_new_latency_is_written_with_the_digits_of_its_interval():
    waiting = Metric("waiting_ms", "waiting", "ms", "less", summary=median, noise="launches", reads="latency")
    figure = Figure(value=1.23456, low=1.2, high=1.26, samples=[1.2, 1.26])
    cell = measured().cells[0]
    told = cell.model_copy(update={"metrics": [CellMetric.from_figure("waiting_ms", figure)]})
    assert (waiting.interval_of(cell), waiting.interval_of(told)) == (None, (1.2, 1.26))
    assert [metric_text(waiting, one) for one in (cell, told)] == ["not measured", "1.23"]
    unsure = cell.model_copy(update={"metrics": [CellMetric.from_figure("waiting_ms", Figure(value=1.23456))]})
    assert waiting.interval_of(unsure) is None


def test_what_no_entry_names_is_not_taken_from_a_node():
    cell = measured().cells[0]
    assert {one.name for one in cell.metrics} <= set(metrics.BY_NAME)
    assert "minor_faults" not in measured(metrics={"minor_faults": 1.0}).cells[0].model_dump_json()


@pytest.mark.parametrize(
    "told",
    [{"Minor faults": 1.0}, {"<b>": 1.0}, {"": 1.0}, {"x": float("nan")}, {f"x{n}": 1.0 for n in range(33)}],
    ids=["spaces", "markup", "no name", "no number", "too many"],
)
def test_a_node_cannot_say_under_metrics_what_is_no_metric(told):
    with pytest.raises(ValidationError):
        make_sample(1.0, metrics=told)


def test_a_sample_without_further_metrics_is_sent_as_older_farms_take_it():
    assert "metrics" not in make_sample(1.0).model_dump()
    assert "metrics" not in make_check(0).model_dump()


# those of launches that came after the document had its fields
# what the check launch says once
WORKED_OUT = ["cpu_throughput"]
ONCE = ["memory_per_session_bytes", "addresses_per_thread_bytes"]
CARRIED = [
    *("bound_p50_ms", "run_p50_ms"),
    "instructions",
    *WORKED_OUT,
    "peak_address_space_bytes",
    *ONCE,
    *("tpot_ms", "ttft_ms", "ttft_cpu_ms", "tokens_per_s", "prefill_tokens_per_s"),
    *("outside_ms", "outside_cpu_ms", "tpot_growth_ms_per_1000", "cache_bytes", "perplexity"),
    *("growth_bytes_per_1000", "max_rate_per_s", "goodput_per_s", "differing_answers", "differing_rows"),
]


def test_only_later_metrics_travel_without_a_field_of_the_document():
    assert [metric.name for metric in METRICS if metric.is_under_metrics] == CARRIED
    assert all(metric.samples_as in {"", *Cell.model_fields} for metric in METRICS)
    assert all(metric.interval_as in {"", *Cell.model_fields} for metric in METRICS)


def test_every_launch_can_say_what_is_summarised_of_launches():
    own = [metric.name for metric in metrics.OF_LAUNCHES]
    assert {"p50_ms", "peak_memory_bytes"} <= set(own)
    assert [name for name in own if name not in Sample.model_fields] == [
        metric for metric in CARRIED if metric not in (*ONCE, *WORKED_OUT)
    ]


def test_pairs_are_of_the_judged_metric_or_of_the_one_that_is_asked_for():
    places = {0: make_sample(2.0, metrics={"minor_faults": 5.0}), 1: make_sample(3.0)}
    evidence = Evidence.of([make_round(0, places)])
    assert evidence.pairs(0, 1) == [(2.0, 3.0)]
    assert evidence.pairs(0, 0, metric=FAULTS) == [(5.0, 5.0)]
    assert evidence.pairs(0, 1, metric=FAULTS) == []


def test_rules_of_watches_have_a_threshold_for_every_metric_that_alerts():
    kinds = {judging.alerts_as for judging in metrics.ALERTING.values()}
    assert kinds == {"call", "session", "first", "memory", "growth", "ttft"}
    assert all((KINDS[kind].limit or "latency") in Rule.model_fields for kind in kinds)
