"""Iterates over a model's nodes, graphs and stored tensors, inside nodes and functions too; reads attributes."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import onnx
from onnx import helper

Value = TypeVar("Value")


def iterate_nodes(model: onnx.ModelProto, *, with_functions: bool = True) -> Iterator[onnx.NodeProto]:
    """Yield every node of the graph and of graphs inside nodes, and of the model's own functions `with_functions`."""
    yield from iterate_nodes_in(model.graph.node)
    if with_functions:
        for function in model.functions:
            yield from iterate_nodes_in(function.node)


def iterate_graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the main graph, and every graph that a node holds, in functions too."""
    yield model.graph
    for node in iterate_nodes(model):
        yield from iterate_inner_graphs(node)


def iterate_inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that a node holds itself, like the branches of an If."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def iterate_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every stored tensor of graphs and functions: initialisers, sparse ones, and constants in attributes."""
    for graph in iterate_graphs(model):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
    for node in iterate_nodes(model):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            single = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
            for sparse in (*single, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)


def iterate_nodes_in(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield these nodes and all nodes of graphs inside them."""
    # an explicit stack, since a model may be nested deeper than Python's recursion limit
    waiting = [iter(nodes)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            continue
        yield node
        waiting.extend(iter(graph.node) for graph in iterate_inner_graphs(node))


def read_attribute(node: onnx.NodeProto, name: str, default: Value) -> Value:
    """Read a node's attribute; return `default` if it has none of this name, or one of another type than `default`."""
    for attribute in node.attribute:
        if attribute.name == name and attribute.type:
            value = helper.get_attribute_value(attribute)
            if isinstance(value, type(default)):
                return value
    return default
