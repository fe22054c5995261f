"""What a setting has to keep: budgets by cells that say outright what they have."""

from typing import Any

import pytest

from farm.rules.searches.limits import Limits
from tests.documents import make_cell

TIMES = {"p50_ms": 1.0, "samples_ms": [1.0] * 8, "p50_ci_ms": (0.9, 1.1), "p99_ms": 2.0}
LOSSY = TIMES | {"precision": "int8-dynamic"}
LABELLED = {"metric": "top1", "value": 0.95, "ci_low": 0.94, "ci_high": 0.96}


def keepings(limits: Limits, **changes: Any) -> dict[str, str]:
    return {judged.budget: judged.keeping for judged in limits.judge_budgets(make_cell(**TIMES | changes))}


@pytest.mark.parametrize(("limit", "keeping"), [(1.2, "kept"), (1.05, "open"), (0.8, "broken")])
def test_times_are_judged_by_the_worse_end_of_their_interval(limit: float, keeping: str) -> None:
    assert keepings(Limits(max_p50_ms=limit)) == {"p50": keeping}
    assert keepings(Limits(max_p99_ms=2.0 * limit)) == {"p99": keeping}
    busy = Limits(max_p50_ms=limit).judge_budgets(make_cell(**TIMES), is_busy=True)
    assert [judged.keeping for judged in busy] == ["open"], "a busy machine proves nothing"
    assert keepings(Limits(max_p50_ms=9.0), p50_ci_ms=None) == {"p50": "open"}
    assert keepings(Limits(max_p99_ms=9.0), p99_ms=None) == {"p99": "open"}


def test_a_short_block_proves_that_a_budget_is_broken_where_every_launch_says_so() -> None:
    limits = Limits(max_p50_ms=1.0, max_p99_ms=1.0)
    assert limits.find_broken(make_cell(p50_ms=1.5, samples_ms=[1.5, 1.6])).budget == "p50"
    assert limits.find_broken(make_cell(p50_ms=1.5, samples_ms=[1.01, 1.6])) is None
    assert limits.find_broken(make_cell(p50_ms=1.5, samples_ms=[1.5])) is None
    assert limits.find_broken(make_cell(p50_ms=1.5, samples_ms=[1.5, 1.5]), is_busy=True) is None
    assert limits.find_broken(make_cell(p50_ms=1.5, samples_ms=[1.5, 1.5])).text == "p50 1.50 ms, 1 ms asked for"


def test_memory_that_nobody_measured_is_not_known() -> None:
    limits = Limits(max_memory_bytes=1e8)
    assert keepings(limits) == {"memory": "open"}
    assert keepings(limits, peak_memory_bytes=90_000_000) == {"memory": "kept"}


def test_wrong_outputs_and_those_that_ran_elsewhere_are_no_answer() -> None:
    wrong = make_cell(**TIMES, parity={"verdict": "fail", "text": "Off by 3."})
    assert Limits().find_broken(wrong).text == "Off by 3."
    elsewhere = make_cell(**TIMES, active_providers=["CPUExecutionProvider"]).model_copy(update={"provider": "CUDA"})
    assert "ran on the CPU instead" in Limits().find_broken(elsewhere).text


def test_lower_precisions_need_a_judge() -> None:
    assert Limits().explain_unproven(make_cell(**TIMES)) == ""
    assert Limits().explain_unproven(make_cell(**LOSSY)) == "its outputs were not judged"
    passing = LOSSY | {"parity": {"verdict": "pass", "text": "Cosine 1."}}
    assert Limits().explain_unproven(make_cell(**passing)) == "Cosine 1."
    assert not Limits(has_tolerance=True).explain_unproven(make_cell(**passing))
    assert Limits(has_labels=True).explain_unproven(make_cell(**passing)) == "accuracy not measured"
    unknown = passing | {"accuracy": {"metric": "top1", "text": "It has no labels."}}
    assert Limits(has_labels=True).explain_unproven(make_cell(**unknown)) == "It has no labels."


@pytest.mark.parametrize(
    ("least", "changes", "keeping"),
    [
        (0.93, {}, "kept"),
        (0.945, {}, "open"),
        (0.97, {}, "broken"),
        (0.95, {"ci_low": None, "ci_high": None}, "kept"),
        # less is better: what was asked for is the most
        (0.97, {"metric": "mse", "higher_is_better": False}, "kept"),
        (0.9, {"metric": "mse", "higher_is_better": False}, "broken"),
    ],
)
def test_accuracy_is_judged_by_its_interval(least: float, changes: dict[str, Any], keeping: str) -> None:
    limits = Limits(min_accuracy=least, has_labels=True)
    assert keepings(limits, accuracy=LABELLED | changes) == {"accuracy": keeping}
    assert keepings(limits) == {"accuracy": "open"}


def test_a_loss_is_said_beside_what_was_reached() -> None:
    loss = {"difference": -0.01, "difference_low": -0.05, "difference_high": 0.01}
    cell = make_cell(**LOSSY, accuracy=LABELLED | loss)
    assert Limits(has_labels=True).explain_unproven(cell) == "top-1 95.0 % (94.0–96.0 %), −1.00 points (−5.00 to +1.00)"
