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
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from tests.unit.rules.making import make_block, make_check, make_facts, make_model, make_round, make_sample

BEFORE = Path(__file__).with_name("single_document.json")


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
                metrics={
                    "peak_address_space_bytes": 3e8 + 4096.0 * number + 1e8 * (arm.arm == 1),
                    "instructions": 1e6,
                },
            )
        reports.append(make_round(number, told))
    record = BlockRecord(block=block, reports=[*reports, EndReport()], node="bench-1", is_over=True)
    return assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget.QUICK))


def without_added(text: str) -> str:
    """The document as it is written, without the keys that were added."""
    plain: dict[str, list[dict[str, Any]]] = json.loads(text)
    for part in (*plain["cells"], *plain["comparisons"]):
        part.pop("metrics", None)
    return json.dumps(plain, indent=2, ensure_ascii=False)


def test_a_document_of_single_is_the_one_of_before_but_for_its_metrics() -> None:
    now = document()
    assert without_added(now.to_json()) == without_added(BEFORE.read_text(encoding="utf-8"))
    assert [metric.name for metric in now.cells[0].metrics] == ["instructions", "peak_address_space_bytes"]
    assert [change.name for change in now.comparisons[0].metrics][:2] == ["p50_ms", "cpu_p50_ms"]


def test_a_document_whose_cells_have_their_metrics_by_name_is_read_as_it_would_be_written_now() -> None:
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    figure = before["cells"][0]["metrics"]["instructions"]
    read = Document.model_validate(before)
    (found,) = [one for one in read.cells[0].metrics if one.name == "instructions"]
    assert (found.value, found.unit, found.better, found.n) == (1e6, "", "less", 12)
    assert (found.ci_low, found.ci_high, found.samples) == (figure["low"], figure["high"], figure["samples"])
    assert read.cells[0].figures["instructions"] == found.figure
    assert [cell.metrics for cell in read.cells] == [cell.metrics for cell in document().cells]
    assert json.loads(read.to_json())["cells"][0]["metrics"][0]["name"] == "instructions"


@pytest.mark.parametrize("metrics", [{"x": 1}, {"x": {"value": "nothing"}}, {"x": {}}, [{"value": 1.0}], "x", 7, [7]])
def test_metrics_of_neither_shape_are_refused(metrics: object) -> None:
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    before["cells"][0]["metrics"] = metrics
    with pytest.raises(ValidationError):
        Document.model_validate(before)
