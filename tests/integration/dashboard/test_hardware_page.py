"""The page of a model across hardware: what it answers, its file, its share link, and who sees it."""

import csv
import io
import json
import re

from django.test import Client

from farm.accounts.models import User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Arm, CellDocument, Run
from farm.runs.services.share_links import share
from tests.integration.dashboard import rows
from tests.integration.dashboard.across import measured_across
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page


def test_three_kinds_of_hardware_stand_side_by_side_and_a_question_is_answered(
    signed_in: Client, version: Version, owner: User, stranger: User
) -> None:
    runs = measured_across(version, owner)
    path = f"/models/{version.model_id}/hardware/"
    page = assert_is_page(signed_in.get(path))
    assert "Version 1 was measured on 3 targets. Lowest p50: 0.2" in page
    assert "Different hardware, side by side" in page
    for target in ("bench-1 (cpu)", "bench-1 (openvino)", "bench-2 (cpu)"):
        assert target in page
    assert f"/models/{version.model_id}/hardware/" in signed_in.get(f"/models/{version.model_id}/").content.decode()
    assert f'href="/runs/{runs[2].pk}/cells/c1/"' in signed_in.get(path).content.decode()

    answered = assert_is_page(signed_in.get(path, {"budget": "1", "loss": "1"}))
    assert "Within 1 ms and 1 % loss: 2 of 3 targets of version 1." in answered
    assert "1 target beyond the limits is not shown. Show all" in answered
    odd = signed_in.get(path, {"budget": "soon", "loss": "-3", "version": "\x7f", "by": "<b>"})
    assert "not a number of milliseconds" in assert_is_page(odd)
    assert "The loss must be between 0 and 100 %." in assert_is_page(odd)

    table = signed_in.get(path, {"as": "csv", "budget": "1"}).content.decode()
    lines = list(csv.DictReader(io.StringIO(table)))
    assert [(line["nodes"], line["tag"], line["keeps"]) for line in lines] == [
        ("bench-1", "cpu", "kept"), ("bench-1", "openvino", "kept"),
    ]  # fmt: skip
    assert_is_page(client_of(stranger).get(path), 404)

    _, url = share(kind="hardware", subject=str(version.model_id), by=owner)
    shown = Client().get(url[url.index("/shared/") :], {"budget": "1"})
    assert "Within 1 ms: 2 of 3 targets of version 1." in assert_is_page(shown)
    secret_page = shown.content.decode()
    assert "<form" not in secret_page
    assert not re.search(r"/(runs|models|fleet|api)/", secret_page)


def test_a_model_that_nobody_measured_says_how_to_begin(signed_in: Client, version: Version) -> None:
    assert "New run" in assert_is_page(signed_in.get(f"/models/{version.model_id}/hardware/"))


def test_two_nodes_of_one_machine_are_said_to_be_one(signed_in: Client, version: Version, owner: User) -> None:
    measured_across(version, owner)
    Node.objects.update(host="0123456789abcdef")
    words = assert_is_page(signed_in.get(f"/models/{version.model_id}/hardware/"))
    assert "bench-1 and bench-2 are nodes of one machine" in words
    assert "Different hardware" not in words


def judge(run: Run, value: float) -> None:
    """Every cell of a run as judged on the same labelled data."""
    found = {"metric": "top1", "recipe": "top1", "output": "y", "n": 500, "data_sha256": "d", "value": value}
    found |= {"ci_low": max(0.0, value - 0.01), "ci_high": value + 0.01}
    for row in CellDocument.objects.filter(arm__cell__run=run):
        row.body = json.dumps(json.loads(row.body) | {"accuracy": found})
        row.save()
    Arm.objects.filter(cell__run=run).update(is_evaluated=True)


def test_a_version_that_labelled_data_show_to_be_broken_is_praised_nowhere(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    matrix = {"matrix": {"runtime": ["1.31.1"], "batch": [1], "precision": ["fp32", "int8-dynamic"]}}
    judge(rows.finished_run(version, node, owner, matrix=matrix), 0.98)
    path = f"/models/{version.model_id}/"
    assert "lowest latency 1.31.1" in assert_is_page(signed_in.get(path))
    broken = rows.make_version(version.model.team, owner, number=2)
    judge(rows.finished_run(broken, node, owner, matrix=matrix), 0.006)
    page = assert_is_page(signed_in.get(path))
    assert "none is recommended" in page
    assert "✕ wrong outputs" in page
    assert "lowest latency 1.31.1" not in page
    assert "Wrong outputs in all 2 cells" in page
    across = assert_is_page(signed_in.get(f"{path}hardware/", {"version": "all"}))
    assert "Left out: 2 with wrong outputs" in across
    assert "No measured setting was judged" not in across
    _, url = share(kind="model", subject=str(version.model_id), by=owner)
    assert "Wrong outputs in all 2 cells" in assert_is_page(Client().get(url[url.index("/shared/") :]))
