"""Comparisons seen from either side: who calls with an older candidate means the newer one as the baseline."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import Any

import pytest

from farm.contract.cells import CellSpec, Runtime
from farm.contract.document import Document
from farm.contract.document_cells import OperatorTime, Parity
from farm.contract.document_comparisons import OperatorChange
from farm.rules.changes import gate, gate_reports, report
from farm.rules.changes.watch_rounds import Judgement, Rule, judge
from farm.rules.comparing.sides import comparison_between, index_by_sides, swap_sides
from tests.documents import make_comparison, make_document
from tests.unit.rules.test_watching import cell

OLDER, LATER = "onnxruntime==1.27.0", "onnxruntime==1.29.0"
GELU = OperatorChange(
    node="/gelu", op_type="Gelu", baseline_us=400.0, candidate_us=250.0, change_low_us=-170.0, change_high_us=-130.0,
    share=0.75,
)  # fmt: skip


def measured(verdict: str, ratio: float | None = None, **older: Any) -> Document:
    """As a block compares them: the older release is the baseline. `older` changes its cell."""
    ends = {} if ratio is None else {"ci_low": ratio - 0.02, "ci_high": ratio + 0.03}
    comparison = make_comparison(verdict, ratio, traces=5, operators=[GELU], **ends)
    return make_document(cell("c1", OLDER, **older), cell("c2", LATER), comparisons=[comparison])


def called(document: Document, **rule: Any) -> Judgement:
    """The older release is the candidate, the later one what is used now."""
    return judge(document, Rule(**rule), old=Runtime.of(LATER), new=Runtime.of(OLDER))


def test_a_turned_comparison_says_the_opposite_with_inverted_figures() -> None:
    (one,) = measured("faster", 0.8).comparisons
    other = swap_sides(one)
    assert (other.baseline, other.candidate, other.verdict) == ("c2", "c1", "slower")
    assert other.ratio == pytest.approx(1.25)
    assert (other.ci_low, other.ci_high) == (pytest.approx(1 / 0.83), pytest.approx(1 / 0.78))
    (change,) = other.operators
    assert (change.baseline_us, change.candidate_us, change.share) == (250.0, 400.0, 0.75)
    assert (change.change_low_us, change.change_high_us) == (130.0, 170.0)


def test_the_verdict_on_an_operator_is_turned_with_its_comparison() -> None:
    (one,) = measured("faster", 0.8).comparisons
    judged = {"ratio": 0.625, "ci_low": 0.5, "ci_high": 0.8, "verdict": "faster", "rounds": 12}
    (change,) = swap_sides(one.model_copy(update={"operators": [one.operators[0].model_copy(update=judged)]})).operators
    assert (change.ratio, change.ci_low, change.ci_high) == pytest.approx((1.6, 1.25, 2.0))
    assert (change.verdict, change.rounds) == ("slower", 12)
    assert swap_sides(one).operators[0].verdict is None


@pytest.mark.parametrize("verdict", ["slower", "faster", "equal", "undecided", "not comparable"])
def test_turning_twice_changes_nothing(verdict: str) -> None:
    (one,) = measured(verdict, 1.25).comparisons
    twice = swap_sides(swap_sides(one))
    figures = {"ratio", "ci_low", "ci_high"}
    assert twice.model_dump(exclude=figures) == one.model_dump(exclude=figures)
    assert (twice.ratio, twice.ci_low, twice.ci_high) == pytest.approx((one.ratio, one.ci_low, one.ci_high))


def test_a_comparison_without_figures_is_turned_as_well() -> None:
    (one,) = measured("not comparable").comparisons
    assert (swap_sides(one).ratio, swap_sides(one).ci_low, swap_sides(one).verdict) == (None, None, "not comparable")


def test_what_was_measured_in_the_asked_direction_is_not_turned() -> None:
    (one,) = measured("faster", 0.8).comparisons
    known = index_by_sides([one])
    assert comparison_between(known, "c1", "c2") is one
    assert comparison_between(known, "c1", "c3") is None


def test_an_older_candidate_that_is_slower_is_a_finding() -> None:
    (finding,) = called(measured("faster", 0.8)).findings
    assert (finding.kind, finding.size) == ("slower", pytest.approx(1.25))
    assert (finding.baseline, finding.candidate) == ("c2", "c1")
    assert "ONNX Runtime 1.27.0 runs encoder" in finding.text
    assert "25 % slower than 1.29.0 on bench-1 (95 % interval 20–28 %" in finding.text


def test_an_older_candidate_that_is_faster_is_news() -> None:
    found = called(measured("slower", 1.25))
    assert (found.outcome, len(found.news)) == ("news", 1)
    assert "faster than 1.29.0" in found.news[0]


def test_the_rules_threshold_holds_for_the_turned_ratio() -> None:
    document = measured("faster", 0.8)
    assert called(document, latency=0.26).outcome == "quiet"
    assert called(document, latency=0.24).outcome == "alert"


def test_an_equal_older_candidate_clears_latency() -> None:
    found = called(measured("equal", 1.0))
    assert (found.outcome, "slower" in {kind for kind, _ in found.cleared}) == ("quiet", True)


@pytest.mark.parametrize(("ratio", "questions"), [(0.99, 0), (0.9, 1)])
def test_an_undecided_older_candidate_is_no_question_within_the_rule(ratio: float, questions: int) -> None:
    found = called(measured("undecided", ratio))
    assert (found.outcome, len(found.undecided), len(found.passed)) == ("undecided", questions, 1 - questions)


def test_parity_and_placement_are_judged_from_the_candidates_side() -> None:
    gone = [OperatorTime(node="a", op_type="MatMul", provider="CUDAExecutionProvider", time_us=5.0)]
    document = measured("equal", 1.0, parity=Parity(verdict="fail", text="9 elements differ."))
    document.cells[1].operators = gone
    assert [one.kind for one in called(document).findings] == ["parity", "placement"]
    forward = judge(document, Rule(), old=Runtime.of(OLDER), new=Runtime.of(LATER))
    assert (forward.outcome, len(forward.news)) == ("news", 2)


def gated(document: Document) -> gate.GateAnswer:
    return gate.judge_gate(document, old=Runtime.of(LATER), new=Runtime.of(OLDER), fail_on=["slower", "parity"])


def test_a_gate_fails_on_an_older_candidate_that_is_slower_and_writes_its_side() -> None:
    document = measured("faster", 0.8)
    answer = gated(document)
    assert not answer.is_passed
    assert f"| cell | of | {LATER} | {OLDER} |" in gate_reports.as_markdown(answer, document)
    ratio, *_ = gate_reports.as_benchmark_entries(answer, document)
    assert (ratio["value"], ratio["extra"]) == (pytest.approx(1.25), f"{LATER} → {OLDER}: slower")
    assert ElementTree.fromstring(gate_reports.as_junit(answer, document)).get("failures") == "1"
    assert gated(measured("slower", 1.25)).is_passed


def test_a_report_to_file_tells_the_turned_change() -> None:
    document = measured("faster", 0.8)
    runtime = Runtime(distribution="onnxruntime", version="1.27.0")
    spec = CellSpec(artifact_sha256="a" * 64, runtime=runtime)
    case = report.Case(document, document.cells[1], document.cells[0], spec, "encoder.onnx", "Slower.")
    assert case.comparison.verdict == "slower"
    assert "# [Performance] 25 % slower: onnxruntime==1.27.0 compared with 1.29.0" in report.render_issue(case)
    assert replace(case, old=case.new, new=case.old).comparison == document.comparisons[0]
