"""A report to file: its own files, and the text of an issue."""

import json
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import Field

from farm.contract.cells import CellSpec, Runtime, SessionSettings
from farm.contract.document_comparisons import MetricChange
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.changes import repeat_script, report
from farm.rules.changes.report import Case
from farm.rules.matrices import matrix as matrices
from farm.rules.reporting import locks
from farm.rules.wording import numbers
from tests.unit.commands.made_up import MadeUpBench


def case(*, bench: MadeUpBench | None = None, session: dict[str, Any] | None = None, **found: str) -> Case:
    """1.31.1 against 1.29.0, a quarter slower."""
    bench = bench or MadeUpBench(p50_ms=lambda spec: 1.25 if spec.runtime.version == "1.31.1" else 1.0)
    declared = matrices.parse({"batch": [8], "precision": ["fp32"], "runtime": ["1.29.0", "1.31.1"]})
    plan = bench.plan(declared)
    document = bench.measure(plan)
    old, new = document.cells
    spec: CellSpec = plan.blocks[0].arms[1].spec
    spec = spec.model_copy(update={"session": SessionSettings(**(session or {}))})
    return Case(document, old, new, spec, "encoder.onnx", "1.31.1 is slower.", **found)


@pytest.mark.parametrize("version", ["1.33.0+sha3f2a91b", "1.33.0.dev1+at.nightly"])
def test_a_build_that_is_not_on_the_usual_index_is_not_pinned(version: str) -> None:
    cell = case().new.model_copy(update={"runtime": Runtime.of(f"onnxruntime=={version}")})
    assert locks.make_lock(cell).splitlines() == [locks.UNPUBLISHED, "numpy==2.4.6"]


def test_the_report_holds_all_that_repeats_it() -> None:
    texts = report.render_files(case(session={"threads": 2, "optimization": "basic", "config": {"a.b": "1"}}))
    assert set(texts) == {
        "README.md", "issue.md", "repeat.py", "repeat.json", "lock-old.txt", "lock-new.txt", "matrix.json",
        "document.json", "facts.json",
    }  # fmt: skip
    order = json.loads(texts["repeat.json"])
    assert order["runtimes"] == {"old": "onnxruntime==1.29.0", "new": "onnxruntime==1.31.1"}
    assert (order["threads"], order["optimization"], order["execution_mode"]) == (
        2,
        "ORT_ENABLE_BASIC",
        "ORT_SEQUENTIAL",
    )
    assert order["providers"] == [["CPUExecutionProvider", {}]]
    assert order["config"] == {
        "session.intra_op.allow_spinning": "1",
        "session.inter_op.allow_spinning": "1",
        "a.b": "1",
    }
    assert order["measured"].startswith("25.1 % slower (p50 latency; ")
    assert texts["lock-new.txt"] == "numpy==2.4.6\nonnxruntime==1.31.1\n"
    document = json.loads(texts["document.json"])
    assert [len(cell["samples_ms"]) for cell in document["cells"]] == [8, 8]
    assert len(document["comparisons"]) == 1
    matrix = matrices.parse(texts["matrix.json"])
    (session,) = matrix.axes["session"]
    assert dict(session.config) == {"a.b": "1"}
    assert [str(one) for one in matrix.axes["runtime"]] == ["onnxruntime==1.29.0", "onnxruntime==1.31.1"]
    assert "python repeat.py" in texts["README.md"]
    compile(texts["repeat.py"], "repeat.py", "exec")


def test_a_provider_with_options_keeps_them_and_the_cpu_behind_it() -> None:
    one = case()
    spec = one.spec.model_copy(
        update={"provider": "OpenVINOExecutionProvider", "provider_options": {"device_type": "CPU"}}
    )
    other = Case(one.document, one.old, one.new, spec, one.model, one.sentence)
    texts = report.render_files(other)
    assert json.loads(texts["repeat.json"])["providers"] == [
        ["OpenVINOExecutionProvider", {"device_type": "CPU"}], ["CPUExecutionProvider", {}],
    ]  # fmt: skip
    provider = json.loads(texts["matrix.json"])["matrix"]["provider"]
    assert provider == [{"name": "OpenVINOExecutionProvider", "options": {"device_type": "CPU"}}]
    owners = spec.model_copy(update={"provider": "OwnExecutionProvider", "provider_options": {}})
    order = json.loads(report.render_files(Case(one.document, one.old, one.new, owners, "m", "s"))["repeat.json"])
    assert order["providers"] == [["OwnExecutionProvider", {}]]


def test_the_issue_says_what_why_since_when_and_what_helps() -> None:
    text = report.render_issue(
        case(since="1.31.0 is the first bad release.", work_around="Leave it out.", code="session()")
    )
    first = text.splitlines()[0]
    assert first.startswith("# [Performance] 2")
    assert "slower: onnxruntime==1.31.1 compared with 1.29.0, encoder, CPU, fp32, batch 8" in first
    for words in (
        "### Describe the issue", "### To reproduce", "### Execution provider", "| onnxruntime==1.29.0 | 1.0",
        "Change: 25.1 % slower", "**Why.** MatMul: 1 node, 1 000 → 1 250 µs", "| MatMul | `norm` |",
        "**Since when.** 1.31.0 is the first bad release.", "**Work-around.** Leave it out.",
        "```python\nsession()\n```",
        "CPUExecutionProvider, 1 intra-op threads", "fp32, batch 8",
    ):  # fmt: skip
        assert words in text, words


def test_the_issue_has_the_verdicts_of_operators_and_those_that_have_one_first() -> None:
    """Two of MatMul by +8 ms of an inference that took 3 ms more led, above what was slower in every round."""
    measured = case()
    (comparison,) = measured.document.comparisons
    (first,) = comparison.operators
    unshared = {"share": None, "change_us": None, "change_low_us": None, "baseline_us": 100.0, "candidate_us": 170.0}
    judged = {"ratio": 1.1, "ci_low": 1.08, "ci_high": 1.12, "rounds": 8, "candidate_us": 110.0, "verdict": "slower"}
    operators = [
        first.model_copy(update={**unshared, "candidate_us": 8_100.0, "node": "beyond"}),
        first.model_copy(update={**unshared, "node": "possible", "verdict": "undecided"}),
        first.model_copy(update={**unshared, **judged, "op_type": "Skip", "node": "sure"}),
    ]
    told = comparison.model_copy(update={"operators": operators})
    text = report.render_issue(replace(measured, document=measured.document.model_copy(update={"comparisons": [told]})))
    assert "**Why.** Skip: 1 node, 100 → 110 µs, slower by its own pairs" in text
    rows = [
        line.split(" | ")[1:] for line in text.splitlines() if line.startswith(("| operator", "| Skip", "| MatMul"))
    ]
    assert [(row[0], row[-1]) for row in rows] == [
        ("node", "by its own pairs |"), ("`sure`", "10 % slower (8–12 %) |"), ("`possible`", "undecided |"),
    ]  # fmt: skip


def test_the_issue_has_no_values_without_a_verdict() -> None:
    measured = case()
    (comparison,) = measured.document.comparisons
    change = MetricChange(
        name="session_ms", unit="ms", baseline=20.0, candidate=30.0, ratio=1.5, ci_low=1.4, ci_high=1.6,
        verdict="slower", margin=0.1, rounds=8, p=0.001,
    )  # fmt: skip
    for verdict, is_told in (("slower", True), ("equal", True), ("undecided", False)):
        told = comparison.model_copy(update={"metrics": [change.model_copy(update={"verdict": verdict})]})
        document = measured.document.model_copy(update={"comparisons": [told]})
        header, _, old, new = report.render_issue(replace(measured, document=document)).split("\n\n")[3].splitlines()
        assert ("session" in header, "| 20.0 ms |" in old, "| 30.0 ms |" in new) == (is_told,) * 3
        assert "memory" not in header
        assert header.count("|") == old.count("|") == new.count("|")


def test_the_issue_says_a_verdict_of_processor_time_once() -> None:
    """Of cells that generate it had `processor time | processor time: slower | time per token: slower`."""
    measured = case()
    (comparison,) = measured.document.comparisons
    headline = comparison.metrics[0]
    names = ("cpu_p50_ms", "tpot_ms", "ttft_ms", "ttft_cpu_ms")
    told = comparison.model_copy(
        update={
            "verdict_from": "processor",
            "metrics": [headline, *(headline.model_copy(update={"name": name}) for name in names)],
        }
    )
    document = measured.document.model_copy(update={"comparisons": [told]})
    header = report.render_issue(replace(measured, document=document)).split("\n\n")[3].splitlines()[0]
    assert header == "| | processor time | processor time to the first token: slower | parity |"


def test_a_model_that_no_longer_runs_has_no_ratio() -> None:
    reason = Reason(code=ReasonCode.CRASHED, text="It died | of `x`.")
    bench = MadeUpBench(checks=lambda spec: {"reason": reason} if spec.runtime.version == "1.31.1" else {})
    text = report.render_issue(case(bench=bench, kind="failed"))
    assert text.startswith("# [Regression] fails: onnxruntime==1.31.1 compared with 1.29.0")
    assert r"crashed: It died \| of \`x\`." in text
    assert "Ratio:" not in text.replace("Ratio: 1.31.1 is slower", "")


def test_what_stands_beside_a_verdict_is_of_its_own_launches_and_an_equal_latency_has_no_explanation() -> None:
    measured = case()
    (told,) = measured.document.comparisons
    session = MetricChange(
        name="session_ms", unit="ms", baseline=33.0, candidate=36.0, ratio=1.09, ci_low=1.0, ci_high=1.2,
        verdict="equal", margin=0.1, rounds=8, p=0.2,
    )  # fmt: skip
    equal = told.model_copy(
        update={"verdict": "equal", "ratio": 1.004, "ci_low": 0.99, "ci_high": 1.01, "metrics": [session]}
    )
    cells = [
        cell.model_copy(update={"session_ms": ms})
        for cell, ms in zip(measured.document.cells, (34.3, 67.5), strict=True)
    ]
    document = measured.document.model_copy(update={"cells": cells, "comparisons": [equal]})
    text = report.render_issue(replace(measured, document=document, old=cells[0], new=cells[1], kind="session"))
    assert text.startswith("# [Regression] slower to load: ")
    assert " | 33.0 ms | " in text
    assert "67.5" not in text
    assert "Change: equal (p50 latency; " in text
    assert "| MatMul |" not in text


def test_cells_that_nothing_compares_have_their_own_latencies() -> None:
    measured = case()
    alone = measured.document.model_copy(update={"comparisons": []})
    text = report.render_issue(replace(measured, document=alone))
    assert "| | p50 latency | parity |" in text
    for cell in (measured.old, measured.new):
        assert f" {numbers.latency(cell.p50_ms, cell.p50_ci_ms)} | " in text


def test_the_files_name_tells_the_model_and_both_releases() -> None:
    assert report.report_name(case()) == "report-encoder-1.29.0-1.31.1.zip"
    assert report.timings_name("old") == "timings-old.csv"


class LaterSession(SessionSettings):
    """Settings with an axis that came after repeat.py."""

    memory_reuse: Annotated[bool, Field(exclude_if=lambda reuse: reuse)] = True


def test_a_setting_that_the_script_does_not_know_is_said_and_not_left_out_in_silence() -> None:
    one = case()
    order = json.loads(report.render_files(one)["repeat.json"])
    assert "left_out" not in order
    assert repeat_script.describe_left_out(order) == []
    spec = one.spec.model_copy(update={"session": LaterSession(memory_reuse=False)})
    order = json.loads(report.render_files(replace(one, spec=spec))["repeat.json"])
    (said,) = repeat_script.describe_left_out(order)
    assert "memory_reuse false" in said
    assert "--matrix matrix.json" in said
