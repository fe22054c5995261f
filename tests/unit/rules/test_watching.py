"""What a watch makes of a measured block."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell, OperatorTime, Parity, ParityOutput
from farm.contract.document_comparisons import MetricChange
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.rules.changes import watch_rounds
from farm.rules.changes.watch_rounds import Finding, Judgement, Rule, judge
from farm.rules.findings import cell_pairs
from farm.rules.findings.kinds import KINDS, Key
from tests.documents import CPU, NEW, OLD, make_cell, make_comparison, make_document


def cell(name: str, runtime: str, **changes: Any) -> Cell:
    known: dict[str, Any] = {
        "block": "b1", "runtime": runtime, "node": "bench-1", "session": {"name": "default"}, "p50_ms": 1.0,
        "session_ms": 100.0, "first_ms": 10.0, "peak_memory_bytes": 100_000_000, "parity": Parity(verdict="pass"),
        "operators": [OperatorTime(node="a", op_type="MatMul", provider=CPU, time_us=5.0)],
    }  # fmt: skip
    return make_cell(name, **{**known, **changes})


METRICS = {"session_ms": ("ms", 100.0), "first_ms": ("ms", 10.0), "peak_memory_bytes": ("bytes", 1e8)}
CALLS = {"run_p50_ms": ("ms", 0.0322), "bound_p50_ms": ("ms", 0.0322)}


def told(name: str, new: float | None = None, verdict: Any = "equal", old: float | None = None) -> MetricChange:
    """A metric with a verdict over rounds; unchanged unless `new` is given."""
    unit, usual = (METRICS | CALLS)[name]
    before = usual if old is None else old
    after = before if new is None else new
    known = {"ratio": after / before, "ci_low": 0.99 * after / before, "ci_high": 1.01 * after / before, "p": 0.001}
    return MetricChange(
        name=name, unit=unit, baseline=before, candidate=after, verdict=verdict, margin=0.1, rounds=8, **known
    )


def pair(
    verdict: Any = "equal", ratio: float | None = 1.0, *, metrics: Sequence[MetricChange] | None = None, **new: Any
) -> Document:
    """Old and new side by side; `new` changes the new cell, `metrics` are told in place of those that are equal."""
    own = {change.name: change for change in metrics or ()}
    told_of = [own.get(name) or told(name) for name in {**METRICS, **own}]
    cells = cell("c1", OLD), cell("c2", NEW, **new)
    return make_document(*cells, comparisons=[make_comparison(verdict, ratio, metrics=told_of)])


def judged(document: Document, **rule: Any) -> Judgement:
    return judge(document, Rule(**rule), old=Runtime.of(OLD), new=Runtime.of(NEW))


def kinds(judgement: Judgement) -> list[str]:
    return [finding.kind for finding in judgement.findings]


def test_an_unchanged_pair_is_quiet_and_clears_every_kind() -> None:
    found = judged(pair())
    assert (found.outcome, found.compared, kinds(found)) == ("quiet", 1, [])
    # nothing was said of growth and the first token; releases are judged by their outputs
    assert {kind for kind, _ in found.cleared} == set(KINDS) - {"growth", "ttft", "accuracy", "call"}


def test_slower_beyond_the_rule_is_a_finding_that_needs_a_fresh_block() -> None:
    (finding,) = judged(pair("slower", 1.24)).findings
    assert (finding.kind, finding.size, finding.node, finding.is_noisy) == ("slower", 1.24, "bench-1", True)
    assert "24" in finding.text


def test_slower_within_the_rule_is_no_finding_and_clears_nothing() -> None:
    found = judged(pair("slower", 1.04), latency=0.05)
    assert found.outcome == "quiet"
    assert "slower" not in {kind for kind, _ in found.cleared}


def test_faster_is_news_and_never_an_alert() -> None:
    found = judged(pair("faster", 0.7))
    assert (found.outcome, len(found.news)) == ("news", 1)


@pytest.mark.parametrize("verdict", ["undecided", "not comparable"])
def test_what_is_not_decided_is_its_own_state(verdict: str) -> None:
    assert judged(pair(verdict, 1.3)).outcome == "undecided"


@pytest.mark.parametrize(("ratio", "rounds", "questions"), [(1.04, 8, 0), (1.06, 8, 1), (1.04, 6, 1)])
def test_undecided_is_no_question_where_its_interval_ends_within_the_rule(
    ratio: float, rounds: int, questions: int
) -> None:
    document = pair("undecided", ratio)
    document.comparisons[0].rounds = rounds
    found = judged(document, latency=0.05)
    assert (found.outcome, len(found.undecided), len(found.passed)) == ("undecided", questions, 1 - questions)
    assert "slower" not in {kind for kind, _ in found.cleared}


def test_a_comparison_that_is_decided_to_be_equal_is_quiet_and_an_open_one_of_no_kind_of_the_rule_too() -> None:
    equal, undecided = pair("equal", 1.01), pair("undecided", 1.04)
    undecided.comparisons[0].rounds = 24
    assert [judged(each).outcome for each in (equal, undecided)] == ["quiet", "undecided"]
    found = judged(undecided, kinds=["parity"])
    assert (found.outcome, found.passed) == ("quiet", ())


def test_a_kind_that_the_rule_leaves_out_is_news() -> None:
    found = judged(pair("slower", 1.24), kinds=("parity",))
    assert (found.outcome, len(found.news)) == ("news", 1)


def test_broken_parity_is_a_finding_without_a_second_block() -> None:
    (finding,) = judged(pair(parity=Parity(verdict="fail", text="9 elements differ."))).findings
    assert (finding.kind, finding.is_noisy) == ("parity", False)


def test_parity_that_failed_before_and_is_no_worse_is_no_finding() -> None:
    before = Parity(verdict="fail", outputs=[ParityOutput(name="y", rmse=1.0)])
    document = pair(parity=Parity(verdict="fail", outputs=[ParityOutput(name="y", rmse=1.5)]))
    document.cells[0].parity = before
    assert kinds(judged(document)) == []


def test_parity_that_failed_before_and_is_much_worse_is_a_finding() -> None:
    document = pair(parity=Parity(verdict="fail", outputs=[ParityOutput(name="y", rmse=3.0)]))
    document.cells[0].parity = Parity(verdict="fail", outputs=[ParityOutput(name="y", rmse=1.0)])
    (finding,) = judged(document).findings
    assert "×3" in finding.text


def test_parity_that_is_kept_again_is_news() -> None:
    document = pair()
    document.cells[0].parity = Parity(verdict="fail")
    assert judged(document).outcome == "news"


def test_parity_that_was_not_measured_is_undecided() -> None:
    assert judged(pair(parity=Parity(text="Nobody knows."))).outcome == "undecided"


def test_a_node_that_falls_back_to_the_cpu_is_a_finding_even_at_equal_latency() -> None:
    document = pair()
    document.cells[0].operators = [OperatorTime(node="a", op_type="MatMul", provider="CUDA", time_us=5.0)]
    (finding,) = judged(document).findings
    assert (finding.kind, finding.is_noisy) == ("placement", False)


def test_more_copies_are_a_finding_and_fewer_are_news() -> None:
    assert kinds(judged(pair(copies=2))) == ["placement"]
    fewer = pair(copies=0)
    fewer.cells[0].copies = 2
    assert judged(fewer).outcome == "news"


def test_a_cell_without_operators_says_nothing_of_placement() -> None:
    found = judged(pair(operators=[]))
    assert "placement" not in {kind for kind, _ in found.cleared}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (told("session_ms", 180.0, "slower"), "session"),
        (told("first_ms", 30.0, "slower"), "first"),
        (told("peak_memory_bytes", 1.5e8, "bigger"), "memory"),
    ],
)
def test_metrics_that_are_decided_to_be_worse_beyond_their_rule_are_noisy_findings(change: MetricChange, kind: str):
    (finding,) = judged(pair(metrics=[change])).findings
    assert (finding.kind, finding.is_noisy) == (kind, True)


def test_two_values_that_no_verdict_tells_apart_are_no_finding_however_far_they_are() -> None:
    """34.3 and 67.5 ms of session creation in two fresh processes of one release: its true medians were 33 and 36."""
    document = pair(session_ms=67.5, metrics=[told("session_ms", 67.5, "undecided", old=34.3)])
    document.cells[0].session_ms = 34.3
    found = judged(document)
    assert (kinds(found), found.outcome) == ([], "undecided")
    assert "session" not in {kind for kind, _ in found.cleared}
    assert judged(document, kinds=["slower"]).outcome == "quiet"
    assert judged(pair(metrics=[told("session_ms", 140.0, "undecided")])).outcome == "quiet"


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("verdict", "new", "found"),
    [("slower", 0.0350, ["call"]), ("slower", 0.0330, []), ("undecided", 0.0350, []), ("equal", 0.0324, [])],
)
def test_a_call_that_is_timed_beside_alerts_by_its_own_verdict_as_latency_does(
    name: str, verdict: str, new: float, found: list[str]
) -> None:
    judgement = judged(pair("equal", metrics=[told(name, new, verdict)]), latency=0.05)
    assert kinds(judgement) == found
    assert judgement.outcome == ("alert" if found else "undecided" if verdict == "undecided" else "quiet")
    assert all(finding.is_noisy for finding in judgement.findings)
    assert kinds(judged(pair("equal", metrics=[told(name, new, verdict)]), kinds=["slower"])) == []


def test_a_small_absolute_change_of_a_metric_is_no_finding() -> None:
    assert judged(pair(metrics=[told("session_ms", 12.0, "slower", old=5.0)])).outcome == "quiet"


def test_a_metric_that_got_much_better_is_news() -> None:
    assert judged(pair(metrics=[told("session_ms", 30.0, "faster")])).outcome == "news"


def ended(code: ReasonCode) -> dict[str, Any]:
    reason = Reason(code=code, text="It ended.")
    return {"status": reason.status, "reason": reason, "p50_ms": None}


def test_a_cell_that_worked_and_fails_is_a_finding() -> None:
    (finding,) = judged(pair(**ended(ReasonCode.CRASHED))).findings
    assert (finding.kind, finding.is_noisy) == ("failed", True)
    assert "worked on onnxruntime==1.29.0" in finding.text


def test_a_cell_that_was_refused_by_the_plan_is_paired_without_a_block() -> None:
    document = pair(block="", node=None, **ended(ReasonCode.OPSET_TOO_NEW))
    document.comparisons = []
    assert kinds(judged(document)) == ["failed"]


@pytest.mark.parametrize("code", sorted(watch_rounds.INFRA_CODES))
def test_a_broken_pipeline_never_looks_like_a_slow_model(code: ReasonCode) -> None:
    found = judged(pair("slower", 9.0, **ended(code)))
    assert (found.outcome, found.findings, found.compared) == ("infra", (), 0)


def test_failing_on_both_sides_is_no_change_but_nothing_was_measured() -> None:
    document = pair(**ended(ReasonCode.CRASHED))
    document.cells[0] = document.cells[0].model_copy(update=ended(ReasonCode.CRASHED))
    assert judged(document).outcome == "infra"


def test_a_cell_that_works_again_is_news() -> None:
    document = pair()
    document.cells[0] = document.cells[0].model_copy(update=ended(ReasonCode.CRASHED))
    assert judged(document).news


def test_a_document_without_the_pair_is_infra_not_quiet() -> None:
    assert judge(pair(), Rule(), old=Runtime.of(OLD), new=Runtime.of("onnxruntime==1.30.0")).outcome == "infra"


def test_a_pair_of_different_blocks_is_not_compared() -> None:
    document = pair(block="b2")
    document.comparisons = []
    assert judged(document).outcome == "undecided"


def test_each_hardware_of_a_watch_is_a_pair_of_its_own() -> None:
    """A change on the second node is found, and confirmed by that node alone."""
    document = pair()
    there: dict[str, Any] = {"hardware": "node:bench-2", "node": "bench-2", "block": "b2"}
    document.cells += [cell("c3", OLD, **there), cell("c4", NEW, **there)]
    slower = document.comparisons[0].model_copy(
        update={"baseline": "c3", "candidate": "c4", "verdict": "slower", "ratio": 1.3}
    )
    document.comparisons.append(slower)
    found = judged(document)
    assert [(one.kind, one.node, one.candidate) for one in found.findings] == [("slower", "bench-2", "c4")]
    assert found.compared == 2
    elsewhere = Judgement(findings=(finding("slower", 1.3, series=found.findings[0].series),))
    assert watch_rounds.sort_by_confirmation(found.findings, elsewhere) == ([], [], list(found.findings))
    assert [shown.node for shown in watch_rounds.sort_by_confirmation(found.findings, found)[0]] == ["bench-2"]


def test_twins_and_session_names_make_no_series_of_their_own() -> None:
    document = pair()
    document.cells.append(cell("c1.twin", OLD, twin_of="c1"))
    (found,) = cell_pairs.pair_cells(document, old=Runtime.of(OLD), new=Runtime.of(NEW))
    assert (found.old.id, found.new.id) == ("c1", "c2")
    assert cell_pairs.series_digest(cell("x", OLD)) == cell_pairs.series_digest(
        cell("y", NEW, session={"name": "1 other"})
    )
    assert cell_pairs.series_digest(cell("x", OLD)) != cell_pairs.series_digest(cell("x", OLD, batch=8))


def test_the_series_is_named_by_what_differs_from_the_plain_case() -> None:
    named = cell("x", NEW, optimization="basic", session={"name": "no spin"}, shapes={"sequence": 64}, threads=2)
    label = cell_pairs.series_label(named)
    assert label == "encoder, CPU, fp32, batch 1, sequence=64, 2 threads, optimization basic, session no spin"


def finding(kind: Key, size: float | None = None, series: str = "s") -> Finding:
    return Finding(kind, series, "c1", "c2", "bench-1", kind, size)


def test_only_noisy_findings_need_to_be_shown_again() -> None:
    first = [finding("slower", 1.2), finding("parity"), finding("memory", 1.5), finding("session", 1.5)]
    again = Judgement(findings=(finding("slower", 1.19),), settled=frozenset({("memory", "s", "bench-1")}))
    found = watch_rounds.sort_by_confirmation(first, again)
    assert [[each.kind for each in part] for part in found] == [["slower", "parity"], ["memory"], ["session"]]
    # what was shown again is told by the block that showed it; what had no need to by the first
    assert [(each.size, each.is_of_fresh_block) for each in found[0]] == [(1.19, True), (None, False)]


@pytest.mark.parametrize(
    ("new", "code", "outcome"),
    [("onnxruntime==1.20.1", ReasonCode.OPSET_TOO_NEW, "undecided"),
     ("onnxruntime==1.20.1", ReasonCode.CRASHED, "alert"), (NEW, ReasonCode.OPSET_TOO_NEW, "alert")],
)  # fmt: skip
def test_an_older_release_that_cannot_load_the_model_is_no_regression(new: str, code: ReasonCode, outcome: str) -> None:
    refused = cell("c2", new, status=CellStatus.REFUSED, reason=Reason(code=code, text="It is too new."))
    document = make_document(cell("c1", OLD), refused)
    found = judge(document, Rule(), old=Runtime.of(OLD), new=Runtime.of(new))
    assert (found.outcome, len(found.findings) + len(found.undecided)) == (outcome, 1)


@pytest.mark.parametrize(
    ("verdict", "ratio", "is_settled"),
    [("equal", 1.0, True), ("faster", 0.9, True), ("slower", 1.03, True), ("undecided", 1.04, True),
     ("undecided", 1.3, False), ("not comparable", 1.3, False)],
)  # fmt: skip
def test_only_an_answer_contradicts_a_finding(verdict: str, ratio: float, is_settled: bool) -> None:
    kinds_settled = {kind for kind, _, node in judged(pair(verdict, ratio)).settled if node == "bench-1"}
    assert ("slower" in kinds_settled) == is_settled
    assert judged(pair(verdict, ratio, status=CellStatus.FAILED)).settled == frozenset()


def test_a_fresh_block_of_another_series_confirms_nothing() -> None:
    found = [finding("slower", 1.2)]
    other = Judgement(findings=(finding("slower", 1.2, series="t"),), settled=frozenset({("slower", "t", "bench-1")}))
    assert watch_rounds.sort_by_confirmation(found, other) == ([], [], found)


def test_the_worst_finding_is_what_is_wrong_before_what_is_slow() -> None:
    assert watch_rounds.find_worst([finding("slower", 1.1), finding("slower", 1.4), finding("memory", 9.0)]).size == 1.4
    assert watch_rounds.find_worst([finding("slower", 9.0), finding("parity")]).kind == "parity"


def test_false_alerts_need_two_errors_in_the_same_direction() -> None:
    assert watch_rounds.expected_false_alerts(1000, rate=0.01) == pytest.approx(1000 * 0.005**2)
    assert watch_rounds.expected_false_alerts(0) == 0


@pytest.mark.parametrize("bad", [{"latency": -0.1}, {"latency": "a lot"}, {"kinds": ["odd"]}, {"unknown": 1}])
def test_a_rule_that_cannot_be_meant_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Rule.model_validate(bad)


def changed(name: str, verdict: Any, ratio: float | None) -> MetricChange:
    return MetricChange(
        name=name, unit="ms", baseline=10.0, candidate=12.0, ratio=ratio, ci_low=ratio, ci_high=ratio, verdict=verdict,
        margin=0.1, rounds=8,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "kind", "is_found", "is_cleared"),
    [
        (changed("ttft_ms", "slower", 1.2), "ttft", True, False),
        (changed("ttft_ms", "slower", 1.04), "ttft", False, True),
        (changed("ttft_ms", "faster", 0.8), "ttft", False, True),
        (changed("ttft_ms", "equal", 1.0), "ttft", False, True),
        (changed("ttft_ms", "undecided", 1.2), "ttft", False, False),
        (changed("growth_bytes_per_1000", "bigger", None), "growth", True, False),
        (changed("session_ms", "slower", 9.0), "session", False, True),  # by 2 ms
    ],
)
def test_what_a_verdict_calls_worse_alerts_by_its_kind(
    change: MetricChange, kind: Any, is_found: bool, is_cleared: bool
) -> None:
    document = pair()
    (one,) = document.comparisons
    whole = document.model_copy(update={"comparisons": [one.model_copy(update={"metrics": [change]})]})
    judgement = judge(whole, Rule(), old=Runtime.of(OLD), new=Runtime.of(NEW))
    found = [one for one in judgement.findings if one.kind == kind]
    assert bool(found) is is_found
    assert any(cleared == kind for cleared, _ in judgement.cleared) is is_cleared
    if is_found:
        assert found[0].is_noisy
        assert f"{change.verdict} from {OLD} to {NEW}" in found[0].text
    assert (change.verdict == "faster") == bool(judgement.news)
