"""A browser as a node, from its link to a verdict, on releases of npm: `bash deploy/test --long browser-node`.

The farm fetches the releases from the registry that ONNXFARM_NPM_REGISTRY names. A page that is closed in the middle
of a block gives it back, and it is measured again.
"""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.acceptance.browser.tabs import PHONE, WAIT_MS, finished, joined, opened
from tests.acceptance.conftest import LiveFarm
from tests.conftest import MODELS
from tests.processes import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1200)]
RELEASES = ("onnxruntime-web==1.29.0", "onnxruntime-web==1.30.0")
MATRIX = {"matrix": {"runtime": list(RELEASES), "provider": ["wasm"]}, "budget": "standard"}


def test_a_browser_measures_two_releases_to_a_verdict_also_when_it_is_closed_in_between(
    farm: LiveFarm, browser: Browser
) -> None:
    context = browser.new_context(viewport=PHONE)
    asked: set[str] = set()
    context.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
    page = joined(farm, context)
    run = farm.start_run(MODELS / "cnn_dyn.onnx", MATRIX)
    # not wait_for_function: the page's content security policy forbids it to evaluate a string
    expect(page.locator("#doing")).to_have_text(re.compile("^round 2"), timeout=WAIT_MS)
    page.close(run_before_unload=True)
    wait_for(lambda: "goes back" in farm.api("GET", f"/runs/{run}/events").text, what="the block", seconds=60)
    page = opened(farm, context)
    document = finished(farm, page, run)
    context.close()
    # what is not of the farm's own address is a blob of the page's own
    assert asked - {""} == {urlsplit(farm.plan.nodes_url).netloc}
    cells = {cell["runtime"]: cell for cell in document["cells"] if cell["twin_of"] is None}
    assert set(cells) == set(RELEASES)
    for cell in cells.values():
        assert (cell["status"], cell["reason"]) == ("done", None)
        assert cell["active_providers"] == ["WasmExecutionProvider"]
        assert cell["parity"]["verdict"] == "pass"
        assert {one["name"] for one in cell["providers"]} == {"WasmExecutionProvider"}
        assert cell["provider_facts"]["isolated"] == "yes"
    (compared,) = [one for one in document["comparisons"] if one["axis"] == "runtime"]
    assert compared["verdict"] in ("slower", "faster", "equal", "undecided")
    assert compared["rounds"] >= 2
    assert compared["ratio"] > 0
