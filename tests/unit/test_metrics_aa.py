"""The recorded A/A blocks of every metric, called by the product's rule; and a farm that sees no release change."""

import json
from pathlib import Path

import pytest

from farm.rules.changes.watch_rounds import Rule
from tests.bench import metrics_aa
from tests.bench.ledger import Line


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    path = Path(metrics_aa.__file__).with_suffix(".jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def test_of_sixty_real_pairs_a_metric_at_most_two_are_called(lines: list[Line]) -> None:
    found = metrics_aa.called(lines)
    assert {"p50_ms", "session_ms", "first_ms", "peak_memory_bytes", "peak_address_space_bytes"} <= found.keys()
    assert all(one["comparisons"] >= 60 and one["called"] <= metrics_aa.MAX_CALLED for one in found.values())


@pytest.mark.parametrize("rule", [Rule(), None])
def test_ten_releases_without_a_change_raise_at_most_one_alert(lines: list[Line], rule: Rule | None) -> None:
    farm = metrics_aa.Farm(lines, seed=2)
    assert sum(farm.alerts(rule=rule) for _ in range(metrics_aa.RELEASES)) <= metrics_aa.MAX_ALERTS


def test_a_fifth_more_of_session_creation_is_called_by_the_rounds_of_quick(lines: list[Line]) -> None:
    farm = metrics_aa.Farm(lines, seed=2)
    assert farm.power("session_ms", times=600, rounds=metrics_aa.ROUNDS) >= metrics_aa.MIN_POWER


def test_a_farm_whose_candidates_are_slower_raises_one_alert_a_model_and_metric(lines: list[Line]) -> None:
    """What the simulation would not see it could not rule out."""
    slow = metrics_aa.Farm(lines, seed=2, factor=2.0)
    assert slow.alerts(rule=Rule()) == metrics_aa.MODELS * len(slow.metrics)
