"""Runs models on an arm's runtime, and compares their outputs with a reference, to look at single tensors."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from farm.contract.blocks import Tolerance
from farm.contract.divergence import TensorLook
from farm.contract.reasons import ReasonedError
from farm.sandbox import plain_files
from worker.agent.measurement.checks import make_runner_order
from worker.agent.measurement.orders import RunnerOrder
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Answer, Launcher, make_garbled_reason

_LOOKS: TypeAdapter[list[TensorLook]] = TypeAdapter(list[TensorLook])
_REFERENCE = "look-reference.npz"
_OUTPUTS_FILE = "look-outputs.npz"


class TensorComparisonError(ReasonedError):
    """The runtime could not run the model."""


@dataclass(frozen=True)
class TensorComparer:
    """One side of a divergence: an arm, whose runtime and session settings are used for other models.

    `is_absolute`: the tolerance is the user's, and is not scaled by the reference.
    """

    launcher: Launcher
    arm: PreparedArm
    tolerance: Tolerance
    is_absolute: bool = False

    def compare(self, model: Path, *, inputs: Path, reference: Path) -> list[TensorLook]:
        """Run the model and compare its outputs with those of a `.npz`, by name. Raises TensorComparisonError."""
        # the process may only read the folders of the model and of the inputs, and its own, so copy the reference there
        place = plain_files.copy_file_into(reference, self.arm.scratch / _REFERENCE)
        answer = self._run_model(model, inputs, {"reference": str(place)})
        try:
            return _LOOKS.validate_python(answer.reply.get("outputs"))
        except ValidationError as problem:
            raise TensorComparisonError(
                make_garbled_reason(f"{problem.error_count()} fields of its outputs are wrong")
            ) from problem

    def store_outputs(self, model: Path, *, inputs: Path, out: Path) -> None:
        """Run the model and write its outputs to `out` (`.npz`). Raises TensorComparisonError."""
        place = self.arm.scratch / _OUTPUTS_FILE
        self._run_model(model, inputs, {"keep": str(place)})
        if not plain_files.is_plain(place):
            raise TensorComparisonError(make_garbled_reason("it kept no outputs"))
        shutil.move(place, out)

    def _run_model(self, model: Path, inputs: Path, more: RunnerOrder) -> Answer:
        order: RunnerOrder = {
            **make_runner_order(self.arm, "look"),
            "model": str(model),
            "inputs": str(inputs),
            "reference": None,
            "atol": self.tolerance.atol,
            "rtol": self.tolerance.rtol,
            "is_absolute": self.is_absolute,
            **more,
        }
        arm = replace(self.arm, model=model, inputs=inputs)
        answer = self.launcher.launch(arm, order, work_dir=self.arm.scratch)
        if answer.reason is not None:
            raise TensorComparisonError(answer.reason)
        return answer
