"""Whether two arms do the same work, in a sentence, and where it stands."""

import pytest

from farm.contract.cells import Budget
from farm.contract.reports import EndReport
from farm.rules.judging import work
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from tests.unit.rules.making import make_block, make_check, make_facts, make_model, make_round, make_sample


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ([1009.0], "c1 and c2 do the same work: as many instructions per inference."),
        ([1120.0, 1121.0, 1119.0], "c2 does more work than c1: 12 % more instructions per inference."),
        ([800.0], "c1 does more work than c2: 25 % more instructions per inference."),
        ([], ""),
    ],
)
def test_the_instructions_of_two_sides_say_whether_they_do_the_same_work(new: list[float], said: str) -> None:
    assert work.describe_work([1000.0, 1001.0, 999.0], new, names=("c1", "c2")) == said
    assert work.describe_work([], new, names=("c1", "c2")) == ""


def reason_of(counts: dict[int, dict[str, float]], *, axis: str = "runtime") -> str | None:
    block = make_block()
    block = block.model_copy(
        update={"comparisons": tuple(one.model_copy(update={"axis": axis}) for one in block.comparisons)}
    )
    rounds = [
        make_round(number, {arm: make_sample(1.0 + 0.5 * arm, metrics=given) for arm, given in counts.items()})
        for number in range(8)
    ]
    reports = [make_facts(), *(make_check(arm) for arm in counts), *rounds, EndReport()]
    record = BlockRecord(block=block, reports=reports, node="bench-1", is_over=True)
    document = assemble(RunRecord(model=make_model(), blocks=[record], budget=Budget.QUICK))
    return document.comparisons[0].reason


def test_a_comparison_says_beside_its_time_that_the_newer_side_does_more_work() -> None:
    said = reason_of({0: {"instructions": 1e6}, 1: {"instructions": 1.12e6}})
    assert said.endswith("does more work than c1: 12 % more instructions per inference.")


def test_where_nothing_counts_a_comparison_is_as_before() -> None:
    assert reason_of({0: {}, 1: {}}) is None
    assert reason_of({0: {"instructions": 1e6}, 1: {}}) is None


def test_another_batch_is_another_work_and_nothing_is_said() -> None:
    assert reason_of({0: {"instructions": 1e6}, 1: {"instructions": 8e6}}, axis="batch") is None
