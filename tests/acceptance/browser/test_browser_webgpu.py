"""WebGPU in a browser that is a node, on the software adapter: `bash deploy/test --long browser-webgpu`.

SwiftShader is the processor in a GPU's place: placement and outputs are real, latencies say nothing of any GPU.
"""

import pytest
from playwright.sync_api import Browser

from tests.acceptance.browser.chromium import CHROMIUM, SWITCHES
from tests.acceptance.browser.tabs import PHONE, finished, joined
from tests.acceptance.conftest import LiveFarm
from tests.conftest import MODELS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1200)]
SWIFTSHADER = [
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    # no Chromium of Debian computes by WebNN: with its flag it says so
    "--enable-features=Vulkan,WebMachineLearningNeuralNetwork",
    "--enable-unsafe-swiftshader",
]
RELEASES = ("onnxruntime-web==1.29.0", "onnxruntime-web==1.30.0")
MATRIX = {
    "matrix": {"runtime": list(RELEASES), "provider": ["webgpu", "webnn"], "hardware": ["webgpu-simulated"]},
    "budget": "quick",
}


def test_webgpu_on_a_software_adapter_is_proven_marked_and_compared_with_nothing(farm: LiveFarm, browser: Browser):
    switches = [one for one in SWITCHES if one != "--disable-gpu"] + SWIFTSHADER
    own = browser.browser_type.launch(executable_path=CHROMIUM, args=switches)
    page = joined(farm, own.new_context(viewport=PHONE), name="softgpu")
    (node,) = [one for one in farm.api("GET", "/nodes").json() if one["name"] == "softgpu"]
    assert {"wasm", "webgpu-simulated"} <= {*node["tags"]}
    assert "webgpu" not in node["tags"]
    assert "webnn" not in node["tags"]
    assert "WebNN is not claimed: Failed to execute 'createContext'" in node["self_test"]["sentence"]
    run = farm.start_run(MODELS / "relu_op13_ir7.onnx", MATRIX)
    document = finished(farm, page, run)
    own.close()
    refused = [cell for cell in document["cells"] if cell["provider"] == "WebNNExecutionProvider"]
    assert {cell["status"] for cell in refused} == {"refused"}
    said = "No node with the hardware 'webgpu-simulated' runs WebNNExecutionProvider on onnxruntime-web"
    assert all(cell["reason"]["text"].startswith(said) for cell in refused), refused
    cells = [cell for cell in document["cells"] if cell["twin_of"] is None and cell not in refused]
    assert {cell["runtime"] for cell in cells} == set(RELEASES)
    for cell in cells:
        assert (cell["status"], cell["reason"]) == ("done", None)
        assert cell["simulated"]
        assert cell["parity"]["verdict"] == "pass"
        assert "WebGpuExecutionProvider" in {one["name"] for one in cell["providers"]}
        assert cell["provider_facts"]["adapter"] == "google swiftshader (software)"
    assert document["comparisons"]
    for compared in document["comparisons"]:
        assert compared["verdict"] == "not comparable"
        assert "its latencies are not those of the hardware" in compared["reason"]
