"""How settings of one block stand to each other, by documents that say it outright."""

import pytest

from farm.contract.document import BlockFacts, Document
from farm.contract.document_comparisons import Comparison
from farm.contract.document_find import Goal
from farm.rules.searches.block_costs import BlockCosts, Cost, read_cost
from tests.documents import make_cell, make_comparison, make_document


def pair(baseline: str, candidate: str, ratio: float, *, half: float = 0.01, **changes: object) -> Comparison:
    ends = {"ci_low": ratio / (1.0 + half), "ci_high": ratio * (1.0 + half), "rounds": 2, "verdict": "undecided"}
    return make_comparison(ratio=ratio, baseline=baseline, candidate=candidate, **ends | changes)


def standing(*pairs: Comparison, goal: str = "latency") -> BlockCosts:
    cells = [make_cell(name) for name in ("a", "b", "c")]
    return BlockCosts.from_document(make_document(*cells, comparisons=[*pairs]), goal)


def test_the_spread_is_pooled_over_all_pairs() -> None:
    wide = [pair("a", "b", 1.1, half=0.1), pair("a", "c", 1.1, half=0.1), pair("b", "c", 1.0, half=0.1)]
    # two rounds of a pair alone have a t of 12.7; of three settings that of two degrees of freedom
    assert standing(*wide).freedom == 2
    assert standing(*wide).find_short_block_excess("b", relative_to="a") is not None
    assert standing(wide[0]).deviation == pytest.approx(wide[0].ci_high and 0.0106, rel=0.02)
    assert standing(pair("a", "b", 1.03, half=0.1)).find_short_block_excess("b", relative_to="a") is None
    assert standing(pair("a", "b", 1.015, half=0.0)).find_short_block_excess("b", relative_to="a") is None, (
        "within the margin"
    )


def test_of_two_rounds_each_has_to_say_it() -> None:
    # one launch of two was slow by half: the pooled spread of quiet others alone would shut it out
    slow = [pair("a", "b", 1.22, half=11.0), *(pair("a", "c", 1.0, half=0.0) for _ in range(60))]
    assert standing(*slow).find_short_block_excess("b", relative_to="a") is None


def test_a_single_launch_shows_only_what_no_outlier_takes() -> None:
    quiet = [pair("a", "b", 1.0, half=0.01), pair("a", "c", 1.0, half=0.01), pair("b", "c", 1.0, half=0.01)]
    assert standing(*quiet).find_screening_excess(1.25) is None
    shown = standing(*quiet).find_screening_excess(1.5)
    assert shown is not None
    assert shown.low > 1.1
    wide = [pair("a", "b", 1.0, half=3.0), pair("a", "c", 1.0, half=3.0), pair("b", "c", 1.0, half=3.0)]
    assert standing(*wide).find_screening_excess(1.5) is None, "the spread of this block is larger"


def test_what_nothing_compares_leads_only_alone() -> None:
    block = standing(pair("a", "b", 0.9), pair("a", "c", 0.8, verdict="not comparable"))
    assert block.find_leader(["a", "b", "c"]) == "b"
    assert block.find_leader(["c"]) == "c"
    assert block.find_leader(["b", "c"]) is None
    assert block.find_leader([]) is block.find_leader(["d"]) is None
    assert block.find_cost("d", relative_to="a") is block.find_cost("c", relative_to="b") is None
    assert block.find_short_block_excess("c", relative_to="a") is None
    one_round = standing(pair("a", "b", 1.9, rounds=1))
    assert (one_round.freedom, one_round.find_short_block_excess("b", relative_to="a")) == (0, None)
    assert one_round.find_screening_excess(9.0) is None


def test_a_goal_has_its_own_figures() -> None:
    change = {"name": "peak_memory_bytes", "unit": "bytes", "baseline": 1e8, "candidate": 2e8, "margin": 0.1} | {
        "ratio": 2.0, "ci_low": 1.9, "ci_high": 2.1, "verdict": "bigger", "rounds": 2,
    }  # fmt: skip
    of_memory = pair("a", "b", 0.5, metrics=[change])
    assert read_cost(of_memory, "memory") == Cost(2.0, 1.9, 2.1, 2, True)
    assert standing(of_memory, goal="memory").find_short_block_excess("b", relative_to="a") is not None
    assert standing(of_memory, goal="memory").find_short_block_excess("a", relative_to="b") is None
    assert read_cost(of_memory, "processor-time") is None
    items = pair("a", "b", 4.0, items_ratio=2.0, items_ci_low=1.6, items_ci_high=2.5, items_verdict="more")
    assert read_cost(items, "throughput") == Cost(0.5, 0.4, 0.625, 2, True)
    assert read_cost(items.model_copy(update={"items_ratio": None}), "throughput") is None


def test_costs_are_said_in_the_words_of_their_goal() -> None:
    cost = Cost(1.25, 1.2, 1.3, 8, True)
    assert cost.format("latency") == "25 % slower"
    assert cost.format("memory") == "25 % bigger"
    assert cost.format("throughput") == "20 % fewer items/s"


def test_on_a_busy_machine_elapsed_times_of_several_threads_say_nothing() -> None:
    cells = [make_cell("a"), make_cell("b", threads=2), make_cell("c", threads=4), make_cell("d")]
    pairs = [pair(*sides, 1.5) for sides in ("ab", "bc", "ad")]
    document = make_document(*cells, comparisons=pairs)

    def told(found: Document, goal: Goal = "latency") -> set[tuple[str, str]]:
        return {*BlockCosts.from_document(found, goal).pairs}

    assert told(document) == {("a", "b"), ("b", "c"), ("a", "d")}
    busy = document.model_copy(update={"blocks": [BlockFacts(block="b1", busy_share=0.5)]})
    assert told(busy) == {("a", "d")}
    assert told(busy, "memory") == told(document)
    disturbed = cells[0].model_copy(update={"disturbed_samples": 2, "samples_ms": [1.0, 1.0]})
    assert told(document.model_copy(update={"cells": [disturbed, *cells[1:]]})) == {("a", "d")}
