"""Whether the tab's p50 is that of an independent page of a few lines, for one model on WebAssembly, one thread.

    python -m tests.bench.tab_p50 [--version 1.30.0] [--rounds 12] [--model tests/models/cnn_dyn.onnx]

Both run in one headless Chromium, each time in a fresh page, one after the other: a round is the independent page
(tests/bench/tab_p50.html), the tab's own runner twice (worker/tab, budget standard), and the independent page again, so
that what drifts within it meets both alike. Its ratio is that of the two geometric means; printed are the ratio of each
round, their median, and the estimate with its 95 % interval by the product's own rule for pairs. The release comes from
the npm registry that ONNXFARM_NPM_REGISTRY names.
"""

import argparse
import json
import math
import os
import statistics
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from playwright.sync_api import BrowserContext, sync_playwright

from farm.rules.comparing.verdicts import judge_pairs
from tests.acceptance.browser.chromium import CHROMIUM, SWITCHES
from tests.acceptance.npm_registry import from_npm
from tests.acceptance.served import Served
from tests.bench import figure

ROOT = Path(__file__).resolve().parents[2]
NPM = os.environ.get("ONNXFARM_NPM_REGISTRY", "https://registry.npmjs.org")
KINDS = {".js": "text/javascript", ".mjs": "text/javascript", ".html": "text/html", ".wasm": "application/wasm"}
# each page's `measure` is given this: milliseconds, and a budget of the tab
INDEPENDENT, TAB = ("tab_p50.html", 2000), ("tab_runner.html", "standard")
ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="1.30.0")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--model", type=Path, default=ROOT / "tests" / "models" / "cnn_dyn.onnx")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = from_npm(words.version, registry=NPM, folder=Path(folder))
    files |= {"model.onnx": words.model.read_bytes(), "input.json": _input(words.model.with_suffix(".inputs.npz"))}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(files))
    with Served(server), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        context = browser.new_context()
        rounds = [_round(context, f"http://127.0.0.1:{server.server_port}", number) for number in range(words.rounds)]
        name = f"Chromium {browser.version}"
        browser.close()
    found = {"browser": name, "onnxruntime-web": words.version, "model": words.model.name, **_compared(rounds)}
    figure.publish(claim=__doc__.splitlines()[0], seed=0, figures=found)


def _compared(rounds: list[tuple[float, float]]) -> dict[str, object]:
    """Figures of (independent, tab) in milliseconds."""
    ratios = [tab / independent for independent, tab in rounds]
    judged = judge_pairs(rounds)
    return {
        "rounds_ms": [[round(one, 4) for one in pair] for pair in rounds],
        "ratios": [round(one, 4) for one in ratios],
        "median_ratio": round(statistics.median(ratios), 4),
        "estimate": round(judged.ratio, 4),
        "interval": [round(judged.ci_low, 4), round(judged.ci_high, 4)],
        "interval_level": judged.ci_level,
    }


def _round(context: BrowserContext, url: str, number: int) -> tuple[float, float]:
    """p50 of the independent page and of the tab, each the geometric mean of its two."""
    first, second, third, fourth = (_p50(context, url, *who) for who in (INDEPENDENT, TAB, TAB, INDEPENDENT))
    independent, tab = math.sqrt(first * fourth), math.sqrt(second * third)
    print(f"{number + 1}: independent {independent:.4f} ms, tab {tab:.4f} ms, ×{tab / independent:.4f}", flush=True)
    return independent, tab


def _p50(context: BrowserContext, url: str, name: str, how: int | str) -> float:
    page = context.new_page()
    page.goto(f"{url}/{name}")
    # a promise is waited for in the page: nothing asks it anything while it measures
    found = page.evaluate("how => window.measure(how)", how)
    page.close()
    return float(found)


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
