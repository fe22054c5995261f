"""The page of a live run in a real browser: whatever it shows at a moment is of one state, and all of it fills in."""

from typing import TypedDict

import pytest
from playwright.sync_api import Page, expect

from farm.accounts.models import User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Block, Run
from farm.runs.services import conclude_runs
from farm.runs.states import BlockState, EventKind
from tests.acceptance.browser.conftest import Opening
from tests.integration.dashboard import rows

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# a page asks every five seconds; beside other tests that takes longer
WITHIN_MS = 60_000
TWO_CELLS = {"budget": "quick", "matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1], "threads": [1]}}
# What the page says of the run's state, in each place that says it, whenever anything on it changes. What was seen
# outlives the page's loading itself again.
WATCHED = """
const places = {
  sign: () => document.querySelector("p.trail .sign"),
  headline: () => document.querySelector("h1.verdict"),
  now: () => document.querySelector("#now .line"),
  waits: () => document.getElementById("standstill"),
  left: () => [...document.querySelectorAll("#live [role=status] p")].find((each) => each.textContent.includes("left")),
  log: () => document.querySelector("#log td.text"),
};
const texts = (what) => [...new Set([...document.querySelectorAll(what)].map((each) => each.textContent.trim()))];
const look = () => {
  if (!document.querySelector("h1.verdict") || !document.getElementById("log")) return;
  const seen = JSON.parse(sessionStorage.getItem("seen") ?? "[]");
  const text = ([name, find]) => [name, find()?.textContent.trim() ?? ""];
  const lists = { cells: texts("table.heat td .word"), table: texts("#cells-table td:nth-of-type(2)") };
  const sample = JSON.stringify({ ...Object.fromEntries(Object.entries(places).map(text)), ...lists });
  if (!seen.includes(sample)) sessionStorage.setItem("seen", JSON.stringify([...seen, sample]));
};
document.addEventListener("DOMContentLoaded", () => {
  look();
  new MutationObserver(look).observe(document.documentElement, { childList: true, subtree: true, characterData: true });
});
"""


class Seen(TypedDict):
    """What each place said at one moment; empty where there was no such place."""

    sign: str
    headline: str
    now: str
    waits: str
    left: str
    log: str
    cells: list[str]
    table: list[str]


def what_was_seen(page: Page) -> list[Seen]:
    seen: list[Seen] = page.evaluate("JSON.parse(sessionStorage.getItem('seen')).map((each) => JSON.parse(each))")
    return seen


def assert_is_of_one_state(seen: Seen) -> None:
    """Sign, headline, what goes on now, the estimate and the cells say the same."""
    word = seen["sign"].split()[-1]
    headline, cells = seen["headline"], " ".join(seen["cells"])
    assert word in ("queued", "measuring", "complete"), seen
    assert bool(seen["now"]) == (word == "measuring"), seen
    assert bool(seen["waits"]) == (word == "queued"), seen
    # an estimate goes on with the measuring alone
    assert not seen["left"] or word == "measuring", seen
    assert ("Queued:" in headline) <= (word == "queued"), seen
    assert ("Measuring" in headline) <= (word == "measuring"), seen
    assert ("measuring" in cells) <= (word == "measuring"), seen
    assert ("queued" in cells) <= (word == "queued"), seen
    # what is decided before its block has ended says so
    assert ("so far" in cells) <= (word == "measuring"), seen
    assert ("baseline" in cells) == (word == "complete" or "so far" in cells), seen
    assert {state.split()[-1] for state in seen["table"]} <= ({"done"} if word == "complete" else {"measuring"}), seen


def send_back(run: Run) -> None:
    """The node went away: its block waits for another one."""
    block = Block.objects.get(run=run, state=BlockState.LEASED)
    text = "bench-1 went away; block 1 waits again."
    assert block.queue(EventKind.BLOCK_REQUEUED, came_from=BlockState.LEASED, text=text)


def test_a_live_run_never_shows_two_states_from_its_queue_to_its_end(
    opened: Opening, version: Version, node: Node, person: User
) -> None:
    run = rows.begin_run(version, person, matrix=TWO_CELLS)
    # before the page is opened, so that nothing of it is missed
    page = opened("/static/dashboard/mark.svg")
    page.context.add_init_script(WATCHED)
    page.goto(f"/runs/{run.pk}/", wait_until="commit")
    sign = page.locator("p.trail .sign")
    expect(sign).to_contain_text("queued", timeout=WITHIN_MS)
    agent = rows.MadeUpNode(node)
    agent.measure(run, most_rounds=8)
    expect(sign).to_contain_text("measuring", timeout=WITHIN_MS)
    # the chart and the tables came with the head, though no cell has ended
    assert page.locator("#compared-pairs tbody tr").count() > 0
    assert page.locator("#charts .chart").count() == 1
    send_back(run)
    expect(sign).to_contain_text("queued", timeout=WITHIN_MS)
    agent.measure(run)
    conclude_runs()
    expect(sign).to_contain_text("complete", timeout=WITHIN_MS)
    seen = what_was_seen(page)
    for each in seen:
        assert_is_of_one_state(each)
    words = [each["sign"].split()[-1] for each in seen]
    assert [word for at, word in enumerate(words) if at == 0 or word != words[at - 1]] == [
        *("queued", "measuring", "queued", "complete")
    ]
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_what_a_reader_typed_and_the_chart_they_chose_stay_while_the_page_fills_in(
    opened: Opening, version: Version, node: Node, person: User
) -> None:
    run = rows.begin_run(version, person)
    agent = rows.MadeUpNode(node)
    agent.measure(run, most_rounds=8)
    page = opened(f"/runs/{run.pk}/")
    page.click("nav.tabs >> text=Latency")
    page.wait_for_url("**chart=latency**")
    compared, typed = page.locator("#compared"), page.locator("[data-filter=compared-pairs]")
    typed.fill("int8")
    visible, everything = page.locator("#compared-pairs tbody tr:visible"), page.locator("#compared-pairs tbody tr")
    expect(visible).not_to_have_count(everything.count())
    shown = visible.count()
    assert shown
    before = str(compared.get_attribute("data-at"))
    agent.resume(run, most_rounds=9)
    expect(compared).not_to_have_attribute("data-at", before, timeout=WITHIN_MS)
    expect(typed).to_have_value("int8")
    expect(typed).to_be_focused()
    expect(visible).to_have_count(shown)
    expect(page.locator("#charts nav.tabs [aria-current]")).to_have_text("Latency")
    page.watch.assert_is_clean()  # type: ignore[attr-defined]
