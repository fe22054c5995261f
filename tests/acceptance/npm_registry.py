"""An npm registry on this machine: ONNX Runtime Web as npm has it, and releases of it that are made here.

`slowed` makes a release whose WebAssembly is the same and whose wrapper waits, so that what changed is known.
"""

import base64
import hashlib
import io
import json
import re
import tarfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from farm.registry import npm
from farm.rules.runtimes import web
from tests.acceptance.served import Served


class NpmRegistry(Served):
    """Serves the packed releases of ONNX Runtime Web that were offered."""

    def __init__(self) -> None:
        self.packed: dict[str, bytes] = {}
        # how often the list of releases was asked for
        self.looks = 0
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        super().__init__(server)
        self.url = f"http://127.0.0.1:{server.server_port}"

    def offer(self, version: str, packed: bytes) -> None:
        """This release appears."""
        self.packed[version] = packed

    def answer(self, path: str) -> bytes | None:
        """What is under an address; None: nothing."""
        name, _, version = path.strip("/").partition("/")
        if name == "packed":
            return self.packed.get(version)
        if name != web.DISTRIBUTION:
            return None
        if not version:
            self.looks += 1
            return json.dumps({"name": name, "versions": {one: {} for one in self.packed}}).encode()
        if version not in self.packed:
            return None
        digest = base64.b64encode(hashlib.sha512(self.packed[version]).digest()).decode()
        dist = {"tarball": f"{self.url}/packed/{version}", "integrity": f"sha512-{digest}"}
        return json.dumps({"name": name, "version": version, "dist": dist}).encode()


def _handler(registry: NpmRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = registry.answer(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            return

    return Handler


def from_npm(version: str, *, registry: str, folder: Path) -> dict[str, bytes]:
    """What browsers load of a release, by its file's name, from the registry that this machine has."""
    target = folder / f"{version}.tgz"
    npm.download_release(npm.find_release(web.DISTRIBUTION, version, registry=registry), target)
    with tarfile.open(target) as archive:
        members = {name: archive.extractfile(f"package/dist/{name}") for name in web.list_files(version)}
        return {name: member.read() for name, member in members.items() if member is not None}


def packed(files: dict[str, bytes]) -> bytes:
    """A package with these files in its folder `dist`, as npm packs one."""
    drawn = io.BytesIO()
    with tarfile.open(fileobj=drawn, mode="w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/dist/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return drawn.getvalue()


def slowed(files: dict[str, bytes], *, was: str, version: str, wait_ms: float) -> dict[str, bytes]:
    """The same release under another number, whose wrapper waits after each inference."""
    text = files[web.MODULE].decode().replace(f'"{was}"', f'"{version}"')
    [session] = re.findall(r"([\w$]+) as InferenceSession\b", text)
    waits = (
        f"{{const p={session}.prototype,run=p.run;p.run=async function(...a){{const found=await run.apply(this,a);"
        f"const t=performance.now();while(performance.now()-t<{wait_ms});return found}}}}\n"
    )
    return {**files, web.MODULE: f"{text}\n{waits}".encode()}
