"""Whether rounds are traced: what a matrix says, which budgets do so by themselves, and what it takes."""

import pytest

from farm.contract.blocks import BlockOrder
from farm.contract.cells import Budget
from farm.contract.reports import Operator, Sample
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix as matrices
from farm.rules.planning import estimates
from farm.rules.planning.planner import plan
from tests.unit.rules.making import make_model, make_operator, make_sample


@pytest.mark.parametrize(
    ("budget", "operators", "expected"),
    [
        ("quick", None, False),
        ("standard", None, False),
        ("precise", None, True),
        ("quick", True, True),
        ("precise", False, False),
        ("glance", True, False),
    ],
)
def test_rounds_are_traced_where_a_matrix_says_so_and_by_precise(budget: str, operators: bool | None, expected: bool):
    said = {} if operators is None else {"operators": operators}
    declared = matrices.parse({"budget": budget, "runtime": ["1.29.0", "1.31.1"], **said})
    assert declared.is_tracing_rounds is expected
    (block,) = plan(declared, make_model()).blocks
    assert block.is_tracing_rounds is expected


@pytest.mark.parametrize("operators", [None, True, False])
def test_a_matrix_keeps_what_it_says_of_operators(operators: bool | None) -> None:
    said = {} if operators is None else {"operators": operators}
    plain = matrices.parse({"runtime": ["1.31.1"], **said}).as_plain()
    assert plain.get("operators") is operators
    assert matrices.parse(plain).operators is operators


@pytest.mark.parametrize("written", ["yes", 1, [True], {"MatMul": True}])
def test_operators_that_are_neither_true_nor_false_are_refused_in_a_sentence(written: object) -> None:
    with pytest.raises(MatrixProblem, match=r"operators is .*: write true or false\."):
        matrices.parse({"runtime": ["1.31.1"], "operators": written})


def test_traced_rounds_take_longer_and_the_plan_says_so() -> None:
    quick = {"budget": "quick", "runtime": ["1.29.0", "1.31.1"]}
    (plain,) = plan(matrices.parse(quick), make_model()).blocks
    (traced,) = plan(matrices.parse({**quick, "operators": True}), make_model()).blocks
    assert traced.minutes > plain.minutes
    assert traced.round_s is not None
    assert plain.round_s is not None
    assert 0.8 < traced.round_s - plain.round_s < 1.0
    slow = [estimates.estimate_sample_s(Budget.QUICK, 500.0, is_tracing=tracing) for tracing in (False, True)]
    assert slow[1] - slow[0] == pytest.approx(estimates.SECOND_SESSION_S + 10 * 0.5)


def test_what_nobody_asked_for_stands_in_no_message_so_that_older_farms_and_nodes_take_the_rest() -> None:
    assert "nodes_us" not in make_sample(1.0).model_dump(mode="json")
    assert "reads" not in make_operator("mm", 1.0).model_dump(mode="json")
    assert "is_tracing_rounds" not in BlockOrder.model_construct().model_dump(mode="json", warnings=False)  # type: ignore[call-arg]
    told = make_sample(1.0, nodes_us=(1.5, 2.0))
    assert Sample.model_validate_json(told.model_dump_json()) == told
    read = make_operator("mm", 1.0).model_copy(update={"reads": ("add",)})
    assert Operator.model_validate_json(read.model_dump_json()) == read
