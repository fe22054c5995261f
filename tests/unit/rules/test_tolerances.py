"""Tolerances of single outputs, from a matrix to the order and the verdict."""

from typing import Any

import pytest

from farm.contract.blocks import Tolerance
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.quality import parity
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from tests.unit.rules.making import make_check, make_model, make_output, make_reports

BASE: dict[str, Any] = {"runtime": ["1.29.0", "1.31.1"], "batch": [1]}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"y": 0.001}, Tolerance(atol=0.001, rtol=0.0)),
        ({"y": "1e-3"}, Tolerance(atol=0.001, rtol=0.0)),
        ({"y": {"atol": 0.001, "rtol": 0.01}}, Tolerance(atol=0.001, rtol=0.01)),
        ({"y": {"rtol": 0.01}}, Tolerance(atol=0.0, rtol=0.01)),
    ],
)
def test_a_tolerance_is_read_and_written_back(written: Any, meant: Tolerance) -> None:
    read = matrix.parse({**BASE, "tolerance": written})
    assert read.tolerances == {"y": meant}
    assert matrix.parse(read.as_plain()).tolerances == read.tolerances
    (block,) = planner.plan(read, make_model()).blocks
    assert block.tolerances == {"y": meant}


@pytest.mark.parametrize(
    "written", [3, "y", {"y": -1}, {"y": "much"}, {"y": {}}, {"y": {"abs": 1}}, {"y": None}, {"y": {"atol": "nan"}}]
)
def test_what_is_no_tolerance_is_told_in_one_sentence(written: Any) -> None:
    with pytest.raises(MatrixProblem, match="tolerance"):
        matrix.parse({**BASE, "tolerance": written})


def test_an_output_is_judged_by_its_own_tolerance_and_the_others_by_their_precision() -> None:
    far, near = make_output(violations=2, max_abs=0.5), make_output(name="z", violations=0)
    own = parity.presets_from_tolerances({"y": Tolerance(atol=0.1, rtol=0.0)})
    judged = parity.judge((far, near), parity.INT8, by_output=own)
    assert (judged.verdict, "beyond atol 0.1 + rtol 0" in judged.text) == ("fail", True)


def test_the_verdict_of_a_document_uses_it() -> None:
    (block,) = planner.plan(matrix.parse({**BASE, "tolerance": {"y": 0.25}}), make_model()).blocks
    reports = make_reports({arm.arm: 1.0 for arm in block.arms})
    reports += [make_check(0, outputs=(make_output(violations=2, max_abs=0.5),))]
    found = assemble(RunRecord(model=make_model(), blocks=[BlockRecord(block=block, reports=reports)]))
    assert "beyond atol 0.25 + rtol 0" in found.cells[0].parity.text
    assert found.cells[1].parity.verdict == "pass"


def test_the_schema_knows_it() -> None:
    assert "tolerance" in matrix.json_schema()["properties"]
