"""Compose, Kubernetes, systemd, the proxy and docs/ say of the farm's processes what farm/config/processes.py says."""

import re
import sys
from typing import Any

import pytest
import yaml
from django.conf import settings

from farm.alerts import tasks as alerts
from farm.config import processes
from farm.config.embedded import supervisor
from farm.config.environment import Environment
from farm.config.processes import BEHIND_PROXY, BROKER, DATABASE, GATEWAY, PREPARE, RUNNING, TICKS, WEB, Image, Server
from farm.contract.version import DELIVERY_QUEUE, PREPARE_QUEUE, SETTLE_QUEUE, TICK_QUEUE
from farm.runs import tasks as runs
from tests.conftest import PROJECT

DEPLOY = PROJECT / "deploy"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
KUBERNETES = [
    document
    for path in sorted((DEPLOY / "kubernetes").rglob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
]
UNIT = (DEPLOY / "systemd" / "onnxfarm@.service").read_text()
OURS = [processes.MIGRATE, *(process.name for process in RUNNING)]
SERVERS, IMAGES = (WEB, GATEWAY), (BROKER, DATABASE)


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    """What Kubernetes is told of this kind, by name."""
    return {found["metadata"]["name"]: found for found in KUBERNETES if found["kind"] == kind}


def pod(name: str) -> dict[str, Any]:
    found = of_kind("Deployment") | of_kind("Job")
    spec: dict[str, Any] = found[name]["spec"]["template"]["spec"]
    return spec


def container(name: str) -> dict[str, Any]:
    [only] = pod(name)["containers"]
    assert only["name"] == name
    return dict(only)


def test_every_place_starts_every_process_by_its_name() -> None:
    assert {name: SERVICES[name]["command"] for name in OURS} == {name: [name] for name in OURS}
    assert {name: container(name)["args"] for name in OURS} == {name: [name] for name in OURS}
    assert set(SERVICES) - set(OURS) == {"broker", "database", "proxy"}
    assert set(of_kind("Deployment")) == {*OURS[1:], "broker", "database"}
    wanted = re.findall(r"onnxfarm@(\w+)\.service", (DEPLOY / "systemd" / "onnxfarm.target").read_text())
    assert wanted == OURS[1:]
    assert "\nExecStart=/opt/onnxfarm/deploy/process %i\n" in UNIT
    assert "farm.config.processes" in (DEPLOY / "process").read_text()


@pytest.mark.parametrize("process", RUNNING, ids=lambda process: process.name)
def test_every_place_gives_a_process_the_same_time_to_end(process: processes.Server | processes.Worker) -> None:
    assert SERVICES[process.name]["stop_grace_period"] == f"{processes.STOP_S}s"
    assert pod(process.name)["terminationGracePeriodSeconds"] == processes.STOP_S
    assert f"\nTimeoutStopSec={processes.STOP_S}\n" in UNIT
    assert processes.LEAVE_S + processes.STOP_REQUESTS_S < processes.STOP_S
    assert supervisor.GRACE_S < processes.STOP_S


@pytest.mark.parametrize("process", RUNNING, ids=lambda process: process.name)
def test_kubernetes_limits_a_process_as_the_table_says(process: processes.Server | processes.Worker) -> None:
    limits = container(process.name)["resources"]["limits"]
    assert limits == {"memory": f"{process.memory_bytes // processes.GIB}Gi"}
    told = of_kind("Deployment")[process.name]["spec"]
    assert told["replicas"] == 1
    assert told["strategy"].get("type") == ("Recreate" if process.is_single else None)
    assert (process.name in of_kind("PodDisruptionBudget")) is not process.is_single


def test_a_large_farm_has_no_second_one_of_what_is_single() -> None:
    [large] = [found for found in KUBERNETES if "replicas" in found and found["kind"] == "Kustomization"]
    many = {
        *(found["name"] for found in large["replicas"]),
        *(found["spec"]["scaleTargetRef"]["name"] for found in of_kind("HorizontalPodAutoscaler").values()),
    }
    assert many == {process.name for process in RUNNING if not process.is_single}


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_every_place_asks_a_server_where_it_listens(server: Server) -> None:
    told, name = container(server.name), server.name
    assert told["ports"] == [{"containerPort": server.port}]
    assert {told[probe]["tcpSocket"]["port"] for probe in ("readinessProbe", "livenessProbe")} == {server.port}
    assert told["lifecycle"] == {"preStop": {"exec": {"command": ["sleep", str(processes.LEAVE_S)]}}}
    assert of_kind("Service")[name]["spec"]["ports"] == [{"port": server.port}]
    led = {
        path["backend"]["service"]["port"]["number"]
        for ingress in of_kind("Ingress").values()
        for path in ingress["spec"]["rules"][0]["http"]["paths"]
        if path["backend"]["service"]["name"] == name
    }
    assert led == {server.port}
    assert f"dynamic a {name} {server.port}" in (DEPLOY / "Caddyfile").read_text()


def test_nodes_inside_a_cluster_reach_the_gateway_at_its_port() -> None:
    policies = of_kind("NetworkPolicy")
    assert policies["nodes"]["spec"]["ingress"][0]["ports"] == [{"port": GATEWAY.port}]
    assert policies["what-nodes-reach"]["spec"]["egress"][0]["ports"] == [{"port": GATEWAY.port}]


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
def test_broker_and_database_are_the_same_servers_everywhere(image: Image) -> None:
    service, told = SERVICES[image.name], container(image.name)
    assert (service["image"], told["image"]) == (image.image, f"docker.io/{image.image}")
    assert service["healthcheck"]["test"] == ["CMD", *image.health]
    assert told["readinessProbe"].get("exec", {}).get("command", [*image.health]) == [*image.health]
    assert told["readinessProbe"].get("tcpSocket", {}).get("port", image.port) == image.port
    assert told["ports"] == [{"containerPort": image.port}]
    assert of_kind("Service")[image.name]["spec"]["ports"] == [{"port": image.port}]
    for words in (service.get("command", []), told.get("args", [])):
        assert words[: len(image.words)] == [*image.words]


def test_every_place_says_that_a_proxy_stands_in_front_and_nothing_that_is_no_setting() -> None:
    config = of_kind("ConfigMap")["onnxfarm"]["data"]
    assert config.items() >= BEHIND_PROXY.items()
    assert SERVICES["gateway"]["environment"].items() >= BEHIND_PROXY.items()
    trusted = "FORWARDED_ALLOW_IPS"
    for name in OURS:
        assert {**SERVICES[name]["environment"], trusted: "*"}.items() >= BEHIND_PROXY.items()
        assert container(name)["envFrom"] == [
            {"configMapRef": {"name": "onnxfarm"}},
            {"secretRef": {"name": "onnxfarm"}},
        ]
    known = {f"ONNXFARM_{name.upper()}" for name in Environment.model_fields}
    assert set(config) | set(SERVICES["gateway"]["environment"]) <= known | {trusted}
    assert config["ONNXFARM_BROKER_URL"] == SERVICES["web"]["environment"]["ONNXFARM_BROKER_URL"]
    assert config["ONNXFARM_BROKER_URL"] == f"redis://{BROKER.name}:{BROKER.port}/0"


def test_the_document_lists_them() -> None:
    text = (PROJECT / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| (\w+) \| `deploy/process (\w+)`", text, re.MULTILINE)
    assert {name for name, _ in rows} == {BROKER.name, *OURS[1:]}
    assert all(name == started for name, started in rows)


def test_variables_say_where_a_deployed_server_listens_and_by_how_many_processes() -> None:
    environment = {"ONNXFARM_LISTEN": "0.0.0.0", "ONNXFARM_GATEWAY_PORT": "9001", "ONNXFARM_GATEWAY_WORKERS": "5"}
    start = [sys.executable, "-m", "farm.config.server", "gateway"]
    listens = ["--host", "0.0.0.0", "--port", "9001", "--workers", "5", "--stop-within", "2"]
    assert GATEWAY.make_deployed_command(environment) == [*start, *listens]
    plain = ["--host", "127.0.0.1", "--port", "8001", "--workers", "2", "--stop-within", "2"]
    assert GATEWAY.make_deployed_command({}) == [*start, *plain]
    assert option(PREPARE.make_deployed_command({"ONNXFARM_PREPARE_WORKERS": "7"}), "--concurrency") == "7"
    assert PREPARE.make_deployed_command({}) == PREPARE.make_command()


@pytest.mark.parametrize("text", ["two", "-1", "1.5", "²"])
def test_a_variable_that_is_no_number_is_refused_by_name(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        WEB.make_deployed_command({"ONNXFARM_WEB_WORKERS": text})
    assert ended.value.code == processes.EXIT_USAGE
    assert f"ONNXFARM_WEB_WORKERS is {text!r}" in capsys.readouterr().err


def test_ticks_and_messages_share_no_queue_with_makings() -> None:
    queues = {entry["options"]["queue"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert queues == {TICK_QUEUE}
    # what is settled waits for no making, and is settled by more than one process where there are several
    assert option(PREPARE.make_command(), "--queues").split(",") == [PREPARE_QUEUE, SETTLE_QUEUE]
    assert option(TICKS.make_command(), "--queues").split(",") == [TICK_QUEUE, SETTLE_QUEUE, DELIVERY_QUEUE]
    assert "--ticking" in TICKS.make_command()
    assert "--ticking" not in PREPARE.make_command()


def test_every_kind_of_tick_has_a_thread_while_all_messages_and_blocks_hang() -> None:
    assert len(settings.CELERY_BEAT_SCHEDULE) + alerts.MAX_CONCURRENT_DELIVERIES + runs.AT_ONCE < TICKS.threads


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]
