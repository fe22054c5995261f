"""The pages in a real browser, on rows made through the services."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from farm.accounts.models import User
from farm.accounts.services import make_sign_in_link
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.presenting.answers import make_answer
from farm.rules.presenting.headlines import rank_results
from farm.runs import selectors
from farm.runs.models import Run
from tests.acceptance.browser.chromium import wait_for_script
from tests.acceptance.browser.conftest import LAPTOP, PHONE, Opening, Watch, explore, press_sign_in, sign_in
from tests.acceptance.browser.unscrolled import assert_says_who_how_much_how_sure_and_why
from tests.integration.dashboard import rows

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_the_verdict_its_size_its_certainty_and_its_operator_are_read_without_scrolling(opened: Opening, finished: Run):
    page = opened(f"/runs/{finished.pk}/")
    assert_says_who_how_much_how_sure_and_why(page)
    heat = page.locator("table.heat").bounding_box()
    assert heat["y"] + heat["height"] <= 768
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_the_headline_has_the_number_sign_and_interval_of_the_document_and_of_the_table(opened: Opening, finished: Run):
    document = selectors.document(finished)
    cells = {cell.id: cell for cell in document.cells}
    lead = rank_results(document.comparisons, cells).leading
    assert lead.change.figures is not None
    page = opened(f"/runs/{finished.pk}/")
    told = f"{page.locator('h1').inner_text()} {page.locator('.because').inner_text()}".replace(
        "\N{NO-BREAK SPACE}", " "
    )
    answer = make_answer(document)
    assert told == f"{answer.headline} {answer.because}"
    assert f"{lead.change.text} than 1.29.0" in told
    assert f"95 % interval {lead.change.interval}" in told
    # the table beside it begins with the axis that leads
    expect(page.locator("#compared nav.tabs [aria-current]")).to_have_text("runtime")
    row = page.locator("#compared-pairs tbody tr").filter(has_text=lead.change.text)
    expect(row.filter(has_text=lead.change.interval).first).to_contain_text("▲ slower")


@pytest.mark.parametrize(
    "name", ["long" * 25, "ein sehr langer Name " * 4 + "mit Wörtern", "模型" * 50], ids=["one word", "words", "wide"]
)
def test_long_names_and_warnings_do_not_push_the_verdict_out_of_the_window(
    opened: Opening, node: Node, person: User, name: str
) -> None:
    version = rows.make_version(person.memberships.get().team, person)
    version.model.name = name.strip()
    version.model.save()
    node.name = "a-machine-with-a-name-of-its-own-in-the-basement-of-building-7"
    node.save()
    run = rows.finished_run(version, node, person, wrong=True)
    page = opened(f"/runs/{run.pk}/")
    expect(page.locator("h1")).to_contain_text("wrong outputs", ignore_case=True)
    assert_says_who_how_much_how_sure_and_why(page)
    expect(page.locator(".trail")).to_contain_text(name.strip())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_one_time_link_signs_in_by_its_button_and_leads_to_where_it_should(
    browser: Browser, live_server: object, person: User
) -> None:
    link = make_sign_in_link(person)
    page = browser.new_page(base_url=str(live_server))
    watch = Watch(page.context)
    press_sign_in(page, f"{link[link.index('/sign-in/') :]}?next=/fleet/")
    expect(page).to_have_url(f"{live_server}/fleet/")
    expect(page.locator("h1")).to_be_visible()
    watch.assert_is_clean()
    page.context.close()


def test_every_page_stays_on_this_machine_and_within_its_policy(
    opened: Opening, version: Version, node: Node, finished: Run
) -> None:
    page = opened("/")
    for path in (
        "/models/",
        f"/models/{version.model_id}/",
        "/models/upload/",
        "/runs/",
        "/runs/new/",
        *(
            f"/runs/{finished.pk}/?chart={chart}"
            for chart in ("comparisons", "latency", "operators", "providers", "throughput")
        ),
        f"/runs/{finished.pk}/cells/c5/",
        "/fleet/",
        f"/fleet/{node.pk}/",
        f"/compare/?cells={finished.pk}:c1&cells={finished.pk}:c5",
        "/settings/tokens/",
    ):
        response = page.goto(path)
        assert response.status == 200
        assert "script-src 'self'" in response.headers["content-security-policy"]
        if page.locator(".chart").count():
            explore(page)
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_no_page_scrolls_sideways_on_a_phone(opened: Opening, version: Version, node: Node, person: User) -> None:
    run, waiting = rows.finished_run(version, node, person), rows.begin_run(version, person)
    page = opened("/", size=PHONE)
    for path in ("/", "/models/", f"/models/{version.model_id}/", "/models/upload/", "/runs/", "/runs/new/",
                 f"/runs/{run.pk}/", f"/runs/{run.pk}/cells/c5/", "/fleet/", f"/fleet/{node.pk}/",
                 f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5", f"/compare/?runs={run.pk}&runs={waiting.pk}",
                 "/settings/tokens/"):  # fmt: skip
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_a_running_run_fills_in_by_itself_until_its_verdict(
    opened: Opening, version: Version, node: Node, person: User
) -> None:
    run = rows.begin_run(version, person)
    page = opened(f"/runs/{run.pk}/")
    expect(page.locator("h1")).to_have_text("Queued: waiting for a node")
    expect(page.locator("table.heat td.running")).to_have_count(0)
    agent = rows.MadeUpNode(node)
    agent.measure(run, most_rounds=2)
    expect(page.locator("table.heat td.running")).to_have_count(8)
    agent.resume(run)
    expect(page.locator("h1")).to_contain_text("slower than 1.29.0")
    expect(page.locator("table.heat td.s3")).to_have_count(4)
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_charts_follow_light_and_dark_at_once_and_the_choice_is_kept(opened: Opening, finished: Run) -> None:
    page = opened(f"/runs/{finished.pk}/?chart=latency", scheme="light")
    first = page.locator(".plot .rows text").first
    by_day = first.evaluate("element => getComputedStyle(element).fill")
    explore(page)
    tick = page.locator(".chart .ytick text").first
    expect(tick).to_have_css("fill", by_day)
    page.click("[data-theme-toggle]")
    expect(tick).not_to_have_css("fill", by_day)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    expect(first).not_to_have_css("fill", by_day)


def test_a_series_chosen_in_the_key_is_set_apart_and_a_narrow_chart_names_its_rows_above_them(
    opened: Opening, finished: Run
) -> None:
    page = opened(f"/runs/{finished.pk}/?chart=latency", size=PHONE)
    assert page.locator(".plot .rows text").first.bounding_box()["x"] < 48
    explore(page)
    expect(page.locator(".chart .annotation-text").first).to_be_visible()
    expect(page.locator(".chart .ytick")).to_have_count(0)
    expect(page.locator(".chart .legend")).to_have_count(0)
    chosen = page.locator("[data-series]").first
    chosen.click()
    expect(chosen).to_have_attribute("aria-pressed", "true")
    wait_for_script(page, "document.querySelector('.chart').data.filter(one => one.opacity < 1).length === 1")
    chosen.click()
    wait_for_script(page, "document.querySelector('.chart').data.every(one => one.opacity === undefined)")
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_a_picture_needs_no_script_and_plotly_takes_its_place_without_a_shift(
    opened: Opening, finished: Run, browser: Browser, live_server: object, person: User
) -> None:
    bare = browser.new_context(java_script_enabled=False, base_url=str(live_server))
    sign_in(bare, person, str(live_server))
    still = bare.new_page()
    still.goto(f"/runs/{finished.pk}/?chart=operators")
    expect(still.locator(".plot rect").first).to_be_visible()
    expect(still.locator("[data-explore]").first).to_be_hidden()
    expect(still.locator("figure table").first).to_be_visible()
    bare.close()
    for size in (LAPTOP, PHONE):
        page = opened(f"/runs/{finished.pk}/?chart=operators", size=size)
        page.evaluate("""window.shifted = 0; new PerformanceObserver((list) => {
            for (const { value } of list.getEntries()) window.shifted += value;
        }).observe({ type: "layout-shift", buffered: true })""")
        high = page.locator(".chart").bounding_box()["height"]
        assert not [url for url in page.watch.requests if "plotly" in url]  # type: ignore[attr-defined]
        explore(page)
        assert page.locator(".chart").bounding_box()["height"] == high
        assert page.evaluate("window.shifted") <= 0.05
        assert page.locator(".chart .main-svg").first.bounding_box()["height"] == high


def test_the_keyboard_reaches_search_pages_and_help(opened: Opening) -> None:
    page = opened("/")
    page.keyboard.press("/")
    expect(page.locator("[data-search]")).to_be_focused()
    page.keyboard.type("gm")
    expect(page.locator("[data-search]")).to_have_value("gm")
    page.locator("[data-search]").blur()
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    # the second letter counts for a second and a half, which a busy machine may take between the two
    pressed = "document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))"
    page.evaluate(f"for (const key of 'gr') {pressed}")
    page.wait_for_url("**/runs/")


def test_a_table_is_sorted_by_its_heads_and_the_order_is_in_the_address(opened: Opening, finished: Run) -> None:
    page = opened(f"/runs/{finished.pk}/")
    page.click("#cells-table th:has-text('p50, ms') button")
    expect(page).to_have_url(re.compile("sort-cells-table=-4"))
    first = page.locator("#cells-table tbody tr").first
    expect(first).to_contain_text("batch 8 · fp32")
    page.reload()
    expect(first).to_contain_text("batch 8 · fp32")
    page.fill("[data-filter=cells-table]", "int8 1.29")
    expect(page.locator("#cells-table tbody tr:visible")).to_have_count(2)


def test_a_chart_is_chosen_without_loading_the_page_and_leads_back(opened: Opening, finished: Run) -> None:
    page = opened(f"/runs/{finished.pk}/")
    page.evaluate("window.isSamePage = true")
    page.click("nav.tabs >> text=Operators")
    expect(page.locator("#operators-title")).to_contain_text("SkipLayerNormalization")
    expect(page).to_have_url(re.compile("chart=operators"))
    assert page.evaluate("window.isSamePage")
    # htmx listens to what it brought once that has settled
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling, .htmx-added")).to_have_count(0)
    page.select_option("select[name=pair]", index=1)
    page.wait_for_url("**pair=**")
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_the_plan_follows_what_is_typed_and_starts_a_run(opened: Opening, version: Version, node: Node) -> None:
    page = opened(f"/runs/new/?version={version.pk}")
    expect(page.locator("#plan")).to_contain_text("8 cells in 1 block")
    page.fill("textarea", "runtime: [1.29.0, 1.31.1]\nprovider: [cpu, cuda]")
    expect(page.locator("#plan")).to_contain_text("2 points will not run")
    page.fill("textarea", "runtme: [1.29.0]")
    expect(page.locator("#plan")).to_contain_text("did you mean 'runtime'")
    expect(page.locator("#plan button.primary")).to_be_disabled()
    page.fill("textarea", "runtime: [1.29.0, 1.31.1]")
    expect(page.locator("#plan")).to_contain_text("2 cells in 1 block")
    # the form beside it says the same, and writes into it
    expect(page.locator("input[name=axis-runtime]")).to_have_value("1.29.0, 1.31.1")
    page.fill("input[name=axis-batch]", "1, 8")
    expect(page.locator("#plan")).to_contain_text("4 cells in 1 block")
    expect(page.locator("textarea")).to_have_value(re.compile(r"batch: \[1, 8\]"))
    expect(page.locator("input[name=axis-batch]")).to_be_focused()
    page.click("#plan button.primary")
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    expect(page.locator("h1")).to_have_text("Preparing encoder")


def test_a_model_is_uploaded_with_its_progress_and_a_refusal_stays_on_the_page(opened: Opening, models: Path) -> None:
    page = opened("/models/upload/")
    page.set_input_files("input[type=file]", files=[{"name": "notes.txt", "mimeType": "text/plain", "buffer": b"hi"}])
    page.fill("input[name=note]", "a note")
    page.click("form#upload button.primary")
    expect(page.locator("#files-error")).to_contain_text("notes.txt")
    expect(page.locator("input[name=note]")).to_have_value("a note")
    page.set_input_files("input[type=file]", str(models / "relu_op13_ir7.onnx"))
    page.click("form#upload button.primary")
    page.wait_for_url(re.compile(r"/models/\d+/\?version=1"))
    expect(page.locator("h1")).to_have_text("relu_op13_ir7 has not been measured yet")


def test_a_copy_button_copies(opened: Opening) -> None:
    page = opened("/runs/")
    page.click("button[data-copy]")
    expect(page.locator("button[data-copy]")).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == "onnxfarm submit model.onnx --wait"


def test_copied_cells_paste_into_a_spreadsheet_as_numbers(opened: Opening, finished: Run) -> None:
    page = opened(f"/runs/{finished.pk}/cells/c5/")
    page.locator("summary", has_text="more metrics").click()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#more-metrics tbody'))")
    page.keyboard.press("Control+c")
    copied = [line.split("\t") for line in page.evaluate("navigator.clipboard.readText()").split("\n")]
    assert {line[0]: float(line[1]) for line in copied if line[0] in ("throughput", "peak memory")} == {
        "throughput": 1620, "peak memory": 91,
    }  # fmt: skip
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#operators tbody'))")
    page.keyboard.press("Control+c")
    shares = [line.split("\t")[4] for line in page.evaluate("navigator.clipboard.readText()").split("\n")]
    assert shares == ["41 %", "28 %", "16 %", "15 %"]


def test_a_server_that_goes_away_is_said_and_recovers(opened: Opening, version: Version, node: Node, person: User):
    run = rows.begin_run(version, person)
    page = opened(f"/runs/{run.pk}/")
    page.route("**/*part=live*", lambda route: route.abort())
    expect(page.locator("#away")).to_be_visible(timeout=10_000)
    page.unroute("**/*part=live*")
    expect(page.locator("#away")).to_be_hidden(timeout=10_000)


def test_a_run_is_readable_on_paper(opened: Opening, finished: Run) -> None:
    # A4 at 96 dots an inch, between margins of 1 cm; chosen dark on the screen, light on paper
    page = opened(f"/runs/{finished.pk}/", size={"width": 718, "height": 1047}, scheme="light")
    page.click("[data-theme-toggle]")
    page.emulate_media(media="print", color_scheme="light")
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("#cells-table")).to_be_visible()
    for gone in ("header nav", ".tabs", ".share", ".chart-tools", "main form", "button.copy"):
        assert page.locator(gone).count(), gone
        expect(page.locator(gone).first).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(22, 25, 29)"
