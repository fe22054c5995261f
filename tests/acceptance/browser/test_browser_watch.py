"""A watch on ONNX Runtime Web, from a release on a registry to its alert: `bash deploy/test --long browser-watch`.

The registry is this test's own. It has one release of npm, and then one whose WebAssembly is the same and whose wrapper
waits: nobody orders anything between its appearance and the alert, and a browser measures both.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.acceptance.browser.tabs import PHONE, WAIT_MS, joined
from tests.acceptance.conftest import LiveFarm, accepted, live_farm
from tests.acceptance.npm_registry import NpmRegistry, from_npm, packed, slowed
from tests.conftest import MODELS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]
WAS, NEXT = "1.30.0", "1.30.1"
BUILD = "1.31.0-dev.20260914-8d85527a0"
NPM = os.environ.get("ONNXFARM_NPM_REGISTRY", "https://registry.npmjs.org")
# of an inference that takes some 5 ms
WAIT = 5.0


@pytest.fixture
def registry() -> Iterator[NpmRegistry]:
    with NpmRegistry() as registry:
        yield registry


@pytest.fixture
def watched(registry: NpmRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveFarm]:
    """A farm without a node of its own, which asks that registry every two seconds."""
    monkeypatch.setenv("ONNXFARM_NPM_REGISTRY", registry.url)
    monkeypatch.setenv("ONNXFARM_INDEX_POLL_S", "2")
    monkeypatch.setenv("ONNXFARM_HOST_LOCK", str(tmp_path / "lock"))
    yield from live_farm(tmp_path / "home", with_node=False)


def test_a_watch_hears_of_a_release_on_npm_measures_it_in_a_browser_and_alerts_on_a_wrapper_that_waits(
    watched: LiveFarm, registry: NpmRegistry, browser: Browser, tmp_path: Path
) -> None:
    files = from_npm(WAS, registry=NPM, folder=tmp_path)
    registry.offer(WAS, packed(files))
    page = joined(watched, browser.new_context(viewport=PHONE))
    with (MODELS / "cnn_dyn.onnx").open("rb") as file:
        accepted(watched.api("POST", "/uploads", files={"files": ("cnn_dyn.onnx", file)}))
    order = {
        "name": "browsers",
        "models": ["cnn_dyn"],
        "distribution": "onnxruntime-web",
        "reference": WAS,
        "matrix": {"matrix": {"provider": ["wasm"], "threads": [1]}, "budget": "quick"},
    }
    watch = accepted(watched.api("POST", "/watches", json=order))["id"]
    looks = registry.looks
    # a dated build is no release to this watch, and the reference itself is none that appeared
    registry.offer(BUILD, registry.packed[WAS])
    for _ in range(WAIT_MS // 1000):
        if registry.looks >= looks + 3:
            break
        page.wait_for_timeout(1000)
    assert registry.looks >= looks + 3
    assert watched.api("GET", f"/watches/{watch}/rounds").json() == []
    registry.offer(NEXT, packed(slowed(files, was=WAS, version=NEXT, wait_ms=WAIT)))
    rounds = []
    for _ in range(3 * WAIT_MS // 1000):
        rounds = watched.api("GET", f"/watches/{watch}/rounds").json()
        if rounds and rounds[0]["state"] == "judged":
            break
        page.wait_for_timeout(1000)
    (judged,) = rounds
    assert (judged["old"], judged["new"], judged["outcome"]) == (WAS, NEXT, "alert"), judged
    (alert,) = watched.api("GET", f"/alerts?list=all&watch={watch}").json()
    assert alert["release"] == f"onnxruntime-web=={NEXT}", alert
    assert "slower" in alert["sentence"], alert
