"""A plug-in of other people, from the package index, in the real sandbox."""

from dataclasses import replace
from pathlib import Path

import pytest

from farm.contract.reasons import ReasonCode
from farm.contract.reports import CheckReport, TraceReport
from farm.rules.cells.readers import read_runtime
from tests.integration.worker.making import MODELS, Workbench, checks, runtime_store, traces
from worker.agent.installation.runtimes import RuntimeStore, RuntimeUnavailableError

PACKAGE = "onnxruntime-ggml"
GGML = str(read_runtime(f"{PACKAGE}==0.2.0", allowed={PACKAGE}))

pytestmark = pytest.mark.slow


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    found = Workbench(tmp_path)
    allowing = RuntimeStore(runtime_store().folder, allowed={PACKAGE})
    found.environment = replace(found.environment, runtimes=allowing)
    return found


def test_a_plug_in_of_other_people_runs_an_lstm_wholly_beside_the_newest_runtime_it_takes(bench: Workbench) -> None:
    arm = bench.arm(0, MODELS / "lstm.onnx", runtime=GGML, provider="ggml")
    reports = bench.execute_until([arm], TraceReport)
    check, trace = checks(reports)[0], traces(reports)[0]
    assert check.reason is None, check.reason
    assert check.active_providers[0] == "ggml"
    assert (check.packages[PACKAGE], check.packages["onnxruntime"]) == ("0.2.0", "1.30.0")
    assert check.provider_facts["plug-in version"] == "0.2.0"
    assert {share.name for share in trace.providers} == {"ggml"}


def test_a_plug_in_whose_owner_did_not_allow_it_is_not_installed(tmp_path: Path) -> None:
    store = RuntimeStore(tmp_path / "runtimes")
    with pytest.raises(RuntimeUnavailableError) as raised:
        store.provide(read_runtime(GGML, allowed={PACKAGE}))
    assert raised.value.reason.code == ReasonCode.UNKNOWN_RUNTIME
    assert "--allow-package" in raised.value.reason.text
    assert not store.folder.exists()


def test_a_plug_in_without_such_a_device_says_so(bench: Workbench) -> None:
    arm = bench.arm(0, MODELS / "lstm.onnx", runtime=GGML, provider="ggml", provider_options={"device_type": "NPU"})
    found = checks(bench.execute_until([arm], CheckReport))[0]
    assert found.reason.text.startswith("The plug-in of ggml lists no NPU device on this machine; it lists CPU")
