"""A release's report card in a real browser: on a phone and without scripts, in the window and never wider than it."""

import re

import pytest
from playwright.sync_api import Browser, expect

from farm.accounts.models import User
from farm.runs.models import Run
from tests.acceptance.browser.conftest import Opening, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PAGE = "/releases/onnxruntime/1.31.1/"
NARROW = {"width": 390, "height": 844}


def test_a_slower_model_is_read_in_the_window_and_leads_to_its_cell(opened: Opening, finished: Run) -> None:
    for size in ({"width": 1366, "height": 768}, NARROW):
        page = opened(PAGE, size=size)
        expect(page.locator("h1")).to_contain_text("% slower with 1.31.1")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        cell = page.locator("table.heat td a")
        expect(cell).to_be_in_viewport()
        expect(cell).to_contain_text("% slower")
        page.watch.assert_is_clean()  # type: ignore[attr-defined]
    cell.click()
    expect(page).to_have_url(re.compile(rf"/runs/{finished.pk}/cells/"))


def test_it_says_the_same_without_scripts(browser: Browser, live_server: object, person: User, finished: Run) -> None:
    context = browser.new_context(java_script_enabled=False, base_url=str(live_server))
    sign_in(context, person, str(live_server))
    page = context.new_page()
    page.goto(PAGE)
    expect(page.locator("h1")).to_contain_text("% slower with 1.31.1")
    expect(page.locator("table.heat td a")).to_contain_text("% slower")
    context.close()
