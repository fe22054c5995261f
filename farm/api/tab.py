"""What a browser needs to be a node: the page with its modules, and the releases of ONNX Runtime Web.

The modules are those of worker/tab, as they are: no build makes anything of them. The page is isolated from all other
sites (COOP, COEP), so that its threads share memory and its clock is fine; nothing that it loads comes from elsewhere.
"""

from pathlib import Path
from typing import cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Router

from farm.api.auth import NodeRequest
from farm.api.stored_files import StoredFile
from farm.base.refusals import Missing
from farm.contract.node import WebRuntime
from farm.registry import services
from farm.rules.runtimes.web import DISTRIBUTION
from farm.runs.selectors import team_that_asks_for

TAB = Path(settings.BASE_DIR) / "worker" / "tab"
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
# modules of a runtime are checked against their digest and then loaded as blobs, which only the page itself can make
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' blob: 'wasm-unsafe-eval'",
        "worker-src 'self' blob:",
        "style-src 'self'",
        "img-src data:",
        "connect-src 'self' blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
# a node's addresses, and none of people's API
for_browsers = Router()


@for_browsers.get("/tab/{name}", auth=None, include_in_schema=False)
def module(request: HttpRequest, name: str) -> HttpResponse:
    """The page that makes a browser a node, index.html, or a module or the stylesheet of it."""
    return _file(name)


@for_browsers.get("/runtimes/{version}", response=WebRuntime)
def runtime(request: HttpRequest, version: str) -> WebRuntime:
    """What a browser loads of a release of ONNX Runtime Web; the farm fetches it where it has not yet."""
    node = cast(NodeRequest, request).node
    row = services.web_runtime(version, team=team_that_asks_for(f"{DISTRIBUTION}=={version}", node=node))
    return WebRuntime(version=row.version, is_ready=bool(row.files), files=row.files)


@for_browsers.get("/runtime-files/{sha256}")
def runtime_file(request: HttpRequest, sha256: str) -> StoredFile:
    """A file of such a release."""
    return StoredFile(services.web_file(sha256).open("rb"), content_type="application/octet-stream")


def _file(name: str) -> HttpResponse:
    """A file of the page. Raises Missing for any other name."""
    known = {path.name: path for path in TAB.iterdir() if path.suffix in KINDS} if TAB.is_dir() else {}
    if name not in known:
        raise Missing(f"The page of browsers that are nodes has no {name[:80]!r}.")
    path = known[name]
    return HttpResponse(path.read_bytes(), content_type=KINDS[path.suffix], headers=HEADERS)
