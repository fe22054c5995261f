"""The comment of a pull request: twelve words, eight rows, what explains them, and nothing that obeys a name."""

import re
from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt

from farm.contract.document import Document
from farm.contract.document_cells import Accuracy, Cell, EngineParity, OperatorTime, ParityOutput
from farm.contract.document_comparisons import MetricChange, OperatorChange
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.rules.changes import gate, gate_reports
from farm.rules.changes.gate import DEFAULT_METRICS
from farm.rules.changes.gate_comment import MAX_ROWS, NOT_JUDGED, GateCall, as_comment
from farm.rules.findings.kind import Change, Kind
from farm.rules.findings.kinds import CHECKS
from farm.rules.presenting.markdown import escape_text
from farm.rules.wording.vocabulary import Sign
from tests.documents import make_cell, make_comparison, make_document

COMMAND = "onnxfarm gate encoder.onnx --against git:origin/main"
UNJUDGED = EngineParity(
    cell="c1", outputs=[ParityOutput(name="y", max_abs=0.6789)],
    text="Outputs differ: y is off; try --tolerance y=ATOL", unjudged=True,
)  # fmt: skip
REFUSED = Reason(code=ReasonCode.CRASHED, text="It died.")


def gated(
    verdict: str = "equal", ratio: float | None = 1.24, *, settings: int = 1, new: Any = None, **changes: Any
) -> Document:
    """A base and a new model beside each other, at so many batches; `changes`: of each comparison."""
    cells: list[Cell] = []
    comparisons = []
    for batch in range(1, settings + 1):
        old, candidate = f"c{2 * batch - 1}", f"c{2 * batch}"
        cells += [
            make_cell(old, model="base", batch=batch, p50_ms=2.0, model_bytes=2_000_000),
            make_cell(candidate, model="new", batch=batch, p50_ms=2.48, **{"model_bytes": 3_000_000, **(new or {})}),
        ]
        known = {"ci_low": 1.21, "ci_high": 1.26, "smallest_detectable": 0.041, **changes}
        comparisons.append(make_comparison(verdict, ratio, baseline=old, candidate=candidate, axis="model", **known))
    return make_document(*cells, comparisons=comparisons)


def comment(document: Document, *, name: str = "encoder.onnx", command: str = COMMAND, fail_on: Any = None) -> str:
    checks = fail_on or ("slower", "lower", "parity", "placement", "failed")
    answer = gate.judge_gate(document, old="base", new="new", fail_on=checks, of_models=True)
    return as_comment(answer, document, GateCall(name, command, duration_s=95.0))


def head(text: str) -> str:
    """The headline without its mark."""
    return text.splitlines()[0].removeprefix("### ")[2:]


def test_a_slower_model_is_told_in_one_headline_one_table_and_what_explains_it() -> None:
    operator = OperatorChange(node="a", op_type="MatMul", baseline_us=10.0, candidate_us=20.0, share=0.8)
    document = gated(
        "slower", operators=[operator], new={"engines": [EngineParity(cell="c1", verdict="pass", text="equal to c1's")]}
    )
    assert comment(document).splitlines() == [
        "### ❌ `encoder.onnx`: 24 % slower than its base",
        "",
        "| setting | base | candidate | change | verdict |",
        "| --- | --- | --- | --- | --- |",
        "| `onnxruntime==1.29.0, CPU, fp32, batch 1, 1 thread` | 2.00 ms | 2.48 ms "
        "| 24 % slower (21–26 %) | ▲ slower |",
        "",
        "- Outputs: equal to the base's",
        "- Size: 2.00 MB → 3.00 MB",
        "- Operators: MatMul: 1 node, 10.0 → 20.0 µs, explains 80 % of the 12.5 µs",
        "- This could have seen a change of 4.1 %",
        f"- 1 min 35 s; on your own machine: `{COMMAND}`",
    ]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (gated("equal"), "`encoder.onnx` is as fast as its base"),
        (gated("faster", 0.8, ci_low=0.79, ci_high=0.81), "`encoder.onnx`: 20 % faster than its base"),
        (gated("undecided"), "Whether `encoder.onnx` is as fast as its base is undecided"),
        (gated(new={"status": "crashed", "reason": REFUSED}), "`encoder.onnx` no longer runs where its base does"),
        (
            gated("slower", new={"engines": [EngineParity(cell="c1", verdict="fail", text="4 of 8 differ")]}),
            "`encoder.onnx` gives other outputs than its base",
        ),
        (
            make_document(make_cell("c1", model="base"), make_cell("c2", model="other")),
            "Nothing of `encoder.onnx` could be compared",
        ),
    ],
)  # fmt: skip
def test_the_headline_is_the_worst_that_was_found_in_twelve_words(document: Document, words: str) -> None:
    assert head(comment(document)) == words
    longest = comment(document, name="a name of more words than any headline has, so that it must be one")
    assert len(head(longest).split()) <= 12


@pytest.mark.parametrize(
    ("verdict", "outputs", "words"),
    [
        ("equal", UNJUDGED.outputs, "is as fast as its base; its outputs differ by up to 0.68 and were not judged"),
        ("equal", [], "is as fast as its base; its outputs were not judged"),
        ("slower", UNJUDGED.outputs, "looked worse than its base, not in a fresh block; its outputs differ by up to"),
    ],
)
def test_outputs_that_nobody_judged_are_told_in_the_first_line(
    verdict: str, outputs: list[ParityOutput], words: str
) -> None:
    """They fail nothing until a team wants them to."""
    document = gated(verdict, new={"engines": [UNJUDGED.model_copy(update={"outputs": outputs})]})
    answer = gate.judge_gate(document, old="base", new="new", fail_on=("slower",), of_models=True)
    answer = gate.confirm_answer(answer, shown_again=(), decided=answer.decided)
    told = [as_comment(answer, document, GateCall("m", COMMAND, 1.0)), gate_reports.as_markdown(answer, document)]
    assert head(told[0]).startswith(f"`m` {words}")
    assert told[1].splitlines()[0] == "## ✅ onnxfarm gate: passed; outputs differ and were not judged"
    assert "--fail-on unjudged would count as a failure" in gate_reports.describe_answer(answer)
    failed = comment(document, fail_on=("unjudged",))
    assert failed.startswith("### ❌ `encoder.onnx` gives other outputs than its base, which nobody judged")
    assert "--tolerance y=ATOL" in failed


def test_the_comment_says_that_a_fresh_block_showed_it_again() -> None:
    document = gated("slower")
    answer = gate.judge_gate(document, old="base", new="new", fail_on=("slower",), of_models=True)
    asked = GateCall("m", COMMAND, 1.0)
    again = {(finding.check_and_metric, finding.candidate) for finding in answer.failures}
    said = as_comment(gate.confirm_answer(answer, shown_again=again, decided=answer.decided), document, asked)
    assert "\n- A fresh block showed it again\n" in said
    assert "showed it again" not in as_comment(answer, document, asked)


def test_an_output_of_another_name_is_told_in_the_first_line_whatever_it_is_called() -> None:
    """Callers that name it break, though its values are the same."""
    named = EngineParity(cell="c1", verdict="pass", renamed={"scores": "a\n::error::`b"})
    first = comment(gated("equal", new={"engines": [named]})).splitlines()[0]
    assert first == "### ✅ `encoder.onnx` is as fast as its base; output `scores` is now called `a\\n::error::'b`"


def test_a_metric_that_fails_the_gate_is_told_though_the_p50_is_equal() -> None:
    p99 = MetricChange(
        name="p99_ms", unit="ms", baseline=10.0, candidate=20.0, ratio=2.0, ci_low=1.9, ci_high=2.1, verdict="slower",
        margin=0.1, rounds=8,
    )  # fmt: skip
    text = comment(gated(metrics=[p99]))
    assert head(text) == "`encoder.onnx`: slower than its base"
    assert "p99 20.0 ms instead of 10.0 ms" in text


def test_what_a_package_compares_has_a_headline_too(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [Change("worse", "it drifts")]
    monkeypatch.setattr(
        gate,
        "COMPARED_OUTSIDE",
        (Kind("drift", Sign("≈", "drifts", "warn"), "drift", compare=lambda pair, allowed: told),),
    )
    assert head(comment(gated(), fail_on=["drift"])) == "`encoder.onnx` is worse than its base"


def test_the_table_has_eight_rows_and_what_fails_stands_first() -> None:
    document = gated(settings=12)
    failing = document.comparisons[10].model_copy(
        update={"verdict": "slower", "ratio": 1.05, "ci_low": 1.03, "ci_high": 1.07}
    )
    document.comparisons[10] = failing
    lines = comment(document).splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    assert (len(rows), "batch 11" in rows[0], "4 further settings changed less." in lines) == (MAX_ROWS, True, True)


def test_runtimes_are_told_by_their_settings_and_cells_that_did_not_run_by_their_state() -> None:
    document = make_document(
        make_cell("c1"), make_cell("c2", runtime="onnxruntime==1.31.1", status=CellStatus.CRASHED, reason=REFUSED)
    )
    answer = gate.judge_gate(document, old=document.cells[0].runtime, new=document.cells[1].runtime, fail_on=CHECKS)
    text = as_comment(answer, document, GateCall("1.31.1", COMMAND, duration_s=1.0))
    assert "| `CPU, fp32, batch 1, 1 thread` | done | ✕ crashed |  | failed |" in text
    document.cells[0].status, document.cells[1].status = CellStatus.REFUSED, CellStatus.REFUSED
    answer = gate.judge_gate(document, old=document.cells[0].runtime, new=document.cells[1].runtime, fail_on=CHECKS)
    assert "| not compared |" in as_comment(answer, document, GateCall("1.31.1", COMMAND, duration_s=1.0))


def test_what_a_fresh_block_did_not_show_again_is_not_told_as_a_change() -> None:
    document = gated("slower")
    judged = gate.judge_gate(document, old="base", new="new", fail_on=["slower"], of_models=True)
    for decided, again in ((judged.decided, "not in a fresh block"), ((), "which a fresh block left undecided")):
        answer = gate.confirm_answer(judged, shown_again=set(), decided=decided)
        lines = as_comment(answer, document, GateCall("encoder.onnx", COMMAND, duration_s=95.0)).splitlines()
        assert lines[0] == f"### ✅ `encoder.onnx` looked worse than its base, {again}"
        assert f"- {escape_text(answer.findings[0].text)}" in lines


def test_outputs_and_checks_are_named_once() -> None:
    unjudged = EngineParity(cell="c1", verdict="not_measured", text="Outputs are not judged: no tolerance.")
    fused = [OperatorTime(node="a", covers=["b", "c"], op_type="ConvAct", provider="P", time_us=1.0)]
    apart = [OperatorTime(node=name, op_type="Conv", provider="CPUExecutionProvider", time_us=1.0) for name in "abc"]
    document = gated("slower", new={"engines": [unjudged], "operators": apart})
    document.cells[0].operators = fused
    lines = comment(document).splitlines()
    assert "- Outputs are not judged: no tolerance." in lines
    [row] = [line for line in lines if line.startswith("| `")]
    assert row.endswith("| ▲ slower, placement |")


def test_findings_stand_in_the_order_of_the_checks_and_name_both_sides_plainly() -> None:
    """The table had memory before latency, JUnit the other way round; findings named models as the command did."""
    memory = MetricChange(
        name="peak_memory_bytes", unit="bytes", baseline=1e8, candidate=2e8, ratio=2.0, verdict="bigger", margin=0.1,
        rounds=8,
    )  # fmt: skip
    p99 = memory.model_copy(update={"name": "p99_ms", "unit": "ms", "verdict": "slower"})
    unjudged = UNJUDGED.model_copy(update={"text": "Nobody said how close."})
    document = gated("slower", metrics=[memory, p99], new={"engines": [unjudged]})
    answer = gate.judge_gate(
        document, old="base", new="new", fail_on=(), of_models=True, metrics=(*DEFAULT_METRICS, "p99_ms")
    )
    assert [finding.check for finding in answer.findings] == ["slower", "slower", "bigger", "unjudged"]
    assert all(finding.text.startswith("The candidate (onnxruntime==") for finding in answer.findings)
    assert not any(",:" in finding.text for finding in answer.findings)
    assert "than the base" in answer.findings[0].text


def test_what_could_not_be_measured_says_why_and_what_to_do_and_nothing_of_the_model() -> None:
    reason = Reason(code=ReasonCode.RUNTIME_INSTALL_FAILED, text="No index answered.")
    document = gated(settings=2, new={"status": "failed", "reason": reason})
    judged = gate.judge_gate(document, old="base", new="new", fail_on=CHECKS, of_models=True)
    answer = replace(judged, infra=(reason.text,))
    lines = as_comment(answer, document, GateCall("encoder.onnx", COMMAND, duration_s=95.0)).splitlines()
    assert lines[0] == "### ❌ `encoder.onnx` could not be measured"
    assert lines[lines.index("- No index answered.") + 1] == f"- {NOT_JUDGED}"
    assert (answer.is_passed, answer.failures, answer.verdict) == (False, (), "not measured")


@pytest.mark.parametrize(("old", "new"), [("refused", "refused"), ("crashed", "done")])
def test_what_could_not_be_compared_says_why(old: str, new: str) -> None:
    document = gated(new={"status": new, "reason": None if new == "done" else REFUSED})
    document.cells[0].status, document.cells[0].reason = CellStatus(old), REFUSED
    text = comment(document)
    assert head(text) == "Nothing of `encoder.onnx` could be compared"
    assert any(line.startswith("- ") and line.endswith("It died.") for line in text.splitlines())


@pytest.mark.parametrize(
    ("needed", "budget", "words"),
    [(24, "quick", "`--budget standard` would decide"), (40, "quick", "`--budget precise` would decide"),
     (64, "quick", "`--rounds 64` would decide"), (None, "quick", "no budget would decide"),
     (48, "precise", "`--rounds 48` would decide")],
)  # fmt: skip
def test_what_is_undecided_names_the_budget_that_would_decide(needed: int | None, budget: str, words: str) -> None:
    document = gated("undecided", rounds_needed=needed).model_copy(update={"budget": budget})
    assert words in comment(document)


def test_an_identical_pair_says_what_this_machine_cannot_see_and_without_rounds_nothing_is_said() -> None:
    document = gated(smallest_detectable=0.03)
    document.comparisons.append(
        make_comparison("equal", 1.0, candidate="c1.twin", axis="twin", smallest_detectable=0.0713)
    )
    assert "- Changes under 7.1 % are invisible here, by an A/A pair" in comment(document).splitlines()
    assert "invisible" not in comment(gated(smallest_detectable=None))
    assert "could have seen" not in comment(gated(smallest_detectable=None))


def test_accuracy_and_the_farms_page_are_told_where_there_are_any() -> None:
    accuracy = Accuracy(metric="top1", text="98.1 % of 500 labels, 0.2 % fewer than the base")
    document = gated("equal", None, new={"accuracy": accuracy, "model_bytes": None})
    document.url = "https://farm.example/runs/7/"
    lines = comment(document).splitlines()
    assert "- Accuracy: 98.1 % of 500 labels, 0.2 % fewer than the base" in lines
    assert lines[-1].endswith("; [the run](https://farm.example/runs/7/)")
    assert not any(line.startswith("- Size") for line in lines)
    for hostile in ("https://farm.example/) [a](http://evil.example", "javascript:alert(1)", "https://x\n::error::y"):
        document.url = hostile
        assert "the run" not in comment(document)


HOSTILE = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "![x](http://evil.example)",
    "`` ` `</code><b>", "@octocat #12 !7 https://evil.example", "::error::stop\n::set-output name=x::y",
    "a\n\n# b\n/close",
    "<!-- onnxfarm -->", "| a | b |\n|---|---|", "&lt;b&gt; $x$ ~~y~~ www.evil.example", "a\r\n- [ ] task",
)  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_of_model_branch_node_or_path_stays_text(hostile: str) -> None:
    crashed = Reason(code=ReasonCode.CRASHED, text=hostile)
    operator = OperatorChange(node=hostile, op_type=hostile, baseline_us=10.0, candidate_us=20.0, share=0.8)
    pair = EngineParity(cell="c1", verdict="fail", text=hostile)
    accuracy = Accuracy(metric="top1", text=hostile)
    new = {"engines": [pair], "accuracy": accuracy, "hardware": hostile, "shapes": {hostile: 3}}
    wrong = gated("slower", operators=[operator], new=new, settings=1)
    wrong.cells[0].hardware, wrong.cells[0].shapes = hostile, {hostile: 3}
    dead = gated(new={"status": "crashed", "reason": crashed, "session": {"name": hostile}})
    dead.cells[0].session = {"name": hostile}
    for document in (wrong, dead):
        text = comment(document, name=hostile, command=f"onnxfarm gate '{hostile}' --against 'git:{hostile}'")
        html = MarkdownIt("commonmark").enable("table").render(text)
        tags = set(re.findall(r"</?([a-z0-9]+)", html))
        assert tags <= {"h3", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "p"}, html
        assert html.count("<h3>") == 1
        assert html.count("<table>") == html.count("<ul>") == 1
        assert not re.search(r"^\s*(::|/|##\[|<!--)", text, re.MULTILINE)
        # outside of code nothing is linked that GitHub or GitLab links without markup
        assert not re.search(r"[@#!][A-Za-z0-9]|://|www\.", re.sub(r"<code>.*?</code>", "", html))


@pytest.mark.parametrize("verdict", ["slower", "equal"])
def test_a_model_that_loses_accuracy_is_told_by_that_first(verdict: str) -> None:
    lost = {"value": 0.006, "difference": -0.974, "difference_low": -0.985, "difference_high": -0.951}
    worse = Accuracy(metric="top1", baseline="c1", text="It is lower.", **lost)
    assert head(comment(gated(verdict, new={"accuracy": worse}))) == "`encoder.onnx` is less accurate than its base"
    elsewhere = worse.model_copy(update={"baseline": "c9"})
    assert "accurate" not in head(comment(gated(verdict, new={"accuracy": elsewhere})))
