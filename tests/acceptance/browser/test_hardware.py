"""A model across hardware in a real browser: the question, its answer, the chart, and cards on a phone."""

import json

import pytest
from playwright.sync_api import expect

from farm.accounts.models import User
from farm.runs.models import CellDocument, Run
from tests.acceptance.browser.conftest import Opening
from tests.integration.dashboard import rows
from tests.integration.dashboard.across import measured_across

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
NARROW = {"width": 390, "height": 844}


def judge(runs: list[Run], right: float) -> None:
    """Each cell judged on labelled data; made up, as the latencies are."""
    for row in CellDocument.objects.filter(arm__cell__run__in=runs):
        accuracy = {"metric": "top1", "recipe": "top1", "n": 500, "value": right, "ci_low": right - 0.02}
        row.body = json.dumps(json.loads(row.body) | {"accuracy": {**accuracy, "ci_high": right + 0.01}})
        row.save()


def test_where_a_model_may_run_is_asked_answered_and_drawn_and_stands_as_cards_on_a_phone(
    opened: Opening, person: User
) -> None:
    version = rows.make_version(person.memberships.get().team, person)
    judge(measured_across(version, person), 0.97)
    page = opened(f"/models/{version.model_id}/")
    page.get_by_role("link", name="Across hardware").first.click()
    expect(page.locator("h1")).to_contain_text(" at best")
    expect(page.locator("#targets tbody tr")).to_have_count(3)
    expect(page.locator(".chart .plot")).to_be_visible()
    page.get_by_label("Latency at most, ms").fill("1")
    page.get_by_label("Accuracy loss at most, %").fill("1")
    page.get_by_role("button", name="Show", exact=True).click()
    said = page.locator("p.because")
    expect(said).to_contain_text("Within 1 ms and 1 % loss: 2 of 3 targets of version 1.")
    # the sentence's number is that of the first row
    first = page.locator("#targets tbody tr").first
    expect(page.locator("#targets tbody tr")).to_have_count(2)
    p50 = first.locator("td.n").first.inner_text().replace(" ±", " ms ±")
    assert f"Lowest p50: {p50}" in said.inner_text()
    expect(first).to_contain_text("within")
    page.get_by_role("link", name="Show all").click()
    expect(page.locator("#targets tbody tr")).to_have_count(3)
    page.set_viewport_size(NARROW)
    page.reload()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    card = page.locator("#targets tbody tr").first
    assert card.evaluate("element => getComputedStyle(element).display") == "grid"
    page.watch.assert_is_clean()  # type: ignore[attr-defined]
