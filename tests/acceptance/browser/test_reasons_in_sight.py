"""Reasons in the tables of results are in the window: nobody scrolls sideways to learn why."""

import pytest

from farm.accounts.models import User
from farm.fleet.models import Node
from farm.registry.models import Version
from tests.acceptance.browser.conftest import LAPTOP, Opening
from tests.integration.dashboard import rows

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

NARROW = {"width": 390, "height": 844}
SENTENCES = """() => [...document.querySelectorAll("td.text, [data-refusal]")]
  .filter((cell) => cell.innerText.trim() && cell.getBoundingClientRect().height > 0)
  .map((cell) => ({ text: cell.innerText, right: cell.getBoundingClientRect().right, width: innerWidth }))"""


@pytest.mark.parametrize("size", [LAPTOP, NARROW], ids=["1366", "390"])
def test_reasons_of_a_busy_run_are_read_without_scrolling_sideways(
    opened: Opening, version: Version, node: Node, person: User, size: dict[str, int]
) -> None:
    axes = {"runtime": ["1.29.0", "1.31.1"], "precision": ["fp32", "int8-dynamic"], "threads": [1]}
    run = rows.begin_run(version, person, matrix={"budget": "quick", "matrix": axes})
    rows.MadeUpNode(node, busy=True, crashes=[1]).measure(run)
    for path in (f"/runs/{run.pk}/", f"/runs/{run.pk}/cells/c1/", "/runs/"):
        page = opened(path, size=size)
        told = page.evaluate(SENTENCES)
        assert [cell["text"] for cell in told if cell["right"] > cell["width"]] == [], path
        if path != "/runs/":
            assert any("Other programs disturbed" in cell["text"] for cell in told), path
