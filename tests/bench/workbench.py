"""What the figures of the node's side share: arms of sample models, made ready as the agent makes them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx

from farm.contract.blocks import BlockOrder
from farm.contract.cells import SessionSettings
from farm.workshop.samples import builders
from tests.integration.worker.making import MODELS, Workbench
from worker.agent.measurement.prepared_arms import PreparedArm, prepare_arms
from worker.agent.measurement.runner_process import Launcher

# models by name: where the file comes from, and the sizes of its dynamic dimensions
SIZES = {
    "relu_op13_ir7": {},
    "encoder_dyn": {"batch": 1, "seq": 32},
    "transformer": {"batch": 1, "sequence": 64},
    "convnet": {"batch": 1},
}


def write_fixed(name: str, folder: Path) -> tuple[Path, Path]:
    """The model with all its dimensions fixed, and seeded inputs: every tool then measures the very same thing."""
    reference = MODELS / f"{name}.onnx"
    path = reference if reference.exists() else builders.write_model(name, folder)
    model = onnx.load(path)
    dice = np.random.default_rng(0)
    inputs = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        for dimension in tensor.shape.dim:
            if not dimension.dim_value:
                dimension.dim_value = SIZES[name].get(dimension.dim_param, 1)
        shape = [dimension.dim_value for dimension in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        is_float = np.issubdtype(dtype, np.floating)
        inputs[value.name] = (dice.standard_normal(shape) if is_float else dice.integers(0, 9, shape)).astype(dtype)
    fixed, given = folder / f"{name}.fixed.onnx", folder / f"{name}.fixed.inputs.npz"
    onnx.save(model, fixed)
    np.savez(given, **inputs)
    return fixed, given


@contextmanager
def prepared(
    bench: Workbench, models: list[tuple[Path, Path]], *, folder: Path, runtime: str = "onnxruntime==1.31.1"
) -> Iterator[tuple[Launcher, list[PreparedArm]]]:
    """One arm a model, one thread each, and a launcher that starts their runners in the sandbox."""
    arms = [
        bench.arm(number, model, inputs=inputs, runtime=runtime, session=SessionSettings(threads=1))
        for number, (model, inputs) in enumerate(models)
    ]
    order = BlockOrder(block="bench", attempt=1, arms=tuple(arms))
    ready, refused = prepare_arms(order, environment=bench.environment, folder=folder, is_cancelled=lambda: False)
    if refused:
        raise SystemExit("; ".join(reason.text for reason in refused.values()))
    launcher = Launcher(stage=bench.environment.stage, timeout_s=120, memory_bytes=None, is_cancelled=lambda: False)
    with launcher:
        yield launcher, ready
