"""The figures for Prometheus, and who may read them."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from farm.accounts.models import Team, User
from farm.runs.models import Run
from farm.runs.states import BlockState
from tests.conftest import PROJECT
from tests.integration.dashboard import rows

pytestmark = pytest.mark.django_db
TOKEN = "a-long-token-of-the-operator"


def read(client: Client, **headers: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Metric → values of its labels, by their names → value."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(answer.content.decode())
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples} for family in families
    }


def test_nodes_runs_and_blocks_are_counted(client: Client, team: Team, owner: User) -> None:
    node = rows.make_node(team, owner)
    rows.finished_run(rows.make_version(team, owner), node, owner)
    rows.begin_run(rows.make_version(team, owner, name="other"), owner)
    found = read(client)
    assert found["onnxfarm_nodes"] == {("active", "online"): 1}
    assert found["onnxfarm_runs"] == {("complete", "finished"): 1, ("", "running"): 1}
    assert found["onnxfarm_blocks"][("done",)] == Run.objects.order_by("pk")[0].blocks.count()
    assert found["onnxfarm_blocks"][("queued",)] >= 1
    assert found["onnxfarm_oldest_queued_block_seconds"][()] >= 0
    assert found["onnxfarm_versions"] == {("ready",): 2}
    assert found["onnxfarm_store_free_bytes"][()] > 0
    assert found["process_resident_memory_bytes"][()] > 1e6


def test_a_block_that_nobody_settles_gets_older(client: Client, team: Team, owner: User) -> None:
    run = rows.finished_run(rows.make_version(team, owner), rows.make_node(team, owner), owner)
    run.blocks.update(state=BlockState.REPORTED, ended_at=timezone.now() - timedelta(minutes=20))
    assert read(client)["onnxfarm_oldest_reported_block_seconds"][()] >= 1200


def test_an_empty_farm_has_figures_too(client: Client) -> None:
    found = read(client)
    assert found["onnxfarm_oldest_queued_block_seconds"] == {(): 0}
    assert found["onnxfarm_oldest_reported_block_seconds"] == {(): 0}
    assert found["onnxfarm_stored_bytes"] == {(): 0}


def test_a_token_opens_them_from_anywhere(settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN
    read(Client(REMOTE_ADDR="192.0.2.7"), authorization=f"Bearer {TOKEN}")


@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", "Bearer é"])
@pytest.mark.parametrize("token", ["", TOKEN])
def test_anybody_else_is_told_what_to_do(settings: Settings, token: str, header: str) -> None:
    settings.METRICS_TOKEN = token
    answer = Client(REMOTE_ADDR="192.0.2.7").get("/metrics", headers={"authorization": header})
    assert (answer.status_code, answer.json()["code"]) == (401, "not_signed_in")
    assert "ONNXFARM_METRICS_TOKEN" in answer.json()["hint"]


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "x-real-ip"])
def test_a_proxy_on_this_machine_is_not_this_machine(client: Client, header: str) -> None:
    assert client.get("/metrics", headers={header: "192.0.2.7"}).status_code == 401


def test_a_person_s_token_does_not_open_them(owner: User) -> None:
    from farm.accounts.services import issue_token

    secret = issue_token(owner)[1]
    client = Client(REMOTE_ADDR="192.0.2.7", headers={"authorization": f"Bearer {secret}"})
    assert client.get("/metrics").status_code == 401


def test_figures_cost_few_queries(client: Client, django_assert_max_num_queries: object) -> None:
    with django_assert_max_num_queries(12):
        read(client)


def test_rules_and_dashboard_name_nothing_that_is_not_told(client: Client) -> None:
    folder = PROJECT / "deploy" / "monitoring"
    asked = "".join((folder / name).read_text() for name in ("rules.yaml", "dashboard.json"))
    told = {name + suffix for name in read(client) for suffix in ("", "_info", "_total")}
    named = set(re.findall(r"\b(?:onnxfarm|process)_[a-z_]+", asked))
    assert len(named) > 10
    assert named <= told
