"""The first ten minutes of three people, each in a real browser on an empty farm that measures on this machine.

    python -m tests.acceptance.browser.journeys [model-team] [release-engineer] [hardware-owner] [--pictures FOLDER]

Each person opens a one-time sign-in link and finds everything else on the pages; the hardware owner also types, on the
machine that joins, the command that the page shows. One line a step with the seconds since the link was opened; exit 1
when a page did not say what the person came for. Some minutes each.
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

from farm.workshop.samples import builders
from tests.acceptance.browser.chromium import CHROMIUM, SWITCHES
from tests.acceptance.browser.unscrolled import assert_says_who_how_much_how_sure_and_why
from tests.acceptance.conftest import LiveFarm, live_farm

LAPTOP = {"width": 1366, "height": 768}
TEN_MINUTES = 600.0
MEASURED_S = 540.0
# one comparison of the default matrix: what a release engineer with little time asks for
ONE_PAIR = """budget: quick
matrix:
  runtime: [1.29.0, 1.31.1]
  provider: [cpu]
  batch: [8]
  precision: [int8-dynamic]
  threads: [1]
"""
WITHOUT_RUNTIMES = ONE_PAIR.replace("  runtime: [1.29.0, 1.31.1]\n", "")


class Walk:
    """One person's way: the page they are on, and what they had reached when."""

    def __init__(self, name: str, page: Page, link: str, pictures: Path | None) -> None:
        self.name, self.page, self._link, self._pictures = name, page, link, pictures
        self.steps: list[tuple[float, str]] = []
        self._began = 0.0

    def begin(self) -> None:
        """Opens the link; the ten minutes run from here."""
        self._began = time.monotonic()
        self.page.goto(self._link)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda url: "/sign-in/" not in url)
        expect(self.page.locator("h1")).to_be_visible()

    def reached(self, what: str) -> None:
        """Notes a step, and takes its picture where pictures are wanted."""
        seconds = time.monotonic() - self._began
        self.steps.append((seconds, what))
        print(f"{self.name:17} {seconds:6.1f} s  {what}", flush=True)
        if self._pictures is not None:
            self.page.screenshot(path=self._pictures / f"{self.name}-{len(self.steps):02}.png")

    def heading(self, *, wanted: re.Pattern[str], within_s: float = 20.0) -> str:
        """Waits until the page's first words fit; gives them on one line."""
        head = self.page.locator("main h1")
        expect(head).to_contain_text(wanted, timeout=1000 * within_s)
        return " ".join(head.inner_text().split())


def model_team(walk: Walk, farm: LiveFarm, samples: Path) -> None:
    """A model with labelled data: in which precision is it fast, and is it still right?"""
    page = walk.page
    walk.begin()
    expect(page.locator("main")).to_contain_text("No runs yet")
    walk.reached("the empty home says what to do next")
    files = [samples / "digits.onnx"]
    for part in ("evaluation", "calibration"):
        files.append(samples / f"{part}.npz")
        files[-1].write_bytes((samples / f"digits.{part}.npz").read_bytes())
    upload(page, *files)
    expect(page.locator("#version header .sign").first).to_contain_text("ready", timeout=60_000)
    walk.reached(f"uploaded and inspected: {page.locator('h1').inner_text()}")
    page.click("main >> text=New run")
    page.click("text=precisions")
    expect(page.locator("#plan")).to_contain_text("cells in", timeout=20_000)
    walk.reached(f"the plan: {page.locator('#plan .strong').first.inner_text()}")
    page.click("#plan button.primary")
    page.wait_for_url(re.compile(r"/runs/\d+/$"), wait_until="commit")
    walk.reached("the run has begun")
    expect(page.locator("p.trail .sign")).to_contain_text(re.compile("complete|partial"), timeout=1000 * MEASURED_S)
    walk.reached(f"verdict: {walk.heading(wanted=re.compile('int8|fp16|fp32'))}")
    page.click("nav.tabs >> text=Accuracy")
    page.wait_for_selector("#pareto-title", timeout=20_000)
    walk.reached(f"still right? {page.locator('#pareto-title').inner_text()}")
    page.locator("table.heat td a", has_text=re.compile(r"faster|slower|undecided|=")).first.click()
    expect(page.locator("h2", has_text="Correctness")).to_be_visible()
    right = page.locator("section.panel", has=page.locator("h2", has_text="Correctness"))
    walk.reached(f"one cell: {' '.join(right.locator('p').first.inner_text().split())}")


def release_engineer(walk: Walk, farm: LiveFarm, samples: Path) -> None:
    """What did 1.31.1 change, through which operator, and who tells me the next time?"""
    page = walk.page
    walk.begin()
    upload(page, samples / "transformer.onnx")
    expect(page.locator("#version header .sign").first).to_contain_text("ready", timeout=60_000)
    walk.reached("uploaded and inspected")
    page.click("main >> text=New run")
    page.fill("textarea[name=matrix]", ONE_PAIR)
    expect(page.locator("#plan")).to_contain_text("2 cells in 1 block", timeout=20_000)
    page.click("#plan button.primary")
    page.wait_for_url(re.compile(r"/runs/\d+/$"), wait_until="commit")
    walk.reached("the run has begun")
    wait_for_a_verdict(walk)
    walk.reached(f"unscrolled: {assert_says_who_how_much_how_sure_and_why(page)}")
    page.click("nav.tabs >> text=Operators")
    expect(page.locator("#operators-title")).to_contain_text("SkipLayerNormalization")
    walk.reached(f"the operators: {page.locator('#operators-title').inner_text()}")
    page.click("p.trail >> text=transformer")
    page.click("main >> text=New watch")
    page.fill("input[name=name]", "upgrades")
    page.fill("input[name=reference]", "1.29.0")
    page.click("text=The matrix, without runtimes")
    page.fill("textarea[name=matrix]", WITHOUT_RUNTIMES)
    page.click("main button.primary")
    page.wait_for_url(re.compile(r"/watches/\d+/$"), wait_until="commit")
    walk.reached("a watch stands")
    page.fill("input[name=candidate]", "1.31.1")
    page.click("text=Run now")
    expect(page.locator(".note.good")).to_contain_text("ordered")
    walk.reached("its first round is ordered")
    # the page fills in by itself: nobody presses reload
    expect(page.locator("#alerts tbody th a").first).to_be_visible(timeout=1000 * MEASURED_S)
    walk.reached(f"the watch: {walk.heading(wanted=re.compile('.'))}")
    page.locator("#alerts tbody th a").first.click()
    page.wait_for_url(re.compile(r"/alerts/\d+/$"), wait_until="commit")
    walk.reached(f"the alert: {walk.heading(wanted=re.compile('slower than 1.29.0'))}")
    expect(page.locator("main .because")).to_contain_text("SkipLayerNormalization")
    walk.reached(f"its cause: {' '.join(page.locator('main .because').inner_text().split())}")


def hardware_owner(walk: Walk, farm: LiveFarm, samples: Path) -> None:
    """A machine joins, is approved, limited, drained and revoked; its owner sees each time where it stands."""
    page = walk.page
    walk.begin()
    expect(page.locator("main")).to_contain_text("No nodes have joined yet")
    page.click("main >> text=Add a node")
    expect(page.locator("main")).to_contain_text("No nodes yet")
    page.click("button:has-text('Add a node')")
    command = page.locator(".command code", has_text="node enroll").first.inner_text()
    walk.reached(f"the command to copy: {re.sub('ofe_[^ ]+', 'ofe_…', command)}")
    home = farm.plan.home / "garage"
    joined = node(farm, home, *shlex.split(command)[2:], "--name", "garage")
    fingerprint = re.search(r"Fingerprint: (\S+)", joined.stdout)
    assert fingerprint, joined.stdout + joined.stderr
    walk.reached("typed on the machine: it has joined, and printed its fingerprint")
    with agent(farm, home) as process:
        # the list fills in by itself: nobody presses reload
        page.click("#nodes >> text=garage", timeout=20_000)
        expect(page.locator(".note", has_text="fingerprint")).to_contain_text(fingerprint[1])
        walk.reached("the page shows the same fingerprint")
        page.click("button:has-text('Approve')")
        expect(page.locator(".note.good")).to_contain_text("garage is approved")
        expect(page.locator("h1")).to_have_text(re.compile("^garage is online, idle"), timeout=60_000)
        walk.reached("approved, and online")
        page.fill("input[name=hours]", "20:00-06:00")
        page.fill("input[name=minutes]", "soon")
        page.click("text=Save limits")
        expect(page.locator("main")).to_contain_text("“soon”: write a number")
        expect(page.locator("input[name=hours]")).to_have_value("20:00-06:00")
        page.fill("input[name=minutes]", "5")
        page.click("text=Save limits")
        expect(page.locator(".note.good")).to_contain_text("The limits of garage were saved")
        walk.reached("limits: from 20:00 to 06:00, blocks of five minutes")
        page.click("button:has-text('Drain')")
        expect(page.locator("h1")).to_contain_text("draining")
        walk.reached("draining")
        page.click("summary:has-text('Retire')")
        page.click("button:has-text('Retire')")
        expect(page.locator("h1")).to_contain_text("retired")
        walk.reached("revoked")
        assert process.wait(60) == 3
        walk.reached("the machine's agent has ended by itself")


def wait_for_a_verdict(walk: Walk) -> None:
    """Until the run is complete and says slower; a page that cannot tell yet is asked for the rounds that it offers."""
    sign = walk.page.locator("p.trail .sign")
    for more in (True, False):
        expect(sign).to_contain_text("complete", timeout=1000 * MEASURED_S)
        said = walk.heading(wanted=re.compile("1.29.0"))
        if "slower than 1.29.0" in said or not more:
            break
        walk.reached(f"not decided yet: {said}")
        walk.page.click("button:has-text('More rounds')")
        expect(sign).to_contain_text(re.compile("queued|measuring"), timeout=20_000)
    walk.heading(wanted=re.compile("slower than 1.29.0"))


def upload(page: Page, *files: Path) -> None:
    """From the empty home to the page of the new model."""
    page.click("text=Drop a model on the upload page")
    page.set_input_files("input[type=file]", [str(file) for file in files])
    page.click("form#upload button.primary")
    page.wait_for_url(re.compile(r"/models/\d+/\?version=1"), wait_until="commit")


def node(farm: LiveFarm, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`onnxfarm node …` on the machine that joins: WORDS are what follows `node`."""
    argv = [sys.executable, "-m", "onnxfarm.main", "node", *words, "--home", str(home)]
    return subprocess.run(argv, env=farm.plan.environment, capture_output=True, text=True, check=False, timeout=120)


@contextmanager
def agent(farm: LiveFarm, home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """`onnxfarm node start`, ended with its children."""
    argv = [sys.executable, "-m", "onnxfarm.main", "node", "start", "--home", str(home)]
    with (home.parent / "garage.log").open("wb") as log:
        process = subprocess.Popen(
            argv, env=farm.plan.environment, stdout=log, stderr=subprocess.STDOUT, process_group=0
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


JOURNEYS: dict[str, Callable[[Walk, LiveFarm, Path], None]] = {
    "model-team": model_team,
    "release-engineer": release_engineer,
    "hardware-owner": hardware_owner,
}


def walked(name: str, browser: Browser, *, pictures: Path | None) -> bool:
    """One journey on a farm of its own; whether the person got there within ten minutes."""
    with tempfile.TemporaryDirectory(prefix="onnxfarm-journey-") as folder:
        os.environ["ONNXFARM_HOST_LOCK"] = str(Path(folder) / "lock")
        samples = Path(folder) / "samples"
        builders.write_all(samples)
        with contextmanager(live_farm)(Path(folder) / "home", with_node=name != "hardware-owner") as farm:
            # the browser draws on the cores that are measured: nothing moves in it
            context = browser.new_context(viewport=LAPTOP, reduced_motion="reduce")
            walk = Walk(name, context.new_page(), farm.opened.link, pictures)
            try:
                JOURNEYS[name](walk, farm, samples)
            except (AssertionError, Error) as problem:
                walk.reached("lost its way on " + walk.page.url)
                print(problem, file=sys.stderr)
                print(walk.page.locator("main").inner_text()[:3000], file=sys.stderr)
                return False
            finally:
                context.close()
            return walk.steps[-1][0] <= TEN_MINUTES


def main() -> int:
    """0 when everybody got there within ten minutes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="WHO", help=f"of {', '.join(JOURNEYS)}; all by default")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="a picture of each step")
    options = parser.parse_args()
    if CHROMIUM is None:
        parser.error("no Chromium on PATH: install Debian's chromium")
    names = options.names or list(JOURNEYS)
    if unknown := [name for name in names if name not in JOURNEYS]:
        parser.error(f"nobody is called {unknown[0]!r}: choose of {', '.join(JOURNEYS)}")
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        fates = {name: walked(name, browser, pictures=options.pictures) for name in names}
        browser.close()
    return 0 if all(fates.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
