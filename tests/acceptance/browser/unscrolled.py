"""What can be read of a page without scrolling."""

import re

from playwright.sync_api import Page

SLOWER = re.compile(r"1\.31\.1 is (?:up to )?[\d.]+ % slower than 1\.29\.0")
CERTAINTY = re.compile(r"95 % interval [\d.]+–[\d.]+ %, \d+ rounds")
OPERATOR = re.compile(r"SkipLayerNormalization explains (\d+ %|all) of the ")

WORDS_IN_VIEW = """() => [...document.querySelectorAll("main h1, main .because, main .rest")].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth;
}).map((element) => element.innerText).join(" ")"""


def visible_words(page: Page) -> str:
    """The page's verdict and its cause, as far as both stand in the window whole."""
    return str(page.evaluate(WORDS_IN_VIEW)).replace("\N{NO-BREAK SPACE}", " ")


def assert_says_who_how_much_how_sure_and_why(page: Page) -> str:
    """That 1.31.1 is slower than 1.29.0, by how much, how surely, through which operator; gives the words."""
    assert page.evaluate("scrollY") == 0
    words = visible_words(page)
    for wanted in (SLOWER, CERTAINTY, OPERATOR):
        assert wanted.search(words), f"{wanted.pattern!r} is not among what stands in the window: {words!r}"
    return words
