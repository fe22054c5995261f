"""Executed nodes back to the model's own: the seams that rewriters leave, in graphs of made-up operators."""

from farm.rules.tracing.alignment import Origin, align
from farm.rules.tracing.graphs import Graph, GraphNode
from farm.rules.tracing.node_origins import Assigned, Executed, compute_mapped_share, map_executed


def node(name: str, kind: str, reads: str, makes: str, *, index: int = 0, path: tuple[str, ...] = ()) -> GraphNode:
    label = name or "/".join((*path, f"{kind}_{index}"))
    return GraphNode(
        label=label,
        name=name,
        op_type=kind,
        inputs=tuple(reads.split()),
        outputs=tuple(makes.split()),
        index=index,
        path=path,
    )


def graph(*nodes: GraphNode, given: str = "x w b") -> Graph:
    counted = []
    seen: dict[tuple[str, ...], int] = {}
    for one in nodes:
        index = seen.get(one.path, 0)
        seen[one.path] = index + 1
        counted.append(
            node(one.name, one.op_type, " ".join(one.inputs), " ".join(one.outputs), index=index, path=one.path)
        )
    return Graph(nodes=tuple(counted), given=frozenset(given.split()))


def ran(name: str, kind: str, *, index: int = 99, provider: str = "P", path: tuple[str, ...] = ()) -> Executed:
    return Executed(name=name, op_type=kind, provider=provider, index=index, path=path)


CHAIN = graph(
    node("mul", "Mul", "x w", "t1"),
    node("sum", "Sum", "t1 b", "t2"),
    node("norm", "Norm", "t2", "t3"),
    node("act", "Act", "t3", "y"),
)


def test_an_index_below_the_number_of_own_nodes_is_that_node() -> None:
    assert map_executed([ran("sum", "Sum", index=1)], source=CHAIN, model=CHAIN)[0].node == "sum"


def test_an_index_that_names_another_kind_of_node_is_not_believed() -> None:
    origins = map_executed([ran("Fused_7", "Fused", index=1)], source=CHAIN, model=CHAIN)
    assert origins[0].node is None


def test_unnamed_nodes_are_found_by_index_and_have_a_stable_name() -> None:
    unnamed = graph(node("", "Mul", "x w", "t"), node("", "Act", "t", "y"))
    origins = map_executed([ran("Act_1", "Act", index=1)], source=unnamed, model=unnamed)
    assert origins[0].node == "Act_1"


def test_a_fused_node_covers_what_lies_between_its_tensors() -> None:
    saved = graph(node("mul", "Mul", "x w", "t1"), node("SumNorm_token_4", "SumNorm", "t1 b", "t3"),
                  node("act", "Act", "t3", "y"))  # fmt: skip
    origins = map_executed([ran("SumNorm_token_4", "SumNorm")], source=CHAIN, model=CHAIN, optimized=saved)
    assert origins[0].node == "norm"
    assert origins[0].covers == ("sum",)


def test_a_fused_node_that_keeps_a_name_covers_the_other_node() -> None:
    saved = graph(node("mul", "MulSum", "x w b", "t2"), node("norm", "Norm", "t2", "t3"), node("act", "Act", "t3", "y"))
    origins = map_executed([ran("mul", "MulSum")], source=CHAIN, model=CHAIN, optimized=saved)
    assert (origins[0].node, origins[0].covers) == ("mul", ("sum",))


def test_a_node_that_only_hands_on_what_it_is_given_is_fused_into_nothing() -> None:
    model = graph(node("mul", "Mul", "x w", "t1"), node("same", "Identity", "t1", "t2"), node("act", "Act", "t2", "y"))
    saved = graph(node("mul", "Mul", "x w", "t1"), node("act", "Act", "t1", "y"))
    fused = graph(node("mul", "MulAct", "x w", "y"))
    for optimized, executed in ((saved, [ran("mul", "Mul"), ran("act", "Act")]), (fused, [ran("mul", "MulAct")])):
        origins = map_executed(executed, source=model, model=model, optimized=optimized)
        assert "same" not in {label for origin in origins for label in (origin.node, *origin.covers)}
        assert (origins[0].covers == ("act",)) == (optimized is fused)


def test_a_tensor_is_made_by_what_computes_it_however_many_hand_it_on() -> None:
    model = graph(
        node("mul", "Mul", "x w", "t1"), node("same", "Identity", "t1", "t2"), node("drop", "Dropout", "t2", "t3"),
        node("given", "Identity", "x", "t4"), node("none", "Identity", "", "t5"),
        node("early", "Identity", "t7", "t6"), node("late", "Identity", "t6", "t7"),
    )  # fmt: skip
    makers = {tensor: model.find_maker(tensor) for tensor in ("t1", "t3", "t4", "t5", "t6", "t7", "x")}
    assert [maker and maker.label for maker in makers.values()] == ["mul", "mul", *[None] * 5]


def test_a_node_renamed_after_its_outputs_tensor_in_another_layout_is_found_with_what_was_fused_behind_it() -> None:
    saved = graph(
        node("t1_blocked", "Mul", "x w", "r0"), node("Unblock", "Unblock", "r0", "t3"), node("act", "Act", "t3", "y")
    )
    origins = map_executed(
        [ran("t1_blocked", "Mul"), ran("Unblock", "Unblock")], source=CHAIN, model=CHAIN, optimized=saved
    )
    assert origins[0].node == "mul"
    assert origins[0].covers == ("sum", "norm")
    assert origins[1].node == "norm", "the inserted node hands on the tensor that norm made"
    assert origins[1].covers == ()


def test_a_node_named_after_the_activation_fused_into_it_counts_for_the_node_of_its_own_kind() -> None:
    own = graph(node("mul", "Mul", "x w", "t1"), node("act", "Act", "t1", "t2"), node("out", "Out", "t2", "y"))
    saved = graph(node("t2_blocked", "Mul", "x w", "r0"), node("out", "Out", "r0", "y"))
    origins = map_executed([ran("t2_blocked", "Mul")], source=own, model=own, optimized=saved)
    assert (origins[0].node, origins[0].covers) == ("mul", ("act",))


def test_nodes_of_a_variant_lead_to_the_uploaded_models_nodes() -> None:
    variant = graph(
        node("x_Quantise", "Quantise", "x", "x_q x_scale"),
        node("mul_quant", "MulInteger", "x_q w", "t1_q"),
        node("mul_rescale", "Rescale", "t1_q x_scale", "t1"),
        node("sum", "Sum", "t1 b", "t2"),
        node("norm", "Norm", "t2", "t3"),
        node("act", "Act", "t3", "y"),
    )
    executed = [ran(name, kind, index=i) for i, (name, kind) in enumerate(
        [("x_Quantise", "Quantise"), ("mul_quant", "MulInteger"), ("mul_rescale", "Rescale"), ("norm", "Norm")]
    )]  # fmt: skip
    executed[3] = ran("norm", "Norm", index=4)
    origins = map_executed(executed, source=CHAIN, model=variant)
    assert [origin.node for origin in origins] == ["mul", "mul", "mul", "norm"]


def test_a_node_inside_a_branch_is_found_below_its_parent_and_counts_for_it_when_rewritten() -> None:
    own = graph(
        node("", "Branch", "x", "y"),
        node("", "Mul", "x w", "i", path=("Branch_0",)),
        node("inner", "Act", "i", "o", path=("Branch_0",)),
    )
    executed = [
        ran("Branch_0", "Branch", index=0),
        ran("Mul_0", "Mul", index=0, path=("Branch_0",)),
        ran("inner", "Act", index=1, path=("Branch_0",)),
        ran("Made_9", "Made", index=9, path=("Branch_0",)),
    ]
    origins = map_executed(executed, source=own, model=own)
    assert [origin.node for origin in origins] == ["Branch_0", "Branch_0/Mul_0", "inner", "Branch_0"]


def test_compiled_subgraphs_are_the_groups_their_provider_took_in_order() -> None:
    executed = [
        ran("Sub_9_1", "Sub9", index=9),
        ran("Sub_8_0", "Sub8", index=8),
        ran("norm", "Norm", index=2, provider="C"),
    ]
    groups = [Assigned("P", ("mul", "sum")), Assigned("P", ("act",)), Assigned("C", ("norm",))]
    origins = map_executed(executed, source=CHAIN, model=CHAIN, assigned=groups)
    assert [origin.node for origin in origins] == ["act", "sum", "norm"]
    assert origins[1].covers == ("mul",)


def test_as_many_groups_as_executed_subgraphs_are_wanted_before_one_is_named_after_the_other() -> None:
    origins = map_executed([ran("Sub_9_1", "Sub9")], source=CHAIN, model=CHAIN,
                           assigned=[Assigned("P", ("mul",)), Assigned("P", ("act",))])  # fmt: skip
    assert origins[0].node is None
    assert compute_mapped_share(origins) == 0.0
    assert compute_mapped_share([]) is None


def test_aligning_a_graph_with_itself_gives_every_node_itself() -> None:
    origins = align(CHAIN, CHAIN)
    assert {label: origin.node for label, origin in origins.items()} == {label: label for label in CHAIN.by_label}
    assert not any(origin.covers for origin in origins.values())


def test_a_node_that_only_hands_on_a_tensor_counts_for_its_maker() -> None:
    saved = graph(
        node("mul", "Mul", "x w", "raw"), node("cast", "Cast", "raw", "t1"), node("rest", "Rest", "t1 b", "y")
    )
    found = align(saved, CHAIN)
    assert (found["mul"].node, found["cast"].node) == ("mul", "mul")


def test_a_node_named_after_an_output_that_nothing_of_its_kind_made_is_the_maker_of_that_output() -> None:
    own = graph(node("act", "Act", "x", "t2"), node("out", "Out", "t2", "y"))
    saved = graph(node("t2_blocked", "Mul", "x w", "r0"), node("out", "Out", "r0", "y"))
    assert align(saved, own)["t2_blocked"].node == "act"


def test_what_was_folded_into_a_constant_belongs_to_no_node_that_runs() -> None:
    own = graph(node("fold", "Mul", "w b", "k"), node("act", "Act", "k", "t2"), node("out", "Out", "t2", "y"))
    saved = graph(node("t2_blocked", "Mul", "k", "r0"), node("out", "Out", "r0", "y"), given="x w b k")
    found = align(saved, own)
    assert found["t2_blocked"] == Origin(node="act")
    assert all("fold" not in (origin.node, *origin.covers) for origin in found.values())


def test_an_inserted_copy_that_two_nodes_read_counts_for_what_it_copies() -> None:
    saved = graph(
        node("mul", "Mul", "x w", "t1"),
        node("copy", "Copy", "t1", "c1"),
        node("sum", "Sum", "c1 b", "t2"),
        node("norm", "Norm", "t2 c1", "t3"),
        node("act", "Act", "t3", "y"),
    )
    assert align(saved, CHAIN)["copy"].node == "mul"


def test_nodes_inside_a_branch_keep_their_name_or_count_for_the_branch() -> None:
    inner = node("inner", "Act", "i", "o", path=("Branch_0",))
    own = graph(node("", "Branch", "x", "y"), inner)
    saved = graph(node("", "Branch", "x", "y"), inner, node("made", "Made", "i", "p", path=("Branch_0",)))
    found = align(saved, own)
    assert (found["inner"].node, found["made"].node) == ("inner", "Branch_0")


def test_a_name_that_two_nodes_bear_names_neither() -> None:
    assert graph(node("mul", "Mul", "x w", "t1"), node("mul", "Mul", "t1 w", "y")).by_name == {}


def test_a_node_that_took_over_the_work_behind_it_covers_that_and_keeps_its_index() -> None:
    saved = graph(node("mul", "Mul", "x w", "t1"), node("sum", "Norm", "t1 b", "t3"), node("act", "Act", "t3", "y"))
    (origin,) = map_executed([ran("sum", "Norm", index=1)], source=CHAIN, model=CHAIN, optimized=saved)
    assert (origin.node, origin.covers) == ("sum", ("norm",))


def test_an_unnamed_node_of_the_saved_graph_is_found_by_what_it_makes() -> None:
    own = graph(node("", "Mul", "x w", "t1"), node("", "Sum", "t1 b", "t2"), node("", "Act", "t2", "y"))
    saved = graph(node("", "Mul", "x w", "t1"), node("", "Sum", "t1 b", "t2"), node("", "Act", "t2", "y"))
    origins = map_executed([ran("Sum_1", "Sum", index=1)], source=own, model=own, optimized=saved)
    assert origins[0].node == "Sum_1"


def test_what_ran_in_a_branch_that_nobody_knows_leads_nowhere() -> None:
    origins = map_executed([ran("a", "Act", index=0, path=("Nobody_3",))], source=CHAIN, model=CHAIN)
    assert origins[0].node is None


def test_a_variants_node_that_nothing_of_the_upload_resembles_leads_nowhere() -> None:
    variant = graph(node("zip", "Zip", "p", "q"), node("zap", "Zap", "q", "r"), given="p")
    assert map_executed([ran("zip", "Zip", index=0)], source=CHAIN, model=variant)[0].node is None


TWO = graph(
    node("conv1", "Conv", "x w", "conv1_out"),
    node("relu1", "Relu", "conv1_out", "relu1_out"),
    node("conv2", "Conv", "relu1_out w", "conv2_out"),
    node("relu2", "Relu", "conv2_out", "relu2_out"),
    node("flatten", "Flatten", "relu2_out", "y"),
)


def test_what_a_copy_to_another_layout_hands_on_belongs_to_the_operator_that_made_it() -> None:
    """The first of two fused Convs was said to cover the second one."""
    origins = align(_fused_in_layout(""), TWO)
    assert origins["relu1_out_nchwc"] == Origin("conv1", covers=("relu1",))
    assert origins["relu2_out_nchwc"] == Origin("conv2", covers=("relu2",))
    assert (origins["copy"].node, origins["flatten"]) == ("relu2", Origin("flatten"))


def test_operators_named_after_a_tensor_in_another_precision_are_the_models_own() -> None:
    """All Convs of an fp16 model were called `flatten` on 1.31.1, and `conv1` on 1.29.0."""
    of_both = {
        "InsertedPrecisionFreeCast_relu1_out_nchwc": "conv1",
        "InsertedPrecisionFreeCast_relu2_out_nchwc": "conv2",
    }
    saved = _fused_in_layout("InsertedPrecisionFreeCast_")
    back = [each for each in saved.nodes if each.name != "flatten"]
    cast = node("InsertedPrecisionFreeCast_relu2_out", "Cast", "InsertedPrecisionFreeCast_relu2_out", "relu2_out")
    for optimized in (saved, graph(*back, cast, node("flatten", "Flatten", "relu2_out", "y"))):
        origins = align(optimized, TWO)
        assert {name: origins[name].node for name in of_both} == of_both
        assert origins["flatten"] == Origin("flatten")
    assert TWO.find_by_prefix("InsertedPrecisionFreeCast_relu2_out_nchwc") == TWO.by_name["relu2"]


def test_a_tensor_that_is_converted_for_one_reader_keeps_its_name() -> None:
    there = graph(
        node("mul", "Mul", "x w", "t1"),
        node("InsertedPrecisionFreeCast_t1", "Cast", "t1", "InsertedPrecisionFreeCast_t1"),
        node("act", "Act", "InsertedPrecisionFreeCast_t1", "y"),
    )
    assert there.restore_converted() is there


def _fused_in_layout(prefix: str) -> Graph:
    return graph(
        node(f"{prefix}relu1_out_nchwc", "Conv", "x w", "token_1"),
        node(f"{prefix}relu2_out_nchwc", "Conv", "token_1 w", "token_2"),
        node("copy", "ReorderOutput", "token_2", f"{prefix}relu2_out"),
        node("flatten", "Flatten", f"{prefix}relu2_out", "y"),
    )
