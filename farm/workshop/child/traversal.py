"""Walking a model: its graphs inside graphs, its functions, and every tensor wherever it is kept."""

from collections.abc import Iterable, Iterator

import onnx


def iterate_nodes(model: onnx.ModelProto, *, with_functions: bool = True) -> Iterator[onnx.NodeProto]:
    """Every node: of the graph, of graphs inside nodes, and of the model's own functions."""
    yield from iterate_nodes_in(model.graph.node)
    if with_functions:
        for function in model.functions:
            yield from iterate_nodes_in(function.node)


def iterate_graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The main graph, and every graph that a node holds."""
    yield model.graph
    for node in iterate_nodes(model):
        yield from iterate_inner_graphs(node)


def iterate_inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that a node holds itself, like the branches of an If."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def iterate_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every stored tensor: initialisers, sparse ones, constants in attributes, in graphs and functions."""
    for graph in iterate_graphs(model):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
    for node in iterate_nodes(model):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            own = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
            for sparse in (*own, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)


def iterate_nodes_in(listed: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """These nodes and all nodes of graphs inside them."""
    # a stack, as a model may be nested deeper than Python recurses
    waiting = [iter(listed)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            continue
        yield node
        waiting.extend(iter(graph.node) for graph in iterate_inner_graphs(node))
