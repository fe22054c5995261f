"""Whether the tab's p50 is that of an independent page of a few lines, for one model on WebAssembly.

    python -m tests.bench.tab_p50 [--version 1.30.0] [--rounds 12] [--model tests/models/cnn_dyn.onnx]
                                  [--threads 1] [--budget standard] [--before COMMIT]

Both run in one headless Chromium, each time in a fresh page, one after the other: a round is the independent page
(tests/bench/tab_p50.html), the tab's own runner twice (worker/tab), and the independent page again, so
that what drifts within it meets both alike. With --before, the tab of that commit stands in the place of the
independent page. Its ratio is that of the two geometric means; printed are the ratio of each round, their median, and
the estimate with its 95 % interval by the product's own rule for pairs. The release comes from the npm registry that
ONNXFARM_NPM_REGISTRY names.
"""

import argparse
import io
import json
import math
import os
import statistics
import subprocess
import tarfile
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import django
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
INDEPENDENT, TAB, BEFORE = "tab_p50.html", "tab_runner.html", "before/tab_runner.html"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="1.30.0")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--model", type=Path, default=ROOT / "tests" / "models" / "cnn_dyn.onnx")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--budget", default="standard", help="of the tab's launches; a busy machine needs many short ones"
    )
    parser.add_argument("--before", metavar="COMMIT", help="a commit whose tab is compared with that of this checkout")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = from_npm(words.version, registry=NPM, folder=Path(folder))
    files |= {"model.onnx": words.model.read_bytes(), "input.json": _input(words.model.with_suffix(".inputs.npz"))}
    if words.before:
        files |= {f"before/{name}": body for name, body in _tab_of(words.before).items()}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(files))
    # what each page's `measure` is given: milliseconds for the independent one, a budget for the tab
    how = {"milliseconds": 2000, "budget": words.budget, "threads": words.threads}
    other = BEFORE if words.before else INDEPENDENT
    with Served(server), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        context = browser.new_context()
        url = f"http://127.0.0.1:{server.server_port}"
        rounds = [_round(context, url, other, how, number) for number in range(words.rounds)]
        name = f"Chromium {browser.version}"
        browser.close()
    found = {"browser": name, "onnxruntime-web": words.version, "model": words.model.name, **_compared(rounds)}
    figure.publish(claim=__doc__.splitlines()[0], seed=0, figures=found)


def _compared(rounds: list[tuple[float, float]]) -> dict[str, object]:
    """Figures of (other page, tab) in milliseconds."""
    ratios = [tab / other for other, tab in rounds]
    judged = judge_pairs(rounds)
    return {
        "rounds_ms": [[round(one, 4) for one in pair] for pair in rounds],
        "ratios": [round(one, 4) for one in ratios],
        "median_ratio": round(statistics.median(ratios), 4),
        "estimate": round(judged.ratio, 4),
        "interval": [round(judged.ci_low, 4), round(judged.ci_high, 4)],
        "interval_level": judged.ci_level,
    }


def _round(context: BrowserContext, url: str, other: str, how: dict[str, object], number: int) -> tuple[float, float]:
    """p50 of the other page and of the tab, each the geometric mean of its two."""
    first, second, third, fourth = (_p50(context, f"{url}/{page}", how) for page in (other, TAB, TAB, other))
    before, tab = math.sqrt(first * fourth), math.sqrt(second * third)
    print(f"{number + 1}: {other} {before:.4f} ms, tab {tab:.4f} ms, ×{tab / before:.4f}", flush=True)
    return before, tab


def _p50(context: BrowserContext, url: str, how: dict[str, object]) -> float:
    page = context.new_page()
    page.goto(url)
    # a promise is waited for in the page: nothing asks it anything while it measures
    found = page.evaluate("how => window.measure(how)", how)
    page.close()
    return float(found)


def _input(path: Path) -> bytes:
    with np.load(path) as arrays:
        [(name, array)] = arrays.items()
    return json.dumps({"name": name, "shape": array.shape, "values": array.astype("f4").ravel().tolist()}).encode()


def _tab_of(commit: str) -> dict[str, bytes]:
    """The modules of worker/tab and the page of this bench as a commit has them, by their names."""
    places = ["worker/tab", "tests/bench/tab_runner.html"]
    packed = subprocess.run(["git", "archive", commit, *places], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = {Path(member.name).name: archive.extractfile(member) for member in archive.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


def _handler(files: dict[str, bytes]) -> type[BaseHTTPRequestHandler]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "farm.config.settings")
    django.setup()
    from farm.gateway import tab

    known = dict(files)
    for folder in (ROOT / "worker" / "tab", Path(__file__).parent):
        known |= {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".js", ".html")}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/")
            kind, headers = KINDS.get(Path(name).suffix, "application/octet-stream"), tab.ISOLATED
            body = known.get(name)
            made = Path(name).name
            if made == "frame.html" or (made == "contract.js" and body is None):
                body, kind, headers = tab.load_page_file(made)
            self.send_response(404 if body is None else 200)
            for header, value in {**headers, "Content-Type": kind}.items():
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            return

    return Handler


if __name__ == "__main__":
    main()
