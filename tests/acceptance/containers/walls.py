"""Containers that lack something: a volume of theirs, Landlock, seccomp. Each is told in one sentence."""

import json
import tempfile
from pathlib import Path
from typing import Final

from tests.acceptance.containers.looks import UPLOAD
from tests.acceptance.containers.stack import PROJECT, Stack

# podman's own rules, from which calls are taken away by the beginning of their names
RULES: Final = Path("/usr/share/containers/seccomp.json")
LACKING: Final = {
    "Landlock": ("/models/cnn_fixed_b1.onnx", "landlock_"),
    "seccomp": ("/models/relu_op13_ir7.onnx", "seccomp"),
}
NOT_READ: Final = "The model was not opened: no sandbox works on this machine."
ADVICE: Final = """
import os; os.environ["DJANGO_SETTINGS_MODULE"] = "farm.config.settings"
import django; django.setup()
from farm.registry.confinement import current_confinement
print(current_confinement().advice)
"""
PREPARES: Final = (f"{PROJECT}_prepare_1", f"{PROJECT}_prepare_2")
WITHOUT: Final = f"{PROJECT}_prepare_without"


def try_without(stack: Stack) -> None:
    """A volume of root's, then no Landlock, then no seccomp."""
    with tempfile.TemporaryDirectory() as folder:
        _try_without(stack, Path(folder))


def _try_without(stack: Stack, folder: Path) -> None:
    (foreign := folder / "foreign").mkdir(mode=0o755)
    for image, place, word in (("server", "/farm", "web"), ("node", "/node", "start")):
        words = ["run", "--rm", "-v", f"{foreign}:{place}", f"localhost/onnxfarm-{image}", word]
        said = stack.images.said(["podman", *words]).strip()
        stack.say(f"{image} without rights to its volume: {said}")
        assert f" {place}" in said, said
        assert "\n" not in said, said
    for number in PREPARES:
        stack.podman("stop", "--time", "20", number)
    for name, (model, call) in LACKING.items():
        _prepare_without(stack, call, folder / "rules.json")
        try:
            said = stack.script(UPLOAD, model)
            told = stack.podman("logs", WITHOUT, may_fail=True)
            advice = stack.podman("exec", WITHOUT, "python", "-c", ADVICE)
        finally:
            stack.podman("rm", "--force", WITHOUT)
        stack.say(f"prepare without {name}: {said}; it says: {advice}")
        assert said.startswith(f"rejected {NOT_READ}"), (said, told)
        assert advice.startswith("No sandbox holds on this machine (landlock: "), advice
    for number in PREPARES:
        stack.podman("start", number)


def _prepare_without(stack: Stack, call: str, rules: Path) -> None:
    """A third prepare worker, under rules that refuse calls of that name."""
    allowed = json.loads(RULES.read_text())
    for rule in allowed["syscalls"]:
        if rule["action"] == "SCMP_ACT_ALLOW":
            rule["names"] = [one for one in rule["names"] if not one.startswith(call)]
    allowed["syscalls"] = [rule for rule in allowed["syscalls"] if rule["names"]]
    rules.write_text(json.dumps(allowed))
    told = json.loads(stack.podman("inspect", PREPARES[0]))[0]["Config"]["Env"]
    given = [word for one in told if one.startswith(("ONNXFARM_", "AWS_")) for word in ("-e", one)]
    walls = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "all", "--security-opt", f"seccomp={rules}"]
    place = ["--network", f"{PROJECT}_default", "-v", f"{PROJECT}_farm:/farm"]
    stack.podman("run", "-d", "--name", WITHOUT, *walls, *place, *given, "localhost/onnxfarm-server", "prepare")
