"""A bisection by a metric: which change is looked for, and which release has it."""

from typing import Any

import pytest

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_comparisons import MetricChange
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.findings import cell_pairs
from farm.rules.searches import targets
from farm.rules.searches.bisection import Bisection, Outcome
from farm.rules.searches.search import SearchProblem
from tests.documents import make_cell, make_comparison, make_document

GOOD, BAD = (Runtime(distribution="onnxruntime", version=version) for version in ("1.23.1", "1.23.2"))
OLD, NEW = str(GOOD), str(BAD)
SPACE, RESIDENT, GROWTH = "peak_address_space_bytes", "peak_memory_bytes", "growth_bytes_per_1000"


def change(name: str, verdict: Any, ratio: float | None, **more: Any) -> MetricChange:
    facts: dict[str, Any] = {"unit": "bytes", "baseline": 1.0, "candidate": ratio or 2.0, "margin": 0.1, "rounds": 2}
    return MetricChange(name=name, verdict=verdict, ratio=ratio, ci_low=ratio, ci_high=ratio, **facts, **more)


def document(*changes: MetricChange, new: str = "done", is_compared: bool = True) -> Document:
    facts: dict[str, Any] = {"block": "b1", "p50_ms": 1.0, "threads": 2}
    reason = None if new == "done" else Reason(code=ReasonCode.CRASHED, text="It died.")
    cells = make_cell(runtime=OLD, **facts), make_cell("c2", runtime=NEW, status=new, reason=reason, **facts)
    return make_document(*cells, comparisons=[make_comparison("equal", 1.0, metrics=list(changes))] * is_compared)


def find_target(*changes: MetricChange, asked: str = "memory") -> targets.MetricTarget | None:
    try:
        return targets.find_largest_change(document(*changes), targets.find_metric_names(asked), good=GOOD, bad=BAD)
    except SearchProblem:
        return None


def step(found: MetricChange, *changes: MetricChange, **how: Any) -> tuple[str, str]:
    asked = targets.MetricTarget(cell_pairs.series_digest(document().cells[0]), found)
    said = asked.judge_probe(document(*changes, **how), good=GOOD, probe=BAD)
    return said["outcome"], said["text"]


def test_memory_is_every_metric_in_bytes() -> None:
    assert {SPACE, RESIDENT, GROWTH, "cache_bytes"} == set(targets.find_metric_names("memory"))
    assert targets.find_metric_names("p99_ms") == ("p99_ms",)
    assert targets.find_metric_names("slower") == ()


@pytest.mark.parametrize(
    ("asked", "scenarios", "is_by_repeat"),
    [
        ("memory", [], True),
        ("memory", ["fresh"], False),
        (SPACE, ["fresh"], True),
        ("p99_ms", [], False),
        (GROWTH, [], False),
    ],
)
def test_a_repeat_decides_on_memory_alone(asked: str, scenarios: list[str], is_by_repeat: bool) -> None:
    assert targets.are_decided_by_repeats(targets.find_metric_names(asked), scenarios) is is_by_repeat


def test_the_largest_loss_is_looked_for_then_the_largest_gain() -> None:
    grown, shrunk, more = (
        change(SPACE, "bigger", 2.6),
        change(RESIDENT, "smaller", 0.1),
        change(RESIDENT, "bigger", 1.2),
    )
    found = find_target(shrunk, grown)
    assert found.change == grown
    assert (found.description, found.name) == ("in which peak address space is bigger", SPACE)
    assert find_target(more, grown) == found
    assert find_target(shrunk).change == shrunk
    assert find_target(change(SPACE, "equal", 1.0)) is None
    assert find_target(change("session_ms", "slower", 2.0)) is None
    assert find_target(change("session_ms", "slower", 2.0), asked="session_ms") is not None
    with pytest.raises(SearchProblem, match="none of these is decided to have changed here: cache_bytes"):
        targets.find_largest_change(document(is_compared=False), ["cache_bytes"], good=GOOD, bad=BAD)


def test_a_release_with_half_of_the_change_has_it() -> None:
    grown = change(SPACE, "bigger", 4.0)
    assert step(grown, change(SPACE, "bigger", 2.1)) == (
        Outcome.BAD, "peak address space 0.00 MiB instead of 0.00 MiB",
    )  # fmt: skip
    for other in (change(SPACE, "bigger", 1.9), change(SPACE, "smaller", 0.1), change(SPACE, "equal", 1.0)):
        assert step(grown, other) == (Outcome.GOOD, "")
    assert step(grown, change(SPACE, "undecided", 2.0)) == (Outcome.SKIPPED, "peak address space is undecided")


def test_growth_without_a_ratio_is_weighed_by_its_margins() -> None:
    grown = change(GROWTH, "bigger", None, change=100.0)
    assert step(grown, change(GROWTH, "bigger", None, change=60.0))[0] == Outcome.BAD
    assert step(grown, change(GROWTH, "bigger", None, change=40.0))[0] == Outcome.GOOD
    assert step(change(GROWTH, "bigger", None), change(GROWTH, "bigger", None))[0] == Outcome.BAD


def test_what_was_not_compared_is_skipped_with_its_reason() -> None:
    grown = change(SPACE, "bigger", 2.0)
    assert step(grown)[0] == Outcome.SKIPPED
    assert step(grown, new="crashed", is_compared=False) == (Outcome.SKIPPED, "It died.")
    nowhere = targets.MetricTarget("nothing", grown)
    assert nowhere.judge_probe(document(grown), good=GOOD, probe=BAD)["text"] == "It was not compared."


@pytest.mark.parametrize(
    ("outcomes", "sentence"),
    [
        (
            {"3": Outcome.BAD, "2": Outcome.GOOD},
            "3 is the first release in which it is smaller; 2 was not yet so (2 probes).",
        ),
        ({"3": Outcome.BAD, "2": Outcome.SKIPPED}, "one of 2, 3 is the first release in which it is smaller (those"),
    ],
)
def test_the_answer_says_what_the_first_release_is_like(outcomes: dict[str, Outcome], sentence: str) -> None:
    search = Bisection(["1", "2", "3"], good="1", bad="3")
    for version, outcome in outcomes.items():
        search.record(version, outcome)
    assert search.answer().sentence("in which it is smaller").startswith(sentence)


def test_a_change_that_came_back_is_told_too() -> None:
    search = Bisection(["1", "2", "3", "4"], good="1", bad="4")
    for version, outcome in {"4": Outcome.BAD, "2": Outcome.BAD, "3": Outcome.GOOD}.items():
        search.record(version, outcome)
    assert (
        search.answer()
        .sentence("in which it is bigger")
        .endswith("It changed more than once: so in 2, back in 3, so in 4.")
    )
