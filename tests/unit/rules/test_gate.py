"""The gate: which findings fail it, and how it is reported."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from farm.contract.document import Cell, Comparison, Document, OperatorTime, Parity
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.rules.reporting import gate


def _cell(name: str, **changes: Any) -> Cell:
    values: dict[str, Any] = {
        "id": name,
        "digest": name,
        "model_sha256": "0" * 64,
        "runtime": f"onnxruntime=={name}",
        "provider": "CPUExecutionProvider",
        "precision": "fp32",
        "batch": 1,
        "threads": 1,
        "status": CellStatus.DONE,
        "p50_ms": 2.0,
        "p50_ci_ms": (1.9, 2.1),
    }
    return Cell(**{**values, **changes})


def _document(verdict: str = "equal", *, axis: str = "runtime", **candidate: Any) -> Document:
    pair = Comparison(
        baseline="1.0",
        candidate="2.0",
        axis=axis,
        ratio=1.24,
        ci_low=1.21,
        ci_high=1.26,
        verdict=verdict,  # type: ignore[arg-type]
        margin=0.02,
        reason="8 rounds were not enough" if verdict == "undecided" else None,
    )
    return Document(machine={}, seed=1, cells=[_cell("1.0"), _cell("2.0", **candidate)], comparisons=[pair])


def _operators(*, op_type: str, covers: list[str]) -> list[OperatorTime]:
    return [OperatorTime(node="a", covers=covers, op_type=op_type, provider="CPUExecutionProvider", time_us=1)]


def test_an_equal_candidate_passes() -> None:
    document = _document()
    answer = gate.judge_gate(document, fail_on=["slower", "parity"])
    assert answer.is_passed
    assert "1 comparisons, nothing found." in gate.as_markdown(answer, document)
    assert ElementTree.fromstring(gate.as_junit(answer, document)).get("failures") == "0"


def test_a_slower_candidate_fails_only_when_asked_to() -> None:
    document = _document("slower")
    failing, passing = (gate.judge_gate(document, fail_on=names) for names in (["slower"], ["parity"]))
    assert (failing.is_passed, passing.is_passed) == (False, True)
    assert "×1.240 of onnxruntime==1.0 (95 % interval ×1.210–1.260)" in gate.as_markdown(failing, document)
    suite = ElementTree.fromstring(gate.as_junit(failing, document))
    assert suite.get("failures") == "1"
    assert suite[0].get("classname") == "onnxfarm.slower"


@pytest.mark.parametrize("verdict", ["undecided", "not comparable"])
def test_undecided_is_its_own_finding(verdict: str) -> None:
    (finding,) = gate.judge_gate(_document(verdict), fail_on=["undecided"]).findings
    assert (finding.check, finding.is_failure) == ("undecided", True)


def test_parity_that_broke_and_a_fusion_that_is_gone_are_found() -> None:
    document = _document(parity=Parity(verdict="fail"), operators=_operators(op_type="Add", covers=[]))
    document.cells[0].operators = _operators(op_type="FusedAdd", covers=["b"])
    answer = gate.judge_gate(document, fail_on=["placement"])
    assert [finding.check for finding in answer.findings] == ["parity", "placement"]
    assert not answer.is_passed


def test_a_candidate_that_no_longer_runs_is_failed_with_its_reason() -> None:
    reason = Reason(code=ReasonCode.CRASHED, text="killed by SIGSEGV")
    (finding,) = gate.judge_gate(_document(status=CellStatus.CRASHED, reason=reason), fail_on=["failed"]).findings
    assert finding.text.endswith("is crashed: killed by SIGSEGV")


def test_a_pair_that_never_ran_is_no_new_failure() -> None:
    document = _document(status=CellStatus.REFUSED)
    document.cells[0].status = CellStatus.REFUSED
    assert gate.judge_gate(document, fail_on=gate.CHECKS).findings == ()


def test_a_gate_that_compared_nothing_is_not_passed() -> None:
    document = _document(axis="batch")
    answer = gate.judge_gate(document, fail_on=[])
    assert not answer.is_passed
    assert "Nothing was compared" in gate.as_markdown(answer, document)
    assert ElementTree.fromstring(gate.as_junit(answer, document)).get("failures") == "1"


def test_benchmark_entries_hold_measured_cells_only() -> None:
    (entry,) = gate.as_benchmark_entries(_document(p50_ms=None))
    assert entry == {
        "name": "000000000000 onnxruntime==1.0, CPUExecutionProvider, fp32, batch 1",
        "unit": "ms",
        "value": 2.0,
        "range": "1.9–2.1",
    }
