"""Words of the field explain themselves where they stand: by keyboard, and in a phone's window."""

import pytest
from playwright.sync_api import expect

from farm.accounts.models import User
from tests.acceptance.browser.conftest import PHONE, Opening
from tests.integration.dashboard import rows

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_a_word_explains_itself_to_the_keyboard_and_within_a_phones_width(opened: Opening, person: User) -> None:
    node = rows.make_node(person.memberships.get().team, person, name="garage")
    page = opened(f"/fleet/{node.pk}/", size=PHONE)
    word = page.locator("a.term", has_text="A/A pair").first
    word.focus()
    page.keyboard.press("Enter")
    box = page.locator(".explained")
    expect(box).to_contain_text("A/A pair: two arms with the same cell")
    placed = box.bounding_box()
    assert placed["x"] >= 0
    assert placed["x"] + placed["width"] <= PHONE["width"]
    page.keyboard.press("Tab")
    expect(box.get_by_role("link")).to_be_focused()
    page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    assert page.url.endswith(f"/fleet/{node.pk}/")
    page.watch.assert_is_clean()  # type: ignore[attr-defined]
