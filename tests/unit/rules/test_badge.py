"""A badge is an image of its own: markup of people stays text."""

import xml.etree.ElementTree as ElementTree

from farm.rules.presenting.badge import draw_badge


def test_markup_in_a_badge_stays_text_and_long_texts_are_cut() -> None:
    root = ElementTree.fromstring(draw_badge('<b>&"', "\x00" + "x" * 100, "bad"))
    label = str(root.get("aria-label"))
    assert label.startswith('<b>&": xxx')
    assert label.endswith("…")
    assert len(label) == 60 + len('<b>&": ')
