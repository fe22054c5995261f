"""The farm of deploy/compose.yaml in real containers: built, started, measured on, broken, looked at, and taken down.

`python -m tests.acceptance.containers [--keep FOLDER]`; ends with 2, saying so, where this machine lacks what it takes.
"""

import json
import sys
from typing import Final

from tests.acceptance.containers.images import Images, with_images
from tests.acceptance.containers.kills import Kills, ledger
from tests.acceptance.containers.looks import look
from tests.acceptance.containers.screen import typed
from tests.acceptance.containers.stack import Stack
from tests.acceptance.containers.walls import try_without

NODES: Final = ("node-1", "node-2", "node-3")
LEAST_KILLS: Final = 3
VERDICTS: Final = ("slower", "faster", "equal", "undecided")
MODEL: Final = "/models/encoder_dyn.onnx"
SIGN_IN: Final = """
import httpx2, re, sys, time
with httpx2.Client(follow_redirects=True, timeout=60) as person:
    for _ in range(20):  # the proxy may still be finding the web processes
        page = person.get(sys.argv[1])
        if page.status_code not in (502, 503):
            break
        print(page.status_code, "from the proxy", flush=True)
        time.sleep(1)
    assert page.status_code == 200, f"{page.status_code}: {page.text[:500]}"
    word = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[1]
    home = person.post(sys.argv[1], data={"csrfmiddlewaretoken": word}, headers={"Referer": sys.argv[1]})
    print(home.status_code, str(home.url), "Sign out" in home.text or "owner" in home.text)
"""


def walk(images: Images) -> None:
    with Stack(images) as stack:
        images.build("parts")
        for name in ("server", "node"):
            images.build_as(typed("docker", "build", "-f", f"deploy/containers/{name}.Containerfile"))
        stack.say(f"images: {images.sizes()}")
        stack.start()
        _try_out(stack)
    left = stack.containers("--all")
    assert not left, left


def _try_out(stack: Stack) -> None:
    stack.say(f"signed in by the link: {stack.script(SIGN_IN, stack.link)}")
    for name in NODES:
        stack.join(name)
    stack.until(
        "nodes that measure", lambda: [n["tags"].get("cpu") is None for n in stack.known_nodes()] == [False] * 3
    )
    _measure(stack)
    stack.say("after the kills: " + stack.asked("/sign-in/"))
    look(stack)
    try_without(stack)


def _measure(stack: Stack) -> None:
    """The default matrix to its verdicts, while a container is killed every few seconds."""
    with Kills(stack, seed=1) as kills:
        words = ("submit", MODEL, "--wait", "--timeout", "20", "--json", "-")
        document = json.loads(stack.person(*words, timeout_s=1500))
    verdicts = [one["verdict"] for one in document["comparisons"]]
    stack.say(f"verdicts: {', '.join(verdicts)}")
    found = ledger(stack)
    stack.say(f"the rows: {found}")
    assert len(kills.killed) >= LEAST_KILLS, kills.killed
    assert found["problems"] == [], found
    assert verdicts, document
    assert set(verdicts) <= set(VERDICTS), verdicts
    assert {cell["status"] for cell in document["cells"]} == {"done"}, document["cells"]


if __name__ == "__main__":
    sys.exit(with_images(walk, needs=(), description=__doc__ or ""))
