"""Pages that fill in by themselves while somebody waits, what is typed meanwhile, and share links to their end."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from farm.accounts.models import User
from farm.alerts.states import RoundState
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth, NodeState
from farm.registry.models import Version
from tests.acceptance.browser.conftest import LAPTOP, Opening, Watch, explore
from tests.integration.alerts.driving import make_watch, offer
from tests.integration.dashboard import rows, watching

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_a_machine_is_approved_limited_drained_and_retired_on_a_page_that_fills_in(opened: Opening, person: User):
    node = rows.make_node(person.memberships.get().team, person, name="garage", health=NodeHealth.PENDING)
    Node.objects.update(state=NodeState.OFFLINE)
    page = opened(f"/fleet/{node.pk}/")
    expect(page.locator(".note", has_text="fingerprint")).to_contain_text(node.fingerprint)
    page.click("button:has-text('Approve')")
    expect(page.locator(".note.good")).to_contain_text("garage is approved")
    page.fill("input[name=hours]", "20:00-06:00")
    Node.objects.update(state=NodeState.ONLINE)
    expect(page.locator("h1")).to_have_text(re.compile("^garage is online, idle"))
    # what was typed while the head of the page filled in is still there
    expect(page.locator("input[name=hours]")).to_have_value("20:00-06:00")
    page.fill("input[name=minutes]", "soon")
    page.click("text=Save limits")
    expect(page.locator("#minutes-error")).to_contain_text("“soon”: write a number of minutes")
    expect(page.locator("input[name=hours]")).to_have_value("20:00-06:00")
    expect(page.locator("input[name=minutes]")).to_have_value("soon")
    page.fill("input[name=minutes]", "5")
    page.click("text=Save limits")
    expect(page.locator(".note.good")).to_contain_text("The limits of garage were saved")
    page.click("button:has-text('Drain')")
    expect(page.locator("h1")).to_contain_text("drained")
    page.click("summary:has-text('Retire')")
    page.click("button:has-text('Retire')")
    expect(page.locator("h1")).to_contain_text("retired")
    assert page.watch.foreign == []  # type: ignore[attr-defined]


def test_the_page_of_a_watch_shows_its_round_and_its_alert_when_they_come(
    opened: Opening, version: Version, person: User
) -> None:
    rows.make_node(version.model.team, person)
    offer("1.29.0", "1.30.0")
    watch = make_watch(version, person)
    begun = watching.bare_round(watch, version, state=RoundState.MEASURING, judged_at=None, sentence="")
    page = opened(f"/watches/{watch.pk}/")
    expect(page.locator("h1")).to_contain_text("Queued: 1.30.0 against 1.29.0 on encoder")
    watching.bare_alert(watch, version)
    type(begun).objects.update(state=RoundState.JUDGED, sentence="1 pair compared, 1 slower.")
    expect(page.locator("h1")).to_contain_text("24 % slower than 1.29.0")
    expect(page.locator("#alerts tbody th a")).to_have_attribute("title", re.compile("24 % slower than 1.29.0"))
    expect(page.locator("#all-rounds tbody tr")).to_have_count(1)
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_a_run_is_shared_by_a_button_seen_by_anybody_and_closed(
    opened: Opening, version: Version, person: User, browser: Browser, live_server: object
) -> None:
    run = rows.finished_run(version, rows.make_node(version.model.team, person), person)
    page = opened(f"/runs/{run.pk}/")
    page.click(".share summary")
    page.select_option(".share select", "7")
    page.click(".share button")
    path = urlsplit(page.locator(".note.good code").first.inner_text()).path
    context = browser.new_context(viewport=LAPTOP, base_url=str(live_server))
    anybody = context.new_page()
    watched = Watch(context)
    anybody.goto(path)
    expect(anybody.locator("h1")).to_contain_text("slower than 1.29.0")
    anybody.click("nav.tabs >> text=Operators")
    expect(anybody.locator("#operators-title")).to_contain_text("SkipLayerNormalization")
    explore(anybody)
    anybody.locator(".chart .point, .chart .bars path").first.click(force=True)
    expect(anybody).to_have_url(re.compile("/shared/"))
    assert anybody.locator("form").count() == 0
    watched.assert_is_clean()
    page.goto("/settings/shares/")
    page.click("#shares form button")
    page.click("text=Show 1 revoked or expired link")
    expect(page.locator("#shares")).to_contain_text("revoked")
    assert anybody.goto(path).status == 410
    expect(anybody.locator("h1")).to_have_text("This share link was revoked.")
    context.close()
