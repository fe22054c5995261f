"""axe-core finds no violation on any page, light and dark. It comes from npm, or from the file ONNXFARM_AXE names."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from farm.accounts.models import User
from farm.alerts.services.channels import create_channel
from farm.fleet.states import NodeHealth
from farm.registry.models import Variant
from farm.registry.states import VersionState
from farm.runs.services.share_links import share
from tests.acceptance.browser.conftest import LAPTOP, sign_in
from tests.integration.alerts.driving import make_watch
from tests.integration.dashboard import rows, watching

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
VERSION = "4.14.1"
RULES = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']"
# a scheme changes nothing but colours: of the dark one only these rules say anything new
OF_COLOURS = "{type: 'rule', values: ['color-contrast', 'link-in-text-block']}"
# what breathes begins anew, for it keeps the colours of its scheme, and stands still where they differ most
HALFWAY = """document.getAnimations().map(one => one.effect.target).forEach(element => {
  element.style.animation = "none";
  element.getAnimations();
  element.style.animation = "";
});
document.getAnimations().forEach(one => {
  one.pause();
  one.currentTime = one.effect.getComputedTiming().duration / 2;
})"""
# axe looks at no placeholder: the contrast of each with what lies behind it, as the browser paints them
PLACEHOLDERS = """() => {
  const pixel = (colours) => {
    const context = new OffscreenCanvas(1, 1).getContext("2d");
    for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => rgb.map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  return [...document.querySelectorAll("[placeholder]")].filter((field) => field.checkVisibility()).map((field) => {
    const behind = [];
    for (let one = field; one; one = one.parentElement) behind.unshift(getComputedStyle(one).backgroundColor);
    const own = getComputedStyle(field, "::placeholder");
    const words = own.opacity === "1" ? own.color : "transparent";
    const [low, high] = [light(pixel(behind)), light(pixel([...behind, words]))].sort((a, b) => a - b);
    return [(high + 0.05) / (low + 0.05), field.placeholder];
  }).filter(([contrast]) => contrast < 4.5).map(([contrast, words]) => `${words}: ${contrast.toFixed(2)}`);
}"""
GROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of axe.min.js."""
    named = os.environ.get("ONNXFARM_AXE")
    if named:
        return Path(named).read_text()
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("Neither npm nor ONNXFARM_AXE: axe-core cannot be had, accessibility is not checked.")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", f"axe-core@{VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        pytest.skip(f"npm cannot install axe-core here, accessibility is not checked: {done.stderr[-200:]}")
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


@pytest.fixture
def page(browser: Browser, live_server: object, person: User) -> Iterator[Page]:
    # axe is put into the page from outside, which the pages' own policy would not allow
    context = browser.new_context(viewport=LAPTOP, base_url=str(live_server), bypass_csp=True)
    sign_in(context, person, str(live_server))
    yield context.new_page()
    context.close()


def violations(page: Page, rules: str, *, where: str) -> list[str]:
    """What axe finds by these rules in the page that is open; nothing else of it is worked out."""
    page.evaluate(HALFWAY)
    run = (
        f"axe.run({{runOnly: {rules}, resultTypes: ['violations'], selectors: false}}).then(found => found.violations)"
    )
    found = [f"{where}: {one['id']}: {one['nodes'][0]['html'][:200]}" for one in page.evaluate(run)]
    return found + [f"{where}: placeholder {words}" for words in page.evaluate(PLACEHOLDERS)]


def test_a_pale_placeholder_is_noticed(page: Page) -> None:
    page.set_content('<body style="background: #fff"><input placeholder="pale" style="background: transparent">')
    page.add_style_tag(content="::placeholder { color: #999; opacity: 1; }")
    assert page.evaluate(PLACEHOLDERS) == ["pale: 2.85"]


def test_axe_finds_no_violation_on_any_page_light_or_dark(page: Page, person: User, axe: str) -> None:
    team = person.memberships.get().team
    version, node = rows.make_version(team, person), rows.make_node(team, person)
    run = rows.finished_run(version, node, person, crashes=[1])
    open_ = rows.begin_run(version, person)
    rows.MadeUpNode(node).measure(open_, most_rounds=2)
    pending = rows.make_node(team, person, name="pi", health=NodeHealth.PENDING)
    rejected = rows.make_version(team, person, name="broken", state=VersionState.REJECTED)
    watch = make_watch(version, person)
    alert = watching.bare_alert(watch, version)
    watching.bare_round(watch, version)
    watching.long_series(watch, version, 12, step_at=8)
    channel = create_channel(team=team, by=person, name="hook", kind="webhook", target="https://example.org/hook")
    variant = Variant.objects.filter(artifact=version.artifact).latest("pk")
    cells = f"{run.pk}:c1,{run.pk}:c5"
    subjects = {"run": str(run.pk), "cell": f"{run.pk}:c5", "model": str(version.model_id), "compare": cells}
    subjects["hardware"] = str(version.model_id)
    links = [share(kind=kind, subject=subject, by=person)[1] for kind, subject in subjects.items()]
    found = []
    for path in (
        "/", "/models/", f"/models/{version.model_id}/", f"/models/{version.model_id}/hardware/?budget=5",
        f"/models/{rejected.model_id}/", "/models/upload/", "/runs/",
        "/runs/new/", f"/runs/{run.pk}/", f"/runs/{run.pk}/?chart=operators", f"/runs/{run.pk}/?metric=p50",
        f"/runs/{open_.pk}/", f"/runs/{run.pk}/cells/c5/",
        f"/runs/{run.pk}/cells/c5/?view=trace", f"/models/versions/{version.pk}/graph/?cell={run.pk}:c5",
        "/fleet/", f"/fleet/{node.pk}/", f"/fleet/{pending.pk}/",
        f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5", f"/compare/?runs={run.pk}&runs={open_.pk}",
        "/settings/tokens/", "/settings/channels/",
        "/nowhere/",
        "/alerts/", "/alerts/?state=all&days=7", f"/alerts/{alert.pk}/", "/watches/",
        "/watches/new/", f"/watches/{watch.pk}/",
        f"/watches/{watch.pk}/edit/", "/trends/", "/fleet/runtimes/",
        "/releases/onnxruntime/1.31.1/", "/releases/onnxruntime/1.30.0/", f"/settings/channels/{channel.pk}/",
        "/settings/shares/", "/settings/audit/", "/shared/ofp_nobody-made-this/",
        "/settings/teams/", f"/settings/teams/{team.pk}/", "/search/?q=enc", "/docs/", "/docs/verdicts",
        "/docs/?q=alert", f"/variants/{variant.pk}/", "/trends/?by=release", "/compare/", "/sign-in/",
        *(urlsplit(link).path for link in links),
    ):  # fmt: skip
        page.emulate_media(color_scheme="light")
        page.goto(path)
        page.evaluate(axe)
        found += violations(page, RULES, where=path)
        by_day = page.evaluate(GROUND)
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(GROUND) != by_day, f"{path} has no dark scheme"
        found += violations(page, OF_COLOURS, where=f"{path}, dark")
    assert not found, "\n".join(found)
