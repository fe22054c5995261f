"""Which cells are measured again while something else runs beside them."""

from pathlib import Path
from typing import Any

from farm.contract.blocks import ArmOrder
from farm.contract.cells import Bundle, CellSpec, FileRef, Runtime, SessionSettings
from worker.agent.installation.runtimes import Installed
from worker.agent.measurement import samples
from worker.agent.measurement.prepared_arms import PreparedArm

RUNTIME = Runtime(distribution="onnxruntime", version="1.31.1")
FILE = FileRef(name="m.onnx", sha256="0" * 64, bytes=1)


def arm(**cell: Any) -> PreparedArm:
    bundle = Bundle(main="m.onnx", files=(FILE,))
    spec = CellSpec(artifact_sha256=bundle.digest, runtime=RUNTIME, **cell)
    nowhere = Path("nowhere")
    return PreparedArm(
        order=ArmOrder(arm=0, cell=spec, bundle=bundle, source=bundle, inputs=FILE),
        installed=Installed(runtime=RUNTIME, folder=nowhere),
        model=nowhere,
        source=nowhere,
        inputs=nowhere,
        reference=None,
        scratch=nowhere,
    )


def test_one_thread_of_the_cpu_provider_is_gated_and_nothing_else() -> None:
    assert samples.is_contention_judged(arm(), is_emulated=False)
    assert not samples.is_contention_judged(arm(session=SessionSettings(threads=2)), is_emulated=False)
    assert not samples.is_contention_judged(arm(provider="WebGpuExecutionProvider"), is_emulated=False)
    assert not samples.is_contention_judged(arm(), is_emulated=True)
