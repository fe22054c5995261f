"""Parses .onnx files in a sandboxed child, and returns their nodes as JSON. It imports little, to start fast."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from onnx import GraphProto

# a graph with more nodes is not read, and the operators of its traces keep their own names
MAX_NODES = 50_000
# ONNX Runtime turns these nodes into initialisers before it counts nodes
CONSTANT = "Constant"


class Node(TypedDict):
    """A node of a graph. `path`: the labels of the nodes that contain its graph. `label`: unique in the model."""

    label: str
    name: str
    op_type: str
    inputs: list[str]
    outputs: list[str]
    index: int
    path: list[str]


class ReadGraph(TypedDict):
    """The nodes of a model, inner nodes after those that contain them; `given`: inputs, initialisers and constants."""

    nodes: list[Node]
    given: list[str]


def read_in_child(paths: list[str]) -> dict[str, list[ReadGraph | None]]:
    """Read the graphs of .onnx files, without Constant nodes. Return them under `graphs`, in the same order.

    None stands for a file that cannot be read, or has more than MAX_NODES.
    """
    return {"graphs": [_read_graph(path) for path in paths]}


def _read_graph(path: str) -> ReadGraph | None:
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        model = onnx.load(path, load_external_data=False)
    except (OSError, DecodeError):
        return None
    nodes = []
    for node in _iterate_nodes(model.graph, path=()):
        nodes.append(node)
        if len(nodes) > MAX_NODES:
            return None
    given_names = [entry.name for entry in (*model.graph.input, *model.graph.initializer)]
    given_names += [entry.values.name for entry in model.graph.sparse_initializer]
    given_names += [name for node in model.graph.node if node.op_type == CONSTANT for name in node.output]
    label_counts = Counter(node["label"] for node in nodes)
    for node in nodes:
        if label_counts[node["label"]] > 1:
            node["label"] = f"{node['label']}#{node['index']}"
    return {"nodes": nodes, "given": given_names}


def _iterate_nodes(graph: "GraphProto", *, path: tuple[str, ...]) -> Iterator[Node]:
    index = 0
    for node in graph.node:
        if node.op_type == CONSTANT:
            continue
        label = node.name or "/".join((*path, f"{node.op_type}_{index}"))
        yield {
            "label": label,
            "name": node.name,
            "op_type": node.op_type,
            "inputs": list(node.input),
            "outputs": list(node.output),
            "index": index,
            "path": list(path),
        }
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                yield from _iterate_nodes(inner, path=(*path, label))
        index += 1
