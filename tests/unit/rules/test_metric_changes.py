"""What is said of a metric's change: its size, its values, and why it is undecided."""

import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from dashboard.reading import comparisons as page
from farm.contract.cells import Budget
from farm.contract.document_comparisons import MetricChange
from farm.contract.reports import EndReport, Report
from farm.rules.presenting import metric_changes
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from onnxfarm.screen import show
from tests.documents import make_cell, make_comparison
from tests.unit.rules.making import make_block, make_check, make_facts, make_model, make_round, make_sample

BOTH = ["1.30.0", "1.31.1"]


def made(name: str, verdict: Any, **changes: Any) -> MetricChange:
    change = MetricChange(
        name=name, unit="ms", baseline=1.0, candidate=2.0, ratio=2.0, ci_low=1.9, ci_high=2.1, verdict=verdict,
        margin=0.1, rounds=8, p=0.01,
    )  # fmt: skip
    return change.model_copy(update=changes)


def test_a_metric_that_too_few_rounds_timed_says_so_wherever_it_is_undecided() -> None:
    block, dice = make_block(runtime=BOTH), np.random.default_rng(5)
    reports: list[Report] = [make_facts(), make_check(0), make_check(1)]
    for number in range(8):
        # the launches of two rounds took a millisecond, and were timed by one call alone
        metrics = [{"run_p50_ms": 0.2}, {"run_p50_ms": 0.9}] if number < 6 else [{}, {}]
        p50s = 0.2, 0.9 + 0.001 * float(dice.standard_normal())
        reports.append(make_round(number, {arm: make_sample(p50s[arm], metrics=metrics[arm]) for arm in range(2)}))
    record = BlockRecord(block=block, reports=[*reports, EndReport()], node="bench-1", is_over=True)
    document = assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget(block.budget)))
    (comparison,) = document.comparisons
    change = next(change for change in comparison.metrics if change.name == "run_p50_ms")
    assert (comparison.verdict, change.verdict, change.rounds) == ("slower", "undecided", 6)
    assert change.reason.startswith("6 of 8 rounds timed it: ")
    assert metric_changes.explain_undecided(comparison) == [f"p50 by session.run is undecided: {change.reason}"]
    assert (
        change.reason in page.make_table([comparison], {cell.id: cell for cell in document.cells}, str).rows[0][5].text
    )
    text = io.StringIO()
    show(document, console=Console(file=text, width=200, color_system=None))
    assert change.reason in " ".join(text.getvalue().split())


@pytest.mark.parametrize(
    ("name", "verdict", "changes", "told"),
    [
        ("peak_memory_bytes", "bigger", {}, "▲ 2.0× bigger"),
        ("known_to_another_farm", "slower", {}, "▲ 2.0× slower"),
        ("peak_memory_bytes", "bigger", {"ratio": None}, "▲ bigger"),
        ("peak_memory_bytes", "equal", {}, "= equal"),
    ],
)
def test_a_decided_metric_says_by_how_much_where_it_is_known(
    name: str, verdict: Any, changes: dict[str, Any], told: str
) -> None:
    assert metric_changes.mark_change(made(name, verdict, **changes)) == told


def test_a_metric_without_a_ratio_has_no_size() -> None:
    assert metric_changes.format_size(made("p99_ms", "slower", ratio=None)) == ""


def test_medians_that_do_not_give_the_change_are_left_out_of_its_words() -> None:
    apart = {"ratio": 3.0, "ci_low": 2.9, "ci_high": 3.1}
    assert metric_changes.describe(made("p99_ms", "slower")) == "p99 2.00 ms instead of 1.00 ms"
    assert metric_changes.describe(made("p99_ms", "slower", **apart)) == "p99 3.0× slower"


@pytest.mark.parametrize(
    ("ratio", "told"),
    [
        (2.4, "▲ 3.33× higher"),
        (12.0, "▼ 33.3 % lower"),
        (8.0, "= equal"),
    ],
)
def test_of_different_batches_the_time_of_a_call_is_told_as_items_per_second_like_the_verdict(
    ratio: float, told: str
) -> None:
    ends = {"ratio": ratio, "ci_low": 0.99 * ratio, "ci_high": 1.01 * ratio}
    call = made(
        "run_p50_ms", "slower", unit="ms", baseline=1.0, candidate=ratio, rounds=8, margin=0.02, p=0.001, **ends
    )
    memory = made("peak_memory_bytes", "bigger")
    pair = make_comparison("slower", axis="batch", metrics=[call, memory])
    cells = {"c1": make_cell("c1", batch=1), "c2": make_cell("c2", batch=8)}
    found, same = metric_changes.convert_to_items(pair, cells).metrics
    assert (metric_changes.mark_change(found), same) == (told, memory)
    assert metric_changes.title(found) == "items/s by session.run"
    assert metric_changes.is_gain(found) == told.startswith("▲")
    assert found.candidate / found.baseline == pytest.approx(found.ratio)
    # of the same batch, of cells that are not known and before the first look it stays as it was
    for known in ({}, {"c1": cells["c1"], "c2": cells["c1"]}):
        assert metric_changes.convert_to_items(pair, known) == pair
    early = call.model_copy(update={"verdict": "undecided", "rounds": 3})
    bare = call.model_copy(update={"ratio": None})
    told_of = metric_changes.convert_to_items(pair.model_copy(update={"metrics": [early, bare]}), cells).metrics
    assert (told_of[0].verdict, told_of[1]) == ("undecided", bare)


def test_a_page_of_batches_says_the_same_of_both_calls() -> None:
    call = made("run_p50_ms", "slower", unit="ms", baseline=1.0, candidate=2.4, ratio=2.4, ci_low=2.38, ci_high=2.42)
    pair = make_comparison(
        "slower", 2.5, axis="batch", ci_low=2.48, ci_high=2.52, metrics=[call.model_copy(update={"rounds": 8})]
    )
    cells = {"c1": make_cell("c1", batch=1), "c2": make_cell("c2", batch=8)}
    (row,) = page.make_table([pair], cells, str).rows
    said = [f"{entry.sign.word if entry.sign else ''} {entry.text} {entry.soft}".strip() for entry in row]
    assert "more items/s" in said
    assert "higher  items/s by session.run 3.33× higher" in said
    assert not [text for text in said if "slower" in text]
