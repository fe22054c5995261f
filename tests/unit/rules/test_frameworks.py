"""PyTorch beside ONNX Runtime: how it is written, what it runs, and each way in which that cannot be."""

from typing import Any

import pytest

from farm.contract.cells import CellSpec, Recipe, Runtime
from farm.contract.reasons import Reason
from farm.rules.cells import commands
from farm.rules.cells.axes import runtime_sort_key
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.plans import Plan
from farm.rules.presenting import sentences
from farm.rules.runtimes import distributions, engines, frameworks, providers, releases
from farm.rules.runtimes.distributions import RuntimeProblem
from farm.rules.runtimes.models import ModelFacts, SourceFacts
from farm.rules.wording import titles
from tests.unit.rules.making import make_model, only_refusal
from tests.unit.rules.test_sentences import cell, compared

EAGER = Runtime(distribution="torch", version="2.13.0")
COMPILED = Runtime(distribution="torch", version="2.13.0+compile")
PROGRAM = SourceFacts(name="model.pt2", saved_by="2.13.0+cpu")


def planned(axes: dict[str, Any], model: ModelFacts) -> Plan:
    return planner.plan(matrix.parse({"matrix": axes}), model)


def refusal_of(axes: dict[str, Any], model: ModelFacts) -> Reason:
    return only_refusal(planned(axes, model))


@pytest.mark.parametrize("text", ["torch==2.13.0", "torch == 2.13.0", "torch==2.13.0+compile"])
def test_pytorch_is_a_runtime_that_nobody_has_to_allow(text):
    runtime = distributions.parse_runtime(text)
    assert distributions.refusal(runtime) is None
    assert releases.unknown_sentence(runtime) is None
    assert frameworks.installed_as(runtime) == EAGER
    assert frameworks.is_compiled(runtime) == text.endswith("+compile")


@pytest.mark.parametrize(("version", "program"), [("2.13.0", "eager"), ("2.13.0+compile", "compile")])
def test_a_node_is_told_what_is_done_with_the_program(version, program):
    runtime = Runtime(distribution="torch", version=version)
    engine = engines.engine_of(runtime)
    is_compiled = program == "compile"
    assert (engine.program(runtime), engine.starts_processes(runtime)) == (program, is_compiled)
    assert engine.check_s(runtime) == (frameworks.COMPILED_S if is_compiled else 0.0)
    assert engine.installed_as(runtime) == EAGER


def test_another_runtime_is_installed_as_it_is():
    plain = Runtime(distribution="onnxruntime", version="1.31.1")
    assert frameworks.installed_as(plain) == plain
    assert not frameworks.is_compiled(plain)


@pytest.mark.parametrize("text", ["torch==2.13.0+cpu", "torch==2.13.0+cu130", "torch==2.13.0+compile.cpu"])
def test_a_build_of_pytorch_is_no_release(text):
    with pytest.raises(RuntimeProblem, match="names a build, which the package index of each machine decides"):
        distributions.parse_runtime(text)
    stored = Runtime(distribution="torch", version=text.partition("==")[2])
    assert "write `torch==2.13.0` (eager)" in (distributions.refusal(stored) or "")


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("2.7.1", "torch==2.7.1 reads no .pt2 without unpickling it: take torch==2.8.0 or newer."),
        ("2.10.9", "torch==2.10.9 does not exist as far as this farm knows: there are 2.8.0"),
        ("2.10.9+compile", "torch==2.10.9+compile does not exist as far as this farm knows"),
    ],
)
def test_a_release_that_cannot_be_had_is_refused_in_one_sentence(version, sentence):
    assert (releases.unknown_sentence(Runtime(distribution="torch", version=version)) or "").startswith(sentence)


def test_a_release_that_is_newer_than_the_list_or_was_learnt_is_believed():
    assert releases.unknown_sentence(Runtime(distribution="torch", version="2.99.0")) is None
    assert (
        releases.unknown_sentence(Runtime(distribution="torch", version="2.10.9"), extra=[Runtime.of("torch==2.10.9")])
        is None
    )


def test_a_yanked_release_is_refused_however_it_is_run():
    sentence = releases.unknown_sentence(COMPILED, yanked={Runtime.of("torch==2.13.0"): "broken"})
    assert sentence == (
        "torch==2.13.0+compile was yanked from the package index (broken): the nearest that was not is 2.12.1."
    )


def test_pytorch_runs_on_the_processor_and_on_no_provider():
    assert providers.is_carried_by(providers.CPU, "torch")
    refused = refusal_of({"runtime": ["torch==2.13.0"], "provider": ["cuda"]}, make_model(source=PROGRAM))
    assert refused.code == "provider_not_in_build"


def test_each_way_of_running_is_compared_with_each_onnx_runtime_of_the_block():
    plan = planned({"runtime": ["torch==2.13.0", "torch==2.13.0+compile", "1.31.1"]}, make_model(source=PROGRAM))
    (block,) = plan.blocks
    assert [arm.spec.recipe.is_program for arm in block.arms] == [True, True, False]
    assert {(one.baseline, one.candidate, one.axis) for one in block.comparisons} == {
        (0, 1, "runtime"),
        (0, 2, "runtime"),
        (1, 2, "runtime"),
    }


def test_a_plan_with_programs_takes_the_time_that_they_take_to_start():
    plain = planned({"runtime": ["1.30.0", "1.31.1"]}, make_model()).blocks[0]
    other = planned({"runtime": ["torch==2.13.0+compile", "1.31.1"]}, make_model(source=PROGRAM)).blocks[0]
    assert other.round_s == pytest.approx(plain.round_s + frameworks.LAUNCH_S)
    more = frameworks.LAUNCH_S + frameworks.COMPILED_S
    assert other.once_s == pytest.approx(plain.once_s + more)
    assert other.minutes > plain.minutes


def test_a_cell_of_before_keeps_its_digest_and_a_program_has_another():
    before = CellSpec(artifact_sha256="a" * 64, runtime=EAGER)
    assert "is_program" not in before.model_dump(mode="json")["recipe"]
    program = before.model_copy(update={"recipe": Recipe(is_program=True)})
    assert program.model_dump(mode="json")["recipe"]["is_program"] is True
    assert program.digest != before.digest
    assert not program.recipe.is_identity


def test_a_model_without_a_program_says_what_to_add():
    refused = refusal_of({"runtime": ["torch==2.13.0"]}, make_model())
    assert refused.code == "model_not_loaded"
    assert refused.text.startswith("torch==2.13.0 runs a model's program and not its .onnx: add the .pt2")


def test_a_program_that_cannot_be_run_says_why():
    bad = SourceFacts(name="model.pt2", problem="model.pt2 uses the operator mylib::foo.")
    assert refusal_of({"runtime": ["torch==2.13.0"]}, make_model(source=bad)).text == bad.problem


def test_a_program_of_a_newer_pytorch_is_refused():
    newer = SourceFacts(name="model.pt2", saved_by="2.14.0+cu130")
    refused = refusal_of({"runtime": ["torch==2.13.0"]}, make_model(source=newer))
    assert refused.text.startswith(
        "model.pt2 was saved by PyTorch 2.14.0+cu130, which torch==2.13.0 is too old to read"
    )
    assert not frameworks.is_newer("2.9.1", EAGER)
    assert not frameworks.is_newer("a build of my own", EAGER)


@pytest.mark.parametrize(
    ("axis", "named"),
    [
        ({"precision": ["fp16"]}, "precision fp16"),
        ({"opset": [19]}, "opset 19"),
        ({"concurrency": [2]}, "concurrency"),
        ({"optimization": ["basic"]}, "optimization: basic"),
        ({"session": [{"name": "s", "arena": False}]}, "arena: false"),
    ],
)
def test_what_would_change_an_onnx_or_a_session_is_refused_for_a_program(axis, named):
    refused = refusal_of({"runtime": ["torch==2.13.0"], **axis}, make_model(source=PROGRAM))
    assert refused.code == "not_supported"
    assert (
        refused.text == f"torch==2.13.0 runs the model's program as it was exported, without {named}: leave that out."
    )


def test_a_program_takes_fresh_inputs_and_no_shapes_by_name():
    refused = refusal_of({"runtime": ["torch==2.13.0"], "scenario": "fresh:n=1+2"}, make_model(source=PROGRAM))
    assert refused.text == "torch==2.13.0 knows no dimensions by name: leave the shapes of fresh out."
    assert planned({"runtime": ["torch==2.13.0"], "scenario": "fresh"}, make_model(source=PROGRAM)).blocks


def test_a_program_does_not_generate_yet():
    refused = refusal_of({"runtime": ["torch==2.13.0"], "scenario": "generate"}, make_model(source=PROGRAM))
    assert refused.text == "torch==2.13.0 is not measured generating yet: leave generate out for it."


def test_the_newest_opset_of_a_runtime_leaves_a_program_as_it_is():
    plan = planned({"runtime": ["torch==2.13.0"], "opset": ["max-of-runtime"]}, make_model(source=PROGRAM))
    assert plan.blocks[0].arms[0].spec.recipe == Recipe(is_program=True)


def test_pytorch_stands_behind_onnx_runtime_in_lists_and_is_named_with_what_it_does():
    assert titles.runtime(Runtime.of("torch==2.13.0+compile")) == "torch 2.13.0+compile"
    order = [
        runtime_sort_key(Runtime.of(text)) for text in ("onnxruntime==1.31.1", "torch==2.13.0", "torch==2.13.0+compile")
    ]
    assert order == sorted(order)
    assert frameworks.describe_version("2.13.0") == "PyTorch 2.13.0 (eager)"
    assert frameworks.describe_version("2.13.0+compile") == "PyTorch 2.13.0 (torch.compile)"


def test_the_command_that_repeats_a_cell_names_its_program():
    cell = CellSpec(artifact_sha256="a" * 64, runtime=COMPILED, recipe=Recipe(is_program=True))
    words = commands.repeat_command(cell, "model.onnx")
    assert words.startswith("onnxfarm bench model.onnx --ort torch==2.13.0+compile --source model.pt2")
    assert commands.diverge_command(cell, "model.onnx") == ""


def test_a_sentence_names_pytorch_with_what_it_does_on_either_side():
    eager, compiled = cell("c1", runtime="torch==2.13.0"), cell("c2", runtime="torch==2.13.0+compile")
    plain = cell("c3", runtime="onnxruntime==1.31.1")
    cells = {one.id: one for one in (eager, compiled, plain)}
    said = sentences.comparison_sentence(compared(candidate="c2"), cells)
    assert "PyTorch 2.13.0 (torch.compile)" in said
    assert "than PyTorch 2.13.0 (eager)" in said
    assert "than PyTorch 2.13.0 (eager)" in sentences.comparison_sentence(compared(candidate="c3"), cells)
