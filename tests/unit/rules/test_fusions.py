"""What an opset alone costs, in words, from the traces of made-up cells."""

import pytest

from farm.contract.document_cells import OperatorTime, ProviderTime
from farm.rules.presenting import fusions, sentences
from tests.documents import CPU, make_cell, make_comparison, make_document

FUSED = {"stem": ["stem_relu"], "down1": ["down1_relu", "down1_sum"]}


def executed(fused):
    """A net whose convolutions take in what `fused` says; everything else runs by itself."""
    taken = {name for names in fused.values() for name in names}
    nodes = ["stem", "stem_relu", "down1", "down1_relu", "down1_sum", "head"]
    return [
        OperatorTime(
            node=node, covers=fused.get(node, []), op_type=node.partition("_")[2] or "conv", provider=CPU, time_us=1.0
        )
        for node in nodes
        if node not in taken
    ]


def cell(name, runtime, opset, fused):
    return make_cell(name, model="net", opset=opset, runtime=runtime, batch=None, operators=executed(fused))


def document(*releases):
    """A document with each (runtime, what is fused at opset 22); at 21 all is fused."""
    cells, comparisons = [], []
    for number, (runtime, fused) in enumerate(releases):
        old, new = cell(f"a{number}", runtime, 21, FUSED), cell(f"b{number}", runtime, 22, fused)
        cells += [old, new]
        sides = {"baseline": old.id, "candidate": new.id}
        comparisons.append(make_comparison(ratio=1.3, axis="opset", **sides))
    return make_document(*cells, comparisons=comparisons)


def test_the_releases_that_lose_fusions_for_a_stamp_are_named_and_the_one_that_keeps_them() -> None:
    found = document(("onnxruntime==1.24.4", {}), ("onnxruntime==1.22.1", {}), ("onnxruntime==1.25.1", FUSED))
    assert fusions.describe_lost_fusions(found) == (
        "For the opset stamp alone, 22 instead of 21, ONNX Runtime 1.22.1 and 1.24.4 lose fusions: 5 nodes (down1, "
        "down1_relu, down1_sum and 2 more) run apart that were fused; ONNX Runtime 1.25.1 keeps them."
    )
    assert fusions.describe_lost_fusions(found) in sentences.describe_run(found)


def test_one_release_and_one_fusion() -> None:
    found = document(("onnxruntime-openvino==1.24.1", {"down1": FUSED["down1"]}))
    assert fusions.describe_lost_fusions(found) == (
        "For the opset stamp alone, 22 instead of 21, onnxruntime-openvino==1.24.1 loses fusions: 2 nodes (stem, "
        "stem_relu) run apart that were fused."
    )


@pytest.mark.parametrize("releases", [(), (("onnxruntime==1.25.1", FUSED),)])
def test_nothing_is_said_where_no_fusion_is_lost(releases) -> None:
    assert fusions.describe_lost_fusions(document(*releases)) == ""


def test_cells_without_a_trace_say_nothing() -> None:
    found = document(("onnxruntime==1.24.4", {}))
    bare = found.model_copy(update={"cells": [one.model_copy(update={"operators": []}) for one in found.cells]})
    assert fusions.find_opset_comparisons(bare) == []


def test_two_releases_differ_in_what_is_fused_and_how_much_runs() -> None:
    old, new = (
        cell("a", "onnxruntime==1.29.0", 21, FUSED),
        cell("b", "onnxruntime==1.31.1", 21, {"stem": ["stem_relu"]}),
    )
    assert fusions.describe_graph_changes(old, new) == [
        "down1, down1_relu, down1_sum no longer run fused as conv.",
        "5 operators executed, 3 before.",
    ]
    assert fusions.describe_graph_changes(new, old)[-1] == "3 operators executed, 5 before."


def test_the_same_graph_is_said_and_an_untraced_one_says_nothing() -> None:
    old, new = cell("a", "onnxruntime==1.29.0", 21, FUSED), cell("b", "onnxruntime==1.31.1", 21, FUSED)
    assert fusions.describe_graph_changes(old, new) == ["The same nodes ran on the same provider, fused alike."]
    assert fusions.describe_graph_changes(old, new.model_copy(update={"operators": []})) == []


def test_a_diff_of_two_graphs_says_what_each_change_takes() -> None:
    def row(node: str, op_type: str, time_us: float) -> OperatorTime:
        return OperatorTime(node=node, op_type=op_type, provider=CPU, time_us=time_us)

    copied = [row("head", "MemcpyToHost", 4.0), row("head", "ReorderOutput", 3.0)]
    old = cell("a", "onnxruntime==1.29.0", 21, FUSED)
    new = cell("b", "onnxruntime==1.31.1", 21, {"stem": ["stem_relu"]})
    new = new.model_copy(update={"operators": [*new.operators, *copied], "copies": 1})
    moved = [({"down1", "down1_relu", "down1_sum"}, 50.0), ({"stem"}, 2.0)]
    found = fusions.find_graph_changes(old, new, moved)
    assert [(change.sign.mark, change.sign.word, change.moved_us) for change in found] == [
        ("−", "fusion lost", 50.0), ("+", "copies", 4.0), ("+", "node added", 3.0),
    ]  # fmt: skip
    assert (
        fusions.describe_graph_changes(old, new, moved)[0]
        == "down1, down1_relu, down1_sum no longer run fused as conv: +50.0 µs."
    )
    assert [change.text for change in fusions.find_graph_changes(new, old, moved)][
        -1
    ] == "1 fewer ReorderOutput node executed."
    # of a trace that is listed in part, who knows what the rest is
    part = new.model_copy(update={"providers": [ProviderTime(name=CPU, nodes=9, time_share=1.0)]})
    assert "node added" not in [change.sign.word for change in fusions.find_graph_changes(old, part)]
    assert fusions.find_graph_changes(old, new)[0].moved_us is None
    # nothing is claimed of what was not traced
    assert fusions.find_graph_changes(old, new.model_copy(update={"operators": []})) == []
