"""Arms made ready: what a node refuses by itself, whoever planned the block."""

from pathlib import Path
from typing import Any

import pytest

from farm.contract.blocks import ArmOrder, BlockOrder
from farm.contract.cells import Bundle, CellSpec, FileRef, Runtime, SessionSettings
from farm.contract.reasons import ReasonCode
from worker.agent.measurement.prepared_arms import prepare_arms


class NothingIsInstalled:
    """A store of runtimes that must not be asked."""

    def provide(self, *given: Any, **named: Any) -> Any:
        raise AssertionError("a runtime was installed for an arm that is refused")


def order_of(threads: int) -> BlockOrder:
    runtime = Runtime(distribution="onnxruntime", version="1.31.1")
    spec = CellSpec(artifact_sha256="0" * 64, runtime=runtime, session=SessionSettings(threads=threads))
    file: dict[str, Any] = {"sha256": "0" * 64, "bytes": 1}
    bundle = Bundle(main="model.onnx", files=(FileRef(name="model.onnx", **file),))
    arm = ArmOrder(arm=0, cell=spec, bundle=bundle, source=bundle, inputs=FileRef(name="inputs.npz", **file))
    return BlockOrder(block="b1", attempt=1, arms=(arm,))


def test_a_node_refuses_more_threads_than_it_has_cores_before_anything_is_installed(tmp_path: Path) -> None:
    environment: Any = type("Environment", (), {"runtimes": NothingIsInstalled(), "stage": tmp_path})
    ready, refused = prepare_arms(order_of(999), environment=environment, folder=tmp_path, is_cancelled=lambda: False)
    assert (ready, refused[0].code) == ([], ReasonCode.NOT_SUPPORTED)
    assert refused[0].text.startswith("999 threads on a machine of")
    with pytest.raises(AssertionError, match="was installed"):
        prepare_arms(order_of(1), environment=environment, folder=tmp_path, is_cancelled=lambda: False)
