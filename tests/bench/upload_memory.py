"""Peak memory of a real web server while it takes a large upload; prints one line of JSON.

    python tests/bench/upload_memory.py [--gib 2.0] [--raw | --cuts 5 [--seed 1]] [--at-once 1] [--home FOLDER]

Starts the web process as the embedded farm does, streams a file of zeros to it as a form (or as a raw
body), and reads the server's own high-water mark (VmHWM) before and after. The upload is then refused or stored like
any other; its inspection is not waited for, and no worker runs. With `--cuts` the farm's own client sends a file of
random bytes in pieces, over a line that breaks so many times at random; what the farm then has must hash the same.
With `--at-once` so many people upload a file each: nobody sends the second half before all have sent the first.
"""

import argparse
import hashlib
import http.client
import json
import os
import platform
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2

PROJECT = Path(__file__).resolve().parents[2]
# the script is run by its path
sys.path.insert(0, str(PROJECT))
CHUNK = bytes(1 << 20)
# of one upload at the server's peak, and of many at once beyond what it had before
MAX_MB, MAX_GROWTH_MB = 170, 100
BOUNDARY = "onnxfarm-bench"
HEAD = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="files"; filename="big.onnx"\r\n'
    "Content-Type: application/octet-stream\r\n\r\n"
).encode()
TAIL = f"\r\n--{BOUNDARY}--\r\n".encode()
MAKE_PEOPLE = """
import django, json, sys
django.setup()
from farm.accounts.models import Membership, Team, User
from farm.accounts.services import issue_token
team = Team.objects.create(name="uploading")
people = [User.objects.create(username=f"person-{number}") for number in range(int(sys.argv[1]))]
Membership.objects.bulk_create(Membership(team=team, user=person, role="member") for person in people)
print(json.dumps([issue_token(person, ("read", "write"))[1] for person in people]))
"""


def main() -> None:
    options = _options()
    size = int(options.gib * 1024**3)
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        home = options.home or Path(made)
        environment = _environment(home)
        token = _open_farm(environment)
        tokens = _people(environment, options.at_once) if options.at_once > 1 else [token]
        server = _start(environment)
        try:
            address = _wait(environment["ONNXFARM_PUBLIC_URL"], server)
            before = _peak(server.pid)
            began = time.monotonic()
            answer = _answer(options, address, tokens, size=size, folder=Path(made))
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
    parser.add_argument("--at-once", type=int, default=1, help="how many people upload a file of that size each")
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


def _people(environment: dict[str, str], count: int) -> list[str]:
    """Tokens of so many members of one team."""
    made = subprocess.run(
        [sys.executable, "-c", MAKE_PEOPLE, str(count)], env=environment, check=True, cwd=PROJECT, stdout=-1
    )
    tokens: list[str] = json.loads(made.stdout)
    return tokens


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


def _answer(options: argparse.Namespace, address: str, tokens: list[str], *, size: int, folder: Path) -> dict[str, Any]:
    if options.cuts:
        return _send_over_a_bad_line(options, address, tokens[0], size=size, folder=folder)
    if len(tokens) == 1:
        return _send(address, tokens[0], size=size, is_raw=options.raw)
    half = threading.Barrier(len(tokens))
    with ThreadPoolExecutor(len(tokens)) as people:
        sent = list(people.map(lambda token: _send(address, token, size=size, is_raw=options.raw, half=half), tokens))
    statuses = Counter(answer["status"] for answer in sent)
    return {"status": max(statuses), "statuses": statuses, "detail": sent[0]["detail"]}


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
    is_same = version.files[0].sha256 == digest
    return {
        "status": 202 if is_same else 0,
        "bytes": version.bytes,
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


def _body(size: int, *, beginning: bytes, is_raw: bool, half: threading.Barrier | None) -> Any:
    if not is_raw:
        yield HEAD
    # no two people upload the same
    yield beginning
    left = size - len(beginning)
    while left:
        if half is not None and left <= size // 2:
            half.wait(300)
            half = None
        piece = CHUNK[: min(left, len(CHUNK))]
        left -= len(piece)
        yield piece
    if not is_raw:
        yield TAIL


def _send(
    address: str, token: str, *, size: int, is_raw: bool, half: threading.Barrier | None = None
) -> dict[str, Any]:
    """One upload. `half`: where it waits for others in its middle."""
    length = size if is_raw else size + len(HEAD) + len(TAIL)
    kind = "application/octet-stream" if is_raw else f"multipart/form-data; boundary={BOUNDARY}"
    headers = {"Authorization": f"Bearer {token}", "Content-Length": str(length), "Content-Type": kind}
    method, path = ("PUT", "/api/v1/uploads?file=big.onnx") if is_raw else ("POST", "/api/v1/uploads")
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=600)
    connection.request(
        method, path, body=_body(size, beginning=token.encode(), is_raw=is_raw, half=half), headers=headers
    )
    answer = connection.getresponse()
    told = json.loads(answer.read())
    return {"status": answer.status, "bytes": told.get("bytes"), "detail": told.get("detail")}


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
        "at_once": options.at_once,
        "body": "pieces" if options.cuts else "raw" if options.raw else "form",
        "answer": answer,
        "seconds": round(seconds, 1),
        "peak_mb_before": round(before / 1e6, 1),
        "peak_mb": round(after / 1e6, 1),
        "limit_mb": MAX_MB if options.at_once == 1 else round(before / 1e6 + MAX_GROWTH_MB, 1),
        "is_within": answer["status"] == 202
        and (after <= 1e6 * MAX_MB if options.at_once == 1 else after - before <= 1e6 * MAX_GROWTH_MB),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }


if __name__ == "__main__":
    main()
