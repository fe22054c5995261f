"""What a runner leaves in its folder: the agent sends, reads and opens nothing that lies elsewhere."""

from pathlib import Path
from typing import Any, cast

import pytest

from farm.contract.cells import CellSpec, Runtime
from farm.rules.runtimes import providers
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Launcher
from worker.agent.measurement.traces import Profiled, _Reply

RUNTIME = Runtime(distribution="onnxruntime", version="1.31.1")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "node.json"
    path.write_text("the node's key")
    return path


def profiled(folder: Path, **names: Any) -> Profiled:
    reply = _Reply(runs=1, run_us=1.0, executed=(), **names)
    return Profiled(arm=cast(PreparedArm, None), trace_round=0, reply=reply, folder=folder)


def test_a_link_in_the_place_of_a_trace_or_a_graph_is_neither_sent_nor_read(tmp_path: Path, secret: Path) -> None:
    folder = tmp_path / "trace"
    folder.mkdir()
    for name in ("profile.json", "optimized.onnx"):
        (folder / name).symlink_to(secret)
    found = profiled(folder, raw="profile.json", optimized="optimized.onnx")
    assert (found.raw, found.optimized) == (None, None)


def test_what_onnx_runtime_wrote_is_found_by_its_whole_name(tmp_path: Path) -> None:
    for name in ("profile.json", "profileXjson"):
        (tmp_path / name).touch()
    assert profiled(tmp_path, raw="profile.json").raw == tmp_path / "profile.json"
    assert profiled(tmp_path, raw="..").raw is None


def test_a_link_in_the_place_of_the_engines_opens_no_other_folder(tmp_path: Path, secret: Path) -> None:
    scratch = tmp_path / "arm-0"
    scratch.mkdir()
    (scratch / "engines").symlink_to(tmp_path)
    launcher = Launcher(stage=tmp_path, timeout_s=1, memory_bytes=None, is_cancelled=lambda: False)

    class Arm:
        """What a policy is made from."""

        installed = type("Installed", (), {"python": Path("/usr/bin/python3")})
        model = inputs = secret
        engines = scratch / "engines"
        order = type("Order", (), {"cell": CellSpec(artifact_sha256="a" * 64, runtime=RUNTIME)})

    entry = providers.CPU
    policy = launcher._make_policy(cast(PreparedArm, Arm), entry, work_dir=scratch)
    assert policy.read_write == (scratch,)


@pytest.mark.parametrize(
    ("version", "may_start_others"), [("1.31.1", False), ("2.13.0", False), ("2.13.0+compile", True)]
)
def test_no_process_starts_another_but_one_that_compiles_its_program(
    tmp_path: Path, secret: Path, version: str, may_start_others: bool
) -> None:
    launcher = Launcher(stage=tmp_path, timeout_s=1, memory_bytes=None, is_cancelled=lambda: False)
    runtime = Runtime(distribution="onnxruntime" if version == "1.31.1" else "torch", version=version)

    class Arm:
        """What a policy is made from."""

        installed = type("Installed", (), {"python": Path("/usr/bin/python3")})
        model = inputs = secret
        engines = tmp_path / "engines"
        order = type("Order", (), {"cell": CellSpec(artifact_sha256="a" * 64, runtime=runtime)})

    policy = launcher._make_policy(cast(PreparedArm, Arm), providers.CPU, work_dir=tmp_path)
    assert policy.processes == may_start_others
