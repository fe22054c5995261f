"""Arms made ready: what a node refuses by itself, whoever planned the block."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

from farm.contract.blocks import ArmOrder, BlockOrder
from farm.contract.cells import Bundle, CellSpec, FileRef, Runtime, SessionSettings
from farm.contract.reasons import ReasonCode
from worker.agent.installation.cache import ArtifactCache, FetchError
from worker.agent.installation.runtimes import Installed
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


def test_a_bundle_of_which_a_file_is_missing_serves_no_arm(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"model").hexdigest()

    def fetch(sha256: str, target: Path) -> None:
        if sha256 != digest:
            raise FetchError("the farm answered 404")
        target.write_bytes(b"model")

    [first] = order_of(1).arms
    there = FileRef(name="model.onnx", sha256=digest, bytes=5)
    bundle = Bundle(main="model.onnx", files=(there, FileRef(name="weights", sha256="1" * 64, bytes=1)))
    arms = [first.model_copy(update={"arm": n, "bundle": bundle, "source": bundle, "inputs": there}) for n in (0, 1)]
    installed = Installed(runtime=first.cell.runtime, folder=Path(sys.prefix))
    environment: Any = type(
        "Environment",
        (),
        {
            "runtimes": type("Store", (), {"provide": lambda *_, **__: installed}),
            "cache": ArtifactCache(tmp_path / "cache", fetch=fetch),
            "stage": tmp_path / "stage",
        },
    )
    order = BlockOrder(block="b1", attempt=1, arms=tuple(arms))
    ready, refused = prepare_arms(order, environment=environment, folder=tmp_path, is_cancelled=lambda: False)
    assert ready == []
    assert {reason.code for reason in refused.values()} == {ReasonCode.ARTIFACT_UNAVAILABLE}
    assert sorted(refused) == [0, 1]
