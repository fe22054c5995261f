"""Pictures of every page of a running farm, for docs/screens: light and dark, wide and narrow.

bash deploy/quickstart                      # leave it up; it prints a one-time sign-in link
.venv/bin/onnxfarm watch add upgrades --model transformer --reference 1.29.0      # and wait for its alert
.venv/bin/python -m tests.acceptance.browser.screens LINK [--run N] [--only NAME,NAME] [--out docs/screens]
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, sync_playwright

from tests.acceptance.browser.chromium import CHROMIUM, SWITCHES

SIZES = {"1280": {"width": 1280, "height": 800}, "390": {"width": 390, "height": 844}}


def pages(run: int, cell: str) -> dict[str, str]:
    """Name of the picture → path of the page."""
    return {
        "run": f"/runs/{run}/",
        "cell": f"/runs/{run}/cells/{cell}/",
        # of a run whose model came with labelled data: deploy/quickstart --sample digits
        "accuracy": f"/runs/{run}/?chart=pareto#charts",
        "home": "/",
        "models": "/models/",
        "model": "/models/1/",
        "new-run": "/runs/new/?version=1",
        "runs": "/runs/",
        "fleet": "/fleet/",
        "node": "/fleet/1/",
        "compare": "/compare/",
        "settings": "/settings/",
        "alerts": "/alerts/",
        "alert": "/alerts/1/",
        "watches": "/watches/",
        "watch": "/watches/1/",
        "watch-form": "/watches/new/",
        "trends": "/trends/?by=release",
        "runtimes": "/runtimes/",
        "digest": "/alerts/digest/",
    }


def take(browser: Browser, link: str, *, wanted: dict[str, str], out: Path) -> Iterator[Path]:
    """Sign in once, then one picture of each page, theme and width."""
    parts = urlsplit(link)
    origin = f"{parts.scheme}://{parts.netloc}"
    signed_in = browser.new_context()
    page = signed_in.new_page()
    page.goto(link)
    # a link is redeemed by a button, so that a mail scanner that follows it spends nothing
    if page.locator("main form button").count():
        page.locator("main form button").first.click()
        page.wait_for_load_state()
    state = signed_in.storage_state()
    for theme in ("light", "dark"):
        for width, viewport in SIZES.items():
            context = browser.new_context(storage_state=state, color_scheme=theme, viewport=viewport)
            shown = context.new_page()
            for name, path in wanted.items():
                answer = shown.goto(origin + path, wait_until="networkidle")
                assert answer is not None
                assert answer.status == 200, f"{path} answered {answer.status}"
                target = out / f"{name}-{width}-{theme}.png"
                shown.screenshot(path=target)
                yield target
            context.close()


def main() -> None:
    """Parse the command line, take the pictures, print their names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("link", help="one-time sign-in link")
    parser.add_argument("--run", type=int, default=1)
    parser.add_argument("--cell", default="c5")
    parser.add_argument("--only", metavar="NAME,NAME", help="these pages; all of them by default")
    parser.add_argument("--out", type=Path, default=Path("docs/screens"))
    options = parser.parse_args()
    if CHROMIUM is None:
        parser.error("no Chromium on PATH: install Debian's chromium")
    known = pages(options.run, options.cell)
    names = options.only.split(",") if options.only else list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"there is no page {unknown[0]!r}: choose of {', '.join(known)}")
    wanted = {name: known[name] for name in names}
    options.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        for path in take(browser, options.link, wanted=wanted, out=options.out):
            print(path)
        browser.close()


if __name__ == "__main__":
    main()
