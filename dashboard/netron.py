"""Netron's viewer from its PyPI wheel, without the parts that contact other servers.

The installed wheel is not changed. The farm serves only the modules that draw ONNX models. It does not serve Netron's
own host (`browser.js`, which asks ipinfo.io for a country and sends telemetry to Google), start script or page. The
frame shows the wheel's page without scripts and links, and `static/dashboard/netron/host.js` drives it.
docs/comparing.md says more.

These files have their own addresses and are no static files. A sandboxed frame has an opaque origin, so it loads
modules only from responses that allow every origin, and a server of static files may not send that header.
"""

import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution, version
from pathlib import Path

# the viewer, the modules that it imports before it knows the format, and the modules for ONNX
SERVED = frozenset(
    f"{name}.js"
    for name in (
        *("view", "grapher", "base", "dagre", "zip", "tar", "text", "json", "xml", "protobuf"),
        *("flatbuffers", "flexbuffers", "hdf5", "python", "onnx", "onnx-proto", "onnx-schema"),
    )
) | {"grapher.css"}
# the farm's own files, which are served under the same addresses
OWN = frozenset({"host.js", "netron.css"})
OWN_FOLDER = Path(__file__).parent / "static" / "dashboard" / "netron"
# the parts of Netron's page: scripts and links to other hosts are removed, style and body are kept
SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
BODY = re.compile(r"<body\b[^>]*>(.*)</body>", re.DOTALL)
LINK = re.compile(r'\s(?:href="(?:https?:|javascript:)[^"]*"|target="[^"]*")')

# the sandbox gives the frame an opaque origin: it has no cookies or storage, and reaches neither the page nor a server
FRAME_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src data: blob:",
        "connect-src 'none'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'self'",
        "sandbox allow-scripts",
    )
)


@dataclass(frozen=True)
class Skeleton:
    """The style and the elements of Netron's own page, which the frame shows before it gets a model."""

    style: str
    body: str


@dataclass(frozen=True)
class Part:
    """A file of the frame. `packed`: its gzipped content; `kind`: its media type; `digest`: of its content."""

    packed: bytes
    kind: str
    digest: str


@cache
def folder() -> Path:
    # the wheel is found without importing it
    return Path(str(distribution("netron").locate_file("netron")))


@cache
def skeleton() -> Skeleton:
    """Read Netron's page without its scripts and external links."""
    page = SCRIPT.sub("", (folder() / "index.html").read_text(encoding="utf-8"))
    styles, body = STYLE.findall(page), BODY.search(page)
    return Skeleton(style="\n".join(styles), body=LINK.sub("", body.group(1)) if body else "")


@cache
def operators() -> bytes:
    """Read Netron's description of ONNX's operators as gzipped JSON, without the long examples."""
    known = json.loads((folder() / "onnx-metadata.json").read_bytes())
    kinds = [{name: part for name, part in operator.items() if name != "examples"} for operator in known]
    return gzip.compress(json.dumps(kinds, separators=(",", ":")).encode(), mtime=0)


@cache
def release() -> str:
    return version("netron")


@cache
def part(name: str) -> Part | None:
    """Read a file that the frame may load; None for any other name."""
    if name not in SERVED | OWN:
        return None
    content = ((OWN_FOLDER if name in OWN else folder()) / name).read_bytes()
    # the digest changes with each release of Netron and of the farm, so browsers load the file again
    digest = hashlib.sha256(content).hexdigest()[:16]
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    return Part(packed=gzip.compress(content, mtime=0), kind=f"{kind}; charset=utf-8", digest=digest)
