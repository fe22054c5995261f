"""deploy/kubernetes/small in pods of `podman kube play`: `python -m tests.acceptance.containers.pods [--keep FOLDER]`.

podman plays Deployments, volumes and settings; Jobs, Services, probes by TCP, policies and budgets are a cluster's. So
the migration's Job is played as a pod that ends, and a Service is the alias of its pod on the network. Ends with 2,
saying so, where this machine lacks what it takes.
"""

import base64
import json
import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import yaml

from tests.acceptance.containers.images import ROOT, Images, with_images
from tests.acceptance.containers.looks import LOOKS, UNPRIVILEGED, UPLOAD
from tests.acceptance.containers.progress import Progress
from tests.acceptance.long_kubernetes import renderer

NETWORK: Final = "onnxfarm-pods"
SECRET: Final = "onnxfarm"
MARK: Final = "onnxfarm-pods"
# images of registries, and what stands in for them here
STANDS_IN: Final = {
    "docker.io/postgres:17": "localhost/onnxfarm-parts",
    "docker.io/valkey/valkey:8": "localhost/onnxfarm-parts",
    "onnxfarm-server:0.1.0": "localhost/onnxfarm-server",
}
SERVICES: Final = ("database", "broker", "web", "gateway", "prepare", "ticks")
ASKS: Final = """
import httpx2
told = {"Host": "farm.example", "X-Forwarded-Proto": "https"}
for url in ("http://web:8000/sign-in/", "http://web:8000/api/v1/models", "http://gateway:8001/api/node/v1/messages"):
    print(url, httpx2.get(url, headers=told, timeout=60).status_code)
"""
ANSWERS: Final = "sign-in/ 200", "models 401", "messages 401"


class Pods(Progress):
    """`with Pods(images) as pods`: whatever happens, every pod, volume and network of it is removed."""

    def __init__(self, images: Images) -> None:
        super().__init__()
        self.images, self.podman = images, images.podman
        rendered = images.run([*renderer(), str(ROOT / "deploy" / "kubernetes" / "small")])
        self._objects: list[dict[str, Any]] = list(yaml.safe_load_all(rendered))
        self._folder = Path(tempfile.mkdtemp(prefix="onnxfarm-pods-"))

    def __enter__(self) -> Self:
        password = os.urandom(16).hex()
        told = {
            "POSTGRES_PASSWORD": password,
            "ONNXFARM_SECRET_KEY": os.urandom(32).hex(),
            "ONNXFARM_DATABASE_URL": f"postgresql://farm:{password}@database/farm",
        }
        data = {name: base64.b64encode(value.encode()).decode() for name, value in told.items()}
        # podman 4.3.1 keeps of a Secret what stands under `data`
        kept = self._folder / "secret.json"
        kept.write_text(json.dumps(data))
        self.podman("network", "create", "--internal", NETWORK)
        self.podman("secret", "create", SECRET, str(kept))
        self.podman("kube", "play", str(self._file(*self._of("PersistentVolumeClaim"))))
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names():
            self.podman("pod", "rm", "--force", name, may_fail=True)
        for one in self._of("PersistentVolumeClaim"):
            self.podman("volume", "rm", "--force", one["metadata"]["name"], may_fail=True)
        self.podman("secret", "rm", SECRET, may_fail=True)
        self.podman("network", "rm", "--force", NETWORK, may_fail=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def play(self, name: str) -> None:
        """A Deployment, or the Job of migrations, with its settings."""
        [found] = [one for kind in ("Deployment", "Job") for one in self._of(kind) if one["metadata"]["name"] == name]
        pod = found["spec"]["template"]["spec"]
        for container in pod["containers"]:
            container["image"] = STANDS_IN[container["image"]]
            if name == "database":
                container["args"] = ["database"]
            if name == "broker":
                # the wheel's Valkey answers no other machine else
                container["args"] = [*container["args"], "--protected-mode", "no"]
            # of a cluster: podman asks by programs that the images have not
            container.pop("readinessProbe", None)
            container.pop("livenessProbe", None)
        found["spec"]["template"]["metadata"]["labels"][MARK] = MARK
        if found["kind"] == "Job":
            labels = {**found["spec"]["template"]["metadata"], "name": name}
            found = {"apiVersion": "v1", "kind": "Pod", "metadata": labels, "spec": pod}
        file = self._file(*self._of("ConfigMap"), found)
        self.podman("kube", "play", "--network", f"{NETWORK}:alias={name}", str(file))

    def names(self) -> list[str]:
        """Of the pods that there are."""
        return self.podman("pod", "ps", "--filter", f"label={MARK}", "--format", "{{.Name}}").split()

    def state(self, name: str) -> dict[str, Any]:
        """Of the container of a pod."""
        found: dict[str, Any] = json.loads(self.podman("inspect", _container(name)))[0]["State"]
        return found

    def inside(self, name: str, *words: str) -> str:
        return self.podman("exec", _container(name), *words, may_fail=True)

    def _of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self._objects if one["kind"] == kind]

    def _file(self, *documents: dict[str, Any]) -> Path:
        path = self._folder / "played.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        path.chmod(0o600)
        return path


def _container(name: str) -> str:
    """As podman names the container of a Deployment's first pod, and of a pod by itself."""
    return f"{name}-{name}" if name == "migrate" else f"{name}-pod-0-{name}"


def _try_out(pods: Pods) -> None:
    pods.play("database")
    pods.play("broker")
    pods.until("the database", lambda: "accepting" in pods.inside("database", "pg_isready", "-h", "/tmp"))
    pods.play("migrate")
    # as long as one after the other is applied: so many take minutes on a machine that others use
    applied = partial(pods.podman, "logs", _container("migrate"), may_fail=True)
    pods.until("the migrations", lambda: pods.state("migrate")["Status"] == "exited", moves=applied)
    assert pods.state("migrate")["ExitCode"] == 0, pods.podman("logs", _container("migrate"))
    for name in ("web", "gateway", "prepare", "ticks"):
        pods.play(name)
    pods.until("the pages", lambda: ANSWERS[0] in pods.inside("ticks", "python", "-c", ASKS))
    said = pods.inside("ticks", "python", "-c", ASKS)
    pods.say(f"asked from another pod: {', '.join(said.splitlines())}")
    assert all(answer in said for answer in ANSWERS), said
    for name in ("web", "gateway", "prepare", "ticks"):
        seen = pods.inside(name, "python", "-c", LOOKS)
        pods.say(f"{name}: {seen}")
        assert UNPRIVILEGED.search(seen), seen
    opened = json.loads(pods.inside("web", "python", "manage.py", "sign_in_link", "--token").splitlines()[-1])
    told = {"ONNXFARM_SERVER": "http://web:8000", "FARM_HOST": "farm.example", "ONNXFARM_TOKEN": opened["token"]}
    given = [f"{name}={value}" for name, value in told.items()]
    said = pods.inside("ticks", "env", *given, "python", "-c", UPLOAD, "hostile")
    pods.say(f"a hostile upload: {said}")
    assert said.startswith("rejected "), said


def walk(images: Images) -> None:
    images.build("server", "parts")
    with Pods(images) as pods:
        _try_out(pods)
    assert not pods.names(), pods.names()


if __name__ == "__main__":
    # without a renderer `kubectl` is named as missing; podman's pods are held open by catatonit
    needs = ["catatonit", *(renderer()[:1] or ["kubectl"])]
    sys.exit(with_images(walk, needs=needs, description=__doc__ or ""))
