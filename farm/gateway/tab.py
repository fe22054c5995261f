"""Serves what a browser needs to be a node: the page with its modules, and the releases of ONNX Runtime Web.

The modules are the files of worker/tab, and contract.js, which is written from the contract (tab_contract). The page is
isolated from all other sites (COOP, COEP), so that its threads can share memory and its clock is precise. It loads
nothing from other sites.

A release is somebody else's code. It runs in a frame (frame.html) whose policy gives it an opaque origin and no
connections; the page passes it everything as bytes.
"""

import base64
import hashlib
from pathlib import Path
from typing import cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Router

from farm.base.refusals import Missing
from farm.contract.node import WebRuntime
from farm.gateway.node_auth import NodeRequest
from farm.gateway.stored_files import StoredFile
from farm.gateway.tab_contract import render_contract_module
from farm.registry import services
from farm.rules.runtimes.web import DISTRIBUTION
from farm.runs.selectors import find_team_asking_for

TAB = Path(settings.BASE_DIR) / "worker" / "tab"
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src data:",
    "connect-src 'self'",
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
# the frame's own script is allowed by its digest, the files of a release as blobs. WebGPU and WebNN use workers from
# data: addresses
FRAME_POLICY = (
    "sandbox allow-scripts",
    "default-src 'none'",
    "script-src {digest} blob: 'wasm-unsafe-eval'",
    "worker-src blob: data:",
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
)
FRAME = "<!doctype html>\n<title>A release of ONNX Runtime Web</title>\n<script>{script}</script>\n"
ISOLATED = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
HEADERS = {"Content-Security-Policy": "; ".join(POLICY), **ISOLATED}
# these addresses are part of the API for nodes, not of the API for people
for_browsers = Router()


@for_browsers.get("/tab/{name}", auth=None, include_in_schema=False)
def module(request: HttpRequest, name: str) -> HttpResponse:
    body, kind, headers = load_page_file(name)
    return HttpResponse(body, content_type=kind, headers=headers)


@for_browsers.get("/runtimes/{version}", response=WebRuntime)
def runtime(request: HttpRequest, version: str) -> WebRuntime:
    """List the files of a release of ONNX Runtime Web. The farm fetches a release that it does not have yet."""
    node = cast(NodeRequest, request).node
    row = services.find_or_order_web_runtime(
        version, team=find_team_asking_for(f"{DISTRIBUTION}=={version}", node=node)
    )
    return WebRuntime(version=row.version, is_ready=bool(row.files), files=row.files)


@for_browsers.get("/runtime-files/{sha256}")
def runtime_file(request: HttpRequest, sha256: str) -> StoredFile:
    return StoredFile(services.find_web_runtime_file(sha256).open("rb"), content_type="application/octet-stream")


def load_page_file(name: str) -> tuple[bytes, str, dict[str, str]]:
    """Return a file of the page: its bytes, its content type, and its headers. Raises Missing for any other name.

    `frame.html` and `contract.js` are made here; all others are files of TAB, read anew each time.
    """
    if name == "frame.html":
        script = (TAB / "frame.js").read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = "; ".join(FRAME_POLICY).format(digest=f"'sha256-{digest}'")
        return FRAME.format(script=script).encode(), KINDS[".html"], {**ISOLATED, "Content-Security-Policy": policy}
    if name == "contract.js":
        return render_contract_module().encode(), KINDS[".js"], HEADERS
    files = {path.name: path for path in TAB.iterdir() if path.suffix in KINDS} if TAB.is_dir() else {}
    if name not in files:
        raise Missing(f"The page of browsers that are nodes has no {name[:80]!r}.")
    return files[name].read_bytes(), KINDS[files[name].suffix], HEADERS
