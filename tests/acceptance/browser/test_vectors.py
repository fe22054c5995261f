"""The browser's runner settles windows, compares outputs and reads profiles as the shared vectors say."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route

from farm.contract.cells import Budget
from farm.gateway import tab
from tests.unit.worker.test_vectors import assert_alike
from tests.vectors import SUBJECTS, read
from worker.agent.measurement.orders import make_budget_part
from worker.runner.order import BudgetOrder

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
FOUND = {
    "windows": """async ({ inferences_ms, budget }) => {
      const { budgetOf, median, measure, warmUp } = await import("./windows.js");
      const all = inferences_ms.flatMap(([number, ms]) => Array(number).fill(ms));
      let [now, calls] = [0, 0];
      performance.now = () => now;
      const call = async () => void (now += all[Math.min(calls++, all.length - 1)]);
      const warm = await warmUp(call, budgetOf(budget));
      const taken = await measure(call, budgetOf(budget), 1);
      delete performance.now;
      return { warmup_runs: warm.runs, warmup_ms: warm.wallMs, has_agreed: warm.agreed, n: taken.nanoseconds.length,
        wall_ms: taken.wallMs, is_stable: taken.isStable, p50_ms: median(taken.nanoseconds) / 1e6 };
    }""",
    "parity": """async ({ output, reference, atol, rtol }) => {
      const [{ compareOutput }, { arrayOf }] = await Promise.all([import("./parity.js"), import("./npz.js")]);
      const tensor = ({ dtype, shape, data }) => {
        const number = dtype.endsWith("int64") ? BigInt : Number;
        return { dtype, shape, data: arrayOf(dtype).from(data, (one) => number(one)) };
      };
      return compareOutput("y", tensor(output), reference ? tensor(reference) : undefined, { atol, rtol });
    }""",
    "profile": """async ({ events, skipped }) => {
      const { runs, runUs, rows } = (await import("./profile.js")).rowsOf(events, skipped);
      return { runs, run_us: runUs, rows };
    }""",
}


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """The modules of the tab, in a page of their own; no farm."""

    def served(route: Route) -> None:
        body, kind, headers = tab.load_page_file(PurePosixPath(urlsplit(route.request.url).path).name)
        route.fulfill(body=body, headers={**headers, "Content-Type": kind})

    context = browser.new_context(ignore_https_errors=True)
    context.route("**/*", served)
    page = context.new_page()
    page.goto("https://farm.test/api/node/v1/tab/index.html")
    yield page
    context.close()


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_browser_finds_what_the_vectors_say(page: Page, subject: str) -> None:
    problems = []
    for case in read(subject):
        found = page.evaluate(FOUND[subject], case)
        try:
            assert_alike(found, case["found"])
        except AssertionError as problem:
            problems.append(f"{case['name']}: {found}, and not {case['found']}: {problem}"[:1000])
    assert problems == []


@pytest.mark.parametrize("budget", Budget)
def test_the_browser_s_budgets_are_those_of_every_node(page: Page, budget: Budget) -> None:
    found: dict[str, Any] = page.evaluate("async (name) => (await import('./windows.js')).budgetOf(name)", budget.value)
    assert found == vars(BudgetOrder(**make_budget_part(budget)))
