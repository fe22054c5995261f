"""Where no sandbox holds: nothing is run without the word of whoever owns the machine."""

import os
import sys
from pathlib import Path

import pytest

from farm.contract.reasons import ReasonCode
from farm.sandbox import child, confinement, unconfined
from farm.sandbox.policy import Policy
from farm.workshop import orders
from tests.conftest import MODELS
from tests.unwalled import no_walls

__all__ = ["no_walls"]
pytestmark = pytest.mark.usefixtures("no_walls")


def test_a_child_is_not_run_without_walls_when_nobody_has_accepted_that(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'ran')!r}, 'w')"
    with pytest.raises(unconfined.NoSandboxError, match="No sandbox holds on this machine"):
        child.run_command([os.path.abspath(sys.executable), "-c", code], policy=Policy(), timeout_s=10)
    with pytest.raises(unconfined.NoSandboxError):
        child.run_function("json:dumps", 1, policy=Policy(), timeout_s=10, preloaded=("json",))
    assert not (tmp_path / "ran").exists()


def test_the_operator_is_told_why_each_level_failed_and_what_to_do() -> None:
    said = confinement.explain_missing_sandbox()
    assert "landlock: No seccomp filter can be made here" in said
    assert "bubblewrap: No seccomp filter can be made here" in said
    assert "install bubblewrap" in said


def test_whoever_accepts_it_is_told_once_and_it_goes_on() -> None:
    told: list[str] = []
    unconfined.accept_unconfined(told.append)
    for _ in range(2):
        assert child.run_function("json:dumps", 1, policy=Policy(), timeout_s=100).is_done
    assert told == [confinement.explain_missing_sandbox()]


def test_no_order_of_the_workshop_reads_a_model_without_walls(tmp_path: Path) -> None:
    found = orders.inspect(MODELS, "relu_op13_ir7.onnx")
    assert found.problem.code == "sandbox_missing"
    assert "Ask the administrator" in found.problem.text
    assert orders.find_opset_range(MODELS, "relu_op13_ir7.onnx") is None
    with pytest.raises(orders.WorkshopError) as caught:
        orders.prepare_inputs(MODELS, "relu_op13_ir7.onnx", out_dir=tmp_path)
    assert caught.value.reason.code is ReasonCode.SANDBOX_MISSING
