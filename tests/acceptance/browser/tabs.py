"""A browser that joins a farm as a node, and is waited for: what the stories about such nodes share."""

from typing import Any

from playwright.sync_api import BrowserContext, Page, ViewportSize

from tests.acceptance.conftest import LiveFarm, accepted

PHONE: ViewportSize = {"width": 390, "height": 844}
WAIT_MS = 300_000
# a busy machine takes three minutes for what a quiet one does in one
MEASURED_MS = 900_000


def joined(farm: LiveFarm, context: BrowserContext, *, name: str = "phone") -> Page:
    """A page that has joined by its link, was approved by its fingerprint, and has proven what it can do."""
    code = accepted(farm.api("POST", "/nodes/invitations", json={}))["code"]
    page = opened(farm, context, code)
    page.get_by_label("Name of this device").fill(name)
    page.get_by_role("button", name="Join").click()
    page.wait_for_selector("body[data-state=pending]")
    (node,) = [one for one in farm.api("GET", "/nodes").json() if one["name"] == name]
    assert page.inner_text("#fingerprint") == node["fingerprint"]
    accepted(farm.api("POST", f"/nodes/{node['id']}/approve"))
    page.wait_for_selector("body[data-state=ready]")
    return page


def opened(farm: LiveFarm, context: BrowserContext, code: str = "") -> Page:
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(f"{farm.plan.nodes_url}/api/node/v1/tab/index.html#{code}")
    return page


def finished(farm: LiveFarm, page: Page, run: str) -> dict[str, Any]:
    """The document of a run; the page has to go on meanwhile. What does not end says where the run and the page are."""
    for _ in range(MEASURED_MS // 500):
        if farm.api("GET", f"/runs/{run}").json()["state"] == "finished":
            return farm.document_of(run, within_s=1)
        page.wait_for_timeout(500)
    events = farm.api("GET", f"/runs/{run}/events").text
    raise AssertionError(f"Run {run} did not finish. The page: {page.inner_text('body')}\nThe run: {events}")
