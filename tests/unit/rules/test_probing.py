"""What a step of a bisection says of a release."""

from typing import Any

import pytest

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.rules.changes import watch_rounds
from farm.rules.findings import cell_pairs
from farm.rules.searches.bisection import Outcome
from farm.rules.searches.targets import FindingTarget, Step
from tests.documents import make_cell

GOOD, BAD = (Runtime(distribution="onnxruntime", version=version) for version in ("1.29.0", "1.31.1"))
OLD, NEW = str(GOOD), str(BAD)


def _cell(name: str, runtime: str, **changes: Any) -> Cell:
    return make_cell(name, **{"runtime": runtime, "block": "b1", "p50_ms": 1.0, **changes})


def _step(
    verdict: str, ratio: float, ci_low: float, high: float, *, sought: float | None = 1.24, low: float | None = None
) -> str:
    cells = [_cell("c1", OLD), _cell("c2", NEW)]
    pair = Comparison(
        baseline="c1", candidate="c2", axis="runtime", verdict=verdict, margin=0.02,
        ratio=ratio, ci_low=ci_low, ci_high=high, ci_level=0.95, rounds=8,
    )  # fmt: skip
    document = Document(machine={}, seed=0, cells=cells, comparisons=[pair])
    asked = FindingTarget(
        watch_rounds.Rule(kinds=("slower",)), "slower", cell_pairs.series_digest(cells[0]), sought, low
    )
    return asked.judge_probe(document, good=GOOD, probe=BAD)["outcome"]


@pytest.mark.parametrize(
    ("verdict", "ratio", "low", "high", "outcome"),
    [
        ("slower", 1.24, 1.21, 1.26, Outcome.BAD),
        ("slower", 1.03, 1.02, 1.04, Outcome.GOOD),
        ("equal", 1.0, 0.99, 1.01, Outcome.GOOD),
        ("faster", 0.8, 0.7, 0.9, Outcome.GOOD),
        ("undecided", 1.05, 0.99, 1.11, Outcome.GOOD),
        ("undecided", 1.1, 0.99, 1.2, Outcome.SKIPPED),
    ],
)
def test_a_step_is_judged_by_the_rule_and_by_what_is_looked_for(
    verdict: str, ratio: float, low: float, high: float, outcome: Outcome
) -> None:
    assert _step(verdict, ratio, low, high) == outcome


def test_undecided_and_surely_less_than_what_is_looked_for_is_good() -> None:
    assert _step("undecided", 1.04, 0.99, 1.15, low=1.2) == Outcome.GOOD
    assert _step("undecided", 1.04, 0.99, 1.21, low=1.2) == Outcome.SKIPPED
    assert _step("undecided", 1.13, 0.99, 1.15, low=1.2) == Outcome.SKIPPED


def test_undecided_without_a_size_to_look_for_is_skipped() -> None:
    assert _step("undecided", 1.01, 0.95, 1.07, sought=None) == Outcome.SKIPPED


def test_undecided_and_surely_within_the_rule_is_good() -> None:
    assert _step("undecided", 1.01, 0.99, 1.03, sought=None) == Outcome.GOOD


def slower(series: str, document: Document) -> Step:
    return FindingTarget(watch_rounds.Rule(), "slower", series, 1.24).judge_probe(document, good=GOOD, probe=BAD)


def test_a_release_that_cannot_run_is_skipped_with_its_reason() -> None:
    reason = Reason(code=ReasonCode.CRASHED, text="It died.")
    cells = [_cell("c1", OLD), _cell("c2", NEW, status=CellStatus.CRASHED, reason=reason)]
    step = slower(cell_pairs.series_digest(cells[0]), Document(machine={}, seed=0, cells=cells))
    figures = {"ratio": None, "low": None, "high": None}
    assert step == {"version": "1.31.1", "outcome": "skipped", "text": "It died.", **figures}


def test_a_release_that_was_not_there_is_skipped() -> None:
    assert slower("nothing", Document(machine={}, seed=0))["outcome"] == Outcome.SKIPPED
