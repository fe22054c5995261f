"""Peak memory of a real web server while it takes a large upload; prints one line of JSON.

    python tests/bench/upload_memory.py [--gib 2.0] [--raw | --cuts 5 [--seed 1]] [--home FOLDER]

Starts the web process as the embedded farm does, streams a file of zeros to it as a form (or as a raw
body), and reads the server's own high-water mark (VmHWM) before and after. The upload is then refused or stored like
any other; its inspection is not waited for, and no worker runs. With `--cuts` the farm's own client sends a file of
random bytes in pieces, over a line that breaks so many times at random; what the farm then has must hash the same.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2

PROJECT = Path(__file__).resolve().parents[2]
# the script is run by its path
sys.path.insert(0, str(PROJECT))
CHUNK = bytes(1 << 20)
BOUNDARY = "onnxfarm-bench"
HEAD = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="files"; filename="big.onnx"\r\n'
    "Content-Type: application/octet-stream\r\n\r\n"
).encode()
TAIL = f"\r\n--{BOUNDARY}--\r\n".encode()


def main() -> None:
    options = _options()
    size = int(options.gib * 1024**3)
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        home = options.home or Path(made)
        environment = _environment(home)
        token = _open_farm(environment)
        server = _start(environment)
        try:
            address = _wait(environment["ONNXFARM_PUBLIC_URL"], server)
            before = _peak(server.pid)
            began = time.monotonic()
            answer = _answer(options, address, token, size=size, folder=Path(made))
            seconds = time.monotonic() - began
            after = _peak(server.pid)
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(20)
    print(json.dumps(_figures(options, size=size, before=before, after=after, seconds=seconds, answer=answer)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=2.0, help="size of the upload")
    parser.add_argument("--raw", action="store_true", help="send the body with PUT instead of a form")
    parser.add_argument("--cuts", type=int, default=0, help="send in pieces, and break the line so many times")
    parser.add_argument("--seed", type=int, default=1, help="of where the line breaks, and of the file")
    parser.add_argument("--folder", type=Path, default=None, help="where the store lies meanwhile")
    parser.add_argument("--home", type=Path, default=None, help="a farm's home to go on with, or to make and leave")
    return parser.parse_args()


def _environment(home: Path) -> dict[str, str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return os.environ | {
        "ONNXFARM_HOME": str(home),
        "ONNXFARM_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "DJANGO_SETTINGS_MODULE": "farm.config.settings",
        "PYTHONPATH": str(PROJECT),
    }


def _open_farm(environment: dict[str, str]) -> str:
    """Tables, where the home has none yet, an owner and a token."""
    manage = [sys.executable, str(PROJECT / "manage.py")]
    if not (Path(environment["ONNXFARM_HOME"]) / "db.sqlite3").exists():
        subprocess.run([*manage, "migrate", "--verbosity", "0"], env=environment, check=True, cwd=PROJECT)
    made = subprocess.run([*manage, "sign_in_link", "--token"], env=environment, check=True, cwd=PROJECT, stdout=-1)
    return str(json.loads(made.stdout)["token"])


def _start(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    port = environment["ONNXFARM_PUBLIC_URL"].rpartition(":")[2]
    return subprocess.Popen(
        [sys.executable, "-m", "farm.config.server", "web", "--port", port],
        env=environment,
        cwd=PROJECT,
        start_new_session=True,
    )


def _wait(address: str, server: subprocess.Popen[bytes]) -> str:
    for _ in range(300):
        if server.poll() is not None:
            raise SystemExit(f"the web process ended with {server.returncode}")
        try:
            httpx2.get(f"{address}/api/v1/matrix-default", timeout=10)
        except httpx2.TransportError:
            time.sleep(0.1)
        else:
            return address
    raise SystemExit("the web process did not answer within 30 s")


def _answer(options: argparse.Namespace, address: str, token: str, *, size: int, folder: Path) -> dict[str, Any]:
    if options.cuts:
        return _send_over_a_bad_line(options, address, token, size=size, folder=folder)
    return _send(address, token, size=size, is_raw=options.raw)


def _send_over_a_bad_line(
    options: argparse.Namespace, address: str, token: str, *, size: int, folder: Path
) -> dict[str, Any]:
    """The client's own upload, through a proxy that cuts it."""
    from onnxfarm.remote.account import Account
    from onnxfarm.remote.client import Client
    from tests.bench.cutting import CuttingProxy

    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    path = folder / "big.onnx"
    digest = _write_randomly(path, size=size, seed=options.seed)
    cuts = random.Random(options.seed).sample(range(size), options.cuts)
    proxy = CuttingProxy(int(address.rpartition(":")[2]), cuts=cuts)
    with Client(Account(proxy.url, token)) as client:
        version = client.upload([path])
    proxy.close()
    is_same = version["files"][0]["sha256"] == digest
    return {
        "status": 202 if is_same else 0,
        "bytes": version["bytes"],
        "is_same": is_same,
        "cuts": proxy.cut,
        "cut_at": sorted(cuts),
        "sent_again_bytes": proxy.sent - size,
    }


def _write_randomly(path: Path, *, size: int, seed: int) -> str:
    """A file of random bytes; answers its sha256."""
    source, digest = random.Random(seed), hashlib.sha256()
    with path.open("wb") as file:
        while left := size - file.tell():
            piece = source.randbytes(min(left, len(CHUNK)))
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def _body(size: int, *, is_raw: bool) -> Any:
    if not is_raw:
        yield HEAD
    left = size
    while left:
        piece = CHUNK[: min(left, len(CHUNK))]
        left -= len(piece)
        yield piece
    if not is_raw:
        yield TAIL


def _send(address: str, token: str, *, size: int, is_raw: bool) -> dict[str, Any]:
    length = size if is_raw else size + len(HEAD) + len(TAIL)
    kind = "application/octet-stream" if is_raw else f"multipart/form-data; boundary={BOUNDARY}"
    headers = {"Authorization": f"Bearer {token}", "Content-Length": str(length), "Content-Type": kind}
    method, path = ("PUT", "/api/v1/uploads?file=big.onnx") if is_raw else ("POST", "/api/v1/uploads")
    answer = httpx2.request(
        method, address + path, content=_body(size, is_raw=is_raw), headers=headers, timeout=httpx2.Timeout(600)
    )
    return {"status": answer.status_code, "bytes": answer.json().get("bytes"), "detail": answer.json().get("detail")}


def _peak(leader: int) -> int:
    """The largest high-water mark of the server's processes, in bytes."""
    pids = [leader, *map(int, Path(f"/proc/{leader}/task/{leader}/children").read_text().split())]
    return max(_high_water(pid) for pid in pids)


def _high_water(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _figures(
    options: argparse.Namespace, *, size: int, before: int, after: int, seconds: float, answer: dict[str, Any]
) -> dict[str, Any]:
    return {
        "benchmark": "upload memory",
        "command": "python tests/bench/upload_memory.py " + " ".join(sys.argv[1:]),
        "bytes": size,
        "body": "pieces" if options.cuts else "raw" if options.raw else "form",
        "answer": answer,
        "seconds": round(seconds, 1),
        "peak_mb_before": round(before / 1e6, 1),
        "peak_mb": round(after / 1e6, 1),
        "limit_mb": 150,
        "is_within": after <= 150e6 and answer["status"] == 202,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }


if __name__ == "__main__":
    main()
