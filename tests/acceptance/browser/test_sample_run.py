"""The run page of the sample transformer, as this machine measured it: its verdict is read without scrolling."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from farm.workshop.samples import builders
from tests.acceptance.browser.conftest import LAPTOP, Watch, press_sign_in
from tests.acceptance.browser.unscrolled import assert_says_who_how_much_how_sure_and_why
from tests.acceptance.conftest import LiveFarm

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(400)]
# the comparison that the default matrix opens with, without its other cells
MATRIX = {
    "budget": "quick",
    "matrix": {
        "runtime": ["onnxruntime==1.29.0", "onnxruntime==1.31.1"],
        "provider": ["cpu"],
        "batch": [8],
        "precision": ["int8-dynamic"],
        "threads": [1],
    },
}


@pytest.fixture
def page(browser: Browser, farm: LiveFarm) -> Iterator[Page]:
    context = browser.new_context(viewport=LAPTOP)
    page = context.new_page()
    page.watch = Watch(context)  # type: ignore[attr-defined]
    press_sign_in(page, farm.sign_in_link())
    yield page
    context.close()


def decided(farm: LiveFarm, document: dict[str, Any]) -> dict[str, Any]:
    """The comparison by runtime; a machine that is busy with other tests gets the rounds that the page asks for."""
    while True:
        [comparison] = [one for one in document["comparisons"] if one["axis"] == "runtime"]
        if comparison["verdict"] != "undecided":
            return dict(comparison)
        if comparison["rounds"] >= 24:
            pytest.skip(f"24 rounds do not decide on this machine: it sees {comparison['smallest_detectable']:.0%}")
        document = farm.go_on(str(document["run"]), rounds=8)


def test_who_is_slower_by_how_much_how_surely_and_through_what(farm: LiveFarm, page: Page, tmp_path: Path) -> None:
    document = farm.submit(builders.write_model("transformer", tmp_path), MATRIX)
    comparison = decided(farm, document)
    page.goto(f"{farm.url}/runs/{document['run']}/")
    words = assert_says_who_how_much_how_sure_and_why(page)
    assert comparison["verdict"] == "slower"
    assert f"{comparison['rounds']} rounds" in words
    # the picture stands in the same window
    box = page.locator(".chart").bounding_box()
    assert box["y"] + box["height"] <= LAPTOP["height"]
    page.watch.assert_is_clean()  # type: ignore[attr-defined]
