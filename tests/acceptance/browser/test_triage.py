"""Alerts, watches and trends in a real browser: triage without a mouse, and the pages of watches."""

import re

import pytest
from playwright.sync_api import Page, expect

from farm.accounts.models import User
from farm.alerts.models import Alert, Watch
from farm.alerts.states import AlertState
from farm.fleet.models import Node
from farm.registry.models import Version
from tests.acceptance.browser.conftest import PHONE, Opening, explore
from tests.integration.alerts.driving import make_watch, offer
from tests.integration.dashboard import rows, watching

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def watch(version: Version, person: User) -> Watch:
    rows.make_node(version.model.team, person)
    offer("1.29.0", "1.30.0", "1.31.1")
    return make_watch(version, person)


def line_of(page: Page, alert: Alert) -> str:
    return f"#alert-{alert.pk} th a"


def test_alerts_are_triaged_without_a_mouse(opened: Opening, watch: Watch, version: Version) -> None:
    # the newest stands first
    second = watching.bare_alert(watch, version, bad="1.30.0")
    first = watching.bare_alert(watch, version, bad="1.31.1")
    page = opened("/")
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.wait_for_url("**/alerts/")
    page.keyboard.press("j")
    expect(page.locator(line_of(page, first))).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(line_of(page, second))).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(line_of(page, second))).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("a")
    expect(page.locator(".note.good")).to_contain_text("was acknowledged")
    first.refresh_from_db()
    assert first.state == AlertState.ACKNOWLEDGED
    # the next key goes on from there
    expect(page.locator(line_of(page, first))).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(line_of(page, second))).to_be_focused()
    page.keyboard.press("i")
    page.wait_for_url(re.compile(r"/alerts/\d+/#invalid$"))
    reason = page.locator("#invalid textarea")
    expect(reason).to_be_focused()
    # letters that are typed are no orders
    page.keyboard.type("a throttled machine, is all")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".note.good")).to_contain_text("marked as a false positive")
    # no human is as fast as this test: the keys work once the page has loaded
    page.wait_for_load_state()
    page.keyboard.press("u")
    page.wait_for_url("**/alerts/")
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_a_key_opens_the_form_for_snoozing(opened: Opening, watch: Watch, version: Version) -> None:
    alert = watching.bare_alert(watch, version)
    page = opened(f"/alerts/{alert.pk}/")
    expect(page.locator("#snooze")).not_to_have_attribute("open", "")
    page.keyboard.press("s")
    expect(page.locator("#snooze input[name=until]")).to_be_focused()
    page.fill("#snooze input[name=release]", "1.32.0")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("Snoozed until release 1.32.0. No notifications until then.")


def test_the_text_of_an_issue_is_read_and_copied(opened: Opening, watch: Watch, version: Version, person: User) -> None:
    alert = watching.bare_alert(watch, version)
    alert.symptoms.update(run=rows.finished_run(version, Node.objects.get(), person), cell="c5")
    page = opened(f"/alerts/{alert.pk}/")
    page.click("#report summary")
    expect(page.locator("#issue")).to_contain_text("### Describe the issue")
    page.click("#report details button.copy")
    expect(page.locator("#report details button.copy")).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith("# [Performance]")
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_the_list_of_alerts_fits_a_laptop(opened: Opening, watch: Watch, version: Version, person: User) -> None:
    why = "SkipLayerNormalization: 4 nodes, 40 → 100 µs, explains 96 % of the change"
    alert = watching.bare_alert(watch, version, bad="1.31.1", assignee=person)
    alert.symptoms.update(explanation=why)
    page = opened("/alerts/")
    expect(page.locator(f"#alert-{alert.pk}")).to_contain_text("SkipLayerNormalization explains 96 % of the change")
    expect(page.locator(f"#alert-{alert.pk}")).to_contain_text(person.username)
    assert page.evaluate("[...document.querySelectorAll('.scroll')].every(one => one.scrollWidth <= one.clientWidth)")


def test_going_elsewhere_is_no_order(opened: Opening, watch: Watch, version: Version) -> None:
    alert = watching.bare_alert(watch, version)
    page = opened("/alerts/")
    page.keyboard.press("j")
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.wait_for_load_state()
    alert.refresh_from_db()
    assert alert.state == AlertState.OPEN


def test_a_trend_is_drawn_with_its_shift_and_its_alert_leads_to_it(opened: Opening, watch: Watch, version: Version):
    watching.long_series(watch, version, 60, step_at=40)
    alert = watching.bare_alert(watch, version, bad="1.31.1", round=watch.rounds.order_by("pk")[40])
    page = opened("/trends/")
    explore(page)
    page.locator(".chart .textpoint").first.wait_for()
    marker = page.locator(".chart .scatterlayer .trace").last.locator(".point").first
    box = marker.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=5)
    page.locator(".chart .hovertext").first.wait_for()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url(f"**/alerts/{alert.pk}/")
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_a_watch_is_made_and_paused_in_the_browser(opened: Opening, version: Version) -> None:
    page = opened("/watches/new/")
    page.fill("input[name=name]", "upgrades")
    page.click("summary >> text=On a schedule")
    page.fill("input[name=schedule]", "soon")
    page.check("input[name=models]")
    page.click("main button.primary")
    expect(page.locator("#schedule-error")).to_contain_text("five fields of cron")
    expect(page.locator("input[name=name]")).to_have_value("upgrades")
    expect(page.locator("input[name=models]")).to_be_checked()
    page.fill("input[name=schedule]", "0 3 * * 1")
    page.click("main button.primary")
    page.wait_for_url(re.compile(r"/watches/\d+/$"))
    page.click("text=Pause")
    expect(page.locator(".note.good")).to_contain_text("is paused")
    assert page.watch.foreign == []  # type: ignore[attr-defined]


def test_the_pages_of_watches_fit_a_phone_and_stay_on_this_machine(opened: Opening, watch: Watch, version: Version):
    alert = watching.bare_alert(watch, version)
    watching.bare_round(watch, version)
    watching.long_series(watch, version, 12, step_at=8)
    page = opened("/", size=PHONE)
    for path in pages_of(alert, watch):
        assert page.goto(path).status == 200
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def pages_of(alert: Alert, watch: Watch) -> list[str]:
    """Every page that a watch brings."""
    return [
        "/", "/alerts/", "/alerts/?state=all", "/alerts/?state=all&days=7", f"/alerts/{alert.pk}/", "/watches/",
        "/watches/new/",
        f"/watches/{watch.pk}/", f"/watches/{watch.pk}/edit/", "/trends/", "/trends/?by=release", "/fleet/runtimes/",
        "/settings/tokens/",
    ]  # fmt: skip
