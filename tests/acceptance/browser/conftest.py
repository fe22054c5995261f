"""A real browser: Debian's Chromium, driven by Playwright; it may talk to this machine only."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Route

from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Run
from tests.acceptance.browser.chromium import PATIENCE_MS, SHELL, launched
from tests.conftest import make_user
from tests.integration.dashboard import rows

LAPTOP = {"width": 1366, "height": 768}
PHONE = {"width": 360, "height": 740}
LOCAL = ("127.0.0.1", "localhost")

Opening = Callable[..., Page]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launched(SHELL) as one:
        yield one


class Watch:
    """What a browser did that it should not: requests elsewhere, errors on its console, answers that failed."""

    def __init__(self, context: BrowserContext) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        context.route("**/*", self._local_only)
        context.on("console", self._heard)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))

    def _local_only(self, route: Route, request: Request) -> None:
        self.requests.append(request.url)
        parts = urlsplit(request.url)
        if parts.scheme in ("data", "blob") or parts.hostname in LOCAL:
            route.continue_()
        else:
            route.abort()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    @property
    def foreign(self) -> list[str]:
        """Addresses outside this machine that the browser wanted."""
        return [url for url in self.requests if urlsplit(url).hostname not in (*LOCAL, None)]

    def assert_is_clean(self) -> None:
        assert self.foreign == []
        assert self.complaints == []


@pytest.fixture
def person(transactional_db: None) -> User:
    """An admin of a team of their own."""
    return make_user("owner", team=Team.objects.create(name="vision"), role="admin")


@pytest.fixture
def version(person: User) -> Version:
    return rows.make_version(person.memberships.get().team, person)


@pytest.fixture
def node(person: User) -> Node:
    return rows.make_node(person.memberships.get().team, person)


@pytest.fixture
def finished(version: Version, node: Node, person: User) -> Run:
    """A run in which 1.31.1 is a quarter slower."""
    return rows.finished_run(version, node, person)


@pytest.fixture
def opened(browser: Browser, live_server: object, person: User) -> Iterator[Opening]:
    """Opens pages of a live server, signed in: opened("/runs/"). The page has a `watch`."""
    contexts: list[BrowserContext] = []
    base = str(live_server)

    def open_page(path: str, *, size: dict[str, int] = LAPTOP, scheme: str = "light") -> Page:
        context = browser.new_context(viewport=size, color_scheme=scheme, base_url=base)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.watch = Watch(context)  # type: ignore[attr-defined]
        sign_in(context, person, base)
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()


def sign_in(context: BrowserContext, user: User, base: str) -> None:
    """A session of theirs, without the pages of a one-time link: test_pages presses its button."""
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": base}])


def press_sign_in(page: Page, link: str) -> None:
    """Opens a one-time link and presses its button; the page that follows is there when this returns."""
    page.goto(link)
    with page.expect_navigation():
        page.get_by_role("button", name="Sign in").click()


def explore(page: Page) -> None:
    """Has Plotly drawn the first chart in place of the server's picture."""
    page.locator("[data-explore]").first.click()
    page.wait_for_selector(".chart.ready", timeout=PATIENCE_MS)
