"""Operators of a block whose rounds were traced: their verdicts in the document, and no further traces for them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from farm.contract.document_comparisons import MetricChange
from farm.contract.reports import Report, RoundReport, Sample
from farm.rules.judging.block_verdicts import BlockJudge
from farm.rules.planning.plans import PlannedBlock
from farm.rules.presenting.changed_operators import explain_trace_doubt
from farm.rules.reporting import operator_changes
from farm.rules.reporting.documents import assemble
from farm.rules.reporting.records import BlockRecord, RunRecord
from tests.documents import make_comparison
from tests.unit.rules.making import (
    make_block,
    make_model,
    make_operator,
    make_reports,
    make_round,
    make_sample,
    make_trace,
)

OLD = {"mm": 600.0, "norm": 60.0, "add": 300.0, "soft": 240.0}
NEW = {**OLD, "norm": 66.0}


def traced_rounds(arms: Mapping[int, Mapping[str, float]], *, rounds: int = 12, s: float = 0.01) -> list[RoundReport]:
    """Rounds whose launches told the times of own nodes, and take as long as these together."""
    dice = np.random.default_rng(7)
    reports = []
    for number in range(rounds):
        samples: dict[int, Sample] = {}
        for arm, nodes in arms.items():
            told = [nodes[node] * float(np.exp(s * dice.standard_normal())) for node in sorted(nodes)]
            samples[arm] = make_sample(sum(told) / 1000.0, nodes_us=tuple(told))
        reports.append(make_round(number, samples))
    return reports


def block_of(
    old: Mapping[str, float], new: Mapping[str, float], *, rounds: int = 12, s: float = 0.01, **options: str
) -> tuple[PlannedBlock, list[Report]]:
    block = make_block(**{"budget": "standard", **options})
    firsts = [
        make_trace(arm, [make_operator(node, us, op_type=node.title()) for node, us in nodes.items()])
        for arm, nodes in ((0, old), (1, new))
    ]
    before = [one for one in make_reports({0: 1.0, 1: 1.0}, rounds=0, end=False)]
    return block, [*before, *firsts, *traced_rounds({0: old, 1: new}, rounds=rounds, s=s)]


def document_of(block: PlannedBlock, reports: list[Report]) -> dict[str, object]:
    """The one comparison as it is written."""
    record = RunRecord(model=make_model(), blocks=[BlockRecord(block, reports)])
    (comparison,) = json.loads(assemble(record).to_json())["comparisons"]
    assert isinstance(comparison, dict)
    return comparison


def test_a_change_too_small_for_the_model_is_called_at_its_operator():
    comparison = document_of(*block_of(OLD, NEW))
    assert comparison["verdict"] in ("equal", "undecided")
    assert comparison["traces"] == 12
    by_node = {one["node"]: one for one in comparison["operators"]}  # type: ignore[attr-defined]
    norm = by_node["norm"]
    assert (norm["verdict"], norm["op_type"], norm["rounds"]) == ("slower", "Norm", 12)
    assert norm["ci_low"] < 1.1 < norm["ci_high"]
    assert norm["baseline_us"] == pytest.approx(60.0, rel=0.02)
    assert norm["candidate_us"] == pytest.approx(66.0, rel=0.02)
    assert {by_node[node]["verdict"] for node in ("mm", "add", "soft")} <= {"equal", "undecided"}


def test_without_traced_rounds_operators_have_no_keys_of_a_verdict():
    block, reports = block_of(OLD, NEW)
    plain = [one for one in reports if not isinstance(one, RoundReport)]
    untraced = make_reports({0: 1.2, 1: 1.2}, rounds=12, end=False)
    comparison = document_of(block, [*plain, *(one for one in untraced if isinstance(one, RoundReport))])
    assert comparison["traces"] == 1
    assert set(comparison["operators"][0]) == {
        *(
            "node",
            "covers",
            "op_type",
            "baseline_us",
            "candidate_us",
            "change_us",
            "change_low_us",
            "change_high_us",
            "share",
        )
    }


def test_times_of_another_number_of_nodes_than_the_first_trace_names_are_left_aside():
    block, reports = block_of(OLD, NEW)
    judge = BlockJudge(block, reports=reports)
    assert len(judge.evidence.node_times(0)) == 12
    reports[-1] = make_round(11, {0: make_sample(1.2, nodes_us=(1.0, 2.0)), 1: make_sample(1.2)})
    judge = BlockJudge(block, reports=reports)
    assert 11 not in judge.evidence.node_times(0)
    assert len(judge.traced_rounds(block.comparisons[0])) == 11


def test_times_without_a_first_trace_say_nothing():
    block, reports = block_of(OLD, NEW)
    judge = BlockJudge(block, reports=[one for one in reports if isinstance(one, RoundReport)])
    assert judge.evidence.node_times(0) == {}
    assert judge.traced_rounds(block.comparisons[0]) == []


def test_arms_whose_rounds_were_traced_are_not_traced_again():
    slower = {node: 1.3 * us for node, us in OLD.items()}
    block, reports = block_of(OLD, slower, rounds=8, budget="quick")
    judge = BlockJudge(block)
    replies = [judge.take(report) for report in reports]
    assert judge.comparisons()[0].verdict == "slower"
    assert (replies[-1].go_on, replies[-1].trace_arms) == (False, ())


def test_a_round_that_was_disturbed_does_not_count_at_the_operators_either():
    block, reports = block_of(OLD, NEW)
    last = reports[-1]
    assert isinstance(last, RoundReport)
    samples = {place.arm: place.sample.model_copy(update={"is_disturbed": True}) for place in last.samples}
    judge = BlockJudge(block, reports=[*reports[:-1], make_round(11, samples)])
    assert len(judge.traced_rounds(block.comparisons[0])) == 11


def test_operators_of_arms_that_cannot_be_compared_have_times_and_no_verdict():
    block, reports = block_of(OLD, {**OLD, "norm": 90.0})
    judge = BlockJudge(block, reports=reports)
    (judged,) = judge.comparisons()
    assert operator_changes.attribute_change(judge, judged).nodes[0].figures is not None
    found = operator_changes.attribute_change(judge, replace(judged, verdict="not comparable"))
    assert found.nodes[0].node == "norm"
    assert all(change.figures is None for change in found.nodes)


def test_operators_of_a_larger_batch_have_times_and_no_verdict():
    block, reports = block_of(OLD, NEW)
    planned = block.comparisons[0].model_copy(update={"axis": "batch"})
    judge = BlockJudge(block, reports=reports)
    (judged,) = judge.comparisons()
    found = operator_changes.attribute_change(judge, replace(judged, planned=planned))
    assert found.traces == 12
    assert all(change.figures is None for change in found.nodes)


def test_a_called_operator_is_told_however_many_others_moved_more():
    many = {f"n{number:03}": 3000.0 for number in range(80)} | {"small": 50.0}
    block, reports = block_of(many, {**many, "small": 60.0}, rounds=12)
    told = document_of(block, reports)["operators"]
    assert len(told) == operator_changes.MAX_OPERATORS
    assert [one["node"] for one in told if one["verdict"] == "slower"] == ["small"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("verdict", "ratio", "part"),
    [
        ("slower", 1.05, 0.5),
        ("slower", 1.025, 1.0),
        # all operators together changed 2.5 times as much
        ("slower", 1.01, None),
        ("faster", 0.95, None),
        ("equal", 1.001, None),
    ],
)
def test_an_operator_has_a_share_of_what_was_timed_unless_the_traces_contradict_it(
    verdict: Any, ratio: float, part: float | None
) -> None:
    """Of one change one operator explained all, 91 % and 36 %: the base was what was traced, in each run another."""
    block, reports = block_of(OLD, {**OLD, "norm": 90.0}, s=0.0)
    judge = BlockJudge(block, reports=reports)
    (judged,) = judge.comparisons()
    timed = MetricChange(
        name="p50_ms", unit="ms", baseline=1.2, candidate=1.2 * ratio, ratio=ratio, ci_low=ratio, ci_high=ratio,
        verdict=verdict, margin=0.02, rounds=12,
    )  # fmt: skip
    found = operator_changes.with_operators(make_comparison(verdict, metrics=[timed]), judge, judged)
    assert found.operators[0].share == (part if part is None else pytest.approx(part))
    doubt = explain_trace_doubt(found)
    assert ("in the inference as it was timed" in doubt) == (part is None and verdict != "equal")


def test_a_time_that_was_not_judged_has_no_shares() -> None:
    block, reports = block_of(OLD, {**OLD, "norm": 90.0}, s=0.0)
    judge = BlockJudge(block, reports=reports)
    found = operator_changes.with_operators(make_comparison("slower", metrics=[]), judge, judge.comparisons()[0])
    assert found.operators[0].share is None
    assert "as it was timed" not in explain_trace_doubt(found)
