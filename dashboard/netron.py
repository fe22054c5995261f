"""Netron's viewer from its PyPI wheel, with everything that calls out taken away.

The wheel is left as it is. Served are only the modules that draw ONNX models; its own host (`browser.js`, which asks
ipinfo.io for a country and sends telemetry to Google), its start script and its page are not. The frame is the wheel's
page without scripts and links, driven by `static/dashboard/netron/host.js`. docs/comparing.md says more.

All of it comes from addresses of its own and not from the static files: a sandboxed frame is a stranger to its own
server and loads modules only from answers that allow every origin, which whoever serves static files may not say.
"""

import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

# the viewer, what it imports before it knows the format, and ONNX
SERVED = frozenset(
    f"{name}.js"
    for name in (
        *("view", "grapher", "base", "dagre", "zip", "tar", "text", "json", "xml", "protobuf"),
        *("flatbuffers", "flexbuffers", "hdf5", "python", "onnx", "onnx-proto", "onnx-schema"),
    )
) | {"grapher.css"}
# the farm's own, beside them under the same addresses
OWN = frozenset({"host.js", "netron.css"})
OWN_FOLDER = Path(__file__).parent / "static" / "dashboard" / "netron"
# scripts of the page, its policy and icons, and whatever names another host
SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
BODY = re.compile(r"<body\b[^>]*>(.*)</body>", re.DOTALL)
LINK = re.compile(r'\s(?:href="(?:https?:|javascript:)[^"]*"|target="[^"]*")')

# the sandbox gives the frame an origin of its own: no cookies, no storage, no way to the page around it or to a server
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
    """What the frame shows before a model comes: the style and the elements of Netron's own page."""

    style: str
    body: str


@dataclass(frozen=True)
class Part:
    """A file of the frame: gzipped content, media type, and the digest of the content."""

    packed: bytes
    kind: str
    digest: str


@cache
def folder() -> Path | None:
    """Find the folder of the installed package; None where it is not installed."""
    spec = find_spec("netron")
    return Path(spec.origin).parent if spec and spec.origin else None


@cache
def skeleton() -> Skeleton | None:
    """Read Netron's page without its scripts and links; None where it is not installed."""
    where = folder()
    if where is None:
        return None
    page = SCRIPT.sub("", (where / "index.html").read_text(encoding="utf-8"))
    styles, body = STYLE.findall(page), BODY.search(page)
    return Skeleton(style="\n".join(styles), body=LINK.sub("", body.group(1)) if body else "")


@cache
def operators() -> bytes:
    """Read Netron's description of ONNX's operators as gzipped JSON, without their long examples; an empty list
    where Netron is not installed."""
    where = folder()
    if where is None:
        return gzip.compress(b"[]")
    known = json.loads((where / "onnx-metadata.json").read_bytes())
    kinds = [{name: part for name, part in operator.items() if name != "examples"} for operator in known]
    return gzip.compress(json.dumps(kinds, separators=(",", ":")).encode(), mtime=0)


@cache
def release() -> str:
    return version("netron") if folder() else ""


@cache
def part(name: str) -> Part | None:
    """Read a file that the frame may load; None for any other name, and where Netron is not installed."""
    where = folder()
    if where is None or name not in SERVED | OWN:
        return None
    content = ((OWN_FOLDER if name in OWN else where) / name).read_bytes()
    # changes with the release and with the farm
    digest = hashlib.sha256(content).hexdigest()[:16]
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    return Part(packed=gzip.compress(content, mtime=0), kind=f"{kind}; charset=utf-8", digest=digest)
