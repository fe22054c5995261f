"""A plug-in's provider on real runtimes in the real sandbox."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from farm.contract.blocks import ArmOrder
from farm.contract.cells import Budget, Recipe, SessionSettings
from farm.contract.reasons import ReasonCode
from farm.contract.reports import CheckReport, EnginesReport, TraceReport
from farm.workshop import orders
from tests.integration.worker.making import MODELS, Workbench, checks, end, of_kind, traces

WEBGPU = "onnxruntime-ep-webgpu==0.4.0"
SWITCH = "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"
INPUTS = MODELS / "cnn_fixed_b1.inputs.npz"
ADAPTERS = sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))

pytestmark = pytest.mark.slow


def test_a_plug_ins_runtime_measures_on_the_cpu_too_and_says_what_is_beside_it(bench: Workbench) -> None:
    arm = bench.arm(0, MODELS / "if_loop.onnx", runtime=WEBGPU)
    found = checks(bench.execute_until([arm], CheckReport))[0]
    assert found.reason is None
    assert found.active_providers == ("CPUExecutionProvider",)
    assert found.packages["onnxruntime"] == "1.31.1"
    assert found.packages["onnxruntime-ep-webgpu"] == "0.4.0"
    assert found.provider_facts == {}
    assert not found.is_simulated


def test_a_plug_in_without_such_a_device_measures_nothing_and_says_so(bench: Workbench) -> None:
    options = {"device_type": "NPU"}
    arm = bench.arm(
        0, MODELS / "if_loop.onnx", runtime=WEBGPU, provider="WebGpuExecutionProvider", provider_options=options
    )
    found = checks(bench.execute_until([arm], CheckReport))[0]
    assert found.reason.code == ReasonCode.PROVIDER_NOT_ACTIVE
    assert "The plug-in of WebGpuExecutionProvider lists no NPU device on this machine" in found.reason.text


@pytest.mark.skipif(not ADAPTERS, reason="no software adapter: mesa-vulkan-drivers ≥ 25 is not installed here")
def test_webgpu_on_the_software_adapter_shows_its_placement_and_copies(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "1")
    arm = bench.arm(0, MODELS / "if_loop.onnx", runtime=WEBGPU, provider="WebGpuExecutionProvider")
    reports = bench.execute_until([arm], TraceReport)
    check, trace = checks(reports)[0], traces(reports)[0]
    assert check.reason is None, check.reason
    assert check.active_providers[0] == "WebGpuExecutionProvider"
    assert check.provider_facts["plug-in version"] == "0.4.0"
    if check.provider_facts["device"].startswith("CPU"):
        assert check.provider_facts["adapter"].startswith("software")
    assert all(output.violations == 0 for output in check.outputs)
    assert {share.name for share in trace.providers} == {"WebGpuExecutionProvider", "CPUExecutionProvider"}
    assert trace.copies_to_host > 0


def test_a_plug_in_that_takes_its_name_from_its_registration_is_active(bench: Workbench) -> None:
    # Qualcomm's wheel for x86-64 brings the simulator of its accelerator
    arm = bench.arm(
        0,
        MODELS / "qdq_bias.onnx",
        runtime="onnxruntime-qnn==2.7.0",
        provider="QNNExecutionProvider",
        provider_options={"backend_type": "htp"},
    )
    found = checks(bench.execute_until([arm], CheckReport))[0]
    assert found.reason is None, found.reason
    assert found.active_providers[0] == "QNNExecutionProvider"
    assert found.provider_facts["device"].startswith("CPU")
    assert found.is_simulated


def test_what_the_simulator_compiled_is_kept_and_runs_again_without_being_compiled(bench: Workbench, tmp_path: Path):
    half, compiled = tmp_path / "half", tmp_path / "compiled" / "net_ctx.onnx"
    half.mkdir()
    compiled.parent.mkdir()
    given = tmp_path / "given"
    given.mkdir()
    shutil.copy(MODELS / "cnn_fixed_b1.onnx", given)
    made = orders.make_variant(given, "cnn_fixed_b1.onnx", recipe=Recipe(precision="fp16"), out_dir=half)
    bench.environment = replace(bench.environment, store_compiled=lambda arm, model: str(shutil.copy(model, compiled)))
    plain = on_qnn(bench, 0, half / made.main)
    on_cpu = bench.arm(1, half / made.main, inputs=INPUTS, runtime="onnxruntime-qnn==2.7.0")
    assert end(bench.execute([plain, on_cpu], budget=Budget.GLANCE)).reason is None
    found = orders.inspect(compiled.parent, compiled.name)
    assert found.ok, found.problem
    assert (found.compiled.by, found.compiled.problem) == (("QNNExecutionProvider",), "")
    assert found.compiled.sdk
    # taken in again it runs as it is and gives what it gave before; nothing is left of it to keep
    bench.environment = replace(bench.environment, store_compiled=lambda arm, model: kept.append(arm))
    kept: list[int] = []
    reports = bench.execute([plain, on_qnn(bench, 1, compiled)], budget=Budget.GLANCE)
    assert [check.reason for check in checks(reports).values()] == [None, None]
    assert checks(reports)[1].active_providers[0] == "QNNExecutionProvider"
    (beside,) = of_kind(reports, EnginesReport)
    (pair,) = beside.pairs
    assert sum(output.violations for output in pair.outputs) == 0
    assert kept == [0]


def on_qnn(bench: Workbench, number: int, model: Path) -> ArmOrder:
    return bench.arm(
        number,
        model,
        inputs=INPUTS,
        runtime="onnxruntime-qnn==2.7.0",
        provider="QNNExecutionProvider",
        provider_options={"backend_type": "htp"},
    )


def test_by_a_policy_onnx_runtime_chooses_and_a_release_without_policies_says_so(bench: Workbench) -> None:
    session = SessionSettings(policy="prefer-npu")
    runtimes = ("onnxruntime==1.31.1", "onnxruntime==1.21.1")
    arms = [
        bench.arm(number, MODELS / "cnn_fixed_b1.onnx", runtime=runtime, session=session)
        for number, runtime in enumerate(runtimes)
    ]
    reports = bench.execute_until(arms, TraceReport)
    chosen, refused = checks(reports)[0], checks(reports)[1]
    assert (chosen.reason, chosen.active_providers) == (None, ("CPUExecutionProvider",))
    assert {share.name for share in traces(reports)[0].providers} == {"CPUExecutionProvider"}
    assert refused.reason.code == ReasonCode.NOT_SUPPORTED
    assert refused.reason.text.startswith("ONNX Runtime 1.21.1 does not choose a device by a policy: take 1.23.0")


def test_nothing_is_said_of_engines_where_nothing_is_compiled(bench: Workbench) -> None:
    arm = bench.arm(0, MODELS / "cnn_fixed_b1.onnx")
    found = checks(bench.execute_until([arm], CheckReport))[0]
    assert (found.cached_session_ms, found.engine_bytes) == (None, None)
