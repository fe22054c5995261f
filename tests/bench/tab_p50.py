"""Whether the tab's p50 is that of an independent page of a few lines, for one model on WebAssembly, one thread.

    python -m tests.bench.tab_p50 [--version 1.30.0] [--pairs 10] [--model tests/models/cnn_dyn.onnx]

Both run in one headless Chromium, each time in a fresh page, in turns: a pair is the independent page
(tests/bench/tab_p50.html) and the tab's own runner (worker/tab, budget standard), in an order that changes from pair to
pair. Printed are the ratio of each pair and their median. The release comes from the npm registry that
ONNXFARM_NPM_REGISTRY names.
"""

import argparse
import json
import os
import statistics
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from playwright.sync_api import BrowserContext, sync_playwright

from tests.acceptance.browser.chromium import CHROMIUM, SWITCHES
from tests.acceptance.npm_registry import from_npm
from tests.acceptance.served import Served
from tests.bench import figure

ROOT = Path(__file__).resolve().parents[2]
NPM = os.environ.get("ONNXFARM_NPM_REGISTRY", "https://registry.npmjs.org")
KINDS = {".js": "text/javascript", ".mjs": "text/javascript", ".html": "text/html", ".wasm": "application/wasm"}
PAGES = {"independent": "tab_p50.html", "tab": "tab_runner.html"}
ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
WAIT_S = 90


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="1.30.0")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--model", type=Path, default=ROOT / "tests" / "models" / "cnn_dyn.onnx")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = from_npm(words.version, registry=NPM, folder=Path(folder))
    files |= {"model.onnx": words.model.read_bytes(), "input.json": _input(words.model.with_suffix(".inputs.npz"))}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(files))
    with Served(server), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        context = browser.new_context()
        pairs = [_pair(context, f"http://127.0.0.1:{server.server_port}", number) for number in range(words.pairs)]
        name = f"Chromium {browser.version}"
        browser.close()
    ratios = [pair["tab"] / pair["independent"] for pair in pairs]
    found = {
        "browser": name,
        "onnxruntime-web": words.version,
        "pairs_ms": pairs,
        "ratios": [round(one, 4) for one in ratios],
        "median_ratio": statistics.median(ratios),
    }
    figure.publish(claim=__doc__.splitlines()[0], seed=0, figures=found)


def _pair(context: BrowserContext, url: str, number: int) -> dict[str, float]:
    order = list(PAGES)[:: -1 if number % 2 else 1]
    pair = {who: _p50(context, f"{url}/{PAGES[who]}") for who in order}
    print(number + 1, {who: round(ms, 3) for who, ms in pair.items()}, flush=True)
    return pair


def _p50(context: BrowserContext, address: str) -> float:
    page = context.new_page()
    page.goto(address)
    for _ in range(WAIT_S * 2):
        if (found := page.evaluate("window.p50 ?? null")) is not None:
            page.close()
            return float(found)
        page.wait_for_timeout(500)
    raise SystemExit(f"{address} gave no figure within {WAIT_S} s.")


def _input(path: Path) -> bytes:
    with np.load(path) as arrays:
        [(name, array)] = arrays.items()
    return json.dumps({"name": name, "shape": array.shape, "values": array.astype("f4").ravel().tolist()}).encode()


def _handler(files: dict[str, bytes]) -> type[BaseHTTPRequestHandler]:
    known = dict(files)
    for folder in (ROOT / "worker" / "tab", Path(__file__).parent):
        known |= {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".js", ".html")}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/")
            self.send_response(200 if name in known else 404)
            kind = KINDS.get(Path(name).suffix, "application/octet-stream")
            for header, value in {**ISOLATED, "Content-Type": kind}.items():
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(known.get(name, b""))

        def log_message(self, *_: object) -> None:
            return

    return Handler


if __name__ == "__main__":
    main()
