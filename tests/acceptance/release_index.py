"""A package index on this machine: wheels in a folder, by PEP 503, of which only the releases that were offered show.

`restamped` makes a release that differs from another in its number alone, so that what is equal is known.
"""

import base64
import hashlib
import zipfile
from collections.abc import Iterable
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

from tests.acceptance.served import Served


class ReleaseIndex(Served):
    """Serves `folder` on `port`. Of a distribution in `offered` only those versions are listed; all of any other."""

    def __init__(self, folder: Path, *, port: int, offered: dict[str, list[str]]) -> None:
        self.folder = folder
        self.offered = offered
        # PEP 592: distribution → version → why its files are taken by those alone who pin them
        self.yanked: dict[str, dict[str, str]] = {}
        # how often the list of a distribution was asked for
        self.asked: dict[str, int] = {}
        server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        super().__init__(server)
        self.port = server.server_port
        self.digests: dict[str, str] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/simple/"

    def offer(self, distribution: str, versions: Iterable[str]) -> None:
        """These releases appear."""
        self.offered.setdefault(distribution, []).extend(versions)

    def listed(self, distribution: str) -> list[Path]:
        """Wheels of a distribution that are offered."""
        found = [path for path in sorted(self.folder.glob("*.whl")) if _named(path)[0] == distribution]
        wanted = self.offered.get(distribution)
        return [path for path in found if wanted is None or _named(path)[1] in wanted]

    def page(self, distribution: str) -> str:
        """The list as pip and uv read it."""
        self.asked[distribution] = self.asked.get(distribution, 0) + 1
        yanked = self.yanked.get(distribution, {})
        rows = []
        for one in self.listed(distribution):
            why = yanked.get(_named(one)[1])
            mark = "" if why is None else f' data-yanked="{escape(why)}"'
            rows.append(f'<a href="/files/{quote(one.name)}#sha256={self._digest(one)}"{mark}>{one.name}</a>')
        return "<!DOCTYPE html><html><body>" + "<br>".join(rows) + "</body></html>"

    def _digest(self, path: Path) -> str:
        if path.name not in self.digests:
            with path.open("rb") as file:
                self.digests[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
        return self.digests[path.name]


def _named(wheel: Path) -> tuple[str, str]:
    """Distribution and version of a wheel's name."""
    name, version = wheel.name.split("-")[:2]
    return name.replace("_", "-").lower(), version


def _handler(index: ReleaseIndex) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, _, name = unquote(self.path).strip("/").partition("/")
            path = index.folder / Path(name).name
            if kind == "simple" and name and index.listed(name):
                self._answer(index.page(name).encode(), "text/html")
            elif kind == "files" and path.is_file():
                self._answer(path.read_bytes(), "application/octet-stream")
            else:
                self.send_error(404)

        def _answer(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    return Handler


def restamped(wheel: Path, version: str) -> Path:
    """A copy of a wheel under another version: every file of it the same but for `Version:` and the list of files."""
    name, old = wheel.name.split("-")[:2]
    target = wheel.with_name(wheel.name.replace(f"{name}-{old}-", f"{name}-{version}-", 1))
    if target.exists():
        return target
    draft = target.with_suffix(".part")
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        rows = []
        for entry in source.infolist():
            path = entry.filename.replace(f"{name}-{old}.dist-info/", f"{name}-{version}.dist-info/")
            if path.endswith(".dist-info/RECORD"):
                record = path
                continue
            body = source.read(entry)
            if path.endswith(".dist-info/METADATA"):
                body = body.replace(f"\nVersion: {old}\n".encode(), f"\nVersion: {version}\n".encode(), 1)
            made.writestr(path, body)
            digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
            rows.append(f"{path},sha256={digest},{len(body)}")
        made.writestr(record, "\n".join([*rows, f"{record},,", ""]))
    draft.rename(target)
    return target
