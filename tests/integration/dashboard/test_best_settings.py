"""The best settings on a model's page, within a latency budget that is typed."""

import pytest
from django.db.models import Value
from django.db.models.functions import Replace
from django.test import Client

from farm.accounts.models import User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.presenting.hardware_words import format_setting
from farm.runs.models import CellDocument, Run
from farm.runs.selectors.cells import measured_settings
from farm.runs.selectors.hardware import measured_across
from farm.runs.selectors.pages import open_run_counts, open_runs
from farm.runs.states import FOLLOW_UPS
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page


def words(client: Client, run: Run, budget: str = "") -> str:
    return assert_is_page(client.get(f"/models/{run.version.model_id}/", {"budget": budget}))


def test_the_panel_names_the_most_items_and_the_lowest_latency_of_each_machine(signed_in: Client, run: Run) -> None:
    found = words(signed_in, run)
    assert "Most: " in found
    assert "items/s with 1.29.0, CPU, int8-dynamic, batch" in found
    assert "bench-1 most items/s" in found
    assert "bench-1 lowest latency 1.29.0, CPU, int8-dynamic, batch 1, 1 thread" in found


def test_a_lower_precision_without_labelled_data_says_so_beside_its_outputs(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    for precision, is_marked in (("fp32", False), ("int8-dynamic", True)):
        matrix = {"matrix": {"runtime": ["1.29.0"], "batch": [1], "precision": [precision]}}
        found = words(signed_in, rows.finished_run(version, node, owner, matrix=matrix))
        assert ("accuracy not measured" in found) == is_marked
        assert ("Upload digest" in found) == is_marked


def test_one_setting_that_is_best_in_both_ways_is_one_row(signed_in: Client, version: Version, node: Node, owner: User):
    run = rows.finished_run(version, node, owner, matrix={"matrix": {**rows.MATRIX["matrix"], "batch": [1]}})
    found = words(signed_in, run)
    assert "bench-1 most items/s and lowest latency 1.29.0, CPU, int8-dynamic" in found
    assert found.count("1.29.0, CPU, int8-dynamic, batch 1, 1 thread 0.") == 1


def test_a_budget_leaves_out_what_is_slower(signed_in: Client, run: Run) -> None:
    found = words(signed_in, run, "0.4")
    assert "Most within 0.400 ms: " in found
    assert "batch 1, 1 thread on bench-1" in found


def test_a_budget_that_nothing_keeps_names_the_fastest(signed_in: Client, run: Run) -> None:
    found = words(signed_in, run, "0.001")
    assert "No measured setting is within 0.00100 ms; the fastest is 1.29.0, CPU, int8-dynamic, batch 1" in found
    assert "none of the measured ones" in found


@pytest.mark.parametrize("typed", ["soon", "-1", "0", "nan", "inf", "1e99", "٣٣x", "<b>", "9" * 500])
def test_what_is_no_budget_is_said_beside_the_field_and_kept_in_it(signed_in: Client, run: Run, typed: str) -> None:
    response = signed_in.get(f"/models/{run.version.model_id}/", {"budget": typed})
    found = assert_is_page(response)
    assert 'aria-invalid="true"' in response.content.decode()
    assert "Most: " in found


def test_a_comma_is_a_decimal_point(signed_in: Client, run: Run) -> None:
    assert "Most within 0.500 ms" in words(signed_in, run, " 0,5 ")


def test_wrong_outputs_are_not_recommended(signed_in: Client, run: Run) -> None:
    right, wrong = Value('"verdict":"pass"'), Value('"verdict":"fail"')
    CellDocument.objects.filter(arm__cell__run=run).update(body=Replace("body", right, wrong))
    assert "whose outputs do not pass" in words(signed_in, run)


@pytest.mark.parametrize("reason", FOLLOW_UPS)
def test_what_the_farm_measured_for_its_own_searches_is_no_setting_and_stands_on_no_list(
    signed_in: Client, version: Version, node: Node, owner: User, reason: str
) -> None:
    asked = rows.finished_run(version, node, owner, matrix={"matrix": {"runtime": ["1.29.0"], "batch": [1]}})
    search = rows.finished_run(
        version, node, owner, matrix={"matrix": {"runtime": ["1.31.1"], "batch": [1], "optimization": ["basic"]}}
    )
    Run.objects.filter(pk=search.pk).update(reason=reason)
    _, settings = measured_settings(owner, version.model)
    assert {one.run for one in settings} == {asked.pk}
    assert {one.run for one in measured_across(owner, version.model)} == {asked.pk}
    Run.objects.filter(pk=search.pk).update(state="running")
    assert open_runs(owner) == []
    assert open_run_counts(owner) == (0, 1)
    assert f"/runs/{search.pk}/" not in signed_in.get("/").content.decode()


def test_settings_that_differ_in_optimization_or_session_options_are_several(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    matrix = {"runtime": ["1.29.0"], "batch": [1], "precision": ["fp32"], "optimization": ["all", "basic"]}
    rows.finished_run(version, node, owner, matrix={"matrix": matrix})
    _, settings = measured_settings(owner, version.model)
    names = {format_setting(one) for one in settings}
    assert len(names) == len(settings) == 2


def test_only_the_newest_measured_version_counts_and_a_model_nobody_measured_has_no_panel(
    signed_in: Client, run: Run, node: Node, owner: User
) -> None:
    team = run.version.model.team
    second = rows.make_version(team, owner, number=2)
    assert "of version 1" in words(signed_in, run)
    rows.finished_run(second, node, owner, matrix={"matrix": {"runtime": ["1.31.1"], "batch": [1]}})
    assert "of version 2" in words(signed_in, run)
    fresh: Version = rows.make_version(team, owner, name="fresh")
    assert "Best settings" not in assert_is_page(signed_in.get(f"/models/{fresh.model_id}/"))


def test_a_stranger_sees_none_of_it(run: Run, stranger: User) -> None:
    assert_is_page(client_of(stranger).get(f"/models/{run.version.model_id}/?budget=5"), 404)
