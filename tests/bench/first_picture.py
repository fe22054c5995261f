"""What a page costs a browser: bytes as they come over the line, how far it shifts, and when it answers on a slow one.

`python -m tests.bench.first_picture [--scale 0.05] [--seed 1] [--keep FOLDER] [--only NAME…]`

Each page of a seeded farm in headless Chromium with an empty cache, in a window of 390 × 844 as a phone has. The server
is the web process as the embedded farm starts it. Bytes are those that the browser's network counted, headers included:
of the page with its pictures, and once *Explore* has loaded Plotly. The shift is that of both together, also of what
follows a click. On a line of 400 kbit/s with 150 ms of round trip: until the heading was painted, which is the answer,
and until the first picture was. Exit 1 where a limit is passed. Each page is told on standard error as it is measured.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.acceptance.browser.chromium import SHELL, SWITCHES
from tests.bench.figure import publish
from tests.bench.pages import database
from tests.bench.seeded import farm
from tests.bench.seeded.web import sessions, web
from tests.options import read_options

PLAIN_BYTES, PICTURED_BYTES, EXPLORED_BYTES = 60_000, 110_000, 480_000
MAX_SHIFT, ANSWER_MS, PICTURE_MS = 0.05, 3000.0, 6000.0
SLOW = {"offline": False, "latency": 150, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
LIMIT_S = 60.0
# runs before any script of the page: two frames after a part is there, it is on the screen
NOTE = """
window.painted = {}; window.shifted = 0;
const look = () => {
  for (const [name, part] of [["answer", "main h1"], ["picture", ".plot"]]) {
    if (name in painted || !document.querySelector(part)) continue;
    painted[name] = 0;
    requestAnimationFrame(() => requestAnimationFrame(() => { painted[name] = performance.now(); }));
  }
  requestAnimationFrame(look);
};
look();
new PerformanceObserver((list) => {
  for (const { value } of list.getEntries()) window.shifted += value;
}).observe({ type: "layout-shift", buffered: true });
"""


class Visit:
    """A page that is opened by somebody who has nothing of the farm in the cache."""

    def __init__(self, browser: Browser, url: str, session: str, *, is_slow: bool = False) -> None:
        self.context = browser.new_context(viewport={"width": 390, "height": 844})
        self.context.add_cookies([{"name": "onnxfarm_session", "value": session, "url": url}])
        self.context.add_init_script(NOTE)
        self.page: Page = self.context.new_page()
        self.bytes = 0
        line = self.context.new_cdp_session(self.page)
        line.send("Network.enable")
        line.on("Network.loadingFinished", self._count)
        if is_slow:
            line.send("Network.emulateNetworkConditions", SLOW)

    def _count(self, told: dict[str, Any]) -> None:
        self.bytes += int(told["encodedDataLength"])

    def wait(self, claim: Callable[[], Any], what: str) -> None:
        limit = time.monotonic() + LIMIT_S
        while not claim():
            if time.monotonic() > limit:
                raise SystemExit(f"{self.page.url}: {what} did not come within {LIMIT_S:.0f} s")
            self.page.wait_for_timeout(50)


def measured(browser: Browser, url: str, session: str, path: str) -> dict[str, Any]:
    """The figures of one page, and which of them pass their limits."""
    visit = Visit(browser, url, session)
    visit.page.goto(url + path, wait_until="networkidle")
    has_picture = visit.page.locator(".plot").count() > 0
    found: dict[str, Any] = {"bytes": visit.bytes}
    if has_picture:
        visit.page.locator("[data-explore]").first.evaluate("(button) => button.click()")
        visit.wait(lambda: visit.page.locator(".chart.ready").count(), "Plotly")
        visit.page.wait_for_timeout(500)
        found["explored_bytes"] = visit.bytes
    found["shift"] = round(visit.page.evaluate("window.shifted"), 4)
    visit.context.close()
    slow = Visit(browser, url, session, is_slow=True)
    slow.page.goto(url + path, wait_until="load", timeout=1000 * LIMIT_S)
    wanted = ("answer", "picture") if has_picture else ("answer",)
    for name in wanted:
        slow.wait(lambda name=name: slow.page.evaluate(f"window.painted.{name}"), name)
        found[f"{name}_ms"] = round(slow.page.evaluate(f"window.painted.{name}"))
    slow.context.close()
    limits = {
        "bytes": PICTURED_BYTES if has_picture else PLAIN_BYTES,
        "explored_bytes": EXPLORED_BYTES,
        "shift": MAX_SHIFT,
        "answer_ms": ANSWER_MS,
        "picture_ms": PICTURE_MS,
    }
    return {**found, "missed": [name for name, limit in limits.items() if found.get(name, 0) > limit]}


def main() -> int:
    words = read_options(__doc__, scale=0.05, seed=1, keep=str, only=str)
    if SHELL is None:
        sys.stderr.write("skipped: there is no Chromium here; install Debian's package chromium.\n")
        return 77
    words.postgres = False
    with database(words) as (home, _):
        seeded = farm.kept(home, scale=words.scale, number=words.seed)
        figures = _measure(home, seeded, words.only or "")
    missed = {name: found["missed"] for name, found in figures.items() if found["missed"]}
    publish(claim="what a page costs a browser", seed=words.seed, figures={"pages": figures, "missed": missed})
    return 1 if missed else 0


def _measure(home: Path, seeded: dict[str, Any], only: str) -> dict[str, Any]:
    from django.db import connections

    from tests.bench.pages import pages_of

    paths = {page.name: page.addresses[0] for page in pages_of(seeded) if only in page.name}
    (session,) = sessions(seeded["reader"], 1)
    connections.close_all()
    found: dict[str, Any] = {}
    with web(home) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=SHELL, args=SWITCHES)
        for name, path in paths.items():
            # what the server makes once for all readers is made before
            Visit(browser, server.url, session).page.goto(server.url + path)
            found[name] = measured(browser, server.url, session, path)
            print(f"{name}: {json.dumps(found[name])}", file=sys.stderr, flush=True)
        browser.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
