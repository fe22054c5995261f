"""What each container of the farm is and may see, and what comes to a hostile upload there."""

import json
import re
from typing import Final

from tests.acceptance.containers.stack import ADDRESS, DOUBLED, HOST, PROCESSES, PROJECT, Stack

REACHES: Final = f"""
import socket
inner = (("database", 5432), ("broker", 6379), ("bucket", 9000), ("web", 8000), ("gateway", 8001))
for host, port in (("{HOST}", 443), *inner, ("1.1.1.1", 443)):
    try:
        # what has to answer may take long on a machine that others use; what must not is not waited for
        socket.create_connection((host, port), 60 if host == "{HOST}" else 3).close()
        print(host)
    except OSError:
        pass
"""
LOOKS: Final = """
import os, shutil
from farm.sandbox import confinement
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print("uid", os.getuid(), "sandbox", confinement.find_available_level(), "capabilities", int(status["CapEff"], 16),
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


# who says half of what it wants, four hundred times in each way, and how long another person waits for a page meanwhile
SILENT: Final = f"""
import httpx2, json, socket, ssl, time
tls = ssl.create_default_context()
made = "POST /sign-in/x/ HTTP/1.1\\r\\nHost: {HOST}\\r\\nCookie: onnxfarm_csrf=x\\r\\n"
form = "Content-Type: application/x-www-form-urlencoded\\r\\nContent-Length: 1000\\r\\n\\r\\nc"
upload = "PUT /api/v1/uploads?file=a.onnx HTTP/1.1\\r\\nHost: {HOST}\\r\\nContent-Length: 8000000\\r\\n\\r\\nx"
waited = dict()
httpx2.get("{ADDRESS}/sign-in/", timeout=60)
for kind, beginning in (("headers", made), ("forms", made + form), ("uploads", upload)):
    held = []
    for _ in range(400):
        held.append(tls.wrap_socket(socket.create_connection(("{HOST}", 443), 60), server_hostname="{HOST}"))
        held[-1].sendall(beginning.encode())
    began = time.monotonic()
    status = httpx2.get("{ADDRESS}/sign-in/", timeout=60).status_code
    waited[kind] = round(time.monotonic() - began, 2) if status == 200 else status
print(json.dumps(waited))
"""
MAX_PAGE_S: Final = 2.0


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
        assert reached == [HOST], reached
    waited = json.loads(stack.script(SILENT).splitlines()[-1])
    stack.say(f"a page beside 400 silent clients, in seconds: {waited}")
    assert max(waited.values()) < MAX_PAGE_S, waited
    said = stack.script(UPLOAD, "hostile")
    stack.say(f"a hostile upload: {said}")
    assert said.startswith("rejected "), said
