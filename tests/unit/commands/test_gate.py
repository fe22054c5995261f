"""A gate from its matrix to its answer, on a made-up bench: what fails it, and what a fresh block takes back."""

import importlib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from farm.contract.cells import CellSpec, Runtime
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.judging.block_verdicts import BlockJudge
from farm.rules.matrices import matrix as matrices
from farm.rules.planning.plans import PlannedBlock
from farm.rules.searches.gate import Checks, Gate, GateOutcome
from farm.rules.searches.search import carry_out
from onnxfarm.here import workbench
from onnxfarm.here.gate import LocalGate
from onnxfarm.main import app
from onnxfarm.subject import GateRequest, Subject
from tests.conftest import MODELS
from tests.unit.commands.made_up import MadeUpBench
from tests.unit.rules.making import make_block, make_model, make_output, make_round, make_sample, plan_of

# the package's attribute of this name is the command itself
command = importlib.import_module("onnxfarm.commands.gate")

OLD = Runtime(distribution="onnxruntime", version="1.29.0")
NEW = Runtime(distribution="onnxruntime", version="1.31.1")


def gate(bench: MadeUpBench, *, old: Runtime = OLD, new: Runtime = NEW, confirm: bool = True) -> GateOutcome:
    declared = matrices.parse({"batch": [1, 8], "precision": ["fp32"], "runtime": [str(old), str(new)]})
    local = LocalGate(bench, GateRequest(Subject(Path("m")), deadline=None))
    checks = Checks(fail_on=("slower", "parity", "placement", "failed"))
    return carry_out(Gate(lambda: declared, (old, new), checks, confirm), local)


def test_a_gate_does_not_count_as_its_time_what_it_waited_for_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workbench, "open_workbench", lambda *_, **__: nullcontext(MadeUpBench(clock=lambda: 95.0)))
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: 0.0))
    comment = tmp_path / "comment.md"
    words = ["gate", MODELS / "relu_op13_ir7.onnx", "--baseline", OLD.version, "--candidate", NEW.version]
    done = CliRunner().invoke(app, [*map(str, words), "--home", str(tmp_path), "--comment", str(comment)])
    assert done.exit_code == 0, done.output
    assert "- 1 min 35 s; on your own machine" in comment.read_text()


def on(runtime: Runtime, **changes: Any) -> Callable[[CellSpec], Mapping[str, Any]]:
    return lambda spec: changes if spec.runtime == runtime else {}


def test_equal_runtimes_pass_and_are_measured_once() -> None:
    bench = MadeUpBench()
    outcome = gate(bench)
    assert (outcome.answer.is_passed, outcome.answer.compared, len(bench.measured)) == (True, 2, 1)
    assert outcome.headline == "The gate passed: 2 comparisons, no failures."


def test_a_slower_cell_fails_the_gate_once_a_fresh_block_shows_it_again() -> None:
    def latency(spec: CellSpec) -> float:
        return 1.24 if (spec.runtime, spec.workload.batch) == (NEW, 8) else 1.0

    bench = MadeUpBench(p50_ms=latency)
    assert gate(bench).headline == "The gate failed: 1 finding in 1 of 2 comparisons."
    # the fresh block holds the point that changed, and no other
    assert [len(versions) for versions in bench.measured] == [4, 2]
    assert len(gate(MadeUpBench(p50_ms=latency), confirm=False).answer.failures) == 1


def test_what_a_fresh_block_does_not_show_again_is_told_and_fails_nothing() -> None:
    bench = MadeUpBench()
    bench.p50_ms = lambda spec: 1.24 if spec.runtime == NEW and len(bench.measured) == 1 else 1.0
    outcome = gate(bench)
    assert outcome.answer.is_passed
    assert len(outcome.answer.findings) == 2


@pytest.mark.parametrize(("budget", "rounds"), [("quick", 8), ("quick", 4), ("standard", 10), ("precise", 8)])
def test_the_rounds_that_were_asked_for_are_the_most_that_are_measured(budget: str, rounds: int) -> None:
    planned = MadeUpBench().plan(matrices.parse({"runtime": [str(OLD), str(NEW)], "batch": [1], "budget": budget}))
    (block,) = workbench.reshape_plan(planned, lambda one: workbench.select_comparisons(one, rounds=rounds)).blocks
    assert (block.max_rounds, block.is_replacing) == (rounds, False)
    assert block.min_rounds <= rounds
    # they are measured on a busy machine too, as long as a block of so many may take
    assert block.max_duration_s(rounds) == block.block_timeout_s >= planned.blocks[0].block_timeout_s


def test_a_gate_without_rounds_goes_on_as_far_as_its_verdicts_and_its_budget_look() -> None:
    for budget, most in (("quick", 24), ("precise", 48)):
        planned = MadeUpBench().plan(matrices.parse({"runtime": [str(OLD), str(NEW)], "batch": [1], "budget": budget}))
        (block,) = workbench.reshape_plan(planned, workbench.select_comparisons).blocks
        assert (block.max_rounds, block.is_replacing) == (most, True)


def of_pipeline(block: PlannedBlock) -> PlannedBlock:
    return workbench.select_comparisons(block, is_of_pipeline=True)


def test_in_a_pipeline_processor_time_speaks_on_a_calm_machine_too() -> None:
    calm = {0: make_sample(1.0, cpu_p50_ms=1.0), 1: make_sample(1.25, cpu_p50_ms=1.0)}
    rounds = [make_round(number, calm) for number in range(8)]
    for block, expected in (
        (make_block(), ("wall", "slower")),
        (of_pipeline(make_block()), ("processor", "equal")),
    ):
        [judged] = BlockJudge(block, reports=rounds).comparisons()
        assert (judged.verdict_from, judged.verdict) == expected
    without = [make_round(number, {0: 1.0, 1: 1.25}) for number in range(8)]
    [judged] = BlockJudge(of_pipeline(make_block()), reports=without).comparisons()
    assert judged.verdict_from == "wall"


def test_in_a_pipeline_an_identical_pair_that_is_undecided_is_not_waited_for() -> None:
    asked = {"runtime": "1.29.0,1.31.1", "budget": "standard"}
    [block] = plan_of(asked, with_null_pair=True).blocks
    rounds = [make_round(number, {0: 1.0, 1: 1.25, 2: 1.0 if number % 2 else 1.5}) for number in range(8)]
    assert BlockJudge(workbench.select_comparisons(block), reports=rounds).wants_more_rounds()
    judge = BlockJudge(of_pipeline(block), reports=rounds)
    assert not judge.wants_more_rounds()
    assert [(judged.planned.axis, judged.verdict) for judged in judge.comparisons()] == [
        ("runtime", "slower"),
        ("twin", "undecided"),
    ]


def test_a_downgrade_keeps_its_direction_in_the_fresh_block() -> None:
    bench = MadeUpBench(p50_ms=lambda spec: 1.3 if spec.runtime == OLD else 1.0)
    outcome = gate(bench, old=NEW, new=OLD)
    assert [finding.check for finding in outcome.answer.failures] == ["slower", "slower"]
    assert bench.measured[1][0] == NEW.version


def test_outputs_that_are_off_fail_without_a_fresh_block() -> None:
    off = make_output(max_abs=0.5, max_rel=0.5, cosine=0.5, violations=4)
    bench = MadeUpBench(checks=on(NEW, outputs=(off,)))
    outcome = gate(bench)
    assert {finding.check for finding in outcome.answer.failures} == {"parity"}
    assert len(bench.measured) == 1


def test_a_candidate_that_no_longer_runs_fails_the_gate() -> None:
    reason = Reason(code=ReasonCode.CRASHED, text="It died.")
    outcome = gate(MadeUpBench(checks=on(NEW, reason=reason)))
    assert {finding.check for finding in outcome.answer.failures} == {"failed"}
    assert not outcome.answer.is_passed


def test_a_candidate_below_the_models_opset_fails_the_gate_by_its_plan() -> None:
    bench = MadeUpBench(model=make_model(opsets={"": 26}, ir_version=13))
    outcome = gate(bench, old=NEW, new=Runtime(distribution="onnxruntime", version="1.24.1"))
    assert {finding.check for finding in outcome.answer.failures} == {"failed"}
    assert "opset 26" in outcome.answer.failures[0].text


def test_a_machine_that_cannot_install_is_neither_a_pass_nor_a_failure() -> None:
    reason = Reason(code=ReasonCode.RUNTIME_INSTALL_FAILED, text="No index.")
    bench = MadeUpBench(checks=on(NEW, reason=reason))
    outcome = gate(bench)
    assert (outcome.answer.infra, len(bench.measured)) == (("No index.",), 1)
