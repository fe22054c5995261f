"""Documents of `single` are those of before metrics had verdicts: commit 09c32f29 wrote single_document.json."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from farm.contract.cells import Budget
from farm.contract.document import Document
from farm.contract.reports import EndReport, Report
from farm.rules.cells.metrics import BY_NAME, METRICS
from farm.rules.cells.scenario_metrics import MAX_RATE
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from tests.unit.rules.making import make_block, make_check, make_facts, make_model, make_round, make_sample

BEFORE = Path(__file__).with_name("single_document.json")
# of the second what is no key of the cell
NAMES = [
    *("p50_ms", "cpu_p50_ms", "instructions", "mean_ms", "std_ms", "min_ms", "max_ms", "throughput"),
    *("cpu_throughput", "import_ms", "session_ms", "first_ms", "peak_memory_bytes", "peak_address_space_bytes"),
]
CARRIED, WORKED_OUT = ["instructions", "peak_address_space_bytes"], "cpu_throughput"


def document() -> Document:
    """Three releases over twelve rounds: one slower, one that takes more addresses."""
    block = make_block(runtime=["1.29.0", "1.30.0", "1.31.1"])
    dice = np.random.default_rng(19)
    reports: list[Report] = [make_facts(), *(make_check(arm.arm) for arm in block.arms)]
    for number in range(12):
        told = {}
        for arm in block.arms:
            p50_ms = float(1.0 + 0.2 * (arm.arm == 2) + 0.01 * dice.standard_normal())
            told[arm.arm] = make_sample(
                p50_ms,
                cpu_p50_ms=p50_ms,
                phases_ms={"session": 30.0 + float(dice.standard_normal()), "first": 2.0},
                peak_memory_bytes=60_000_000 + 1000 * number,
                metrics={"peak_address_space_bytes": 3e8 + 4096.0 * number + 1e8 * (arm.arm == 1), "instructions": 1e6},
            )
        reports.append(make_round(number, told))
    record = BlockRecord(block=block, reports=[*reports, EndReport()], node="bench-1", is_over=True)
    return assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget.QUICK))


def without_added(text: str) -> str:
    """The document as it is written, without the keys that were added."""
    plain: dict[str, list[dict[str, Any]]] = json.loads(text)
    for part in (*plain["cells"], *plain["comparisons"]):
        part.pop("metrics", None)
        part.pop("call", None)
    # the tolerance is of the output's own scale since 26 November 2026, and rounds that no look counts are told since
    # 27 November
    text = json.dumps(plain, indent=2, ensure_ascii=False).replace(" × scale", "")
    return text.replace("4 rounds after the last look, at 8 rounds, are left out. ", "")


def test_a_document_of_single_is_the_one_of_before_but_for_its_metrics() -> None:
    now = document()
    assert without_added(now.to_json()) == without_added(BEFORE.read_text(encoding="utf-8"))
    assert [metric.name for metric in now.cells[0].metrics] == NAMES
    assert [metric.name for metric in now.cells[0].metrics if BY_NAME[metric.name].is_under_metrics] == [
        CARRIED[0],
        WORKED_OUT,
        CARRIED[1],
    ]
    assert [change.name for change in now.comparisons[0].metrics][:2] == ["p50_ms", "cpu_p50_ms"]


def test_a_document_whose_cells_have_their_metrics_by_name_is_read_as_it_would_be_written_now() -> None:
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    figure = before["cells"][0]["metrics"]["instructions"]
    read = Document.model_validate(before)
    (found,) = [one for one in read.cells[0].metrics if one.name == "instructions"]
    assert (found.value, found.unit, found.better, found.n) == (1e6, "", "less", 12)
    assert (found.ci_low, found.ci_high, found.samples) == (figure["low"], figure["high"], figure["samples"])
    assert read.cells[0].figures["instructions"] == found.figure
    written = [[one for one in cell.metrics if one.name in CARRIED] for cell in document().cells]
    assert [cell.metrics for cell in read.cells] == written


def test_a_metric_that_is_a_key_of_the_cell_stands_in_the_list_as_it_stands_there() -> None:
    for cell in document().cells:
        own = [one for one in cell.metrics if one.name not in (*CARRIED, WORKED_OUT)]
        assert {one.name: one.value for one in own} == {one.name: getattr(cell, one.name) for one in own}
        missing = [
            metric.name
            for metric in METRICS
            if metric.better and not metric.is_under_metrics and not cell.find_metric(metric.name)
            for one in METRICS
            if one.better and not one.is_under_metrics and cell.find_metric(one.name) is None
        ]
        assert {getattr(cell, name) for name in missing} == {None}
        p50 = cell.metrics[0]
        assert (p50.name, p50.unit, p50.better, p50.n, p50.samples) == ("p50_ms", "ms", "less", 12, [])
        assert (p50.ci_low, p50.ci_high) == cell.p50_ci_ms


def test_how_many_launches_are_behind_a_metric_is_one_for_what_the_check_pass_says() -> None:
    cell = document().cells[0]
    launches = {one.name: one.n for one in cell.metrics}
    assert {name for name, n in launches.items() if n == 1} == {
        "import_ms",
        "session_ms",
        "first_ms",
        "peak_memory_bytes",
    }
    assert set(launches.values()) == {1, 12}


def test_a_document_of_before_says_every_metric_by_its_own_key() -> None:
    """Pages, files and gates ask the table, which reads the cell's own keys first."""
    read = Document.model_validate_json(BEFORE.read_text(encoding="utf-8")).cells[0]
    now = document().cells[0]
    assert [one.value(read) for one in METRICS] == [one.value(now) for one in METRICS]
    assert [one.interval_of(read) for one in METRICS] == [one.interval_of(now) for one in METRICS]


def test_a_cell_without_launches_lists_what_its_check_pass_says() -> None:
    record = BlockRecord(
        block=make_block(runtime="1.31.1"), reports=[make_facts(), make_check(0), EndReport()], node="a", is_over=True
    )
    (cell,) = assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget.QUICK)).cells
    assert "p50_ms" not in {one.name for one in cell.metrics}
    assert {"session_ms", "peak_memory_bytes"} <= {one.name for one in cell.metrics}
    assert {one.n for one in cell.metrics} == {1}


def test_the_rate_that_a_load_looks_for_stands_first() -> None:
    launched = make_sample(1.0).model_copy(update={"metrics": {MAX_RATE: 812.0}})
    for scenario, first in (("load:bound=20ms", MAX_RATE), ("load:rate=200", "p50_ms")):
        block = make_block(runtime="1.31.1", scenario=scenario)
        reports = [
            make_facts(),
            make_check(0),
            *(make_round(number, {0: launched}) for number in range(8)),
            EndReport(),
        ]
        record = BlockRecord(block=block, reports=reports, node="bench-1", is_over=True)
        (cell,) = assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget.QUICK)).cells
        assert cell.metrics[0].name == first
        assert {one.name for one in cell.metrics[:2]} >= {"p50_ms"}


@pytest.mark.parametrize("metrics", [{"x": 1}, {"x": {"value": "nothing"}}, {"x": {}}, [{"value": 1.0}], "x", 7, [7]])
def test_metrics_of_neither_shape_are_refused(metrics: object) -> None:
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    before["cells"][0]["metrics"] = metrics
    with pytest.raises(ValidationError):
        Document.model_validate(before)
