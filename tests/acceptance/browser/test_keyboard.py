"""Keys on a page that changes by itself."""

import pytest
from playwright.sync_api import expect

from farm.accounts.models import User
from farm.runs.services import conclude_runs
from tests.acceptance.browser.conftest import Opening
from tests.integration.dashboard import rows

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_keys_that_are_pressed_while_a_run_ends_are_not_lost(opened: Opening, person: User) -> None:
    team = person.memberships.get().team
    agent = rows.MadeUpNode(rows.make_node(team, person))
    run = rows.begin_run(rows.make_version(team, person), person)
    agent.measure(run, most_rounds=8)
    page = opened(f"/runs/{run.pk}/")
    page.wait_for_load_state()
    agent.resume(run)
    conclude_runs()
    expect(page.locator("p.trail .sign")).to_contain_text("complete")
    assert page.evaluate("document.activeElement === document.body")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.closest('main tbody tr') !== null")
    page.watch.assert_is_clean()  # type: ignore[attr-defined]
