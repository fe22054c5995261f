"""Every provider's recording: what its list, trace and failures become. docs/hardware.md says which are real."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farm.contract.blocks import ArmOrder
from farm.contract.cells import Bundle, CellSpec, FileRef, Runtime, SessionSettings
from farm.contract.reports import Facts
from farm.rules.cells.readers import read_runtime
from farm.rules.runtimes import plugins, providers
from worker.agent.abilities import probes
from worker.agent.installation.runtimes import Installed
from worker.agent.measurement import checks
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.runner import engine_cache, faults, profile
from worker.runner.engines import onnxruntime as engine
from worker.runner.order import BuildingPart, Order

FOLDER = Path(__file__).resolve().parents[2] / "providers"
RECORDINGS: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
HARDWARE = (Path(__file__).resolve().parents[3] / "docs" / "hardware.md").read_text()
FACTS = Facts(hostname="test", os="test", arch="x86_64")


def rows(recording: dict[str, Any]) -> list[dict[str, Any]]:
    return profile.make_rows(profile.summarise(recording["events"], skip_runs=1))


def test_every_provider_of_the_table_has_a_recording_and_no_other() -> None:
    assert set(RECORDINGS) == {entry.short for entry in providers.PROVIDERS}


@pytest.mark.parametrize("entry", providers.PROVIDERS, ids=lambda entry: entry.short)
def test_a_trace_shows_the_provider_executing_on_its_own_hardware(entry: providers.Provider) -> None:
    recording = RECORDINGS[entry.short]
    assert recording["provider"] == entry.name
    found = rows(recording)
    assert entry.name in {row["provider"] for row in found}
    assert sum(row["time_us"] for row in found if row["provider"] == entry.name) > 0
    assert entry.name in recording["active_providers"]


@pytest.mark.parametrize("entry", providers.PROVIDERS, ids=lambda entry: entry.short)
def test_a_recording_says_where_it_comes_from(entry: providers.Provider) -> None:
    recording = RECORDINGS[entry.short]
    if recording["from"] == "recorded":
        assert recording["when"]
        assert recording["where"]
    else:
        assert recording["from"] == "documentation"
        assert recording["source"].startswith("https://")


@pytest.mark.parametrize("entry", providers.PROVIDERS, ids=lambda entry: entry.short)
def test_what_the_documents_say_of_a_provider_is_what_its_recording_is(entry: providers.Provider) -> None:
    not_run = next(line for line in HARDWARE.splitlines() if line.startswith("Not run"))
    assert (f"| {entry.short} |" in HARDWARE) != (f"`{entry.short}`" in not_run)
    assert (f"`{entry.short}`" in not_run) == (RECORDINGS[entry.short]["from"] == "documentation")


FAILURES = [(short, found["failure"]) for short, found in RECORDINGS.items() if "failure" in found]


@pytest.mark.parametrize(("short", "failure"), FAILURES, ids=[short for short, _ in FAILURES])
def test_a_provider_that_does_not_start_is_a_reason_with_its_own_words(short: str, failure: dict[str, str]) -> None:
    code, text = faults.explain_error(RuntimeError(failure["text"]), during="provider")
    assert code == failure["code"]
    assert text
    assert "[ONNXRuntimeError]" not in text
    assert "/onnxruntime_src/" not in text


def test_copies_between_memories_are_seen_in_the_trace_of_a_provider_with_its_own() -> None:
    for short in ("cuda", "rocm", "directml", "webgpu"):
        copies = {row["op_type"] for row in rows(RECORDINGS[short])} & {"MemcpyFromHost", "MemcpyToHost"}
        assert copies, short


def test_a_provider_in_a_build_is_no_evidence_that_it_runs() -> None:
    # the list of onnxruntime-gpu on a machine without CUDA, and what then executed
    assert "CUDAExecutionProvider" in RECORDINGS["cuda"]["available_providers"]
    assert {row["provider"] for row in rows(RECORDINGS["cpu"])} == {"CPUExecutionProvider"}


def test_a_plug_ins_own_kernel_events_are_not_counted_twice() -> None:
    events = RECORDINGS["plugin"]["events"]
    assert any(event["cat"] == "Kernel" for event in events)
    assert not any(row["op_type"] == "Conv" and row["name"].endswith("dispatch") for row in rows(RECORDINGS["plugin"]))


def test_probes_install_what_the_table_names() -> None:
    assert {short: str(runtime) for short, runtime in probes.BUILDS.items()}["webgpu"] == "onnxruntime-ep-webgpu==0.4.0"
    for short, runtime in probes.BUILDS.items():
        assert providers.is_carried_by(providers.resolve(short), runtime.distribution)


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="signs are looked for on Linux")


@on_linux
def test_a_machine_is_probed_for_what_it_shows_signs_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWITCH", raising=False)
    device = tmp_path / "renderD128"
    signs = providers.Signs(machines=("x86_64",), files=(f"{tmp_path}/renderD*",), libraries=("c",))
    assert not probes.shows_signs(signs, FACTS)
    device.touch()
    assert probes.shows_signs(signs, FACTS)
    assert not probes.shows_signs(signs, FACTS.model_copy(update={"arch": "riscv64"}))
    assert not probes.shows_signs(replace(signs, libraries=("no-such-library",)), FACTS)


@on_linux
def test_the_owners_word_stands_in_for_a_device_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signs = providers.Signs(files=(f"{tmp_path}/none",), stands_in="ONNXFARM_TEST_SWITCH")
    assert not probes.shows_signs(signs, FACTS)
    monkeypatch.setenv("ONNXFARM_TEST_SWITCH", "1")
    assert probes.shows_signs(signs, FACTS)


def order(tmp_path: Path, short: str, **options: str) -> Order:
    import numpy as np

    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, x=np.zeros((2, 3, 8, 8), np.float32), scale=np.float32(1))
    entry = providers.resolve(short)
    part = BuildingPart(cache=entry.building.cache, folder=str(tmp_path / "engines"), shapes=entry.building.shapes)
    return Order(
        kind="check", model="", inputs=str(inputs), provider=entry.name, provider_options=options, building=part
    )


def test_tensorrt_is_given_the_workloads_shapes_and_a_cache_of_the_agents(tmp_path: Path) -> None:
    found = engine.make_provider_options(order(tmp_path, "tensorrt", trt_fp16_enable="1"))
    assert found == {
        "trt_engine_cache_path": str(tmp_path / "engines"),
        "trt_profile_min_shapes": "x:2x3x8x8",
        "trt_profile_opt_shapes": "x:2x3x8x8",
        "trt_profile_max_shapes": "x:2x3x8x8",
        "trt_fp16_enable": "1",
    }


def test_shapes_that_the_matrix_sets_are_left_as_they_are(tmp_path: Path) -> None:
    found = engine.make_provider_options(order(tmp_path, "tensorrt", trt_profile_max_shapes="x:8x3x8x8"))
    assert "trt_profile_min_shapes" not in found
    assert found["trt_profile_max_shapes"] == "x:8x3x8x8"


def test_the_cached_build_is_timed_apart_with_what_it_left(tmp_path: Path) -> None:
    asked = order(tmp_path, "tensorrt")
    engines = tmp_path / "engines"
    engines.mkdir()
    (engines / "plan.engine").write_bytes(b"x" * 1000)
    opened: list[Order] = []
    found = engine_cache.measure_cached_start(asked, open_session=opened.append)
    assert found["engine_bytes"] == 1000
    assert found["cached_session_ms"] >= 0
    assert opened == [asked]


def test_a_provider_that_keeps_nothing_or_does_not_start_again_has_no_cached_build(tmp_path: Path) -> None:
    asked = order(tmp_path, "migraphx")
    assert engine_cache.measure_cached_start(asked, open_session=lambda one: None) == {}

    def refused(one: Order) -> None:
        raise faults.Refusal("provider_not_active", "no")

    (tmp_path / "engines").mkdir()
    (tmp_path / "engines" / "a.mxr").write_bytes(b"x")
    assert engine_cache.measure_cached_start(asked, open_session=refused) == {}


def test_a_plug_in_stands_beside_a_pinned_runtime() -> None:
    for entry in providers.PROVIDERS[1:]:
        for plugin in [one for one in entry.plugins if not one.beside]:
            runtime = Runtime(distribution=plugin.package, version=plugin.releases[-1])
            assert plugin.package in providers.EVERY_DISTRIBUTION
            assert plugins.library_for(runtime, entry.name) == plugin.library
            assert str(plugins.core_of(runtime)) == f"onnxruntime=={plugin.core}"


def arm(tmp_path: Path, short: str, *, runtime: str, threads: int = 3, **options: str) -> PreparedArm:
    digest, path = "0" * 64, tmp_path / "bundle" / "m.onnx"
    bundle = Bundle(main="m.onnx", files=(FileRef(name="m.onnx", sha256=digest, bytes=1),))
    cell = CellSpec(
        artifact_sha256=bundle.digest,
        runtime=read_runtime(runtime),
        provider=providers.resolve(short).name,
        provider_options=options,
        session=SessionSettings(threads=threads),
    )
    inputs = FileRef(name="inputs.npz", sha256=digest, bytes=1)
    order = ArmOrder(arm=0, cell=cell, bundle=bundle, source=bundle, inputs=inputs)
    installed = Installed(runtime=cell.runtime, folder=tmp_path)
    return PreparedArm(
        order=order, installed=installed, model=path, source=path, inputs=path, reference=None, scratch=tmp_path
    )


@pytest.mark.parametrize("entry", providers.PROVIDERS, ids=lambda entry: entry.short)
def test_the_order_carries_what_the_runner_has_to_know_of_a_provider(entry: providers.Provider, tmp_path: Path) -> None:
    told = Order.from_json(checks.make_runner_order(arm(tmp_path, entry.short, runtime="onnxruntime==1.31.1"), "check"))
    assert (told.memory or "") == entry.memory
    assert (told.stands_in or "") == (entry.signs.stands_in if entry.signs else "")
    assert told.provider_options == ({entry.threads_option: "3"} if entry.threads_option else {})
    assert (told.building.cache if told.building else None) == (entry.building.cache if entry.building else None)


def test_threads_that_the_matrix_sets_are_left_as_they_are(tmp_path: Path) -> None:
    asked = arm(tmp_path, "openvino", runtime="onnxruntime-openvino==1.24.1", num_of_threads="2", device_type="CPU")
    assert checks.make_runner_order(asked, "check")["provider_options"] == {"num_of_threads": "2", "device_type": "CPU"}


def test_a_plug_ins_library_is_given_the_matrixs_options_and_no_other(tmp_path: Path) -> None:
    asked = arm(tmp_path, "openvino", runtime="onnxruntime-ep-openvino==1.8.1", device_type="GPU")
    assert checks.make_runner_order(asked, "check")["provider_options"] == {"device_type": "GPU"}


def test_the_runner_names_no_provider_but_the_cpu() -> None:
    runner = Path(engine.__file__).parent
    for path in sorted(runner.glob("*.py")):
        text = path.read_text().lower()
        named = [entry.short for entry in providers.PROVIDERS if entry.name.lower() in text and entry.short != "cpu"]
        assert named == [], path.name
