"""From a file to a comparison by keyboard alone, on a farm that measures."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.acceptance.browser.chromium import PATIENCE_MS, launched, wait_for_script
from tests.acceptance.conftest import LiveFarm

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(400)]

MOST_TABS = 90
# one launch a cell: how it is measured is for other tests
MATRIX = """budget: glance
matrix:
  runtime: [1.29.0, 1.31.1]
  batch: [1]
  threads: [2]
"""
# whatever a pointer does, on any of the pages
POINTER = """for (const what of ["pointerdown", "mousedown", "touchstart"])
  addEventListener(what, () => sessionStorage.setItem("pointed", what), true);"""
# what is wrong with the focus, in words; empty where a person sees it
FOCUS = """() => {
  const one = document.activeElement, name = one.outerHTML.slice(0, 120);
  if (one === document.body) return "nothing has the focus";
  const style = getComputedStyle(one), box = one.getBoundingClientRect();
  if (!one.matches(":focus-visible")) return `the browser shows no focus on ${name}`;
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) return `no outline around ${name}`;
  const isInSight = box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return isInSight ? "" : `out of sight: ${name}`;
}"""
# a number for each element that had the focus
MARK = """() => {
  const one = document.activeElement;
  if (one === document.body) return -1;
  window.walked ??= [];
  if (!window.walked.includes(one)) window.walked.push(one);
  return window.walked.indexOf(one);
}"""


class Keys:
    """A page and the keys that are pressed on it. Wherever the focus goes, it is seen."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def assert_is_seen(self, where: Locator) -> None:
        expect(where).to_be_focused()
        # a page that was waited for may be loaded anew meanwhile, with the focus where it was
        wait_for_script(self.page, FOCUS, answer="")

    def tab_to(self, where: Locator, *, key: str = "Tab") -> None:
        """Tab until it has the focus; each stop on the way is seen. `key`: Shift+Tab goes back."""
        self.page.wait_for_load_state()
        expect(where).to_be_visible()
        for _ in range(MOST_TABS):
            self.press(key)
            # a page that was waited for may be loaded anew at this moment, and gives the focus back
            wait_for_script(self.page, FOCUS, answer="")
            if where.evaluate("element => element === document.activeElement"):
                return
        pytest.fail(f"{MOST_TABS} times Tab do not reach {where} on {self.page.url}")

    def open(self, where: Locator, url: str, *, key: str = "Tab") -> None:
        """Tab to it, Enter, and the page of this address is there."""
        self.tab_to(where, key=key)
        self.press("Enter")
        self.page.wait_for_url(re.compile(url))

    def walk(self) -> None:
        """Tab from stop to stop until the page is left: nowhere does the focus come back before."""
        self.page.evaluate("document.activeElement.blur(), window.walked = []")
        stops: list[int] = []
        while not stops or (stops[-1] >= 0 and len(stops) < 400):
            self.press("Tab")
            stops.append(self.page.evaluate(MARK))
        assert stops[:-1] == list(range(len(stops) - 1)), f"the focus went in a circle on {self.page.url}: {stops}"
        assert stops[-1] == -1, f"the focus does not leave {self.page.url}"


@pytest.fixture
def keys(farm: LiveFarm) -> Iterator[Keys]:
    with launched() as browser:
        context = browser.new_context(viewport={"width": 1366, "height": 768}, base_url=farm.url)
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(POINTER)
        page = context.new_page()
        # from the first page on: a key is faster than the order to hold the dialog back
        page.on("filechooser", lambda _: None)
        page.goto(farm.sign_in_link())
        yield Keys(page)
        assert page.evaluate("sessionStorage.getItem('pointed')") is None
        context.close()


def test_a_model_is_uploaded_planned_run_and_compared_by_keyboard_alone(keys: Keys, models: Path) -> None:
    page = keys.page
    keys.open(page.get_by_role("button", name="Sign in"), r":\d+/$")
    uploads(keys, models / "cnn_dyn.onnx")
    plans(keys)
    watches_to_the_end(keys)
    compares(keys)
    searches(keys)


def uploads(keys: Keys, model: Path) -> None:
    page = keys.page
    keys.press("g", "m")
    page.wait_for_url("**/models/")
    keys.open(page.get_by_role("link", name="Upload a model").first, "/models/upload/$")
    keys.tab_to(page.locator("input[name=files]"))
    with page.expect_file_chooser() as chooser:
        keys.press("Enter")
    chooser.value.set_files(model)
    keys.tab_to(page.locator("input[name=model]"))
    keys.type("by-keyboard")
    keys.open(page.get_by_role("button", name="Upload"), r"/models/\d+/\?version=1$")
    # what the page waits for arrives by itself; the focus stays where it was meanwhile
    copy = page.get_by_role("button", name="Copy the bundle digest")
    keys.tab_to(copy)
    expect(page.locator("#version header .sign").first).to_contain_text("ready")
    keys.assert_is_seen(copy)


def plans(keys: Keys) -> None:
    page = keys.page
    keys.open(page.get_by_role("link", name="New run"), r"/runs/new/\?version=\d+$", key="Shift+Tab")
    text = page.locator("textarea[name=matrix]")
    keys.tab_to(text)
    keys.press("Control+a")
    keys.type(MATRIX)
    expect(page.locator("#plan")).to_contain_text("2 cells in 1 block")
    keys.assert_is_seen(text)
    keys.open(page.locator("#plan button.primary"), r"/runs/\d+/$")


def watches_to_the_end(keys: Keys) -> None:
    """The focus is in the part that is put in again and again, and stays there when the finished page takes over."""
    page = keys.page
    sign, model = page.locator("p.trail .sign"), page.locator("p.trail a", has_text="by-keyboard")
    keys.tab_to(model)
    expect(sign).to_contain_text("complete", timeout=4 * PATIENCE_MS)
    keys.assert_is_seen(model)


def compares(keys: Keys) -> None:
    page = keys.page
    links = page.locator("#cells-table tbody th a")
    for _ in range(MOST_TABS):
        keys.press("j")
        if links.first.evaluate("element => element === document.activeElement"):
            break
    keys.assert_is_seen(links.first)
    keys.press("x", "j", "x")
    keys.assert_is_seen(links.nth(1))
    expect(page.locator("#cells-table input.box:checked")).to_have_count(2)
    keys.press("c")
    page.wait_for_url(re.compile(r"/compare/\?cells=\d+%3Ac\d&cells=\d+%3Ac\d"))
    expect(page.locator("#compared tbody tr")).to_have_count(2)
    before = page.url
    keys.tab_to(page.get_by_role("link", name=re.compile("^Pin as base")))
    keys.press("Enter")
    page.wait_for_url(lambda url: url != before)
    expect(page.locator("#compared tbody tr")).to_have_count(2)
    page.wait_for_load_state()
    keys.walk()


def searches(keys: Keys) -> None:
    page = keys.page
    link = page.get_by_role("link", name="Operators")
    keys.tab_to(link)
    keys.press("Control+k")
    keys.assert_is_seen(page.locator("#search-all input"))
    # what opens over the page gives the focus back
    keys.press("Escape")
    keys.assert_is_seen(link)
    keys.press("?")
    expect(page.locator("#help")).to_be_visible()
    keys.press("Escape")
    keys.assert_is_seen(link)
    keys.press("Control+k")
    keys.type("by-keyb")
    found = page.locator("#search-hits a").first
    expect(found).to_contain_text("by-keyboard")
    keys.press("ArrowDown")
    keys.assert_is_seen(found)
    keys.press("Enter")
    page.wait_for_url(re.compile(r"/models/\d+/$"))
