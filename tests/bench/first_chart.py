"""How long until the first chart of a page is painted in headless Chromium, on a seeded farm.

`python -m tests.bench.first_chart [--scale 0.05] [--seed 1] [--keep FOLDER] [--times 5]`

From the start of the navigation to the second frame after Plotly's promise resolved, by the browser's own clock; each
page with an empty cache and once more with a full one, in a window of 1280 × 800. The server is the web process as the
embedded farm starts it, on the same machine: it and the browser share its cores. Exit 1 when a median misses 1.5 s.
Each page is told on standard error as soon as it is measured: it is opened 2 × times + 1 times.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.acceptance.browser.chromium import CHROMIUM, SWITCHES
from tests.bench.figure import publish
from tests.bench.pages import database
from tests.bench.seeded import farm
from tests.bench.seeded.web import sessions, web
from tests.options import read_options

TARGET_MS = 1500.0
LIMIT_S = 30.0
# runs before any script of the page: notes when the first chart is on the screen
NOTE = """
const look = () => {
  if (!document.querySelector(".chart.ready")) return requestAnimationFrame(look);
  requestAnimationFrame(() => requestAnimationFrame(() => { window.firstChart = performance.now(); }));
};
addEventListener("DOMContentLoaded", look);
"""


def painted_ms(context: BrowserContext, address: str) -> dict[str, float]:
    """Milliseconds until the first byte, the parsed page and the first chart."""
    page = context.new_page()
    page.goto(address, wait_until="commit")
    # asked from outside: the pages' policy forbids what Playwright would evaluate in them
    limit = time.monotonic() + LIMIT_S
    while not page.evaluate("() => window.firstChart ?? 0"):
        if time.monotonic() > limit:
            raise SystemExit(f"{address} showed no chart within {LIMIT_S:.0f} s")
        time.sleep(0.05)
    found: dict[str, float] = page.evaluate(
        """() => { const [one] = performance.getEntriesByType("navigation"); return {
            first_byte: one.responseStart, parsed: one.domInteractive, chart: window.firstChart }; }"""
    )
    page.close()
    return found


def opened(browser: Browser, url: str, session: str) -> BrowserContext:
    """A browser's profile with nothing in its cache, signed in."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_cookies([{"name": "onnxfarm_session", "value": session, "url": url}])
    context.add_init_script(NOTE)
    return context


def measured(browser: Browser, url: str, session: str, path: str, times: int) -> dict[str, Any]:
    """Medians of a page, with an empty cache and with a full one."""
    cold, warm = [], []
    for _ in range(times):
        context = opened(browser, url, session)
        cold.append(painted_ms(context, url + path))
        warm.append(painted_ms(context, url + path))
        context.close()
    return {
        name: {part: round(statistics.median(one[part] for one in each)) for part in each[0]}
        for name, each in (("empty_cache_ms", cold), ("full_cache_ms", warm))
    }


def main() -> int:
    words = read_options(__doc__, scale=0.05, seed=1, keep=str, times=5)
    if CHROMIUM is None:
        sys.stderr.write("skipped: there is no Chromium here; install Debian's package chromium.\n")
        return 77
    words.postgres = False
    with database(words) as (home, _):
        figures = _measure(home, words)
    missed = [
        f"{name}, {cache}"
        for name, found in figures.items()
        for cache, each in found.items()
        if each["chart"] > TARGET_MS
    ]
    told = {"target_ms": TARGET_MS, "times": words.times, "pages": figures, "missed": missed}
    publish(claim="the first chart of a page is painted within 1.5 s", seed=words.seed, figures=told)
    return 1 if missed else 0


def _measure(home: Path, words: argparse.Namespace) -> dict[str, Any]:
    seeded = farm.kept(home, scale=words.scale, number=words.seed)
    from django.db import connections

    from farm.runs.models import Run

    usual = Run.objects.filter(is_concluded=True, cell_count__gte=8).exclude(pk=seeded["large_run"]).earliest("pk").pk
    paths = {
        "run": f"/runs/{usual}/",
        "run of the most cells": f"/runs/{seeded['large_run']}/",
        "series of the most points": f"/watches/{seeded['long_watch']}/",
        "cell": f"/runs/{usual}/cells/c2/",
    }
    (session,) = sessions(seeded["reader"], 1)
    connections.close_all()
    with web(home) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        found = {}
        for name, path in paths.items():
            # what the server makes once for all readers is made before
            painted_ms(context := opened(browser, server.url, session), server.url + path)
            context.close()
            found[name] = measured(browser, server.url, session, path, words.times)
            print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
        browser.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
