"""Whole runs held against each other: matched cell by cell, filtered by the address, without a verdict of their own."""

import csv
import io
import re

import pytest
from django.test import Client

from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Run
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page

pytestmark = pytest.mark.django_db
ONE_RELEASE = {"budget": "quick", "matrix": {"runtime": ["1.29.0"], "batch": [1, 8], "threads": [1]}}
OTHER_RELEASE = {"budget": "quick", "matrix": {"runtime": ["1.31.1"], "batch": [1, 8, 16], "threads": [1]}}


@pytest.fixture
def older(version: Version, node: Node, owner: User) -> Run:
    return rows.finished_run(version, node, owner, matrix=ONE_RELEASE)


@pytest.fixture
def newer(version: Version, node: Node, owner: User) -> Run:
    return rows.finished_run(version, node, owner, matrix=OTHER_RELEASE)


def address(*runs: Run, more: str = "") -> str:
    return "/compare/?" + "&".join(f"runs={run.pk}" for run in runs) + more


def test_runs_of_two_releases_are_matched_by_what_they_vary_and_the_largest_change_opens(
    signed_in: Client, older: Run, newer: Run
) -> None:
    words = assert_is_page(signed_in.get(address(older, newer)))
    assert f"Run {newer.pk} against run {older.pk}: 2 of 2 cells differ; largest: batch" in words
    assert re.search(r"2 of 2 cells differ; largest: batch \d, 24", words)
    assert "Runtime 1.29.0 1.31.1" in words
    assert "batch 16 no such cell" in words
    assert "3 of 3 cells" in words
    # no verdict: the machine may have changed between the two
    assert "slower" not in words


def test_runs_of_one_model_are_put_into_one_matrix_by_a_link(signed_in: Client, older: Run, newer: Run) -> None:
    form = f"/runs/new/?version={older.version_id}&like={older.pk}&like={newer.pk}"
    assert form.replace("&", "&amp;") in signed_in.get(address(older, newer)).content.decode()
    # five cells of two releases, and the run of both compares them
    words = assert_is_page(signed_in.get(form))
    assert "5 cells in 1 block" in words
    assert signed_in.get(f"{form}&like=999999").status_code == 404


def test_filters_are_part_of_the_address_and_say_so_when_nothing_is_left(signed_in: Client, older: Run, newer: Run):
    assert "2 of 3 cells" in assert_is_page(signed_in.get(address(older, newer, more="&kind=both")))
    assert "1 of 3 cells" in assert_is_page(signed_in.get(address(older, newer, more="&kind=one")))
    assert "2 of 3 cells" in assert_is_page(signed_in.get(address(older, newer, more="&sure=yes&least=20")))
    assert "No cells of 3 match" in assert_is_page(signed_in.get(address(older, newer, more="&least=90")))
    for odd in ("&kind=x", "&least=-3", "&least=9999", "&least=²", "&sure=maybe"):
        assert "3 of 3 cells" in assert_is_page(signed_in.get(address(older, newer, more=odd)))


def test_the_base_is_pinned_cells_are_searched_and_the_chart_has_the_chosen_metric(
    signed_in: Client, older: Run, newer: Run
) -> None:
    chosen = address(older, newer)
    assert f"base={newer.pk}" in signed_in.get(chosen).content.decode()
    turned = assert_is_page(signed_in.get(f"{chosen}&base={newer.pk}&metric=session_ms&find=batch+8"))
    assert f"Run {older.pk} against run {newer.pk}: 2 of 2 cells differ" in turned
    assert "1 of 3 cells" in turned
    assert "Session creation of 2 cells in 2 runs" in turned
    assert "One point for each run; the runs were not measured side by side." in turned
    for odd in ("&base=x", "&base=99", "&metric=nonsense", "&find=%"):
        assert f"Run {newer.pk} against run {older.pk}" in assert_is_page(signed_in.get(f"{chosen}{odd}"))


def test_wrong_outputs_lead_a_comparison_of_runs(
    signed_in: Client, older: Run, version: Version, node: Node, owner: User
) -> None:
    wrong = rows.finished_run(version, node, owner, matrix=OTHER_RELEASE, wrong=True)
    words = assert_is_page(signed_in.get(address(older, wrong)))
    assert f"wrong outputs of run {wrong.pk} in 2 of 2 cells; no clear difference in 2 cells" in words
    assert words.count("✕ wrong outputs") == 2


def test_runs_that_are_alike_differ_by_no_more_than_their_intervals(
    signed_in: Client, older: Run, version: Version, node: Node, owner: User
) -> None:
    again = rows.finished_run(version, node, owner, matrix=ONE_RELEASE)
    words = assert_is_page(signed_in.get(address(older, again)))
    assert "no clear difference in 2 cells" in words
    assert "Differences between the runs" not in words


def test_other_hardware_is_called_so(
    signed_in: Client, older: Run, version: Version, team: Team, owner: User, node: Node
) -> None:
    node.settings_json = {"is_paused": True}
    node.save()
    elsewhere = rows.finished_run(version, rows.make_node(team, owner, name="bench-2"), owner, matrix=ONE_RELEASE)
    words = assert_is_page(signed_in.get(address(older, elsewhere)))
    assert "different hardware" in words
    assert "bench-1 bench-2" in words


def test_the_same_view_is_a_file_and_up_to_four_runs_stand_side_by_side(signed_in: Client, older: Run, newer: Run):
    text = signed_in.get(address(older, newer, more="&kind=both&as=csv")).content.decode()
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(lines) == 2
    assert float(lines[0][f"run_{newer.pk}_ratio"]) == pytest.approx(1.24, rel=0.02)
    words = assert_is_page(signed_in.get(address(older, newer, more=f"&runs={older.pk}&runs=")))
    assert f"against run {older.pk}: 2 of 2" in words


def test_a_run_that_is_not_theirs_is_a_404_and_one_run_alone_is_the_form(
    signed_in: Client, stranger: User, older: Run, newer: Run
) -> None:
    assert_is_page(client_of(stranger).get(address(older, newer)), 404)
    text = signed_in.get(address(newer)).content.decode()
    assert f'<option value="{newer.pk}" selected>run {newer.pk}' in text
    assert f'<option value="{older.pk}" selected>run {older.pk}' in text
    assert_is_page(signed_in.get("/compare/?runs=x&runs=9999999999999999999&runs=-1"))


def test_a_run_that_measured_nothing_says_so(signed_in: Client, older: Run, version: Version, owner: User) -> None:
    waiting = rows.begin_run(version, owner, matrix=ONE_RELEASE)
    assert "no cell was measured in both" in assert_is_page(signed_in.get(address(older, waiting)))
