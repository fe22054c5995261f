"""Debian's Chromium, and the switches that keep it to this machine."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# the same engine without windows, where it is installed too: a page costs 0.3 s of processor time, not 0.6. What is
# about the focus of a window takes the whole one
SHELL = shutil.which("chromium-headless-shell") or CHROMIUM
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# what comes, comes at once; on a machine that others use the browser, the farm and the test wait for one another
PATIENCE_MS = 60_000


@contextmanager
def launched(program: str | None = CHROMIUM) -> Iterator[Browser]:
    """The browser, ended with the block. Tests skip where there is none."""
    if program is None:
        pytest.skip("No Chromium on PATH: install Debian's chromium to run the browser tests.")
    # Playwright's loop runs in this thread; the ORM must not take the test for asynchronous code
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=SWITCHES)
        yield browser
        browser.close()
    os.environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)


def wait_for_script(page: Page, script: str, *, answer: object = True) -> None:
    """Wait until the script gives this answer on the page, which may be loaded anew meanwhile.

    Not `wait_for_function`: what it asks again is a string for `eval`, which our pages' security policy refuses, so it
    fails wherever the first answer is not the right one yet.
    """
    limit = time.monotonic() + PATIENCE_MS / 1000
    given: object = None
    while given != answer:
        assert time.monotonic() < limit, f"on {page.url} the script gave {given!r}, not {answer!r}: {script}"
        try:
            given = page.evaluate(script)
        except Error as left:
            # the page that was asked is gone; the next one is asked
            if "context was destroyed" not in str(left):
                raise
        if given != answer:
            page.wait_for_timeout(50)
