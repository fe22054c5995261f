"""The self-test: a golden model whose right answer numpy computes in float64, and its time in fresh processes.

It finds a machine that computes wrongly, or much slower than before, before anybody relies on its figures.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farm.contract.cells import Budget
from farm.contract.node import SelfTest
from farm.contract.reports import CheckReport
from farm.rules.runtimes import providers
from worker.agent.abilities import probes
from worker.agent.installation import stages
from worker.agent.installation.runtimes import Installed
from worker.agent.measurement import checks, runner_process, samples

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

LAUNCHES: Final = 3
ROWS, WIDTH, LAYERS = 32, 256, 6


def run_on_agent_runtime(folder: Path) -> SelfTest | None:
    """Run the self-test on the agent's own ONNX Runtime, before enrolment; None where it has no ONNX Runtime."""
    installed = probes.find_agent_runtime()
    if installed is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="self-test-", dir=folder) as work:
        stage = stages.stage_runner(Path(work) / "stage")
        return run(
            installed, stage=stage, folder=Path(work) / "golden", timeout_s=probes.TIMEOUT_S, is_cancelled=lambda: False
        )


def run(
    installed: Installed, *, stage: Path, folder: Path, timeout_s: float, is_cancelled: Callable[[], bool]
) -> SelfTest:
    """Run the golden model on the CPU: first compare its answer, then time it in fresh processes.

    A wrong answer, or a check that fails or is cancelled, gives a SelfTest that did not pass, and raises nothing. So
    does timing without any result. `p50_ms` is the smallest of the medians of LAUNCHES processes, without those that
    failed. `stage` is the folder of the staged runner, and `folder` one for the model and the processes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stages.compile_stage(stage, python=installed.python)
    model, files = folder / "bundle" / "golden.onnx", folder / "files"
    _write_golden_model(model, files)
    arm = probes.prepare_arm(
        model,
        files / "inputs.npz",
        entry=providers.resolve("cpu"),
        installed=installed,
        reference=files / "reference.npz",
    )
    launcher = runner_process.Launcher(stage=stage, timeout_s=timeout_s, memory_bytes=None, is_cancelled=is_cancelled)
    with launcher:
        check = checks.run_check(launcher, arm)
        problem = _describe_failure(check)
        if problem:
            return SelfTest(passed=False, sentence=problem, runtime=str(installed.runtime), max_abs=_max_abs(check))
        sampler = samples.Sampler(launcher, Budget.QUICK, seed="self-test")
        taken = [sample for number in range(LAUNCHES) for sample in sampler.measure([arm], round_number=number)]
    medians = [arm_sample.sample.p50_ms for arm_sample in taken if arm_sample.sample is not None]
    if not medians:
        reasons = [arm_sample.reason.text for arm_sample in taken if arm_sample.reason is not None]
        text = f"The golden model could not be timed: {reasons[0] if reasons else 'it gave no time'}"
        return SelfTest(passed=False, sentence=text[:1000])
    return SelfTest(
        passed=True,
        sentence=f"The golden model is right on {installed.runtime} and takes {min(medians):.3g} ms.",
        runtime=str(installed.runtime),
        max_abs=_max_abs(check),
        p50_ms=min(medians),
        launches=len(medians),
    )


def _describe_failure(check: CheckReport) -> str:
    """Say why the check fails; empty when it passes."""
    if check.reason is not None:
        return f"The golden model does not run: {check.reason.text}"[:1000]
    if not check.outputs:
        return "The golden model gave no output to compare."
    wrong = sum(output.violations for output in check.outputs)
    if wrong:
        return f"The golden model is wrong in {wrong} of {sum(output.elements for output in check.outputs)} values."
    return ""


def _max_abs(check: CheckReport) -> float | None:
    differences = [output.max_abs for output in check.outputs if output.max_abs is not None]
    return max(differences, default=None)


def _write_golden_model(model: Path, files: Path) -> None:
    """Write a model of several layers, each a matrix product and a tanh, with its inputs and its right answer."""
    import numpy as np
    from onnx import NodeProto, TensorProto, helper, save

    for path in (model.parent, files):
        path.mkdir(exist_ok=True)
    random = np.random.default_rng(20261)
    weights = [(random.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32) for _ in range(LAYERS)]
    inputs = random.standard_normal((ROWS, WIDTH)).astype(np.float32)
    nodes: list[NodeProto] = []
    for number in range(LAYERS):
        nodes.append(helper.make_node("MatMul", [f"h{number}", f"w{number}"], [f"p{number}"], f"product{number}"))
        output = f"h{number + 1}" if number + 1 < LAYERS else "answer"
        nodes.append(helper.make_node("Tanh", [f"p{number}"], [output], f"bend{number}"))
    graph = helper.make_graph(
        nodes,
        "golden",
        [helper.make_tensor_value_info("h0", TensorProto.FLOAT, [ROWS, WIDTH])],
        [helper.make_tensor_value_info("answer", TensorProto.FLOAT, [ROWS, WIDTH])],
        [
            helper.make_tensor(f"w{number}", TensorProto.FLOAT, weight.shape, weight.tobytes(), raw=True)
            for number, weight in enumerate(weights)
        ],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), model)
    np.savez(files / "inputs.npz", h0=inputs)
    np.savez(files / "reference.npz", answer=_compute_right_answer(inputs, weights))


def _compute_right_answer(inputs: "Floats", weights: "list[Floats]") -> "Floats":
    import numpy as np

    hidden = inputs.astype(np.float64)
    for weight in weights:
        hidden = np.tanh(hidden @ weight.astype(np.float64))
    return hidden.astype(np.float32)
