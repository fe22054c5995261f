"""Models that carry compiled code: where they run, and what is said elsewhere."""

import pytest

from farm.contract.reasons import ReasonCode
from farm.rules.matrices import matrix
from farm.rules.planning import compiled, planner
from farm.rules.reporting import compiled_models
from farm.rules.runtimes.models import CompiledFacts
from tests.unit.rules.making import make_model
from tests.unit.rules.test_watching import cell

QNN = CompiledFacts(by=("QNN",), sdk="2.38.0", hardware="v73")
ON_QNN = {"runtime": "onnxruntime-qnn==2.7.0", "provider": "qnn"}


def planned(facts, **axes):
    model = make_model().model_copy(update={"main": "net.onnx", "compiled": facts})
    return planner.plan(matrix.parse(axes), model)


@pytest.mark.parametrize("by", ["QNN", "QNNExecutionProvider"])
def test_compiled_code_is_measured_on_the_provider_that_compiled_it(by):
    plan = planned(CompiledFacts(by=(by,)), **ON_QNN)
    assert not plan.refused
    assert {arm.spec.provider for arm in plan.blocks[0].arms} == {"QNNExecutionProvider"}


def test_elsewhere_the_plan_says_for_what_it_was_compiled():
    (refused,) = planned(QNN, provider="cpu").refused
    assert refused.reason.code == ReasonCode.MODEL_NOT_LOADED
    assert refused.reason.text == (
        "net.onnx holds code that was compiled for QNN, SDK 2.38.0, for v73, which CPUExecutionProvider cannot run: "
        "set `provider: qnn`, or upload the model that it was compiled from."
    )


def test_what_is_compiled_is_not_converted_again():
    (refused,) = planned(QNN, precision="fp16", **ON_QNN).refused
    assert refused.reason.text == (
        "net.onnx is compiled already and is measured as it is: leave `precision` and `opset` out."
    )


def test_code_that_lies_beside_the_model_is_refused_everywhere():
    (refused,) = planned(CompiledFacts(by=("QNN",), problem="It lies elsewhere."), **ON_QNN).refused
    assert refused.reason.text == "It lies elsewhere."


def test_by_what_it_was_compiled_is_said_as_far_as_the_model_says_it():
    assert compiled.describe_compiled(CompiledFacts(by=("QNN", "theirs"))) == "QNN and theirs"
    assert compiled.describe_compiled(QNN) == "QNN, SDK 2.38.0, for v73"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"simulated": True, "packages": {"onnxruntime": "1.31.1"}},
            "QNNExecutionProvider (backend_type=htp, soc_model=57) of onnxruntime-qnn 2.7.0 on ONNX Runtime 1.31.1, "
            "for a simulator on x86.",
        ),
        (
            {"provider_facts": {"device": "NPU of Qualcomm"}},
            "QNNExecutionProvider (backend_type=htp, soc_model=57) of onnxruntime-qnn 2.7.0, for NPU of Qualcomm.",
        ),
        ({"provider_options": {}}, "QNNExecutionProvider of onnxruntime-qnn 2.7.0."),
    ],
)
def test_a_model_that_was_compiled_while_it_was_measured_says_for_what(changes, words):
    known = {
        "runtime": "onnxruntime-qnn==2.7.0",
        "provider": "QNNExecutionProvider",
        "provider_options": {"soc_model": "57", "backend_type": "htp"},
    }
    assert compiled_models.describe_compilation(cell("c1", **{**known, **changes})) == f"Compiled by {words}"
