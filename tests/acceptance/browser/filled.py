"""A farm with real runs on three kinds of hardware, for the pictures of docs/screens. By hand, as root for --mesa:

    python -m tests.acceptance.browser.filled FOLDER [--mesa UNPACKED] [--only STEP,STEP]

Starts the farm of FOLDER with its nodes, takes the steps that were not taken yet, prints a one-time sign-in link and
stays up until Ctrl-C; the same command goes on where it was, with the code of now. Everything is measured on this
machine:

bench-1   the processor, by ONNX Runtime's own kernels and by OpenVINO's
gpu-1     WebGPU on a software adapter: where --mesa names a folder with Debian's packages mesa-vulkan-drivers (25 or
          later), libdrm2 and libvulkan1, unpacked by `dpkg -x`. They are laid over /usr for this node alone
pi        a machine that asked to join and was not approved

Each step is a line of STEPS. They take about a quarter of an hour on a machine that does nothing else.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from farm.config.embedded.plan import find_free_port, make_plan
from farm.config.embedded.processes import AGENT, EmbeddedFarm
from farm.workshop.samples import builders
from tests.acceptance.conftest import ROOT, LiveFarm, accepted
from tests.integration.alerts.receiver import receiving

MOST_S = 2400.0
# one comparison by runtime and one by precision, in a minute
SHORT: dict[str, Any] = {
    "budget": "quick",
    "matrix": {
        "runtime": ["1.29.0", "1.31.1"],
        "provider": ["cpu"],
        "batch": [1, 8],
        "precision": ["fp32", "int8-dynamic"],
        "threads": [1],
    },
}
SHORT_INFERENCES: dict[str, Any] = {
    "budget": "quick",
    "matrix": {**SHORT["matrix"], "batch": [1], "shapes": [{"sequence": 4}]},
}
OPENVINO: dict[str, Any] = {
    "budget": "quick",
    "matrix": {
        "runtime": ["onnxruntime-openvino==1.24.1"],
        "provider": ["cpu", {"name": "openvino", "options": {"device_type": "CPU"}}],
        "batch": [1],
        "threads": [1],
    },
}
WEBGPU: dict[str, Any] = {
    "budget": "quick",
    "matrix": {
        "runtime": ["onnxruntime-ep-webgpu==0.4.0"],
        "provider": ["webgpu"],
        "hardware": ["webgpu"],
        "batch": [1],
        "threads": [1],
    },
}
WATCHED: dict[str, Any] = {"matrix": {"provider": ["cpu"], "precision": ["int8-dynamic"], "batch": [8], "threads": [1]}}
OLDER, NEWER = "1.29.0", ("1.30.0", "1.31.1")


@dataclass
class Story:
    """The farm that is up, and what of it outlives this process."""

    folder: Path
    farm: LiveFarm
    hook: str
    kept: dict[str, Any]

    def save(self) -> None:
        (self.folder / "kept.json").write_text(json.dumps(self.kept, indent=1))

    def sample(self, name: str) -> Path:
        return builders.write_model(name, self.folder / "samples")

    def measured(self, model: str, matrix: dict[str, Any]) -> None:
        """One run of a sample, to its end."""
        document = self.farm.submit(self.sample(model), matrix, within_s=MOST_S)
        print(f"  {document['sentence']}", flush=True)


def release(story: Story) -> None:
    """A release that makes the transformer slower, at two batch sizes and two precisions."""
    story.measured("transformer", SHORT)


def short(story: Story) -> None:
    """The same change in inferences so short that few are disturbed: decided where others use the machine too."""
    story.measured("transformer", SHORT_INFERENCES)


def openvino(story: Story) -> None:
    story.measured("transformer", OPENVINO)
    story.measured("convnet", OPENVINO)


def webgpu(story: Story) -> None:
    story.measured("transformer", WEBGPU)
    story.measured("convnet", WEBGPU)


def digits(story: Story) -> None:
    """Six variants of a model with labelled data: latency against accuracy and size."""
    paths = {path.name: str(path) for path in builders.write_all(story.folder / "samples")}
    story.farm.command(
        "submit", paths["digits.onnx"], "--evaluation", paths["digits.evaluation.npz"],
        "--calibration", paths["digits.calibration.npz"], "--matrix", str(ROOT / "docs/examples/digits.yaml"), "--wait",
    )  # fmt: skip


def again(story: Story) -> None:
    """The first run once more, for the comparison of two runs."""
    story.measured("transformer", SHORT)


def refused(story: Story) -> None:
    """A run with cells that nobody can measure, and an upload that is no model."""
    points = {"runtime": ["1.29.0", "1.31.1"], "provider": ["cpu", "cuda"], "threads": [1]}
    story.measured("convnet", {"budget": "quick", "matrix": points})
    broken = story.folder / "samples" / "truncated.onnx"
    broken.write_bytes(story.sample("convnet").read_bytes()[:5000])
    with broken.open("rb") as file:
        story.farm.api("POST", "/uploads", files={"files": (broken.name, file)})


def people(story: Story) -> None:
    """Members with different rights, labels and a note."""
    for name, role in (("ada", "admin"), ("grace", "member"), ("alan", "viewer")):
        story.farm.command("farm", "users", "invite", name, "--role", role)
    for model in story.farm.api("GET", "/models").json():
        labels = {"transformer": ["text", "release"], "digits": ["vision", "labelled"]}.get(model["name"], ["vision"])
        story.farm.api("PATCH", f"/models/{model['id']}", json={"labels": labels})


def alert(story: Story) -> None:
    """A watch whose rounds find the release that is slower: judged, confirmed, bisected, told."""
    farm = story.farm
    channel = accepted(
        farm.api("POST", "/channels", json={"name": "team chat", "kind": "webhook", "target": story.hook})
    )
    order = {"name": "upgrades", "models": ["transformer", "convnet", "digits"], "reference": OLDER, "matrix": WATCHED}
    watch = accepted(farm.api("POST", "/watches", json={**order, "channels": [channel["id"]]}))["id"]
    for candidate in NEWER:
        call(farm, watch, candidate)
    until(lambda: is_quiet(farm), what="the end of what the farm looks into by itself")


def call(farm: LiveFarm, watch: int, candidate: str) -> None:
    """One round of the watch, judged."""
    before = judged(farm, watch)
    answer = farm.api("POST", f"/watches/{watch}/call", json={"candidate": candidate})
    assert answer.is_success, answer.text
    until(lambda: judged(farm, watch) > before, what=f"a judgement of {candidate}")


def judged(farm: LiveFarm, watch: int) -> int:
    return sum(one["state"] == "judged" for one in farm.api("GET", f"/watches/{watch}/rounds").json())


def is_quiet(farm: LiveFarm) -> bool:
    """Whether no run is left to measure."""
    return all(run["state"] == "finished" for run in farm.api("GET", "/runs").json())


def until(holds: Callable[[], bool], *, what: str) -> None:
    deadline = time.monotonic() + MOST_S
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"There was not {what} within {MOST_S:.0f} s.")
        time.sleep(1.0)


STEPS: dict[str, Callable[[Story], None]] = {
    "release": release,
    "openvino": openvino,
    "digits": digits,
    "webgpu": webgpu,
    "short": short,
    "again": again,
    "refused": refused,
    "people": people,
    "alert": alert,
}


@contextmanager
def joined(farm: LiveFarm, name: str, *, around: list[str], environment: dict[str, str]) -> Iterator[None]:
    """The agent of this name, enrolled and approved at its first start. `around`: the words before its command."""
    home = farm.plan.home.parent / "nodes" / name
    if not (home / "node.json").exists():
        enrol(farm, name, home)
        approve(farm, name)
    (home / "ready").unlink(missing_ok=True)
    argv = [*around, sys.executable, "-m", AGENT, "--home", str(home), "--url", farm.plan.gateway_url]
    with (home.parent / f"{name}.log").open("ab") as log:
        agent = subprocess.Popen(
            argv,
            env=farm.plan.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until(lambda: (home / "ready").exists() or agent.poll() is not None, what=f"the node {name}, ready")
        assert agent.poll() is None, f"{name} ended with {agent.returncode}: see {home.parent / name}.log"
        yield
    finally:
        agent.terminate()
        try:
            agent.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(agent.pid, signal.SIGKILL)


def enrol(farm: LiveFarm, name: str, home: Path) -> None:
    code = accepted(farm.api("POST", "/nodes/invitations", json={}))["code"]
    farm.command("node", "enroll", farm.opened.gateway_url, "--token", code, "--name", name, "--home", str(home))


def approve(farm: LiveFarm, name: str) -> None:
    [row] = [one for one in farm.api("GET", "/nodes").json() if one["name"] == name]
    accepted(farm.api("POST", f"/nodes/{row['id']}/approve", json={}))


def software_adapter(mesa: Path) -> tuple[list[str], dict[str, str]]:
    """The words before a command that sees Mesa's drivers in /usr, in mounts of its own; and its environment."""
    drivers, cache = shlex.quote(str(mesa.resolve() / "usr")), shlex.quote(str(mesa.resolve() / "ld.so.cache"))
    script = (
        f"mount -t overlay overlay -o lowerdir={drivers}:/usr /usr && ldconfig -X -C {cache}"
        f' && mount --bind {cache} /etc/ld.so.cache && exec "$@"'
    )
    adapter = "/usr/share/vulkan/icd.d/lvp_icd.json"
    environment = {"ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1", "VK_DRIVER_FILES": adapter, "VK_ICD_FILENAMES": adapter}
    return ["unshare", "--mount", "--propagation", "private", "bash", "-c", script, "bash"], environment


@contextmanager
def opened(folder: Path, *, mesa: Path | None) -> Iterator[Story]:
    """The farm and its nodes, up; ended with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "kept.json"
    kept = (
        json.loads(path.read_text()) if path.exists() else {"ports": [find_free_port() for _ in range(3)], "done": []}
    )
    pages, gateway, hook = kept["ports"]
    os.environ.setdefault("ONNXFARM_HOST_LOCK", str(folder / "lock"))
    os.environ["ONNXFARM_WEBHOOK_NETWORKS"] = "127.0.0.1/32"
    plan = replace(make_plan(home=folder / "farm", port=pages, with_node=False), gateway_port=gateway)
    adapter = software_adapter(mesa) if mesa else ([], {})
    with receiving(port=hook) as receiver, EmbeddedFarm(plan) as processes:
        farm = LiveFarm(plan, processes.start(report=print), processes)
        story = Story(folder, farm, receiver.url, kept)
        story.save()
        with joined(farm, "bench-1", around=[], environment={}):
            if mesa is None:
                yield story
                return
            with joined(farm, "gpu-1", around=adapter[0], environment=adapter[1]):
                yield story


def main() -> None:
    """Parse the command line, fill the farm, stay up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mesa", type=Path, metavar="UNPACKED", help="Mesa's packages, unpacked")
    parser.add_argument("--only", metavar="STEP,STEP", help=f"of {', '.join(STEPS)}; all by default")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(STEPS)
    if unknown := [name for name in names if name not in STEPS]:
        parser.error(f"there is no step {unknown[0]!r}: choose of {', '.join(STEPS)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with opened(options.folder.resolve(), mesa=options.mesa) as story:
        print(f"up at {story.farm.url}: {story.farm.sign_in_link()}", flush=True)
        if "pi" not in story.kept["done"]:
            enrol(story.farm, "pi", story.folder / "nodes" / "pi")
            story.kept["done"].append("pi")
            story.save()
        for name in names:
            take(story, name)
        print(f"filled: {story.farm.sign_in_link()}", flush=True)
        try:
            while True:
                time.sleep(60.0)
        except KeyboardInterrupt:
            print("ending", flush=True)


def take(story: Story, name: str) -> None:
    """One step, unless it was taken; webgpu is left out where no node has it."""
    if name in story.kept["done"]:
        return
    if name == "webgpu":
        nodes = story.farm.api("GET", "/nodes").json()
        if not any(one["name"] == "gpu-1" for one in nodes):
            print("webgpu: left out, no --mesa", flush=True)
            return
        until(
            lambda: any("webgpu" in one["tags"] for one in story.farm.api("GET", "/nodes").json()),
            what="the tag webgpu",
        )
    began = time.monotonic()
    print(f"{name} …", flush=True)
    STEPS[name](story)
    story.kept["done"].append(name)
    story.save()
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
