"""Which operators of a change are named where traces give no shares, and before which others."""

import pytest

from dashboard.figures.operators import draw_operators, name_sides
from farm.contract.document_comparisons import Comparison, MetricChange, OperatorChange
from farm.rules.presenting.changed_operators import (
    describe_largest_type,
    describe_order,
    list_named_operators,
    make_operators_heading,
    sort_operators,
)
from farm.rules.presenting.explanations import describe_cause, explain_change
from farm.rules.presenting.sentences import verdict_line
from farm.rules.wording.numbers import THIN
from tests.documents import NEW, make_cell, make_comparison, make_document
from tests.unit.rules.test_sentences import judged

P50 = MetricChange(name="p50_ms", unit="ms", baseline=15.0, candidate=18.1, verdict="slower", margin=0.02, rounds=8)


def compared(moved: dict[str, float], verdict: str = "slower", **own: str) -> Comparison:
    """An inference that takes 18.1 instead of 15.0 ms, and its operators with what each changed by, in µs."""
    changed = [
        OperatorChange(
            node=node, op_type=node.split("_")[0], baseline_us=9000.0, candidate_us=9000.0 + us,
            **(judged(own[node], rounds=8) if node in own else {}),
        )
        for node, us in moved.items()
    ]  # fmt: skip
    return make_comparison(verdict, operators=changed, metrics=[P50], traces=8 if own else 1)


# one traced pair of a busy machine: MatMul +14.7 ms net, of a change of 3.1 ms
ONE_PAIR = {"MatMul_1": 14_152.0, "MatMul_2": 8_728.0, "MatMul_3": -8_123.0, "Skip_1": 680.0, "Skip_2": 690.0}


def nodes(found: list[OperatorChange]) -> list[str]:
    return [operator.node for operator in found]


def test_what_changed_by_more_than_the_inference_is_not_named() -> None:
    pair = compared(ONE_PAIR)
    assert nodes(list_named_operators(pair)) == ["Skip_2", "Skip_1"]
    assert nodes(sort_operators(pair)) == ["Skip_2", "Skip_1", "MatMul_1", "MatMul_2", "MatMul_3"]
    assert describe_largest_type(pair).startswith("Skip: 2 nodes")
    assert make_operators_heading(pair, "old → new") == (
        "Too few traces to explain the change old → new; operators that became slower most (without 3 that changed by "
        "more than the inference), per inference:"
    )
    drawn = draw_operators(pair, name_sides(make_cell(), make_cell("c2", runtime=NEW)))
    assert drawn.title == f"Too few traces to say what explains the change: most Skip (2 nodes) +1{THIN}370 µs"
    assert (len(drawn.data[0]["x"]), len(drawn.table.rows)) == (2, 5)


def test_of_an_undecided_change_nothing_is_said_to_be_its_cause() -> None:
    assert describe_order(compared(ONE_PAIR, "undecided")) == "changed most"


def test_nothing_is_named_where_all_changed_by_more_than_the_inference() -> None:
    pair = compared({"MatMul_1": 14_152.0})
    assert make_operators_heading(pair, "old → new") == "Too few traces to explain the change old → new"
    drawn = draw_operators(pair, name_sides(make_cell(), make_cell("c2", runtime=NEW)))
    assert (drawn.title, drawn.data) == ("Too few traces to say what explains the change", [])
    assert len(drawn.table.rows) == 1


@pytest.mark.parametrize(
    ("verdict", "named"), [("slower", ["Skip_2", "Skip_1"]), ("faster", []), ("equal", ["MatMul_1", "MatMul_2"])]
)
def test_what_changed_the_other_way_is_not_named(verdict: str, named: list[str]) -> None:
    assert nodes(list_named_operators(compared(ONE_PAIR, verdict)))[:2] == named


def test_a_verdict_of_its_own_comes_before_larger_times_without_one() -> None:
    own = {"Skip_1": "slower", "Skip_2": "slower", "MatMul_4": "undecided", "Gemm_1": "faster"}
    pair = compared({**ONE_PAIR, "MatMul_4": 2_000.0, "Gemm_1": -9_000.0}, **own)
    assert nodes(list_named_operators(pair)) == ["Skip_2", "Skip_1", "MatMul_4"]
    assert "; operators that became slower by their own pairs, then others (without 3 " in make_operators_heading(
        pair, "x"
    )
    assert (explain_change(pair) or "").startswith(
        f"Skip: 2 nodes, 18{THIN}000 → 19{THIN}370 µs, slower by their own pairs; the traces do not add up ("
    )
    drawn = draw_operators(pair, name_sides(make_cell(), make_cell("c2", runtime=NEW)))
    assert "less in others); significant on their own, of all " in drawn.title
    assert drawn.title.endswith(" operators: 2 slower and 1 faster")


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"Skip_1": "slower"}, f"Skip: 2 nodes, 18{THIN}000 → 19{THIN}370 µs, 1 of them slower by its own pairs"),
        ({"Skip_1": "slower", "Skip_2": "slower"}, f"Skip: 2 nodes, 18{THIN}000 → 19{THIN}370 µs, slower by their own"),
    ],
)
def test_a_type_is_told_with_all_of_its_operators_that_became_slower(own: dict[str, str], words: str) -> None:
    """`1 node, 215 → 914 µs` was a fourth of what all four had gained, of which one had a verdict."""
    assert (explain_change(compared(ONE_PAIR, **own)) or "").startswith(words)


def test_a_run_opens_with_what_changed_by_its_own_pairs_where_the_traces_contradict_the_change() -> None:
    pair = compared(ONE_PAIR, Skip_1="slower", Skip_2="slower")
    line = verdict_line(make_document(make_cell(), make_cell("c2", runtime=NEW), comparisons=[pair]))
    assert line.endswith(f" Skip: 2 nodes, 18{THIN}000 → 19{THIN}370 µs, slower by their own pairs.")
    # a type of which a small part is known is no cause either
    little = [operator.model_copy(update={"share": 0.01}) for operator in pair.operators]
    assert describe_cause(pair.model_copy(update={"operators": little})) == ""


def doubtful(node: str, old_us: float, new_us: float, change_us: float, low: float, high: float) -> OperatorChange:
    return OperatorChange(
        node=node, op_type=node.split("_")[0], baseline_us=old_us, candidate_us=new_us, change_us=change_us,
        change_low_us=low, change_high_us=high,
    )  # fmt: skip


def test_an_operator_that_may_not_have_changed_is_not_said_to_have_become_slower() -> None:
    """Under "operators that became slower most" stood `FusedGemm: 7.18 → 6.70 µs`, +0.263 µs from −3.74 to +0.943."""
    chance = doubtful("FusedGemm_1", 7.18, 6.70, 0.263, -3.74, 0.943)
    pair = make_comparison("slower", operators=[chance], metrics=[P50], traces=8)
    assert (list_named_operators(pair), describe_largest_type(pair)) == ([], "")
    assert ";" not in make_operators_heading(pair, "old → new")
    sure = doubtful("Conv_1", 7.0, 8.0, 1.0, 0.5, 1.5)
    by_its_pairs = doubtful("Gemm_1", 7.0, 8.0, 1.0, -0.5, 1.5).model_copy(update=judged("slower", rounds=8))
    several = pair.model_copy(update={"operators": [chance, sure, by_its_pairs]})
    assert nodes(list_named_operators(several)) == ["Gemm_1", "Conv_1"]
    undecided = pair.model_copy(update={"verdict": "undecided"})
    assert nodes(list_named_operators(undecided)) == ["FusedGemm_1"]
