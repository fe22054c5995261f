"""Pictures of the pages of a running farm, for docs/screens: wide and light, narrow and dark.

.venv/bin/python -m tests.acceptance.browser.filled FOLDER      # leave it up; it prints one-time sign-in links
.venv/bin/python -m tests.acceptance.browser.screens LINK [--run N] [--cell CELL] [--only NAME,NAME] [--out FOLDER]
      [--looks 1366-light,390-dark]

Without --only the pages of DOCS; `--only all` for every page.
Numbers of models, watches, alerts, channels and variants are found on the farm's own lists; a page that the farm has
nothing for is left out, and named: `live` while no run is being measured. The pictures of shared pages are made through
share links of a day, closed after it. With `pngquant` on PATH (Debian's package) pictures are kept with 128 colours,
which is a third of their size. `--scenario load=4` makes `scenario-load` of run 4, for docs/scenarios.md.
"""

import argparse
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.acceptance.browser.chromium import CHROMIUM, SWITCHES

PNGQUANT = shutil.which("pngquant")
# the farm measures on the same cores
PATIENCE_MS = 120_000
SIZES = {"1366": {"width": 1366, "height": 768}, "390": {"width": 390, "height": 844}}
LOOKS = "1366-light,390-dark"
DOCS = (
    "home,models,model,new-run,run,cell,trace,graph,accuracy,operators,compare,alerts,alert,trends,fleet,node,hardware,"
    "shared-run"
)
# name of the picture → the page on which a link to it stands, and where
FOUND = {
    "model": ("/models/", "#models tbody th a"),
    "variant": ("/runs/?state=complete", "#runs tbody th a >> #cells-table tbody th a >> main a[href^='/variants/']"),
    "hardware": ("/models/", "#models tbody th a >> main a[href$='/hardware/']"),
    "live": ("/runs/?state=running&reason=every", "#runs tbody tr:has-text('measuring') th a"),
    "node": ("/fleet/", "#nodes tbody th a"),
    "team": ("/settings/teams/", "main a[href^='/settings/teams/']"),
    "alert": ("/alerts/?state=all", "#alert tbody th a"),
    "watch": ("/watches/", "main .line-link"),
    "channel": ("/settings/channels/", "#channel-list tbody th a"),
}
# what stands on the page after this button was pressed
PRESSED = {"add-node": "button:has-text('Add a node')"}
SHARED = {"shared-run": "run", "shared-cell": "cell", "shared-model": "model", "shared-compare": "compare",
          "shared-hardware": "hardware"}  # fmt: skip


def pages(run: int, cell: str) -> dict[str, str]:
    """Name of the picture → path of the page; empty for one that is looked for."""
    compared = f"/compare/?cells={run}:c1&cells={run}:{cell}"
    return {
        "run": f"/runs/{run}/",
        "cell": f"/runs/{run}/cells/{cell}/",
        "graph": f"/models/versions/1/graph/?cell={run}:{cell}",
        "trace": f"/runs/{run}/cells/{cell}/?view=trace",
        "home": "/",
        "models": "/models/",
        "upload": "/models/upload/",
        "new-run": "/runs/new/?version=1",
        "runs": "/runs/",
        "fleet": "/fleet/",
        "add-node": "/fleet/",
        "compare": compared,
        "compare-runs": "",
        "accuracy": "",
        "operators": f"/runs/{run}/?chart=operators",
        "settings": "/settings/",
        "tokens": "/settings/tokens/",
        "channels": "/settings/channels/",
        "shares": "/settings/shares/",
        "audit": "/settings/audit/",
        "alerts": "/alerts/",
        "watches": "/watches/",
        "watch-form": "/watches/new/",
        "trends": "/trends/?by=release",
        "runtimes": "/fleet/runtimes/",
        "release": "/releases/onnxruntime/1.32.0/",
        "digest": "/alerts/?state=all&days=7",
        "search": "/search/?q=t",
        "docs": "/docs/",
        "document": "/docs/operations",
        "docs-search": "/docs/?q=noise+floor",
        "sign-in": "/sign-in/",
        "not-found": "/nowhere/",
        **dict.fromkeys(FOUND, ""),
        **dict.fromkeys(SHARED, ""),
    }


def signed_in(browser: Browser, link: str) -> Page:
    """A page of the farm, signed in. A link is redeemed by a button, so that a mail scanner spends nothing."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(link)
    page.locator("main form button").first.click()
    page.wait_for_load_state()
    return page


def found(page: Page, origin: str, name: str) -> str:
    """The path of the first thing of its sort on the farm; empty where there is none."""
    if name == "compare-runs":
        return two_runs(page, origin)
    if name == "accuracy":
        # of a run whose model came with labelled data
        page.goto(f"{origin}/runs/?state=complete&q=digits")
        # the first of them, which measured several precisions
        link = page.locator("#runs tbody th a").last
        return f"{link.get_attribute('href')}?chart=pareto" if link.count() else ""
    start, selectors = FOUND[name]
    path = start
    for selector in selectors.split(" >> "):
        page.goto(origin + path)
        link = page.locator(selector).first
        if not link.count():
            return ""
        path = str(link.get_attribute("href"))
    return path


def two_runs(page: Page, origin: str) -> str:
    """The two newest finished runs of the model that has most of them, the older as the base."""
    page.goto(f"{origin}/runs/?state=complete")
    by_model: dict[str, list[str]] = {}
    for row in page.locator("#runs tbody tr").all():
        model = row.locator("td").first.inner_text()
        by_model.setdefault(model, []).append(str(row.locator("th").get_attribute("data-value")))
    runs = max(by_model.values(), key=len, default=[])[:2]
    return "/compare/?" + "&".join(f"runs={one}" for one in reversed(runs)) if len(runs) == 2 else ""


@contextmanager
def shared(page: Page, origin: str, known: dict[str, str], wanted: list[str]) -> Iterator[dict[str, str]]:
    """Share links to the named pages, made by their buttons and closed at the end."""
    made = {}
    for name in wanted:
        source = known[SHARED[name]] or found(page, origin, SHARED[name])
        page.goto(origin + source)
        page.click(".share summary")
        page.select_option(".share select", "1")
        page.click(".share button")
        made[name] = urlsplit(page.locator(".note.good code").first.inner_text()).path
    try:
        yield made
    finally:
        for _ in made:
            page.goto(f"{origin}/settings/shares/")
            page.locator("#shares form button").first.click()


def take(
    browser: Browser, link: str, *, wanted: dict[str, str], looks: list[str], out: Path, known: dict[str, str]
) -> Iterator[str]:
    """Sign in once, then one picture of each page and look; yields names of files, and of pages that are not there."""
    parts = urlsplit(link)
    origin = f"{parts.scheme}://{parts.netloc}"
    page = signed_in(browser, link)
    looked = {name: path or found(page, origin, name) for name, path in wanted.items() if name not in SHARED}
    yield from (f"{name}: left out, the farm has none" for name, path in looked.items() if not path)
    with shared(page, origin, known, [name for name in wanted if name in SHARED]) as links:
        there = {**{name: path for name, path in looked.items() if path}, **links}
        # last, as who is signed in is led on from there
        there |= {"sign-in": there.pop("sign-in")} if "sign-in" in there else {}
        state = page.context.storage_state()
        for width, theme in (look.split("-") for look in looks):
            context = browser.new_context(
                storage_state=state, viewport=SIZES[width], color_scheme=theme, reduced_motion="reduce"
            )
            context.set_default_timeout(PATIENCE_MS)
            for name, path in there.items():
                target = out / f"{name}-{width}-{theme}.png"
                take_picture(context.new_page(), origin + path, name=name, target=target)
                yield str(target)
            context.close()


def take_picture(page: Page, url: str, *, name: str, target: Path) -> None:
    """Load the page, wait until it is drawn, keep its picture, and close it."""
    if name == "sign-in":
        page.context.clear_cookies()
    answer = page.goto(url, wait_until="load")
    assert answer is not None
    assert answer.status == (404 if name == "not-found" else 200), f"{url} answered {answer.status}"
    if name in PRESSED:
        page.locator(PRESSED[name]).first.click()
        page.wait_for_load_state()
    if page.locator("#graph-says").count():
        expect(page.locator("#graph-says")).to_be_hidden(timeout=PATIENCE_MS)
    page.screenshot(path=target, animations="disabled")
    squeeze(target)
    page.close()


def squeeze(picture: Path) -> None:
    """The same picture with 128 colours, where pngquant is there."""
    if PNGQUANT is not None:
        subprocess.run([PNGQUANT, "--force", "--ext", ".png", "--nofs", "128", str(picture)], check=True, timeout=60)


def main() -> None:
    """Parse the command line, take the pictures, print their names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("link", help="one-time sign-in link")
    parser.add_argument("--run", type=int, default=1)
    parser.add_argument("--cell", default="c5")
    parser.add_argument("--scenario", action="append", default=[], metavar="NAME=RUN", help="a run's chart; repeat")
    parser.add_argument("--only", metavar="NAME,NAME", default=DOCS, help="these pages; `all` for every page")
    parser.add_argument("--looks", metavar="WIDTH-THEME,…", default=LOOKS)
    parser.add_argument("--out", type=Path, default=Path("docs/screens"))
    options = parser.parse_args()
    if CHROMIUM is None:
        parser.error("no Chromium on PATH: install Debian's chromium")
    known = pages(options.run, options.cell)
    known |= {
        f"scenario-{name}": f"/runs/{run}/#charts" for name, _, run in (one.partition("=") for one in options.scenario)
    }
    names = list(known) if options.only == "all" else options.only.split(",")
    if unknown := [name for name in names if name not in known]:
        parser.error(f"there is no page {unknown[0]!r}: choose of {', '.join(known)}")
    wanted = {name: known[name] for name in names}
    options.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        looks = options.looks.split(",")
        for line in take(browser, options.link, wanted=wanted, looks=looks, out=options.out, known=known):
            print(line, flush=True)
        browser.close()


if __name__ == "__main__":
    main()
