"""The farm of deploy/compose.yaml in real containers: built, started, measured on, broken, looked at, and taken down.

`python -m tests.acceptance.containers [--keep FOLDER]`; ends with 2, saying so, where this machine lacks what it takes.
"""

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

from tests.acceptance.containers.images import Images
from tests.acceptance.containers.stack import ADDRESS, PROCESSES, PROJECT, Stack

CANNOT: Final = 2
NEEDED: Final = ("podman", "runc", "buildah", "mmdebstrap", "iptables", "openssl", "uv")
NODES: Final = ("node-1", "node-2", "node-3")
KILL_EVERY_S: Final = 15
KILLED: Final = ("web_1", "gateway_1", "prepare_1", "prepare_2", "ticks_1", "broker_1")
MODEL: Final = "/models/encoder_dyn.onnx"
# begins as a model does and goes on with zeros, by the same door as every upload
HOSTILE: Final = f"""
import httpx2, os, time
word = "Bearer " + os.environ["ONNXFARM_TOKEN"]
with httpx2.Client(base_url="{ADDRESS}", headers={{"Authorization": word}}, timeout=60) as farm:
    sent = farm.post("/api/v1/uploads", files={{"files": ("hostile.onnx", b"\\x08\\x08:" + bytes(2000))}}).json()
    while sent["state"] in ("pending", "inspecting"):
        time.sleep(1)
        sent = farm.get(f"/api/v1/versions/{{sent['id']}}").json()
print(sent["state"], sent["problem"])
"""
REACHES: Final = """
import socket
inner = (("database", 5432), ("broker", 6379), ("web", 8000), ("gateway", 8001))
for host, port in (("farm.test", 443), *inner, ("1.1.1.1", 443)):
    try:
        socket.create_connection((host, port), 3).close()
        print(host)
    except OSError:
        pass
"""
LOOKS: Final = """
import os, shutil
from farm.sandbox import confinement
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print("uid", os.getuid(), "sandbox", confinement.available_level(), "capabilities", int(status["CapEff"], 16),
      "root", "read-only" if os.statvfs("/").f_flag & os.ST_RDONLY else "writable",
      "compilers", [name for name in ("cc", "gcc", "g++", "clang", "make") if shutil.which(name)])
"""
SIGN_IN: Final = """
import httpx2, re, sys
with httpx2.Client(follow_redirects=True) as person:
    page = person.get(sys.argv[1])
    word = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[1]
    home = person.post(sys.argv[1], data={"csrfmiddlewaretoken": word}, headers={"Referer": sys.argv[1]})
    print(home.status_code, str(home.url), "Sign out" in home.text or "owner" in home.text)
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy/containers/try", description=__doc__)
    parser.add_argument("--keep", type=Path, help="a folder for wheels and tools, used again")
    parser.add_argument("--built", action="store_true", help="the images are there already")
    options = parser.parse_args()
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or os.getuid():
        print(f"Not run: this needs root and {', '.join(missing or NEEDED)}.", file=sys.stderr)
        return CANNOT
    with tempfile.TemporaryDirectory(prefix="onnxfarm-containers-") as folder:
        images = Images((options.keep or Path(folder)).resolve())
        with Stack(images) as stack:
            if not options.built:
                images.build()
            stack.say(f"images: {images.sizes()}")
            stack.start()
            _walk(stack)
    left = stack.containers("--all")
    assert not left, left
    print("everything is taken down")
    return 0


def _walk(stack: Stack) -> None:
    stack.say(f"signed in by the link: {stack.script(SIGN_IN, stack.link)}")
    for name in NODES:
        stack.join(name)
    stack.until(
        "nodes that measure", lambda: [n["tags"].get("cpu") is None for n in stack.known_nodes()] == [False] * 3
    )
    _look(stack)
    said = stack.script(HOSTILE)
    stack.say(f"a hostile upload: {said}")
    assert said.startswith("rejected "), said
    _measure(stack)
    stack.say("after the kills: " + stack.asked("/sign-in/"))


def _look(stack: Stack) -> None:
    """What each container is and may see."""
    for name in [f"{PROJECT}_{service}_1" for service in PROCESSES] + stack.nodes:
        seen = stack.podman("exec", name, "python", "-c", LOOKS)
        stack.say(f"{name}: {seen}")
        assert re.search(r"uid 10001 sandbox landlock capabilities 0 root read-only compilers \[\]", seen), seen
    for name in stack.nodes:
        reached = stack.podman("exec", name, "python", "-c", REACHES).split()
        stack.say(f"{name} reaches {', '.join(reached)}")
        assert reached == ["farm.test"], reached


def _measure(stack: Stack) -> None:
    """The default matrix to its verdicts, while a container is killed every few seconds."""
    over = threading.Event()
    killed: list[str] = []

    def kill() -> None:
        # one node once: a block that loses its node three times has failed, as it should
        targets = [f"{PROJECT}_{name}" for name in KILLED for _ in range(2)] + stack.nodes[:1]
        random.Random(1).shuffle(targets)
        while targets and not over.wait(KILL_EVERY_S):
            killed.append(targets.pop())
            stack.podman("kill", "--signal", "KILL", killed[-1])
            stack.podman("start", killed[-1])

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        said = stack.person("submit", MODEL, "--wait", "--timeout", "20", timeout_s=1500)
    finally:
        over.set()
        killer.join()
    stack.say(f"killed {len(killed)}: {', '.join(name.removeprefix(PROJECT) for name in killed)}")
    print(said)
    assert "could not be measured" not in said
    assert "failed" not in stack.person("status").lower()


if __name__ == "__main__":
    sys.exit(main())
