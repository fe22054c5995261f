"""A release of ONNX Runtime Web that attacks: loaded as every release is, it reaches what reads its answer alone."""

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from farm.accounts.models import Token, User
from tests.acceptance.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]
PAGE = "/api/node/v1/tab/index.html"
HOSTILE = (Path(__file__).parent / "hostile.js").read_text("utf-8")
Opening = Callable[..., Page]


class Elsewhere(Served):
    """Another origin, which answers everybody and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(200)
                self.send_header("Access-Control-Allow-Origin", "*")
                self.send_header("Cross-Origin-Resource-Policy", "cross-origin")
                self.send_header("Content-Type", "text/javascript")
                self.end_headers()

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        super().__init__(server)
        self.url = f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    with Elsewhere() as server:
        yield server


@pytest.fixture
def page(opened: Opening) -> Page:
    """The page of a browser that is a node, of somebody who is signed in."""
    return opened(PAGE)


# a farm whose release is this module; its glue is nothing, its binary an empty module of WebAssembly
LAUNCHED = """async ([module, provider, kind, config, timeoutS]) => {
  const modules = ["files", "contract", "identity"].map((name) => import(`./${name}.js`));
  const [{ Files }, { ENGINES }, { sha256 }] = await Promise.all(modules);
  const contents = [module, "", Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)].map((content) => new Blob([content]));
  const held = new Map();
  const files = await Promise.all(contents.map(async (content, at) => {
    const bytes = await content.arrayBuffer();
    const ref = { name: ENGINES[provider].files[at], sha256: await sha256(bytes), bytes: bytes.byteLength };
    held.set(ref.sha256, bytes);
    return ref;
  }));
  const farm = { runtime: async () => ({ is_ready: true, files }), runtimeFile: async (digest) => held.get(digest) };
  const sandbox = await new Files(farm).runtime("1.30.0", provider);
  const session = { threads: 1, optimization: "all", spinning: true, memory_pattern: true, arena: true, config };
  const given = { model: new Blob([]), external: [], inputs: {} };
  const order = { kind, provider, session, budget: "glance", traceRuns: 1, traceS: 1, ...given };
  const launch = () => sandbox.launch(order, { timeoutS, signal: new AbortController().signal });
  const [first, second] = [await launch(), await launch()];
  const text = (answer) => answer.reason ? `${answer.reason.code}: ${answer.reason.text}` : JSON.stringify(answer);
  return [text(first), text(second), String({}.reason)];
}"""
HEARD = """() => { window.heard = []; for (const from of [window, new BroadcastChannel("onnxfarm")]) {
  from.addEventListener("message", ({ data }) => window.heard.push(data)); } }"""


def launched(
    page: Page, module: str, *, provider: str = "WasmExecutionProvider", kind: str = "check", timeout_s: float = 100
) -> list[str]:
    """What two launches of a release that is this module answer, and what became of every object of the page."""
    config = {"__proto__.polluted": "yes", "constructor.prototype.polluted": "yes"}
    answers: list[str] = page.evaluate(LAUNCHED, [module, provider, kind, config, timeout_s])
    return answers


@pytest.mark.parametrize("provider", ["WasmExecutionProvider", "WebGpuExecutionProvider"])
def test_a_hostile_release_reaches_neither_the_farm_nor_another_origin_nor_the_page(
    page: Page, elsewhere: Elsewhere, live_server: object, person: User, provider: str
) -> None:
    answered: list[str] = []
    page.on("response", lambda response: answered.append(response.url))
    page.evaluate(HEARD)
    module = HOSTILE.replace("{farm}", str(live_server)).replace("{elsewhere}", elsewhere.url)
    first, second, polluted = launched(page, module, provider=provider)
    assert [first, second] == ["crashed: through:"] * 2
    assert polluted == "undefined"
    assert page.evaluate("window.heard") == []
    assert elsewhere.asked == []
    farm = [url for url in answered if url.startswith(str(live_server))]
    assert [url for url in farm if "/api/node/v1/tab/" not in url or "?" in url] == []
    assert not Token.objects.exists()


# what a document can do beyond a worker, if a release came to run in the frame's own
ESCAPED = """async ([farm, elsewhere]) => {
  const through = [];
  const attempt = async (name, act) => { try { if (await act() !== false) through.push(name); } catch {} };
  const element = (tag, more) => document.documentElement.appendChild(Object.assign(document.createElement(tag), more));
  const loads = (made) => new Promise((done) => {
    Object.assign(made, { onload: () => done(true), onerror: () => done(false) });
    setTimeout(done, 2000, false);
  });
  await attempt("an image", () => loads(element("img", { src: `${elsewhere}/image` })));
  await attempt("a script", () => loads(element("script", { src: `${farm}/api/node/v1/tab/contract.js?script` })));
  await attempt("a style", () => loads(element("link", { rel: "stylesheet", href: `${elsewhere}/style` })));
  await attempt("a prefetch", () => loads(element("link", { rel: "prefetch", href: `${elsewhere}/prefetch` })));
  element("iframe", { src: `${farm}/runs/?framed` });
  element("object", { data: `${elsewhere}/object` });
  const form = element("form", { action: `${farm}/settings/tokens/?form`, method: "post" });
  await attempt("the page", () => top.document.body);
  await attempt("storage", () => localStorage);
  await attempt("cookies", () => document.cookie);
  await attempt("a window", () => open(`${elsewhere}/popup`) !== null);
  await attempt("the page's address", () => { top.location = `${elsewhere}/top`; });
  await attempt("a beacon", () => navigator.sendBeacon(`${elsewhere}/beacon`) && false);
  await attempt("a service worker", () => navigator.serviceWorker.register(`${farm}/api/node/v1/tab/contract.js`));
  form.submit();
  await new Promise((done) => setTimeout(done, 500));
  setTimeout(() => { location = `${elsewhere}/navigation`; });
  return through;
}"""


def test_a_frame_that_was_taken_over_reaches_nothing_either(page: Page, elsewhere: Elsewhere, live_server: object):
    launched(page, "export const env = {};")
    [frame] = page.frames[1:]
    assert frame.evaluate(ESCAPED, [str(live_server), elsewhere.url]) == []
    page.wait_for_timeout(1000)
    assert elsewhere.asked == []
    assert page.url.endswith(PAGE)
    assert len(page.context.pages) == 1
    assert not Token.objects.exists()


RUNTIME = """
export const env = { wasm: {}, versions: { get web() { return String({}.polluted); } } };
export const InferenceSession = { create: async () => ({ inputNames: [], run: async () => ({}), release() {} }) };
"""


def test_names_of_every_object_in_a_configuration_change_no_object(page: Page) -> None:
    answers = launched(page, RUNTIME)
    assert all('"version":"undefined"' in answer for answer in answers[:2]), answers


def test_a_release_that_never_answers_is_ended_and_launched_again(page: Page) -> None:
    first, second, _ = launched(page, "for (;;);", timeout_s=2)
    assert [first, second] == ["timeout: The runner took longer than 2 s and was ended. Give the cell more time, "
                               "or a smaller batch or shapes."] * 2  # fmt: skip
    expect(page.locator("iframe")).to_have_count(0)


def answering(answer: str) -> str:
    """A release that answers so by itself, before the runner does."""
    return f"self.postMessage({answer}); await new Promise(() => undefined);"


CHECK = "version: '1', outputs: {}, isRepeatable: true, isIsolated: true, resolutionMs: 0.1, phases: {}"
SAMPLE = (
    "p50_ms: 1, mean_ms: 1, min_ms: 1, max_ms: 1, std_ms: 0, n: 1, timings: 'u4:eJw=', warmup_runs: 1, warmup_ms: 1, "
    "is_stable: true, throughput: 1"
)


# by the pass that answers so; the names stand for the texts above
BAD = {
    "check": [
        "null",
        "[]",
        "new Map([['reason', 1]])",
        "{ reason: 'text' }",
        "{ reason: { code: 'cancelled', text: 'x' } }",
        "{ reason: { code: ['crashed'] + 'x', text: 'x' } }",
        "{ CHECK, isRepeatable: 1 }",
        "{ CHECK, resolutionMs: NaN }",
        "{ CHECK, phases: { session: -1 } }",
        "{ CHECK, outputs: [] }",
        "{ CHECK, outputs: { 'a\\u0000': { dtype: 'bool', shape: [0], data: new Uint8Array() } } }",
        "{ CHECK, outputs: { '\\ud800': { dtype: 'bool', shape: [0], data: new Uint8Array() } } }",
        "{ CHECK, outputs: { y: { dtype: 'float32', shape: [2], data: new Float32Array(1) } } }",
        "{ CHECK, outputs: { y: { dtype: 'float32', shape: [-1, -1], data: new Float32Array(1) } } }",
        "{ CHECK, outputs: { y: { dtype: 'float32', shape: [1], data: [1] } } }",
        "{ CHECK, outputs: { y: { dtype: 'int64', shape: [1], data: new Float64Array(1) } } }",
        "{ CHECK, outputs: Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [at, 1])) }",
    ],
    "trace": [
        "{ phases: {}, profile: 1 }",
        "{ phases: {}, profile: 'no JSON' }",
        "{ phases: {}, profile: '[null]' }",
        "{ phases: {}, profile: '{}' }",
        """{ phases: {}, profile: '[{"name":"x_kernel_time","cat":"Node","ts":1,"dur":1,"args":{}}]' }""",
        """{ phases: {}, profile: '[{"name":"model_run","ts":"x","dur":1}]' }""",
    ],
    "sample": [
        "{ phases: {}, sample: { SAMPLE, p50_ms: 0 } }",
        "{ phases: {}, sample: { SAMPLE, max_ms: Infinity } }",
        "{ phases: {}, sample: { SAMPLE, n: 1.5 } }",
        "{ phases: {}, sample: { SAMPLE, timings: 'u4:' + 'A'.repeat(1000) } }",
        "{ phases: {}, sample: { SAMPLE, timings: '<script>' } }",
        "{ phases: {}, sample: [1] }",
    ],
}


@pytest.mark.parametrize("kind", BAD)
def test_an_answer_that_no_runner_gives_is_garbled_and_goes_nowhere(page: Page, kind: str) -> None:
    for bad in BAD[kind]:
        answer = bad.replace("CHECK", CHECK).replace("SAMPLE", SAMPLE)
        first, _, polluted = launched(page, answering(answer), kind=kind)
        assert first.startswith("garbled: The release's answer is not one that a runner gives: "), bad
        assert polluted == "undefined"


@pytest.mark.parametrize(
    ("kind", "answer"), [("check", f"{{ {CHECK} }}"), ("sample", f"{{ phases: {{}}, sample: {{ {SAMPLE} }} }}")]
)
def test_of_an_answer_only_what_the_farm_takes_goes_on(page: Page, kind: str, answer: str) -> None:
    first, _, _ = launched(page, answering(f"{{ ...{answer}, more: 1, is_admin: true, wallMs: -5 }}"), kind=kind)
    assert first.startswith("{")
    for word in ("more", "is_admin", '"wallMs":-5'):
        assert word not in first
