"""Bisection over a graph: the first tensor that differs, by few looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.rules.quality.divergence import Graph, GraphNode, inputs_of_part


def chain(length: int) -> Graph:
    return Graph([GraphNode(f"n{i}", "Add", (f"t{i - 1}" if i else "x",), (f"t{i}",)) for i in range(length)])


def diamond() -> Graph:
    return Graph(
        [
            GraphNode("top", "Add", ("x",), ("a",)),
            GraphNode("left", "Add", ("a",), ("b",)),
            GraphNode("right", "Add", ("a", "w"), ("c",)),
            GraphNode("join", "Add", ("b", "c"), ("d",)),
        ]
    )


@pytest.mark.parametrize("culprit", [0, 1, 63, 99])
def test_in_a_chain_the_culprit_is_found_in_as_many_looks_as_bits(culprit: int) -> None:
    graph = chain(100)
    visible = {f"t{i}" for i in range(100)}
    found = graph.find_first_difference("t99", agrees=lambda name: int(name[1:]) < culprit, visible=visible)
    assert (found.tensor, found.node.name) == (f"t{culprit}", f"n{culprit}")
    assert len(found.compared) <= 8


@pytest.mark.parametrize(("differing", "culprit"), [("d", "join"), ("cd", "right"), ("bd", "left"), ("abcd", "top")])
def test_where_branches_join_the_right_branch_is_followed(differing: str, culprit: str) -> None:
    found = diamond().find_first_difference("d", agrees=lambda name: name not in differing, visible=set("abcd"))
    assert found.node.name == culprit


def test_only_visible_tensors_are_looked_at() -> None:
    found = chain(10).find_first_difference("t9", agrees=lambda name: int(name[1:]) < 3, visible={"t2", "t5", "t9"})
    assert found.tensor == "t5"
    assert {name for name, _ in found.compared} <= {"t2", "t5"}


def test_a_tensor_that_no_node_makes_is_an_error() -> None:
    with pytest.raises(KeyError):
        chain(3).find_first_difference("x", agrees=lambda _: True, visible=())


def test_a_part_grows_around_a_tensor_and_keeps_the_order() -> None:
    graph = diamond()
    names = [[node.name for node in graph.nodes_around("b", steps)] for steps in (0, 1, 2, 9)]
    assert names == [["left"], ["top", "left", "join"], ["top", "left", "join"], ["top", "left", "join"]]


def test_what_leaves_a_part_is_read_outside_or_by_nobody() -> None:
    graph = diamond()
    assert graph.outputs_of_part(graph.nodes_around("b", 1)) == ("a", "d")
    assert graph.outputs_of_part(graph.nodes_around("b", 0)) == ("b",)


def test_the_borders_of_a_part_are_what_it_reads_from_outside() -> None:
    assert inputs_of_part(diamond().nodes_around("d", 1), {"w"}) == ("a",)


def test_the_maker_of_a_tensor_is_known_and_inputs_have_none() -> None:
    assert diamond().find_maker("c") == GraphNode("right", "Add", ("a", "w"), ("c",))
    assert diamond().find_maker("x") is None


@given(st.data())
def test_in_any_graph_what_is_found_differs_and_nothing_above_it_does(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 25))
    nodes = []
    for at in range(count):
        reads = data.draw(st.lists(st.sampled_from(["x", *(f"t{n}" for n in range(at))]), max_size=3))
        nodes.append(GraphNode(f"n{at}", "Op", tuple(reads), (f"t{at}",)))
    culprit = data.draw(st.integers(0, count - 1))
    below = {f"t{culprit}"}
    for node in nodes:
        if below & set(node.inputs):
            below.update(node.outputs)
    bad = max(below, key=lambda name: int(name[1:]))
    found = Graph(nodes).find_first_difference(
        bad, agrees=lambda name: name not in below, visible={f"t{at}" for at in range(count)}
    )
    assert found.tensor == f"t{culprit}"
