"""A run on a busy machine, at each of its states: whatever shows a time shows the one that can be trusted."""

import re
from typing import Any

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.presenting.best import find_best_settings
from farm.rules.presenting.times import Times
from farm.rules.wording import numbers
from farm.runs import selectors
from farm.runs.models import Run
from farm.runs.selectors.cells import measured_settings
from farm.runs.selectors.hardware import measured_across
from tests.integration.dashboard import rows
from tests.integration.dashboard.pages import assert_is_page

pytestmark = pytest.mark.django_db


# few cells: what a clock is said to have taken has to have passed
SMALL: dict[str, Any] = {
    "budget": "quick",
    "matrix": {"runtime": ["1.29.0", "1.31.1"], "precision": ["fp32", "int8-dynamic"], "threads": [1]},
}
# of a cell's thread, in ms; the clock runs some five times as long
MAX_MS = 0.65


@pytest.fixture
def begun(version: Version, node: Node, owner: User) -> Run:
    return rows.begin_run(version, owner, matrix=SMALL)


@pytest.fixture
def busy(node: Node) -> rows.MadeUpNode:
    return rows.MadeUpNode(node, busy=True)


def times_of(client: Client, run: Run) -> list[float]:
    """The times that stand in the fields of the map, in ms."""
    text = client.get(f"/runs/{run.pk}/").content.decode()
    return [float(found) for found in re.findall(r'<span class="value">([0-9.]+) ms</span>', text)]


def test_launches_so_far_are_told_by_processor_time(signed_in: Client, begun: Run, busy: rows.MadeUpNode) -> None:
    busy.measure(begun, most_rounds=2)
    told = times_of(signed_in, begun)
    assert len(told) == 4
    assert max(told) < MAX_MS


def test_charts_and_tables_of_the_finished_run_are_of_processor_time(
    signed_in: Client, begun: Run, busy: rows.MadeUpNode
) -> None:
    busy.measure(begun)
    begun.refresh_from_db()
    document = selectors.document(begun)
    assert {pair.verdict_from for pair in document.comparisons} == {"processor"}
    assert max(times_of(signed_in, begun)) < MAX_MS
    for chart, axis in (("latency", "processor time, ms"), ("throughput", "items/s, processor time")):
        text = signed_in.get(f"/runs/{begun.pk}/?chart={chart}").content.decode()
        assert axis in text, chart
    assert "change of processor time" in signed_in.get(f"/runs/{begun.pk}/?chart=comparisons").content.decode()
    cell = assert_is_page(signed_in.get(f"/runs/{begun.pk}/cells/c1/"))
    assert re.search(r"[0-9.]+\sms ± [0-9.]+ of CPU time", cell)


def test_a_node_whose_pairs_were_all_disturbed_says_why_nothing_is_known_of_its_noise(
    signed_in: Client, version: Version, owner: User, node: Node, busy: rows.MadeUpNode
) -> None:
    busy.measure(rows.begin_run(version, owner, matrix={"matrix": {"runtime": ["1.31.1"], "threads": [1]}}))
    words = assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))
    assert "no A/A pair of its last 1 block counts" in words


def test_a_quiet_measurement_of_a_setting_counts_before_a_newer_disturbed_one(
    version: Version, owner: User, node: Node, busy: rows.MadeUpNode
) -> None:
    matrix = {"matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1], "threads": [1]}}
    quiet = rows.finished_run(version, node, owner, matrix=matrix)
    busy.measure(
        rows.begin_run(version, owner, matrix={"matrix": {**matrix["matrix"], "runtime": ["1.31.1", "1.32.0"]}})
    )
    for settings in (measured_settings(owner, version.model)[1], measured_across(owner, version.model)):
        assert {one.cell.runtime.version: one.run == quiet.pk for one in settings} == {
            "1.29.0": True,
            "1.31.1": True,
            "1.32.0": False,
        }


def test_best_settings_are_told_by_the_time_that_the_run_tells(
    signed_in: Client, version: Version, owner: User, begun: Run, busy: rows.MadeUpNode
) -> None:
    busy.measure(begun)
    begun.refresh_from_db()
    found = selectors.document(begun)
    times = Times.of(found.cells, found.comparisons)
    _, settings = measured_settings(owner, version.model)
    assert len(settings) == 4
    assert all(one.is_processor for one in settings)
    known = {cell.id: times.with_compared_time(cell) for cell in found.cells}
    for one in settings:
        own = known[one.cell.id]
        assert (one.cell.p50_ms, one.cell.p50_ci_ms, one.cell.throughput) == (own.p50_ms, own.p50_ci_ms, own.throughput)
    (best,) = find_best_settings(settings, budget_ms=None)
    for path in ("", "hardware/"):
        page = assert_is_page(signed_in.get(f"/models/{version.model_id}/{path}"))
        assert "CPU time: this machine was busy" in page
        assert "processor time, ms" in page
        assert numbers.latency(best.fastest.settings[0].cell.p50_ms, best.fastest.settings[0].cell.p50_ci_ms) in page
    table = signed_in.get(f"/models/{version.model_id}/hardware/", {"as": "json"}).json()
    assert {(row["time"], row["p50_ms"]) for row in table} == {("processor time", best.fastest.settings[0].cell.p50_ms)}
