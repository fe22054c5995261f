"""How long it takes from opening a link on a phone's screen (390 px) to the first verdict of a browser that measures.

    python -m tests.bench.tab_journey [--pictures docs/screens]

A farm of its own, without a node; a headless Chromium opens the link of *Add a node*, joins, is approved by its
fingerprint, proves what it can do and measures two releases of ONNX Runtime Web (budget quick) to a verdict. Seconds
count from the opening of the link; the farm fetches each release from npm once, on first use.
"""

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.acceptance.browser.chromium import CHROMIUM, SWITCHES
from tests.acceptance.browser.tabs import PHONE, WAIT_MS, finished, opened
from tests.acceptance.conftest import LiveFarm, accepted, live_farm
from tests.bench import figure
from tests.options import read_options

MODELS = Path(__file__).resolve().parents[1] / "models"
RELEASES = ["onnxruntime-web==1.29.0", "onnxruntime-web==1.30.0"]
MATRIX = {"matrix": {"runtime": RELEASES, "provider": ["wasm"], "threads": [1]}, "budget": "quick"}
PNGQUANT = shutil.which("pngquant")


class Journey:
    """Steps with the seconds after which each was reached, and a picture of each."""

    def __init__(self, pictures: Path | None) -> None:
        self.pictures = pictures
        self.began = time.monotonic()
        self.seconds: dict[str, float] = {}

    def reached(self, step: str, page: Page) -> None:
        self.seconds[step] = round(time.monotonic() - self.began, 1)
        print(f"{self.seconds[step]:6.1f} s  {step}", flush=True)
        if self.pictures is None:
            return
        path = self.pictures / f"tab-{step}-390-light.png"
        page.screenshot(path=path)
        if PNGQUANT:
            subprocess.run([PNGQUANT, "--force", "--ext", ".png", "--nofs", "128", str(path)], check=True, timeout=60)


def walk(farm: LiveFarm, page: Page, journey: Journey) -> dict[str, object]:
    """The whole way; what came out."""
    journey.reached("opened", page)
    page.get_by_label("Name of this device").fill("phone")
    page.get_by_role("button", name="Join").click()
    page.wait_for_selector("body[data-state=pending]")
    journey.reached("waiting", page)
    (node,) = farm.api("GET", "/nodes").json()
    if page.inner_text("#fingerprint") != node["fingerprint"]:
        raise SystemExit("The page shows another fingerprint than the farm.")
    accepted(farm.api("POST", f"/nodes/{node['id']}/approve"))
    page.wait_for_selector("body[data-state=ready]")
    journey.reached("ready", page)
    run = farm.start_run(MODELS / "cnn_dyn.onnx", MATRIX)
    expect(page.locator("#doing")).to_have_text(re.compile("^round 2"), timeout=WAIT_MS)
    journey.reached("measuring", page)
    document = finished(farm, page, run)
    page.goto(farm.sign_in_link())
    page.locator("main form button").click()
    page.goto(f"{farm.url}/runs/{run}")
    journey.reached("verdict", page)
    [compared] = [one for one in document["comparisons"] if one["axis"] == "runtime"]
    return {key: compared[key] for key in ("verdict", "ratio", "rounds")}


def main() -> None:
    words = read_options(__doc__, pictures=(Path, "a folder for a picture of each step"))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for farm in live_farm(Path(folder) / "home", with_node=False):
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
            context = browser.new_context(viewport=PHONE)
            code = accepted(farm.api("POST", "/nodes/invitations", json={}))["code"]
            journey = Journey(words.pictures)
            came_out = walk(farm, opened(farm, context, code), journey)
            name = f"Chromium {browser.version}"
            browser.close()
    figure.publish(
        claim=__doc__.splitlines()[0], seed=0, figures={"browser": name, "seconds": journey.seconds, **came_out}
    )


if __name__ == "__main__":
    main()
