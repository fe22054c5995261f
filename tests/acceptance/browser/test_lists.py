"""Lists in a real browser: sorted, chosen by keyboard, cards on a phone, one search, times as people say them."""

import re

import pytest
from playwright.sync_api import expect

from farm.accounts.models import User
from farm.registry.models import Version
from farm.runs.models import Run
from tests.acceptance.browser.conftest import Opening
from tests.integration.dashboard import rows

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

NARROW = {"width": 390, "height": 844}
LEAD = {"verdict": "slower", "quantity": "latency", "low": 1.21, "high": 1.26, "level": 0.95, "rounds": 8,
        "step": "1.29.0 → 1.31.1", "where": "CPU, fp32, batch 1, 1 thread", "node": "bench-1"}  # fmt: skip


@pytest.fixture
def runs(person: User) -> list[Run]:
    """Three runs as they are once they are concluded; the second changed most."""
    version: Version = rows.make_version(person.memberships.get().team, person)
    known = {"team": version.model.team, "version": version, "requested_by": person, "matrix": {}, "cell_count": 2,
             "state": "finished", "outcome": "complete", "is_concluded": True}  # fmt: skip
    return [Run.objects.create(**known, lead={**LEAD, "ratio": ratio}) for ratio in (1.22, 1.25, 1.23)]


def test_runs_are_sorted_by_a_head_and_chosen_and_compared_by_keyboard(opened: Opening, runs: list[Run]) -> None:
    page = opened("/runs/")
    page.click("#runs thead a:has-text('change')")
    page.wait_for_url("**/runs/?sort=-change")
    expect(page.locator("#runs th[aria-sort=descending]")).to_have_text("change")
    links = page.locator("#runs tbody th a")
    expect(links.first).to_have_text(f"run {runs[1].pk}")
    for _ in range(2):
        page.keyboard.press("j")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("x")
    page.keyboard.press("k")
    page.keyboard.press("x")
    expect(page.locator("#runs input.box:checked")).to_have_count(2)
    page.keyboard.press("x")
    expect(page.locator("#runs input.box:checked")).to_have_count(1)
    page.keyboard.press("x")
    page.keyboard.press("c")
    page.wait_for_url(re.compile(rf"/compare/\?runs={runs[1].pk}&runs={runs[2].pk}$"))
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_on_a_phone_each_row_is_a_card_with_its_figures_named(opened: Opening, runs: list[Run]) -> None:
    page = opened("/runs/", size=NARROW)
    cell = page.locator("#runs tbody tr").first.locator("td[data-label=change]")
    assert cell.evaluate("element => getComputedStyle(element, '::before').content") == '"change"'
    box, card = cell.bounding_box(), page.locator("#runs tbody tr").first.bounding_box()
    # in sight as it is, with no window to scroll in
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert card["width"] <= 390
    for path in ("/runs/", "/models/", "/settings/tokens/", "/alerts/", "/fleet/"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        wide = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1).length"
        assert page.evaluate(wide) == 0, path
    # the tab of the page is in sight
    tab = page.locator(".top nav [aria-current]").bounding_box()
    assert tab["x"] + tab["width"] <= 390


def test_ctrl_k_finds_anything_from_any_page(opened: Opening, runs: list[Run]) -> None:
    page = opened("/settings/tokens/")
    page.keyboard.press("Control+k")
    field = page.locator("#search-all input")
    expect(field).to_be_focused()
    page.keyboard.type("encod")
    expect(page.locator("#search-hits a")).to_contain_text(["encoder"])
    page.keyboard.press("ArrowDown")
    expect(page.locator("#search-hits a").first).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/models/\d+/$"))
    page.keyboard.press("Control+k")
    page.keyboard.type(f"run {runs[0].pk}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{runs[0].pk}/")
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_times_are_said_as_people_say_them_with_the_exact_one_on_hover(opened: Opening, runs: list[Run]) -> None:
    page = opened("/runs/")
    moment = page.locator("#runs time").first
    expect(moment).to_have_text("just now")
    expect(moment).to_have_attribute("title", re.compile(r"^\d{4}-\d\d-\d\d.* \(\d{4}-\d\d-\d\d \d\d:\d\d UTC\)$"))
    expect(page.locator("[data-zone]")).to_contain_text("in your time zone")
