"""A browser as a node, from its link to a verdict, on releases of npm: `bash deploy/test --long browser-node`.

The farm fetches the releases from the registry that ONNXFARM_NPM_REGISTRY names. A page that is closed in the middle
of a block gives it back, and it is measured again.
"""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.acceptance.conftest import LiveFarm, accepted
from tests.conftest import MODELS
from tests.processes import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1200)]
PHONE = {"width": 390, "height": 844}
RELEASES = ("onnxruntime-web==1.29.0", "onnxruntime-web==1.30.0")
MATRIX = {"matrix": {"runtime": list(RELEASES), "provider": ["wasm"]}, "budget": "standard"}
WAIT_MS = 300_000


def joined(farm: LiveFarm, context: BrowserContext) -> Page:
    """A page that has joined by its link, was approved by its fingerprint, and has proven what it can do."""
    code = accepted(farm.api("POST", "/nodes/invitations", json={}))["code"]
    page = opened(farm, context, code)
    page.get_by_label("Name of this device").fill("phone")
    page.get_by_role("button", name="Join").click()
    page.wait_for_selector("body[data-state=pending]")
    (node,) = [one for one in farm.api("GET", "/nodes").json() if one["name"] == "phone"]
    assert page.inner_text("#fingerprint") == node["fingerprint"]
    accepted(farm.api("POST", f"/nodes/{node['id']}/approve"))
    page.wait_for_selector("body[data-state=ready]")
    return page


def opened(farm: LiveFarm, context: BrowserContext, code: str = "") -> Page:
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(f"{farm.plan.told_to_nodes}/api/node/v1/tab/index.html#{code}")
    return page


def finished(farm: LiveFarm, page: Page, run: str) -> dict[str, Any]:
    """The document of a run; the page has to go on meanwhile."""
    for _ in range(WAIT_MS // 500):
        if farm.api("GET", f"/runs/{run}").json()["state"] == "finished":
            break
        page.wait_for_timeout(500)
    return farm.document_of(run, within_s=1)


def test_a_browser_measures_two_releases_to_a_verdict_also_when_it_is_closed_in_between(
    farm: LiveFarm, browser: Browser
) -> None:
    context = browser.new_context(viewport=PHONE)  # type: ignore[arg-type]
    page = joined(farm, context)
    run = farm.start_run(MODELS / "cnn_dyn.onnx", MATRIX)
    # not wait_for_function: the page's content security policy forbids it to evaluate a string
    expect(page.locator("#doing")).to_have_text(re.compile("^round 2"), timeout=WAIT_MS)
    page.close(run_before_unload=True)
    wait_for(lambda: "goes back" in farm.api("GET", f"/runs/{run}/events").text, what="the block", seconds=60)
    page = opened(farm, context)
    document = finished(farm, page, run)
    context.close()
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
