"""Placement changes between two traces."""

from farm.contract.document_cells import OperatorTime
from farm.contract.reports import Operator
from farm.rules.tracing.placement import PlacementChange, compare_cell_placements, compare_placements
from tests.documents import make_cell

CPU, OTHER = "CPUExecutionProvider", "OpenVINOExecutionProvider"


def _operator(node: str, *, op_type: str = "Add", provider: str = CPU, covers: tuple[str, ...] = ()) -> Operator:
    return Operator(node=node, covers=covers, op_type=op_type, provider=provider, time_us=1.0)


def test_the_same_placement_has_no_changes() -> None:
    operators = [_operator("a"), _operator("b", covers=("c",))]
    assert compare_placements(operators, operators) == []


def test_nodes_that_fall_back_to_the_cpu_are_one_worse_change() -> None:
    old = [_operator(name, provider=OTHER) for name in "abcd"]
    new = [_operator(name) for name in "abcd"]
    (change,) = compare_placements(old, new)
    assert change == PlacementChange("moved", ("a", "b", "c", "d"), OTHER, CPU, is_worse=True)
    assert change.sentence() == f"a, b, c and 1 more moved from {OTHER} to {CPU}."


def test_a_node_that_moves_to_the_accelerator_is_no_worse() -> None:
    (change,) = compare_placements([_operator("a")], [_operator("a", provider=OTHER)])
    assert not change.is_worse


def test_a_fusion_that_is_gone_is_found_by_the_models_own_nodes() -> None:
    old = [_operator("a", op_type="FusedAdd", covers=("b",))]
    new = [_operator("a"), _operator("b", op_type="Norm")]
    (change,) = compare_placements(old, new)
    assert (change.kind, change.is_worse) == ("fusion_gone", True)
    assert change.sentence() == "a, b no longer run fused as FusedAdd."


def test_a_new_fusion_is_news_not_worse() -> None:
    (change,) = compare_placements([_operator("a")], [_operator("a", op_type="FusedAdd", covers=("z",))])
    assert (change.kind, change.is_worse) == ("fusion_new", False)
    assert change.sentence() == "a now runs fused as FusedAdd."


def test_a_neighbour_that_is_fused_now_takes_no_fusion_apart() -> None:
    # ddddocr's common.onnx from 1.24.4 to 1.25.1: the same QuickGelu ran, and the sum before it runs in the convolution
    gelu = _operator("mul", op_type="QuickGelu", covers=("sigmoid",))
    old = [_operator("conv", op_type="Conv"), _operator("add"), gelu]
    new = [_operator("conv", op_type="Conv", covers=("add", "sigmoid")), gelu.model_copy(update={"covers": ()})]
    assert "fusion_gone" not in {change.kind for change in compare_placements(old, new)}


def test_more_copies_are_worse_and_fewer_are_not() -> None:
    (more,) = compare_placements([], [], copies=(2, 5))
    (fewer,) = compare_placements([], [], copies=(5, 2))
    assert (more.is_worse, fewer.is_worse) == (True, False)
    assert more.sentence() == "5 copies between host and device an inference, 2 before."


def test_nodes_that_swap_their_providers_are_no_change_of_what_ran() -> None:
    old = [_operator("a"), _operator("b", provider=OTHER)]
    new = [_operator("a", provider=OTHER), _operator("b")]
    assert compare_placements(old, new) == []


def test_a_node_that_moved_within_a_group_that_lost_others_is_no_move() -> None:
    old = [_operator("a", covers=("b",)), _operator("c", provider=OTHER, covers=("b",)), _operator("d", op_type="Norm")]
    new = [_operator("a", provider=OTHER, covers=("b",)), _operator("c", covers=("b",))]
    assert "moved" not in {change.kind for change in compare_placements(old, new)}


def test_copies_are_no_change_where_one_side_was_not_traced() -> None:
    operators = [OperatorTime(node="a", covers=[], op_type="Add", provider=CPU, time_us=1)]
    untraced, traced = make_cell("c1"), make_cell("c2", operators=operators, copies=2)
    assert compare_cell_placements(untraced, traced) == []
    (change,) = compare_cell_placements(make_cell("c1", operators=operators), traced)
    assert (change.kind, change.is_worse) == ("copies", True)
