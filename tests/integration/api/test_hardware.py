"""`GET /api/v1/models/ID/hardware`: where a model was measured, and where it may run."""

from typing import Any

import pytest
from django.db.models import Value
from django.db.models.functions import Replace
from django.test import Client

from farm.accounts.models import Team, User
from farm.registry.models import Version
from farm.runs.models import CellDocument, Run
from tests.conftest import ApiOf
from tests.integration.dashboard import rows
from tests.integration.dashboard.across import measured_across


@pytest.fixture
def version(team: Team, owner: User) -> Version:
    return rows.make_version(team, owner)


@pytest.fixture
def runs(version: Version, owner: User) -> list[Run]:
    return measured_across(version, owner)


def asked(client: Client, of: Version, status: int = 200, **query: object) -> dict[str, Any]:
    answer = client.get(f"/api/v1/models/{of.model_id}/hardware", query)
    assert answer.status_code == status, answer.content
    found: dict[str, Any] = answer.json()
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [f"{' '.join(one['nodes'])} {one['tag']}" for one in found["targets"]]


def test_every_target_stands_with_its_best_setting_and_its_interval(
    api_of: ApiOf, version: Version, runs: list[Run], owner: User
) -> None:
    found = asked(api_of(owner), version)
    assert names(found) == ["bench-1 cpu", "bench-1 openvino", "bench-2 cpu"]
    first = found["targets"][1]
    assert first["machine"] == "Example CPU"
    best = first["best"]
    assert best["provider"] == "OpenVINOExecutionProvider"
    assert best["p50_ci_ms"][0] <= best["p50_ms"] <= best["p50_ci_ms"][1]
    assert (best["run"], best["parity"], best["peak_memory_bytes"]) == (runs[2].pk, "pass", 95_000_000)
    assert best["loss"] == {"percent": 0.0, "worst_percent": 0.0, "basis": "parity"}
    assert best["energy_mj"] is None
    assert best["measured_at"].startswith("20")
    assert (found["targets"][0]["best"]["precision"], found["targets"][0]["settings"]) == ("int8-dynamic", 2)
    assert found["sentence"].startswith("Version 1 was measured on 3 targets. Lowest p50: 0.2")
    assert "none of them is called faster or slower" in found["note"]


def test_where_it_may_run_within_a_latency_and_a_loss(api_of: ApiOf, version: Version, runs: list[Run], owner: User):
    found = asked(api_of(owner), version, budget_ms=1, loss_percent=1)
    assert [(name, one["keeping"]) for name, one in zip(names(found), found["targets"], strict=True)] == [
        ("bench-1 openvino", "kept"),
        ("bench-1 cpu", "kept"),
        ("bench-2 cpu", "exceeded"),
    ]
    # of INT8 no loss is known: FP32 is the best setting that keeps the limit
    assert found["targets"][1]["best"]["precision"] == "fp32"
    assert found["sentence"].startswith("Within 1 ms and 1 % loss: 2 of 3 targets of version 1.")


def test_a_tag_over_all_nodes_and_one_version_or_all_of_them(
    api_of: ApiOf, version: Version, runs: list[Run], owner: User
) -> None:
    client = api_of(owner)
    assert names(asked(client, version, by="tag")) == ["bench-1 bench-2 cpu", "bench-1 openvino"]
    second = rows.make_version(version.model.team, owner, number=2)
    node = runs[0].blocks.first().node
    rows.finished_run(second, node, owner, matrix={"matrix": {"runtime": ["1.31.1"], "batch": [1]}})
    assert [one["version"] for one in asked(client, version)["targets"]] == [2]
    assert [one["version"] for one in asked(client, version, version="1")["targets"]] == [1, 1, 1]
    assert [one["version"] for one in asked(client, version, version="all")["targets"]] == [2, 1, 1, 1]


def test_what_fails_parity_is_never_the_best_and_is_counted(
    api_of: ApiOf, version: Version, runs: list[Run], owner: User
) -> None:
    right, wrong = Value('"verdict":"pass"'), Value('"verdict":"fail"')
    CellDocument.objects.filter(arm__cell__run=runs[2]).update(body=Replace("body", right, wrong))
    found = asked(api_of(owner), version)
    last = found["targets"][-1]
    assert (last["tag"], last["best"], last["left_out"]) == ("openvino", None, {"wrong": 1})
    assert "Left out: 1 with wrong outputs." in found["left_out"]


def test_a_cell_that_ran_on_the_cpu_instead_is_not_openvinos_best(api_of: ApiOf, version: Version, owner: User) -> None:
    node = rows.make_node(version.model.team, owner, providers=(rows.CPU, "OpenVINOExecutionProvider"))
    matrix = {"matrix": {"runtime": ["onnxruntime-openvino==1.24.1"], "provider": ["openvino"], "batch": [1]}}
    rows.finished_run(version, node, owner, matrix=matrix, elsewhere=True)
    (found,) = asked(api_of(owner), version)["targets"]
    assert (found["best"], found["left_out"]) == (None, {"elsewhere": 1})


def test_a_model_that_nobody_measured_says_so(api_of: ApiOf, version: Version, owner: User) -> None:
    found = asked(api_of(owner), version, version="7")
    assert found["targets"] == []
    assert found["sentence"]


@pytest.mark.parametrize(
    "query",
    [
        {"budget_ms": "soon"}, {"budget_ms": "0"}, {"budget_ms": "-1"}, {"budget_ms": "nan"}, {"budget_ms": "inf"},
        {"loss_percent": "-1"}, {"loss_percent": "101"}, {"loss_percent": "nan"}, {"goal": "money"}, {"by": "owner"},
        {"version": "0"}, {"version": "first"}, {"version": "9" * 40}, {"version": "-1"},
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_with_the_field(
    api_of: ApiOf, version: Version, owner: User, query: dict[str, str]
) -> None:
    refused = asked(api_of(owner), version, 422, **query)
    assert next(iter(query)) in str(refused)


def test_a_stranger_learns_nothing(api_of: ApiOf, version: Version, stranger: User) -> None:
    asked(api_of(stranger), version, 404)
