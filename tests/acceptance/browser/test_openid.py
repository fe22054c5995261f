"""Signing in through a certified OpenID provider (npm oidc-provider), in a real browser."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from django.core.cache import cache
from playwright.sync_api import Browser, Page, expect
from pytest_django import Settings

from farm.accounts.models import Membership, Team, User
from farm.accounts.openid.people import map_group
from farm.accounts.openid.registration import Registration
from farm.accounts.states import Role
from farm.config.embedded.plan import find_free_port
from tests.acceptance.browser.chromium import PATIENCE_MS
from tests.acceptance.browser.conftest import LAPTOP, Watch
from tests.conftest import make_user
from tests.processes import wait_for

VERSION = "9.13.3"
SCRIPT = Path(__file__).with_name("openid_provider.mjs")
PEOPLE = {
    "u-ada": {"preferred_username": "ada", "email": "ada@example.com", "groups": ["vision-dev", "leads"]},
    "u-bob": {"preferred_username": "bob"},
}

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with oidc-provider beside the script that starts it."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("No node and npm here: sign-in through a certified OpenID provider is not tested.")
    folder = tmp_path_factory.mktemp("openid")
    command = [npm, "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(
        [*command, f"oidc-provider@{VERSION}"], capture_output=True, text=True, check=False, timeout=90
    )
    if done.returncode != 0:
        pytest.skip(f"npm cannot install oidc-provider here, sign-in through it is not tested: {done.stderr[-200:]}")
    shutil.copy(SCRIPT, folder)
    return folder


class Provider:
    """The provider's process; `people` is what it says of them from now on."""

    def __init__(self, modules: Path, folder: Path, farm: str) -> None:
        port = find_free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._file = folder / "people.json"
        self.says(PEOPLE)
        words = ["node", SCRIPT.name, str(port), farm, str(self._file)]
        self._log = (folder / "provider.log").open("wb")
        self._process = subprocess.Popen(words, cwd=modules, stdout=self._log, stderr=self._log)
        wait_for(self._answers, what="the OpenID provider", seconds=15)

    def says(self, people: dict[str, dict[str, object]]) -> None:
        self._file.write_text(json.dumps(people))

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        self._log.close()

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/.well-known/openid-configuration").is_success
        except httpx2.TransportError:
            return False


@pytest.fixture
def provider(modules: Path, tmp_path: Path, live_server: object, settings: Settings) -> Iterator[Provider]:
    one = Provider(modules, tmp_path, str(live_server))
    settings.PUBLIC_URL = str(live_server)
    settings.OPENID = Registration(
        issuer=one.url, client_id="farm", secret="a-secret-of-the-tests", name="login.example",
        scopes=("openid", "profile", "email", "groups"),
    )  # fmt: skip
    yield one
    one.stop()


@pytest.fixture
def page(browser: Browser, live_server: object, transactional_db: None) -> Iterator[Page]:
    context = browser.new_context(viewport=LAPTOP, base_url=str(live_server))
    context.set_default_timeout(PATIENCE_MS)
    one = context.new_page()
    one.watch = Watch(context)  # type: ignore[attr-defined]
    yield one
    context.close()


def go_to_provider(page: Page, path: str = "/runs/") -> None:
    """From a page that asks for signing in to the provider's own form."""
    page.goto(path)
    page.get_by_role("button", name="Sign in with login.example").click()
    page.wait_for_url("**/interaction/**")


def sign_in(page: Page, subject: str, path: str = "/runs/") -> None:
    """The provider's form, its consent, and back."""
    go_to_provider(page, path)
    page.locator("[name=login]").fill(subject)
    page.locator("[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(re.compile(r"^http://localhost:"))


def test_groups_give_roles_and_take_them_away_and_signing_out_ends_both_sessions(
    page: Page, provider: Provider, live_server: object
) -> None:
    team = Team.objects.create(name="vision")
    root = make_user("root", team=team, role=Role.ADMIN)
    User.objects.filter(pk=root.pk).update(is_superuser=True, email="ada@example.com")
    root.refresh_from_db()
    map_group(group="vision-dev", team=team, role=Role.MEMBER, by=root)

    sign_in(page, "u-ada")
    page.wait_for_url(f"{live_server}/runs/")
    expect(page.get_by_text("Your account “ada” was made.")).to_be_visible()
    assert Membership.objects.get(user__username="ada").role == Role.MEMBER

    page.get_by_role("button", name="ada").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Yes, sign me out").click()
    page.wait_for_url(f"{live_server}/sign-in/**")
    page.goto("/runs/")
    assert "/sign-in/" in page.url

    provider.says({"u-ada": {"preferred_username": "ada", "groups": []}})
    sign_in(page, "u-ada")
    page.wait_for_url(f"{live_server}/runs/")
    assert not Membership.objects.filter(user__username="ada").exists()
    assert sorted(User.objects.values_list("username", flat=True)) == ["ada", "root"]
    # the provider's own pages want fonts of others; this farm's want nothing from elsewhere
    assert {urlsplit(url).hostname for url in page.watch.foreign} <= {"fonts.googleapis.com"}  # type: ignore[attr-defined]


def test_what_goes_wrong_at_a_provider_is_one_sentence_on_the_farm_s_own_page(
    page: Page, provider: Provider, live_server: object, settings: Settings
) -> None:
    team = Team.objects.create(name="vision")
    root = make_user("root", team=team, role=Role.ADMIN)
    User.objects.filter(pk=root.pk).update(is_superuser=True)
    root.refresh_from_db()
    map_group(group="vision-dev", team=team, role=Role.MEMBER, by=root)
    heading = page.get_by_role("heading", level=1)

    go_to_provider(page)
    page.get_by_role("link", name="Cancel").click()
    expect(heading).to_have_text("login.example did not get your consent, so nobody was signed in.")

    # the same way back once more: the state was used
    page.goto(page.url)
    expect(heading).to_contain_text("This sign-in was used already")

    sign_in(page, "u-bob")
    expect(heading).to_contain_text("login.example sent no “groups”")
    assert not User.objects.filter(username="bob").exists()

    cache.clear()
    known = settings.OPENID
    settings.OPENID = Registration(
        issuer=known.issuer.replace("127.0.0.1", "localhost"), client_id="farm", secret="x", name="login.example"
    )
    page.goto("/sign-in/")
    page.get_by_role("button", name="Sign in with login.example").click()
    expect(heading).to_contain_text("login.example says that it is “http://127.0.0.1:")

    cache.clear()
    settings.OPENID = known
    provider.stop()
    page.goto("/sign-in/")
    page.get_by_role("button", name="Sign in with login.example").click()
    expect(heading).to_have_text("login.example does not answer, so nobody was signed in.")
