"""The farm of deploy/compose.yaml in containers, with people and nodes on a network that has the proxy alone."""

import json
import re
import secrets
import shutil
from typing import Any, Final

from tests.acceptance.containers.images import ROOT, Images
from tests.acceptance.containers.progress import Progress
from tests.acceptance.containers.screen import typed

TRYING: Final = ROOT / "deploy" / "containers" / "trying"
MADE: Final = TRYING / "made"
ENV: Final = ROOT / "deploy" / ".env"
PROJECT: Final = "onnxfarm-try"
# a name that nobody outside can have, so that Caddy is its CA
HOST: Final = "farm.local"
ADDRESS: Final = f"https://{HOST}"
CA: Final = "/data/caddy/pki/authorities/local/root.crt"
COMPOSE: Final = ("docker", "compose", "-f", "deploy/compose.yaml")
OUTER: Final = f"{PROJECT}_outer"
# started in this order, each when the one before is ready
FIRST: Final = ("database", "broker", "bucket", "proxy")
PROCESSES: Final = ("web", "gateway", "prepare", "ticks")
# of which deploy/containers/trying/compose.yaml has two each
DOUBLED: Final = ("web", "gateway", "prepare")
# what answers people and nodes, whose last words say why it did not
SERVED: Final = ("proxy", "web", "gateway")
BUCKET: Final = """
import boto3, os
boto3.client("s3", endpoint_url=os.environ["ONNXFARM_BUCKET_URL"]).create_bucket(Bucket=os.environ["ONNXFARM_BUCKET"])
"""


class Stack(Progress):
    """`with Stack(images) as stack`: whatever happens, every container, volume and network of it is removed."""

    def __init__(self, images: Images) -> None:
        super().__init__()
        self.images = images
        self.podman = images.podman
        self.token = ""
        self.nodes: list[str] = []

    def __enter__(self) -> "Stack":
        if ENV.exists():
            raise SystemExit(f"{ENV} is there: this is a farm of yours. Try from another checkout.")
        self._make_settings()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for name in SERVED:
                logs = ["sh", "-c", f"podman logs --tail 20 {PROJECT}_{name}_1 2>&1"]
                print(name, self.images.run(logs, may_fail=True), flush=True)
        # `down` knows nothing of a second container of a process, and removes no volume or network that one still has
        for name in self.containers("--all"):
            self.podman("rm", "--force", "--volumes", name, may_fail=True)
        for name in self.nodes:
            self.podman("volume", "rm", "--force", name, may_fail=True)
        self.compose("down", "--volumes", may_fail=True)
        ENV.unlink(missing_ok=True)
        shutil.rmtree(MADE, ignore_errors=True)

    def start(self) -> None:
        """Brings everything up, in the order that podman keeps not by itself, and opens the farm."""
        assert typed(*COMPOSE, "up")[len(COMPOSE) :] == ["up", "-d"]
        self.compose("up", "-d", "--no-build", *FIRST)
        self.until("the database", lambda: "accepting" in self.inside("database", "pg_isready", "-h", "/tmp"))
        self.compose("run", "--rm", "--no-deps", "--entrypoint", "python", "migrate", "-c", BUCKET)
        self.compose("up", "--no-build", "migrate")
        self.compose("up", "-d", "--no-build", "--no-recreate", *PROCESSES)
        self.until("Caddy's own CA", lambda: "END CERTIFICATE" in self.inside("proxy", "cat", CA))
        (MADE / "ca.pem").write_text(self.inside("proxy", "cat", CA) + "\n")
        self.until("the farm", lambda: "401" in self.asked("/api/v1/models"))
        service, *words = typed(*COMPOSE, "exec")[len(COMPOSE) + 1 :]
        opening = ("exec", f"{PROJECT}_{service}_1", *words)
        self.link = self.podman(*opening).splitlines()[-1]
        self.token = json.loads(self.podman(*opening, "--token").splitlines()[-1])["token"]

    def compose(self, *words: str, may_fail: bool = False) -> str:
        files = ["-f", "compose.yaml", "-f", "containers/trying/compose.yaml"]
        program = [self.images.compose_program(), "-p", PROJECT, *files]
        return self.images.run([*program, *words], may_fail=may_fail, folder=ROOT / "deploy")

    def containers(self, *which: str) -> list[str]:
        """Every container of the farm and every node that runs; `--all`: that there is."""
        listed = self.podman("ps", *which, "--format", "{{.Names}}").split()
        return sorted(name for name in listed if name.startswith(PROJECT))

    def inside(self, service: str, *words: str, number: int = 1) -> str:
        """What a command prints in a container of the farm; empty where it failed."""
        return self.podman("exec", f"{PROJECT}_{service}_{number}", *words, may_fail=True)

    def asked(self, path: str) -> str:
        """The status that the proxy answers with, as a person on the outer network sees it."""
        script = f"import httpx2; print(httpx2.get('{ADDRESS}{path}').status_code)"
        return self._outside("-c", script, may_fail=True)

    def person(self, *words: str, timeout_s: float = 300) -> str:
        """What `onnxfarm WORDS…` prints to somebody on the outer network."""
        return self._outside("-m", "onnxfarm.main", *words, timeout_s=timeout_s)

    def script(self, text: str, *words: str) -> str:
        """What a program of Python's prints to somebody on the outer network."""
        return self._outside("-c", text, *words)

    def join(self, name: str) -> None:
        """A node of its own container joins, is approved by its fingerprint, and works: as docs/deploying.md says."""
        name = f"{PROJECT}-{name}"
        self.nodes.append(name)
        volume = {"onnxfarm-node:/node": f"{name}:/node"}
        code = json.loads(self.person("node", "invite", "--json"))["code"]
        enrol = typed("docker", "run", "--rm", instead=volume | {"https://farm.example": ADDRESS, "ofe_…": code})
        said = self.podman("run", *self._around(name), *enrol[2:])
        assert "Fingerprint:" in said, said
        self.person("node", "approve", name)
        self.podman("run", *self._around(name), *typed("docker", "run", "-d", instead=volume)[2:])

    def known_nodes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.person("node", "list", "--json"))
        return found

    def _outside(self, *words: str, may_fail: bool = False, timeout_s: float = 300) -> str:
        mounts = ["-v", f"{MADE / 'ca.pem'}:/ca.pem:ro", "-v", f"{ROOT / 'tests' / 'models'}:/models:ro"]
        told = {"SSL_CERT_FILE": "/ca.pem", "ONNXFARM_TOKEN": self.token, "ONNXFARM_SERVER": ADDRESS}
        given = [word for name, value in told.items() for word in ("-e", f"{name}={value}")]
        image = ["--entrypoint", "python", "localhost/onnxfarm-node"]
        run = ["run", "--rm", "--network", OUTER, *mounts, *given, *image]
        return self.podman(*run, *words, may_fail=may_fail, timeout_s=timeout_s)

    def _around(self, name: str) -> list[str]:
        """What a node needs here beside that page: its name, the network, our CA, and wheels for no index."""
        place = ["--name", name, "--hostname", name, "--network", OUTER, "-v", f"{MADE / 'ca.pem'}:/ca.pem:ro"]
        wheels = ["-v", f"{self.images.wheels}:/wheels:ro", "-e", "UV_OFFLINE=1", "-e", "UV_FIND_LINKS=/wheels"]
        return [*place, *wheels, "-e", "SSL_CERT_FILE=/ca.pem"]

    def _make_settings(self) -> None:
        secret = secrets.token_hex(32)
        told = {"ONNXFARM_HOST": HOST, "POSTGRES_PASSWORD": secret[:32], "ONNXFARM_SECRET_KEY": secret}
        told |= {"ONNXFARM_BUCKET": "onnxfarm", "ONNXFARM_BUCKET_URL": "http://bucket:9000"}
        told |= {"AWS_ACCESS_KEY_ID": "try", "AWS_SECRET_ACCESS_KEY": "try", "AWS_DEFAULT_REGION": "us-east-1"}
        self.images.run(typed("cp"))
        filled = re.sub(r"(?m)^(ONNXFARM_HOST|POSTGRES_PASSWORD|ONNXFARM_SECRET_KEY)=.*\n", "", ENV.read_text())
        ENV.write_text(filled + "".join(f"{name}={value}\n" for name, value in told.items()))
        MADE.mkdir(parents=True, exist_ok=True)
