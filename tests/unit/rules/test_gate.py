"""The gate: which findings fail it, and how it is reported."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell, OperatorTime, Parity, ParityOutput
from farm.contract.document_comparisons import MetricChange
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.rules.changes import gate, gate_reports
from farm.rules.findings.kind import Change, Kind
from farm.rules.findings.kinds import CHECKS
from farm.rules.wording.vocabulary import Sign
from tests.documents import make_cell, make_comparison, make_document

OLD, NEW = Runtime.of("onnxruntime==1.0"), Runtime.of("onnxruntime==2.0")


def _cell(name: str, **changes: Any) -> Cell:
    known = {"model": "", "model_sha256": "0" * 64, "runtime": f"onnxruntime=={name}", "p50_ms": 2.0}
    return make_cell(name, **{**known, "p50_ci_ms": (1.9, 2.1), **changes})


def _document(verdict: str = "equal", *, axis: str = "runtime", **candidate: Any) -> Document:
    reason = "8 rounds were not enough" if verdict == "undecided" else None
    sides = {"baseline": "1.0", "candidate": "2.0", "axis": axis}
    pair = make_comparison(verdict, **sides, ci_low=1.21, ci_high=1.26, ci_level=None, rounds=0, reason=reason)
    return make_document(_cell("1.0"), _cell("2.0", **candidate), comparisons=[pair])


def _operators(*, op_type: str, covers: list[str]) -> list[OperatorTime]:
    return [OperatorTime(node="a", covers=covers, op_type=op_type, provider="CPUExecutionProvider", time_us=1)]


def _judged(document: Document, *, fail_on: Sequence[str]) -> gate.GateAnswer:
    return gate.judge_gate(document, old=OLD, new=NEW, fail_on=fail_on)


def test_an_equal_candidate_passes() -> None:
    document = _document()
    answer = _judged(document, fail_on=["slower", "parity"])
    assert answer.is_passed
    markdown = gate_reports.as_markdown(answer, document)
    assert "The gate passed: 1 comparison, no failures." in markdown
    assert "| = equal | 21–26 % slower |" in markdown
    assert ElementTree.fromstring(gate_reports.as_junit(answer, document)).get("failures") == "0"


@pytest.mark.parametrize(
    ("ratio", "max_slowdown", "word", "checks", "is_passed"),
    [
        (5.0, 0.0, "fewer items/s", ["slower"], False),
        (5.0, 0.3, "fewer items/s", ["slower"], True),
        (4.0, 0.0, "equal", [], True),
        (2.0, 0.0, "more items/s", [], True),
    ],
)
def test_models_of_other_fixed_batches_are_judged_by_items_per_second(
    ratio: float, max_slowdown: float, word: str, checks: list[str], is_passed: bool
) -> None:
    figures = {"ci_low": 0.999 * ratio, "ci_high": 1.001 * ratio, "margin": 0.02, "smallest_detectable": 0.02}
    sides = {"baseline": "1.0", "candidate": "2.0", "axis": "model"}
    cells = [
        _cell("1.0", model="base", batch=1),
        _cell("2.0", model="new", batch=4, runtime="onnxruntime==1.0", model_sha256="1" * 64),
    ]
    document = make_document(*cells, comparisons=[make_comparison("slower", ratio, **sides, **figures)])
    answer = gate.judge_gate(
        document, old="base", new="new", fail_on=["slower"], of_models=True, max_slowdown=max_slowdown
    )
    assert (answer.compared, answer.is_passed) == (1, is_passed)
    assert [finding.check for finding in answer.findings] == checks
    markdown = gate_reports.as_markdown(answer, document)
    assert word in markdown
    assert gate_reports.NOTHING not in markdown


def test_a_slower_candidate_fails_only_when_asked_to() -> None:
    document = _document("slower")
    failing, passing = (_judged(document, fail_on=names) for names in (["slower"], ["parity"]))
    assert (failing.is_passed, passing.is_passed) == (False, True)
    assert "24 % slower (95 % interval 21–26 %) than onnxruntime==1.0" in gate_reports.as_markdown(failing, document)
    suite = ElementTree.fromstring(gate_reports.as_junit(failing, document))
    assert suite.get("failures") == "1"
    assert suite[0].get("classname") == "onnxfarm.slower"


def test_a_gate_that_passes_says_what_it_left_undecided() -> None:
    document = _document("undecided")
    said = gate_reports.describe_answer(_judged(document, fail_on=["slower", "parity"]))
    passed = "The gate passed: 1 comparison, no failures"
    assert said == f"{passed}, but 1 undecided, which --fail-on undecided would count as a failure."
    assert gate_reports.describe_answer(_judged(document, fail_on=["undecided"])).startswith(
        "The gate failed: 1 finding"
    )


@pytest.mark.parametrize(("allowed", "fails"), [(0.0, True), (0.2, True), (0.24, False), (0.3, False)])
def test_a_slowdown_that_is_allowed_is_told_and_fails_nothing(allowed: float, fails: bool) -> None:
    answer = gate.judge_gate(_document("slower"), old=OLD, new=NEW, fail_on=["slower"], max_slowdown=allowed)
    assert [(finding.check, finding.is_failure) for finding in answer.findings] == [("slower", fails)]


@pytest.mark.parametrize("verdict", ["undecided", "not comparable"])
def test_undecided_is_its_own_finding(verdict: str) -> None:
    (finding,) = _judged(_document(verdict), fail_on=["undecided"]).findings
    assert (finding.check, finding.is_failure) == ("undecided", True)


def test_parity_that_broke_and_a_fusion_that_is_gone_are_found() -> None:
    document = _document(parity=Parity(verdict="fail"), operators=_operators(op_type="Add", covers=[]))
    document.cells[0].operators = _operators(op_type="FusedAdd", covers=["b"])
    answer = _judged(document, fail_on=["placement"])
    assert [finding.check for finding in answer.findings] == ["parity", "placement"]
    assert not answer.is_passed


def test_parity_that_failed_before_and_is_much_worse_is_found() -> None:
    off = Parity(verdict="fail", outputs=[ParityOutput(name="y", rmse=3.0)])
    document = _document(parity=off)
    document.cells[0].parity = Parity(verdict="fail", outputs=[ParityOutput(name="y", rmse=1.0)])
    (finding,) = _judged(document, fail_on=["parity"]).findings
    assert (finding.check, finding.is_failure, "×3" in finding.text) == ("parity", True, True)
    document.cells[0].parity = off
    assert _judged(document, fail_on=["parity"]).findings == ()


def test_cells_that_differ_in_anything_have_names_of_their_own() -> None:
    plain: dict[str, Any] = {"session": {"name": "default"}}
    differing: list[dict[str, Any]] = [
        {}, {"threads": 2}, {"optimization": "basic"}, {"shapes": {"sequence": 64}}, {"concurrency": 4},
        {"provider_options": {"device_type": "GPU"}}, {"session": {"name": "no spin"}}, {"hardware": "node:b"},
        {"recipe": "opset 21, fp32"},
    ]  # fmt: skip
    labels = {gate.cell_label(_cell("1.0", **(plain | changes))) for changes in differing}
    assert len(labels) == len(differing)


def test_a_candidate_that_no_longer_runs_is_failed_with_its_reason() -> None:
    reason = Reason(code=ReasonCode.CRASHED, text="killed by SIGSEGV")
    (finding,) = _judged(_document(status=CellStatus.CRASHED, reason=reason), fail_on=["failed"]).findings
    assert finding.text.endswith("crashes: killed by SIGSEGV")


def test_a_pair_that_never_ran_is_no_new_failure() -> None:
    document = _document(status=CellStatus.REFUSED)
    document.cells[0].status = CellStatus.REFUSED
    assert _judged(document, fail_on=CHECKS).findings == ()


def test_a_gate_that_compared_nothing_is_not_passed() -> None:
    document = _document()
    answer = gate.judge_gate(document, old=OLD, new=Runtime.of("onnxruntime==3.0"), fail_on=["slower"])
    assert not answer.is_passed
    assert "Nothing was compared" in gate_reports.as_markdown(answer, document)
    assert ElementTree.fromstring(gate_reports.as_junit(answer, document)).get("failures") == "1"


def test_the_columns_of_two_models_on_one_runtime_are_base_and_candidate() -> None:
    cells = [_cell(name, model=name, runtime="onnxruntime==1.0") for name in ("before", "after")]
    pair = make_comparison("equal", 1.0, baseline="before", candidate="after", axis="model")
    document = make_document(*cells, comparisons=[pair])
    answer = gate.judge_gate(document, old="before", new="after", fail_on=["slower"], of_models=True)
    markdown = gate_reports.as_markdown(answer, document)
    assert "| cell | of | base | candidate |" in markdown
    assert f"| {gate.cell_label(cells[1])} | " in markdown


def test_a_gate_that_could_not_be_measured_is_an_error_and_no_failure() -> None:
    reason = Reason(code=ReasonCode.NO_NODE, text="No node is online.")
    document = _document(status=CellStatus.REFUSED, reason=reason, p50_ms=None)
    answer = replace(_judged(document, fail_on=["failed"]), infra=(reason.text,))
    suite = ElementTree.fromstring(gate_reports.as_junit(answer, document))
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["2", "0", "1"]
    markdown = gate_reports.as_markdown(answer, document)
    assert markdown.startswith(
        "## ❌ onnxfarm gate: not measured\n\nThe gate could not be measured: No node is online."
    )
    assert ("| failed | no |" in markdown, "| failed | yes |" in markdown) == (True, False)


def test_a_candidate_that_was_refused_fails_the_gate_though_nothing_was_compared() -> None:
    reason = Reason(code=ReasonCode.OPSET_TOO_NEW, text="opset 23 is above 22")
    document = _document(status=CellStatus.REFUSED, reason=reason, p50_ms=None)
    document.comparisons.clear()
    answer = _judged(document, fail_on=["failed"])
    assert [one.text for one in answer.failures] == [
        "onnxruntime==2.0, CPU, fp32, batch 1, 1 thread is refused: opset 23 is above 22"
    ]
    assert answer.compared == 0


def test_a_baseline_that_does_not_run_leaves_nothing_to_stand_beside() -> None:
    document = _document()
    document.cells[0].status = CellStatus.FAILED
    (finding,) = _judged(document, fail_on=CHECKS).findings
    assert (finding.check, "no reason was given" in finding.text) == ("undecided", True)


def test_cells_that_were_never_in_one_block_are_undecided() -> None:
    document = _document()
    document.comparisons.clear()
    (finding,) = _judged(document, fail_on=["slower"]).findings
    assert (finding.check, finding.is_failure) == ("undecided", False)


def test_a_noisy_failure_counts_when_a_fresh_block_shows_it_again() -> None:
    document = _document("slower", parity=Parity(verdict="fail"))
    answer = _judged(document, fail_on=["slower", "parity"])
    assert [finding.check for finding in answer.failures if finding.is_noisy] == ["slower"]
    shown = gate.confirm_answer(answer, shown_again={("slower", "2.0")}, decided=answer.decided)
    assert [one.check for one in shown.failures] == ["slower", "parity"]
    assert [one.text.endswith("a fresh block showed it again") for one in shown.failures] == [True, False]
    gone = gate.confirm_answer(answer, shown_again=set(), decided=answer.decided)
    assert [one.check for one in gone.failures] == ["parity"]
    assert gone.findings[0].text.endswith("a fresh block did not show it again")
    for fail_on, failing in (("slower", []), ("undecided", ["undecided"])):
        asked = _judged(_document("slower"), fail_on=["slower", fail_on])
        left_open = gate.confirm_answer(asked, shown_again=set(), decided={("failed", "2.0")})
        assert [one.check for one in left_open.failures] == failing
        assert left_open.findings[0].text.endswith("a fresh block left it undecided")


def test_what_has_a_verdict_is_told_by_its_check_or_metric() -> None:
    document = _with_metrics(_change("p99_ms", "slower"), _change("session_ms", "undecided"))
    decided = {subject for subject, _ in _judged(document, fail_on=CHECKS).decided}
    assert decided == {"failed", "slower", "lower", "p99_ms"}
    assert _judged(_document("undecided"), fail_on=CHECKS).decided == {("failed", "2.0")}
    document.comparisons.clear()
    assert _judged(document, fail_on=CHECKS).decided == {("failed", "2.0")}
    assert not _judged(_document(status=CellStatus.CRASHED), fail_on=CHECKS).decided


def test_junit_has_a_case_for_each_check_and_skips_what_is_undecided() -> None:
    document = _document("undecided")
    suite = ElementTree.fromstring(gate_reports.as_junit(_judged(document, fail_on=["slower", "parity"]), document))
    assert [(case.get("classname"), len(case)) for case in suite] == [("onnxfarm.slower", 1), ("onnxfarm.parity", 0)]
    assert (suite.get("failures"), suite.get("skipped"), suite[0][0].tag) == ("0", "1", "skipped")


def test_markup_and_control_signs_in_a_reason_stay_text() -> None:
    reason = Reason(code=ReasonCode.CRASHED, text='<b>"&\x00\x1b | done')
    document = _document(status=CellStatus.CRASHED, reason=reason, p50_ms=None)
    answer = _judged(document, fail_on=["failed"])
    case = ElementTree.fromstring(gate_reports.as_junit(answer, document))[0]
    assert '<b>"& | done' in str(case[0].get("message"))
    assert "&\x00" not in gate_reports.as_junit(answer, document)
    assert "done |" in gate_reports.as_markdown(answer, document)


def test_benchmark_entries_are_ratios_and_latencies_under_names_without_versions() -> None:
    document = _document("slower")
    entries = gate_reports.as_benchmark_entries(_judged(document, fail_on=["slower"]), document)
    what = "000000000000, CPU, fp32, batch 1, 1 thread"
    assert [(entry["name"], entry["unit"], entry["value"], entry["range"]) for entry in entries] == [
        (f"{what}: candidate / baseline", "ratio", 1.24, "1.21–1.26"),
        (f"{what}: baseline", "ms", 2.0, "1.9–2.1"),
        (f"{what}: candidate", "ms", 2.0, "1.9–2.1"),
    ]
    assert entries[0]["extra"] == "onnxruntime==1.0 → onnxruntime==2.0: slower"


@pytest.mark.parametrize("is_compared", [True, False])
def test_cells_with_a_p50_are_benchmark_entries_even_where_nothing_compares_them(is_compared: bool) -> None:
    document = _document("undecided")
    document.comparisons[0].ratio = None
    if not is_compared:
        document.comparisons.clear()
    entries = gate_reports.as_benchmark_entries(_judged(document, fail_on=["slower"]), document)
    assert [(entry["unit"], entry["value"], entry["extra"]) for entry in entries] == [
        ("ms", 2.0, "onnxruntime==1.0"),
        ("ms", 2.0, "onnxruntime==2.0"),
    ]


def test_latencies_of_benchmark_entries_are_of_the_time_that_the_ratio_is_of() -> None:
    document = _document("slower", cpu_p50_ms=1.24, cpu_samples_ms=[1.24] * 8)
    document.comparisons[0].verdict_from = "processor"
    candidate = gate_reports.as_benchmark_entries(_judged(document, fail_on=["slower"]), document)[-1]
    assert (candidate["value"], candidate["extra"]) == (1.24, "onnxruntime==2.0, processor time")


def test_latencies_of_benchmark_entries_are_of_the_rounds_that_the_summary_is_of() -> None:
    """A summary had 0.0142 → 0.0141 ms of 8 rounds, and the entries 0.01401 → 0.01443 ms of 9 launches."""
    document = _with_metrics()
    document.comparisons[0].rounds = 8
    document.comparisons[0].metrics.insert(
        0, MetricChange(name="p50_ms", unit="ms", baseline=1.9, candidate=2.3, verdict="slower", margin=0.02, rounds=8)
    )
    for cell in document.cells:
        cell.samples_ms = [2.0] * 9
    entries = gate_reports.as_benchmark_entries(_judged(document, fail_on=["slower"]), document)[1:]
    assert [(entry["value"], entry["range"]) for entry in entries] == [(1.9, ""), (2.3, "")]
    for cell in document.cells:
        cell.samples_ms = [2.0] * 8
    entries = gate_reports.as_benchmark_entries(_judged(document, fail_on=["slower"]), document)[1:]
    assert [entry["range"] for entry in entries] == ["1.9–2.1", "1.9–2.1"]


def test_a_side_that_was_not_measured_is_no_benchmark_entry() -> None:
    reason = Reason(code=ReasonCode.CRASHED, text="It died.")
    document = _document(status=CellStatus.CRASHED, reason=reason, p50_ms=None, p50_ci_ms=None)
    document.comparisons.clear()
    entries = gate_reports.as_benchmark_entries(_judged(document, fail_on=["slower"]), document)
    assert [entry["extra"] for entry in entries] == ["onnxruntime==1.0"]


def test_a_change_without_an_interval_is_told_without_a_size() -> None:
    document = _document("slower")
    document.comparisons[0].ci_low = None
    (finding,) = _judged(document, fail_on=["slower"]).findings
    assert "is measurably slower than onnxruntime==1.0" in finding.text


def test_a_pull_request_reads_what_the_run_came_to_and_where_it_stands() -> None:
    document = _document().model_copy(
        update={"sentence": "1.31.1 is *as fast*.", "url": "https://farm.example/runs/7/"}
    )
    markdown = gate_reports.as_markdown(_judged(document, fail_on=["slower"]), document)
    assert "1.31.1 is \\*as fast\\*." in markdown
    assert markdown.rstrip().endswith("[The run](https://farm.example/runs/7/)")


def _with_metrics(*changes: MetricChange, **candidate: Any) -> Document:
    document = _document(**candidate)
    (pair,) = document.comparisons
    return document.model_copy(update={"comparisons": [pair.model_copy(update={"metrics": list(changes)})]})


def _change(name: str, verdict: Any, *, unit: str = "ms") -> MetricChange:
    return MetricChange(
        name=name, unit=unit, baseline=10.0, candidate=20.0, ratio=2.0, ci_low=1.9, ci_high=2.1, verdict=verdict,
        margin=0.1, rounds=8,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_change("p99_ms", "slower"), "p99 is slower than with onnxruntime==1.0: p99 20.0 ms instead of 10.0 ms"),
        (_change("max_rate_per_s", "lower", unit="requests/s"), "highest rate is lower than with onnxruntime==1.0"),
        (_change("growth_bytes_per_1000", "bigger", unit="bytes"), "growth per 1,000 inferences is bigger than with"),
    ],
)
def test_the_gate_speaks_of_what_a_scenario_is_about(change: MetricChange, text: str) -> None:
    answer = _judged(_with_metrics(change), fail_on=[change.verdict])
    (found,) = answer.failures
    assert (found.check, found.metric, found.check_and_metric) == (
        change.verdict,
        change.name,
        f"{change.verdict} {change.name}",
    )
    assert text in found.text
    # a fresh block has to show the same metric again
    assert [finding for finding in answer.failures if finding.is_noisy] == [found]
    assert gate.confirm_answer(answer, shown_again={(change.verdict, "2.0")}, decided=answer.decided).is_passed
    assert not gate.confirm_answer(
        answer, shown_again={(found.check_and_metric, "2.0")}, decided=answer.decided
    ).is_passed


def test_other_metrics_are_asked_for_by_name() -> None:
    document = _with_metrics(
        _change("session_ms", "slower"), _change("first_ms", "undecided"), _change("max_rate_per_s", "higher"),
        _change("peak_memory_bytes", "bigger", unit="bytes"),
    )  # fmt: skip
    assert [one.check for one in _judged(document, fail_on=CHECKS).findings] == ["bigger"]
    asked = gate.judge_gate(
        document,
        old=Runtime.of("onnxruntime==1.0"),
        new=Runtime.of("onnxruntime==2.0"),
        fail_on=["slower"],
        metrics=["session_ms", "first_ms"],
    )
    assert [(one.check, one.metric) for one in asked.findings] == [("slower", "session_ms"), ("undecided", "first_ms")]
    failed = _with_metrics(_change("p99_ms", "slower"), status=CellStatus.FAILED)
    assert [one.check for one in _judged(failed, fail_on=["slower"]).findings] == ["failed"]


def test_what_a_package_compares_is_found_as_its_kind_or_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = ("well", "worse", "undecided", "better")
    told = [Change(verdict, f"it is {verdict}") for verdict in verdicts]
    drift = Kind("drift", Sign("≈", "drifts", "warn"), "drift", compare=lambda pair, allowed: told)
    monkeypatch.setattr(gate, "COMPARED_OUTSIDE", (drift,))
    monkeypatch.setattr(gate, "CHECKS", (drift.key, *CHECKS))
    answer = _judged(_document(), fail_on=["drift"])
    assert [(one.check, one.text, one.is_failure) for one in answer.findings] == [
        ("drift", "it is worse", True),
        ("undecided", "it is undecided", False),
    ]
    assert ("drift", "2.0") not in answer.decided
    told[:] = [Change("well")]
    assert ("drift", "2.0") in _judged(_document(), fail_on=["drift"]).decided
