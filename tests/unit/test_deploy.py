"""What deploy/ says fits together: services, processes, settings, files. No container is started here."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from farm.api import bridge
from farm.base.bodies import PACE
from farm.config.embedded.quickstart import parse_options
from farm.config.environment import Environment
from farm.config.processes import NAMES
from farm.config.server import KEEP_ALIVE_S
from tests.acceptance.containers.screen import typed
from tests.acceptance.containers.stack import COMPOSE as COMPOSE_COMMAND
from tests.conftest import PROJECT

DEPLOY = PROJECT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
# of the images themselves, and of uvicorn
FOREIGN = {"POSTGRES_PASSWORD", "POSTGRES_USER", "POSTGRES_DB", "FORWARDED_ALLOW_IPS"}
# of deploy/process, quickstart and the proxy
BESIDE_SETTINGS = {"ONNXFARM_HOST", "ONNXFARM_LISTEN", "ONNXFARM_NODE_HOME"}


def settings() -> set[str]:
    return {f"ONNXFARM_{name.upper()}" for name in Environment.model_fields}


def test_nothing_but_the_proxy_is_reached_from_outside() -> None:
    assert [name for name, one in SERVICES.items() if "ports" in one] == ["proxy"]
    assert not any(one.get("privileged") or one.get("network_mode") for one in SERVICES.values())


def test_services_wait_for_what_they_need_and_volumes_are_declared() -> None:
    for name, one in SERVICES.items():
        for needed, how in one.get("depends_on", {}).items():
            assert needed in SERVICES, name
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[needed], needed
        for volume in one.get("volumes", []):
            source = volume.split(":")[0]
            assert source.startswith("./") or source in COMPOSE["volumes"], volume
            assert not source.startswith("./") or (DEPLOY / source).exists(), volume


def test_settings_of_services_are_settings_of_the_farm() -> None:
    for one in SERVICES.values():
        assert set(one.get("environment", {})) <= settings() | FOREIGN | BESIDE_SETTINGS


def test_the_example_names_what_the_services_ask_for() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    asked = set(re.findall(r"\$\{(\w+)", text))
    given = set(re.findall(r"^#? ?([A-Z_]+)=", (DEPLOY / "example.env").read_text(), re.MULTILINE))
    assert asked <= given
    assert given - asked <= settings() | {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


@pytest.mark.parametrize("path", sorted((DEPLOY / "containers").glob("*.Containerfile")), ids=lambda path: path.name)
def test_a_container_file_copies_what_there_is_and_runs_as_nobody_special(path: Path) -> None:
    text = path.read_text()
    for words in re.findall(r"^COPY (.+)$", text, re.MULTILINE):
        for source in words.split()[:-1]:
            assert (PROJECT / source).exists(), source
    assert "--require-hashes" in text
    assert text.index("USER onnxfarm") < text.index("ENTRYPOINT")


def test_a_node_imports_nothing_of_ours_that_its_container_lacks(tmp_path: Path) -> None:
    text = (DEPLOY / "containers" / "node.Containerfile").read_text()
    for source in re.findall(r"^COPY ((?:farm|worker|onnxfarm)\S*)", text, re.MULTILINE):
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source).symlink_to(PROJECT / source)
    # the agent, and the entries that it reads in passing
    modules = [
        "worker.node",
        "onnxfarm.commands.node",
        "farm.rules.runtimes.providers",
        "farm.workshop.child.inspection",
    ]
    command = [sys.executable, "-P", "-c", f"import {', '.join(modules)}"]
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_kubernetes_applies_every_file_of_its_base() -> None:
    base = DEPLOY / "kubernetes" / "base"
    listed = yaml.safe_load((base / "kustomization.yaml").read_text())["resources"]
    assert sorted([*listed, "kustomization.yaml"]) == sorted(path.name for path in base.glob("*.yaml"))


def test_process_names_what_it_knows(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", str(DEPLOY / "process"), "nonsense"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr == "onnxfarm: name one of migrate, broker, web, gateway, prepare, ticks; not 'nonsense'.\n"


@pytest.mark.parametrize("name", NAMES)
def test_a_process_says_of_a_volume_that_it_may_not_write(tmp_path: Path, name: str) -> None:
    (volume := tmp_path / "volume").write_text("a file where a folder should be")
    done = subprocess.run(
        ["bash", str(DEPLOY / "process"), name],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"ONNXFARM_HOME": str(volume / "farm")},
    )
    assert done.returncode == 3
    me = os.getuid()
    assert done.stderr == (
        f"onnxfarm: user {me} may not write in {volume}/farm, where the farm keeps its files: "
        f"chown -R {me}:{os.getgid()} that folder or volume.\n"
    )


@pytest.mark.parametrize("name", ["server", "node"])
def test_the_readme_builds_the_images_that_compose_and_its_next_lines_start(name: str) -> None:
    built = typed("docker", "build", "-f", f"deploy/containers/{name}.Containerfile")
    assert built[-3:] == ["-t", f"onnxfarm-{name}", "."]
    if name == "server":
        assert SERVICES["web"]["image"] == built[-2]
        assert typed(*COMPOSE_COMMAND, "exec")[len(COMPOSE_COMMAND) + 1] in SERVICES
    else:
        assert built[-2] in typed("docker", "run", "--rm")
        assert built[-2] in typed("docker", "run", "-d")


def quickstart_in(checkout: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """quickstart of a copy whose installer only leaves a mark, from a folder with a model and a matrix."""
    (checkout / "deploy").mkdir(exist_ok=True)
    shutil.copy(DEPLOY / "quickstart", checkout / "deploy" / "quickstart")
    (checkout / "deploy" / "environment.sh").write_text(
        'make_environment() { touch installed; exit 7; }\nstop_with() { printf "onnxfarm: %s\\n" "$1" >&2; exit 3; }\n'
    )
    for name in ("model.onnx", "matrix.yaml"):
        (checkout / name).touch()
    words = ("bash", "deploy/quickstart", *words)
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=checkout)


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["modle.onnx"], "modle.onnx"),
        (["--once", "modle.onnx", "--port", "8001"], "modle.onnx"),
        (["model.onnx", "--matrix", "matrx.yaml"], "matrx.yaml"),
        (["model.onnx", "--matrix=matrx.yaml"], "matrx.yaml"),
        (["model.onnx", "--inputs", "inputs.npz"], "inputs.npz"),
        (["model.onnx", "--inputs=inputs.npz"], "inputs.npz"),
    ],
)
def test_a_mistyped_path_is_told_before_anything_is_installed(tmp_path: Path, words: list[str], missing: str) -> None:
    done = quickstart_in(tmp_path, *words)
    assert (done.returncode, done.stderr) == (2, f"onnxfarm: {missing} is not a file.\n")
    assert not (tmp_path / "installed").exists()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["model.onnx", "--matrix", "matrix.yaml", "--json", "out.json", "--port", "8001", "--once"],
        ["--sample", "digits", "--matrix=matrix.yaml", "--json=out.json", "--port=8001"],
        ["model.onnx", "--shape", "height=320", "--shape=width=320", "--input", "ids=0..9", "--input=speed=1"],
        ["--port"],
    ],
)
def test_words_that_name_files_that_are_there_go_on_to_the_installation(tmp_path: Path, words: list[str]) -> None:
    assert quickstart_in(tmp_path, *words).returncode == 7
    assert (tmp_path / "installed").exists()


def test_help_names_every_option_of_the_quickstart_and_installs_nothing(tmp_path: Path) -> None:
    done = quickstart_in(tmp_path, "model.onnx", "--port", "8001", "--help")
    assert done.returncode == 0
    assert not (tmp_path / "installed").exists()
    options = {"sample", "matrix", "shape", "input", "inputs", "once", "json", "port"}
    assert set(re.findall(r"--([a-z]+)", done.stdout)) == options == set(vars(parse_options([]))) - {"model"}


@pytest.mark.parametrize("path", sorted((PROJECT / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_every_pinned_package_has_hashes(path: Path) -> None:
    entries = re.split(r"\n(?=\S)", re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE).strip())
    without = [entry.split(" ")[0] for entry in entries if "--hash=sha256:" not in entry]
    assert without == []
    assert not re.search(r"(?i)https?://|--index-url|--find-links|file:", path.read_text())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not on this machine")
def test_units_are_units_to_systemd(tmp_path: Path) -> None:
    """The program they start lies elsewhere on a farm, which is all that may be missing here."""
    for path in (DEPLOY / "systemd").iterdir():
        shutil.copy(path, tmp_path / path.name.replace("@.", "@web."))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "onnxfarm@web.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "onnxfarm" in line]
    assert [line for line in ours if "is not executable" not in line and "deploy/process" not in line] == []


def ingress_of(address: str) -> dict[str, Any]:
    """The Ingress that a request goes by: nginx takes regular expressions of a host by their length."""
    found = [
        (len(rule["path"]), document)
        for document in yaml.safe_load_all((DEPLOY / "kubernetes" / "ingress.yaml").read_text())
        if document["kind"] == "Ingress"
        for rule in document["spec"]["rules"][0]["http"]["paths"]
        if re.match(rule["path"], address)
    ]
    return max(found, key=lambda pair: pair[0])[1]


UPLOADS = ("/api/v1/uploads", "/api/v1/uploads/files/ab12", "/api/v1/versions/7/evaluation", "/models/upload/")


@pytest.mark.parametrize("address", [*UPLOADS, "/models/versions/7/evaluation/", "/api/node/v1/blocks/1/files/trace"])
def test_the_ingress_lets_uploads_through_as_they_come(address: str) -> None:
    assert address.startswith("/api/node") or bridge.UPLOADS.fullmatch(address)
    annotations = ingress_of(address)["metadata"]["annotations"]
    assert annotations["nginx.ingress.kubernetes.io/proxy-body-size"] == "0"
    assert annotations["nginx.ingress.kubernetes.io/proxy-request-buffering"] == "off"


@pytest.mark.parametrize("address", ["/sign-in/ab/", "/api/v1/runs", "/models/7/", "/api/v1/versions/7"])
def test_the_ingress_hands_over_whole_requests_of_people(address: str) -> None:
    annotations = ingress_of(address)["metadata"]["annotations"]
    assert annotations["nginx.ingress.kubernetes.io/proxy-body-size"] == "4m"


def test_the_ingress_has_the_deadlines_of_the_proxy_of_compose() -> None:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / "ingress.yaml").read_text())
    [limits] = [document["data"] for document in documents if document["kind"] == "ConfigMap"]
    caddy = (DEPLOY / "Caddyfile").read_text()
    assert f"read_header {limits['client-header-timeout']}s" in caddy
    assert float(limits["client-body-timeout"]) == PACE.idle_s
    kept = re.findall(r"keepalive (\d+)s", caddy)
    assert kept == [limits["upstream-keepalive-timeout"]]
    assert int(kept[0]) < KEEP_ALIVE_S
