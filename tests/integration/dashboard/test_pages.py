"""Lists, new runs, comparisons and errors: for owners and strangers, empty and filled, with good forms and bad ones."""

import html
import json
import re

import pytest
from django.test import Client

from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.registry.states import VersionState
from farm.runs.models import Run
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, count_queries, words_of

pytestmark = pytest.mark.django_db
LISTS = (
    "/", "/models/", "/runs/", "/fleet/", "/compare/", "/settings/tokens/", "/models/upload/", "/runs/new/", "/alerts/",
    "/alerts/?state=all&days=7", "/watches/", "/watches/new/", "/trends/", "/fleet/runtimes/",
)  # fmt: skip


@pytest.mark.parametrize("address", LISTS)
def test_an_empty_farm_invites(signed_in: Client, address: str) -> None:
    assert assert_is_page(signed_in.get(address))


@pytest.mark.parametrize("address", LISTS)
def test_a_filled_farm_lists(signed_in: Client, run: Run, address: str) -> None:
    assert_is_page(signed_in.get(address))


@pytest.mark.parametrize(
    ("address", "command"),
    [
        ("/", "onnxfarm submit"),
        ("/models/", "onnxfarm submit"),
        ("/runs/", "onnxfarm submit"),
        ("/fleet/", "deploy/quickstart"),
    ],
)
def test_an_empty_page_has_a_command_to_copy(signed_in: Client, address: str, command: str) -> None:
    text = signed_in.get(address).content.decode()
    assert re.search(rf'data-copy="[^"]*{command}', text)


# the fleet says what comes next on each machine, and when
@pytest.mark.parametrize(("address", "most"), [("/", 19), ("/models/", 14), ("/runs/", 13), ("/fleet/", 20)])
def test_lists_cost_as_many_queries_for_many_rows_as_for_few(
    signed_in: Client, team: Team, owner: User, node: Node, address: str, most: int
) -> None:
    for number in range(2):
        rows.begin_run(rows.make_version(team, owner, name=f"m{number}"), owner)
        rows.make_node(team, owner, name=f"n{number}")
    few = count_queries(signed_in, address)
    for number in range(2, 8):
        rows.begin_run(rows.make_version(team, owner, name=f"m{number}"), owner)
        rows.make_node(team, owner, name=f"n{number}")
    assert count_queries(signed_in, address) == few <= most


def test_a_stranger_finds_nothing_of_another_team(run: Run, node: Node, version: Version, stranger: User) -> None:
    client = client_of(stranger)
    for address in (
        f"/models/{version.model_id}/",
        f"/fleet/{node.pk}/",
        f"/runs/new/?version={version.pk}",
        f"/runs/new/?like={run.pk}",
    ):
        assert_is_page(client.get(address), 404)
    for address in ("/", "/models/", "/fleet/", "/runs/"):
        words = assert_is_page(client.get(address))
        assert "encoder" not in words
        assert "bench-1" not in words


@pytest.mark.parametrize("address", ["/models/999/", "/runs/999/", "/fleet/999/", "/nowhere/", "/models/x/"])
def test_a_vanished_object_is_a_helpful_404(signed_in: Client, address: str) -> None:
    assert_is_page(response := signed_in.get(address), 404)
    assert '<a class="button primary" href="/">Home</a>' in response.content.decode()


# new runs


def test_a_new_run_shows_its_plan_and_starts(signed_in: Client, version: Version, node: Node) -> None:
    words = assert_is_page(signed_in.get(f"/runs/new/?version={version.pk}"))
    assert "8 cells in 1 block, about" in words
    matrix = "matrix:\n  runtime: [1.29.0, 1.31.1]\n  threads: [1]\n"
    response = signed_in.post("/runs/new/", {"version": version.pk, "matrix": matrix, "seed": "3"})
    run = Run.objects.get()
    assert response["Location"] == f"/runs/{run.pk}/"
    assert run.seed == 3


def test_the_plan_follows_the_editor(signed_in: Client, version: Version, node: Node) -> None:
    def plan(matrix: str) -> str:
        return words_of(signed_in.post("/runs/plan/", {"version": version.pk, "matrix": matrix}))

    assert "2 cells in 1 block" in plan("runtime: [1.29.0, 1.31.1]")
    refused = plan("provider: [cpu, cuda]")
    assert "1 point will not run" in refused
    assert "CUDA" in refused
    assert "did you mean 'runtime'" in plan("runtme: [1.31.1]")
    assert "is not YAML" in plan("matrix: [")
    assert "start with a line like" in plan("")


def test_the_way_out_of_a_refusal_is_a_button_that_changes_form_text_and_plan(
    signed_in: Client, version: Version, node: Node
) -> None:
    asked = {"version": version.pk, "matrix": "runtime: [1.31.1]\nbatch: [1, 8]\nhardware: ['node:bench-9']"}
    planned = signed_in.post("/runs/plan/", asked).content.decode()
    [sent] = re.findall(r'<button[^>]* data-way [^>]*hx-vals="([^"]*)"', planned)
    matrix = json.loads(html.unescape(sent))["matrix"]
    changed = signed_in.post("/runs/plan/", asked | {"matrix": matrix}, headers={"HX-Trigger-Name": "way"})
    text = changed.content.decode()
    assert "data-refusal" not in text
    assert "2 cells in 1 block" in words_of(changed)
    assert "node:bench-9" not in text
    assert 'id="text" hx-swap-oob="true"' in text


def test_a_bad_matrix_keeps_what_was_typed(signed_in: Client, version: Version, node: Node) -> None:
    response = signed_in.post("/runs/new/", {"version": version.pk, "matrix": "runtme: [1]", "seed": "0"})
    assert response.status_code == 400
    text = response.content.decode()
    assert "runtme: [1]" in text
    assert "disabled" in text
    assert not Run.objects.exists()


@pytest.mark.parametrize("seed", ["-1", "x", "99999999999", "²", "1.5", ""])
def test_a_bad_seed_is_said_beside_its_field(signed_in: Client, version: Version, node: Node, seed: str) -> None:
    response = signed_in.post("/runs/new/", {"version": version.pk, "matrix": "threads: [1]", "seed": seed})
    assert response.status_code == 400
    assert 'id="seed-error"' in response.content.decode()
    assert f'value="{seed}"' in response.content.decode()


@pytest.mark.parametrize("preset", ["releases", "history", "settings", "openvino", "unknown"])
def test_every_preset_is_a_matrix_that_can_be_planned(signed_in: Client, version: Version, node: Node, preset: str):
    words = assert_is_page(signed_in.get(f"/runs/new/?version={version.pk}&preset={preset}"))
    assert "is not" not in words.split("Plan")[1].split("Signed in")[0] or "refused" in words
    assert "matrix:" in signed_in.get(f"/runs/new/?preset={preset}").content.decode()


def test_a_run_can_be_repeated_with_its_matrix(signed_in: Client, run: Run) -> None:
    text = signed_in.get(f"/runs/new/?like={run.pk}").content.decode()
    assert "int8-dynamic" in text[text.index("<textarea") : text.index("</textarea>")]


def test_a_version_that_is_not_ready_says_when_to_ask_again(signed_in: Client, team: Team, owner: User, node: Node):
    version = rows.make_version(team, owner, state=VersionState.PENDING)
    assert "it is planned once it is inspected" in assert_is_page(signed_in.get(f"/runs/new/?version={version.pk}"))


# lists of runs


def test_runs_are_filtered_by_model_and_state(signed_in: Client, run: Run, version: Version, owner: User) -> None:
    open_ = rows.begin_run(version, owner)
    running = words_of(signed_in.get("/runs/?state=running"))
    assert f"run {open_.pk}" in running
    assert f"run {run.pk} " not in running
    complete = words_of(signed_in.get("/runs/?state=complete&q=enc"))
    assert f"run {run.pk}" in complete
    assert "23.0–24.8 %" in complete
    assert "No results." in words_of(signed_in.get("/runs/?q=nothing"))
    assert_is_page(signed_in.get("/runs/?state=nonsense&page=99"))


# compare


def test_cells_of_one_run_stand_side_by_side_with_their_paired_verdict(signed_in: Client, run: Run) -> None:
    words = assert_is_page(signed_in.get(f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5"))
    assert "▲ slower 24" in words
    assert re.search(r"1\.31\.1 is 24", words)
    assert "8 rounds side by side in one block" in words
    assert "Optimization" not in words
    assert "Optimization" in assert_is_page(signed_in.get(f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5&every=yes"))


def test_the_cell_that_was_the_candidate_can_be_the_base_as_well(signed_in: Client, run: Run) -> None:
    words = assert_is_page(signed_in.get(f"/compare/?cells={run.pk}:c5&cells={run.pk}:c1"))
    assert re.search(r"1\.29\.0 is (19|20)[\d.]* % faster than 1\.31\.1", words)
    assert "8 rounds side by side in one block" in words


@pytest.mark.parametrize("cells", ["x", "1:", "999:c1", ":", "1:nope"])
def test_a_cell_that_cannot_be_compared_says_why(signed_in: Client, run: Run, cells: str) -> None:
    words = assert_is_page(signed_in.get("/compare/", {"cells": cells}))
    assert "There is no run" in words or "names no cell" in words or "has no cell" in words


# every page


def test_an_error_page_says_what_happened_without_a_stack_trace(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("dashboard.views.home.open_runs", broken)
    client = Client(raise_request_exception=False)
    client.force_login(owner)
    words = assert_is_page(client.get("/"), 500)
    assert "Something went wrong" in words
    assert "secret detail" not in words


def test_no_page_lets_a_script_run_inline(signed_in: Client, run: Run) -> None:
    for address in (*LISTS, f"/runs/{run.pk}/", f"/runs/{run.pk}/cells/c1/"):
        response = signed_in.get(address)
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        for tag in re.findall(r"<script[^>]*>", response.content.decode()):
            assert 'src="/static/' in tag or 'type="application/json"' in tag
