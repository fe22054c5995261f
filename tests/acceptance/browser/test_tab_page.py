"""The page that makes a browser a node: joining, what stands in the way, its arithmetic, and a tab that lies."""

import base64
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from farm.accounts.models import User
from farm.fleet.models import Node
from farm.fleet.services import invite
from worker.runner import parity

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PHONE = {"width": 390, "height": 844}
PAGE = "/api/node/v1/tab/index.html"
WAIT_MS = 60_000
Opening = Callable[..., Page]


@pytest.fixture
def tab(browser: Browser, live_server: object) -> Iterator[Opening]:
    """Opens the page in a browser of its own, after `script` has taken something away from it."""
    contexts = []

    def open_page(code: str = "", *, script: str = "") -> Page:
        context = browser.new_context(viewport=PHONE, base_url=str(live_server))
        contexts.append(context)
        context.add_init_script(script)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.goto(f"{PAGE}#{code}")
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def code(person: User) -> str:
    return invite(team=person.memberships.get().team, by=person)[1]


def join(page: Page, name: str) -> None:
    page.get_by_label("Name of this device").fill(name)
    page.get_by_role("button", name="Join").click()


def test_a_browser_joins_and_shows_the_fingerprint_that_the_farm_has(tab: Opening, code: str) -> None:
    page = tab(code)
    join(page, "phone-1")
    page.wait_for_selector("body[data-state=pending]")
    node = Node.objects.get(name="phone-1")
    assert page.inner_text("#fingerprint") == node.fingerprint
    assert node.is_browser
    assert node.facts.more["is_isolated"] is True
    assert "waits for approval" in page.inner_text("#sentence")
    assert code not in page.url
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    kept = page.evaluate(
        "import('./identity.js').then((own) => own.load()).then((one) => one.keys.privateKey.extractable)"
    )
    assert kept is False


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("WebAssembly.validate = () => false", "This browser has no WebAssembly SIMD, which ONNX Runtime Web needs"),
        (
            "crypto.subtle.generateKey = () => Promise.reject(new DOMException('no', 'NotSupportedError'))",
            "This browser makes no Ed25519 keys, by which the farm knows its nodes",
        ),
        (
            "Object.defineProperty(self, 'crossOriginIsolated', {value: false})",
            "This page is not isolated from other sites",
        ),
        ("Object.defineProperty(self, 'isSecureContext', {value: false})", "is not an https:// address"),
    ],
)
def test_what_a_browser_lacks_is_said_before_it_is_asked_to_join(tab: Opening, script: str, sentence: str) -> None:
    page = tab(script=script)
    obstacles = page.locator("#obstacles li")
    expect(obstacles).to_have_count(1, timeout=WAIT_MS)
    assert sentence in obstacles.inner_text()
    assert not page.is_visible("#join")


def test_a_code_that_was_never_given_is_refused_in_the_farms_words(tab: Opening, person: User) -> None:
    page = tab("ofe_nobody-made-this")
    join(page, "phone-2")
    expect(page.locator("#sentence")).to_contain_text("was used, has expired or never existed", timeout=WAIT_MS)
    assert not Node.objects.filter(name="phone-2").exists()


def _saved(packed: bool, **arrays: Any) -> str:
    file = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(file, **arrays)
    return base64.b64encode(file.getvalue()).decode()


COMPARED = """async ([one, other]) => {
  const [npz, parity] = await Promise.all([import("./npz.js"), import("./parity.js")]);
  const read = (text) => npz.readArrays(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer);
  const [found, wanted] = [await read(one), await read(other)];
  const limits = { atol: 1e-5, rtol: 1e-4 };
  return Object.keys(found).map((name) => parity.compareOutput(name, found[name], wanted[name], limits));
}"""


def test_a_browser_reads_arrays_and_compares_outputs_as_every_node_does(tab: Opening, person: User) -> None:
    dice = np.random.default_rng(1)
    wanted = {
        "scores": dice.standard_normal((4, 10)).astype(np.float32),
        "counts": np.arange(6, dtype=np.int64).reshape(2, 3),
        "odd": np.array([1.0, np.nan, np.inf, 0.0, -np.inf], dtype=np.float32),
        "half": dice.standard_normal((3, 5)).astype(np.float16),
        "scalar": np.float64(3.5),
        "nothing": np.zeros((0, 3), dtype=np.float32),
    }
    found = {name: np.array(array) for name, array in wanted.items()}
    found["scores"][1, 2] += 0.5
    found["counts"][1, 1] += 1
    found["odd"][1:3] = np.inf
    found["half"] = (found["half"] * np.float16(1.01)).astype(np.float16)
    told = tab().evaluate(COMPARED, [_saved(False, **found), _saved(True, **wanted)])
    for said, (name, array) in zip(told, found.items(), strict=True):
        right = parity.compare_output(name, array, wanted[name], atol=1e-5, rtol=1e-4)
        for key, value in right.items():
            if isinstance(value, float):
                assert said[key] == pytest.approx(value, rel=1e-9), f"{name}.{key}"
            else:
                assert said.get(key) == value, f"{name}.{key}"


ROUNDS = """async (arms) => {
  const { roundOrder } = await import("./rounds.js");
  return Array.from({ length: 2 * arms.length }, (_, round) => roundOrder(arms, round, "block/1"));
}"""


@pytest.mark.parametrize("arms", [[0, 1], [0, 2, 5], [3, 1, 4, 2]])
def test_over_the_rounds_every_arm_stands_in_every_place_as_often(tab: Opening, person: User, arms: list[int]) -> None:
    orders = tab().evaluate(ROUNDS, arms)
    for place in range(len(arms)):
        assert sorted(order[place] for order in orders) == sorted(2 * arms)


PACE = """async () => {
  const { Pace } = await import("./pace.js");
  const [pace, open] = [new Pace(100), new Pace(null)];
  const before = pace.remainingS(8, 0);
  for (const one of [pace, open]) { one.traceS = 1; one.measured(2); }
  return [before, pace.remainingS(7.5, 0), pace.remainingS(0, 3), pace.remainingS(80, 0),
    new Pace(null).remainingS(8, 0), open.remainingS(8, 0)];
}"""


def test_how_long_yet_follows_the_pace_of_the_last_round_within_what_was_promised(tab: Opening, person: User) -> None:
    promised, rounds, traces, capped, unknown, unlimited = tab().evaluate(PACE)
    assert [promised, capped] == pytest.approx([100, 100], abs=5)
    assert (rounds, traces, unknown, unlimited) == (15, 3, None, 16)


GROUPS = """async (runs) => {
  const { groupOf } = await import("./windows.js");
  return runs.map(([runMs, resolutionMs]) => groupOf(runMs, resolutionMs));
}"""


def test_inferences_shorter_than_100_steps_of_the_clock_are_timed_several_at_once(tab: Opening, person: User) -> None:
    runs = [[20.0, 0.1], [10.0, 0.1], [5.0, 0.1], [0.3, 0.1], [0.0, 0.1], [0.4, 0.005]]
    groups = tab().evaluate(GROUPS, runs)
    assert groups == [1, 1, 2, 34, 1000, 2]
    assert all(group * max(run, clock / 10) >= 100 * clock for group, (run, clock) in zip(groups, runs, strict=True))


BATTERY = """async ({ level, charging }) => {
  navigator.getBattery = async () => ({ level, charging });
  const { pauseOfDevice } = await import("./device.js");
  return pauseOfDevice();
}"""


def test_on_a_low_battery_nothing_is_measured_until_it_is_charged(tab: Opening, person: User) -> None:
    page = tab()
    low = page.evaluate(BATTERY, {"level": 0.14, "charging": False})
    assert low == "The battery is at 14 %: connect a charger to go on."
    assert page.evaluate(BATTERY, {"level": 0.14, "charging": True}) == ""
    assert page.evaluate(BATTERY, {"level": 0.6, "charging": False}) == ""


# a node whose farm gives it one block; the files of its one arm take as long as the page is not bothered
GIVEN_BACK = """async (what) => {
  const { Node } = await import("./node.js");
  const [{ sleep }, { Problem }] = await Promise.all([import("./farm.js"), import("./problem.js")]);
  const sent = [];
  const body = btoa(JSON.stringify([[], { block: "7", attempt: 1 }]));
  const cell = { runtime: { distribution: "onnxruntime-web", version: "1.30.0" }, provider: "WasmExecutionProvider" };
  const order = { block: "7", attempt: 1, arms: [{ arm: 0, cell }], divergences: [], block_timeout_s: 600 };
  let offers = 0;
  const node = new Node({
    secret: "x",
    hello: async () => ({ health: "active", queues: ["cpu"], settings: { wait_s: 1, hello_every_s: 60 } }),
    message: async () => offers++ ? sleep(60) : { message: { body } },
    claim: async () => ({ order, token: "t", lease_s: 0.4 }),
    heartbeat: async () => ({ lease_s: 0.4 }),
    report: async (_, report) => (sent.push(report), { go_on: true }),
  }, { name: "phone" });
  node.abilities = { tags: {}, providers: [], selfTest: null };
  node.files = { ready: [], runtime: async () => {
    if (what === "battery") navigator.getBattery = async () => ({ level: 0.1, charging: false });
    if (what === "hidden") {
      Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
      node.reconsider();
    }
    for (let tries = 0; tries < 100 && !node.now.signal.aborted; tries++) await sleep(0.1);
    throw new Problem("artifact_unavailable", "The page went on.");
  } };
  const said = new Promise((done) => {
    node.onChange = ({ state, sentence }) => state === "paused" && done(sentence);
  });
  node.run();
  const sentence = await said;
  node.isOver = true;
  return [sent.map(({ kind, reason }) => [kind, reason?.code ?? ""]), sentence];
}"""


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("battery", "The battery is at 10 %: connect a charger to go on."),
        ("hidden", "The page is hidden: show it to go on."),
    ],
)
def test_a_block_in_the_middle_goes_back_when_the_battery_is_low_or_the_page_is_hidden(
    tab: Opening, person: User, what: str, sentence: str
) -> None:
    sent, said = tab().evaluate(GIVEN_BACK, what)
    assert sent == [["facts", ""], ["end", "cancelled"]]
    assert said == sentence


JOINED = """async (code) => {
  const [{ Farm }, own] = await Promise.all([import("./farm.js"), import("./identity.js")]);
  const keys = await own.makeKeys();
  const facts = { hostname: "x", os: "x", arch: "x86_64", sandbox: "browser" };
  const enrolment = { code, name: "liar", public_key: await own.publicKey(keys), facts, contract_version: 2 };
  const { node_id: nodeId } = await new Farm().enrol(enrolment);
  self.identity = { nodeId, name: "liar", fingerprint: "", keys };
}"""
FORGED = """async () => {
  const [{ Farm }, own] = await Promise.all([import("./farm.js"), import("./identity.js")]);
  const said = async (act) => act().then(() => "taken", (problem) => `${problem.status} ${problem.code}`);
  const identity = self.identity;
  const stranger = await own.makeKeys();
  const farm = new Farm();
  const facts = { hostname: "x", os: "x", arch: "x86_64", sandbox: "browser" };
  const hello = { contract_version: 2, facts, tags: {}, providers: [] };
  const proof = await own.proof(identity);
  const answers = {
    "another key": await said(async () => farm.grant(await own.proof({ ...identity, keys: stranger }))),
    "another node": await said(async () => farm.grant({ ...proof, node_id: "999999" })),
    "an old proof": await said(async () => farm.grant({ ...proof, signed_at: proof.signed_at - 3600 })),
    "more than was asked": await said(async () => farm.grant({ ...proof, is_admin: true })),
    "no secret": await said(() => farm.hello(hello)),
    "no secret for a runtime": await said(() => farm.runtime("1.30.0")),
  };
  farm.secret = (await farm.grant(proof)).secret;
  const order = { block: "1", attempt: 1 };
  const end = { kind: "end", wall_s: 0 };
  return { ...answers,
    "a tag without evidence": await said(() => farm.hello({ ...hello, tags: { wasm: " " } })),
    "a tag that no probe showed": await said(() => farm.hello({ ...hello, tags: { wasm: "trust me" } })),
    "another architecture": await said(() => farm.hello({ ...hello, tags: { arm: "trust me" } })),
    "a block that is nobody's": await said(() => farm.claim("999999", 1)),
    "a heartbeat of no lease": await said(() => farm.heartbeat({ order, token: "ofa_x" }, "")),
    "a report of no lease": await said(() => farm.report({ order, token: "ofa_x" }, end)),
    "a report of no kind": await said(() => farm.report({ order, token: "ofa_x" }, { kind: "verdict" })),
    "a trace of no lease": await said(() => farm.trace({ order, token: "ofa_x" }, 0, 0, new Blob(["x"]))),
    "a file of no lease": await said(() => farm.file("0".repeat(64), "ofa_x")),
    "a file of no runtime": await said(() => farm.runtimeFile("0".repeat(64))),
    "no release": await said(() => farm.runtime("latest")),
    "the truth": await said(() => farm.hello(hello)),
  };
}"""


def test_a_tab_that_lies_is_refused_like_any_node(tab: Opening, code: str) -> None:
    page = tab()
    page.evaluate(JOINED, code)
    Node.objects.filter(name="liar").update(health="active")
    answers = page.evaluate(FORGED)
    assert answers == {
        "another key": "403 bad_signature",
        "another node": "403 bad_signature",
        "an old proof": "403 bad_clock",
        "more than was asked": "422 invalid",
        "no secret": "401 unknown_node",
        "no secret for a runtime": "401 unknown_node",
        "a tag without evidence": "422 false_tag",
        "a tag that no probe showed": "422 false_tag",
        "another architecture": "422 false_tag",
        "a block that is nobody's": "409 stale",
        "a heartbeat of no lease": "409 stale",
        "a report of no lease": "409 stale",
        "a report of no kind": "422 invalid",
        "a trace of no lease": "409 stale",
        "a file of no lease": "403 bad_token",
        "a file of no runtime": "404 not_found",
        "no release": "404 not_found",
        "the truth": "taken",
    }
