"""A search for the first divergent node that takes too long, and a side that was cancelled, end at once."""

import time
from pathlib import Path
from typing import Any, cast

import pytest

from farm.contract.blocks import ArmOrder, Tolerance
from farm.contract.cells import Bundle, CellSpec, FileRef, Runtime
from farm.contract.reasons import Reason, ReasonCode
from farm.workshop.divergence import find_first_divergence
from tests.conftest import MODELS
from worker.agent.installation.runtimes import Installed
from worker.agent.measurement import divergence
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Answer, Launcher
from worker.agent.measurement.tensor_comparison import TensorComparer, TensorComparisonError

MODEL = MODELS / "relu_op13_ir7.onnx"


class OneAnswer:
    """A launcher of processes that all end alike."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.asked = answer, 0

    def launch(self, *_: Any, **__: Any) -> Answer:
        self.asked += 1
        return self.answer


def question(tmp_path: Path, answer: Answer, **more: Any) -> tuple[divergence.Question, OneAnswer]:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / MODEL.name).write_bytes(MODEL.read_bytes())
    for name in ("scratch", "looks", "out"):
        (tmp_path / name).mkdir()
    inputs = MODEL.with_name("relu_op13_ir7.inputs.npz")
    runtime = Runtime(distribution="onnxruntime", version="1.31.1")
    ref = FileRef(name=MODEL.name, sha256="a" * 64, bytes=1)
    bundle = Bundle(main=MODEL.name, files=(ref,))
    order = ArmOrder(
        arm=0, cell=CellSpec(artifact_sha256="b" * 64, runtime=runtime), bundle=bundle, source=bundle, inputs=ref
    )
    model = tmp_path / "bundle" / MODEL.name
    arm = PreparedArm(
        order=order, installed=Installed(runtime, tmp_path), model=model, source=model, inputs=inputs, reference=None,
        scratch=tmp_path / "scratch",
    )  # fmt: skip
    launcher = OneAnswer(answer)
    asked = divergence.Question(
        folder=model.parent, main=MODEL.name, inputs=inputs, reference="the CPU", out=tmp_path / "out",
        candidate=TensorComparer(cast(Launcher, launcher), arm, Tolerance()), search=find_first_divergence,
        work_dir=tmp_path / "looks", **more,
    )  # fmt: skip
    return asked, launcher


@pytest.mark.parametrize("code", [ReasonCode.CANCELLED, ReasonCode.CRASHED])
def test_a_side_that_cannot_run_the_whole_model_ends_the_search_with_its_reason(tmp_path: Path, code: ReasonCode):
    why = Reason(code=code, text="It ended.")
    asked, launcher = question(tmp_path, Answer(reason=why))
    with pytest.raises(TensorComparisonError) as raised:
        divergence.find_divergence(asked)
    assert raised.value.reason == why
    assert launcher.asked == 1


def test_a_search_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    asked, launcher = question(tmp_path, Answer(), ends_at=time.monotonic() - 1)
    with pytest.raises(TensorComparisonError, match="took too long"):
        divergence.find_divergence(asked)
    assert launcher.asked == 0


def test_an_answer_that_is_garbled_is_a_reason(tmp_path: Path) -> None:
    asked, _ = question(tmp_path, Answer(reply={"outputs": [{"name": 3}]}))
    with pytest.raises(TensorComparisonError, match="cannot be read"):
        divergence.find_divergence(asked)
