"""What each container of the farm is and may see, and what comes to a hostile upload there."""

import re
from typing import Final

from tests.acceptance.containers.stack import DOUBLED, PROCESSES, PROJECT, Stack

REACHES: Final = """
import socket
inner = (("database", 5432), ("broker", 6379), ("bucket", 9000), ("web", 8000), ("gateway", 8001))
for host, port in (("farm.test", 443), *inner, ("1.1.1.1", 443)):
    try:
        # what has to answer may take long on a machine that others use; what must not is not waited for
        socket.create_connection((host, port), 60 if host == "farm.test" else 3).close()
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
UNPRIVILEGED: Final = re.compile(r"uid 10001 sandbox landlock capabilities 0 root read-only compilers \[\]")
# by the same door as every upload; `hostile` begins as a model does and goes on with zeros. Where no proxy stands
# before the farm, FARM_HOST says as which name it is asked
UPLOAD: Final = """
import httpx2, os, sys, time
hostile = b"\\x08\\x08:" + bytes(2000)
content = hostile if sys.argv[1] == "hostile" else open(sys.argv[1], "rb").read()
told = {"Authorization": "Bearer " + os.environ["ONNXFARM_TOKEN"]}
if host := os.environ.get("FARM_HOST"):
    told |= {"Host": host, "X-Forwarded-Proto": "https"}
with httpx2.Client(base_url=os.environ["ONNXFARM_SERVER"], headers=told, timeout=60) as farm:
    sent = farm.post("/api/v1/uploads", files={"files": ("a.onnx", content)}).json()
    while sent["state"] in ("pending", "inspecting"):
        time.sleep(1)
        sent = farm.get(f"/api/v1/versions/{sent['id']}").json()
print(sent["state"], sent["problem"])
"""


def look(stack: Stack) -> None:
    """No root, no rights, no compiler, the sandbox; nodes reach the proxy alone; hostile files are refused."""
    ours = [f"{PROJECT}_{service}_1" for service in PROCESSES]
    seconds = [f"{PROJECT}_{service}_2" for service in DOUBLED]
    for name in [*ours, *seconds, *stack.nodes]:
        seen = stack.podman("exec", name, "python", "-c", LOOKS)
        stack.say(f"{name}: {seen}")
        assert UNPRIVILEGED.search(seen), seen
    for name in stack.nodes:
        reached = stack.podman("exec", name, "python", "-c", REACHES).split()
        stack.say(f"{name} reaches {', '.join(reached)}")
        assert reached == ["farm.test"], reached
    said = stack.script(UPLOAD, "hostile")
    stack.say(f"a hostile upload: {said}")
    assert said.startswith("rejected "), said
