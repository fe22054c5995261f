"""Finds the longest sequence that a decoder's graph takes, if the graph limits it. Runs in the child only.

Limits of more than _MAX_TOKENS tokens are ignored.
"""

from collections.abc import Iterator
from typing import NamedTuple

import onnx

from farm.rules.generation import decoders
from farm.workshop.child import traversal
from farm.workshop.child.signature import Port
from farm.workshop.problems import printable

_MAX_TOKENS = 1 << 24
# operators that leave positions as they are
_PASS_THROUGH = ("Identity", "Cast", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Expand")
# by domain and operator that rotates by position: the indices of its inputs that are tables of cosines and sines
_ROTATION_TABLES = {
    ("com.microsoft", "GroupQueryAttention"): (7, 8),
    ("com.microsoft", "RotaryEmbedding"): (2, 3),
    ("", "RotaryEmbedding"): (1, 2),
}


class TokenLimit(NamedTuple):
    """A number of tokens, 0 for no limit, and in words what in the graph limits it."""

    tokens: int
    where: str


def find_context_length(model: onnx.ModelProto, *, inputs: list[Port]) -> dict[str, object] | None:
    """Find the longest sequence the graph takes, as the fields of `plans.ContextFacts`; None without a limit."""
    limit = _find_shortest_limit(model, inputs)
    return limit._asdict() if limit.tokens else None


def count_context_tokens(model: onnx.ModelProto, *, inputs: list[Port]) -> int:
    """Find how many tokens the graph takes at most; 0 without a limit."""
    return _find_shortest_limit(model, inputs).tokens


def _find_shortest_limit(model: onnx.ModelProto, inputs: list[Port]) -> TokenLimit:
    limits = list(_list_table_limits(model, inputs))
    for port in inputs:
        last = (port["shape"] or [""])[-1]
        if decoders.is_mask_input(port["name"]) and len(port["shape"] or []) == 2 and isinstance(last, int):
            limits.append(TokenLimit(last, f"the fixed length of {printable(port['name'])}"))
    return min((limit for limit in limits if 0 < limit.tokens <= _MAX_TOKENS), default=TokenLimit(0, ""))


def _list_table_limits(model: onnx.ModelProto, inputs: list[Port]) -> Iterator[TokenLimit]:
    """Yield the number of rows of each table that is indexed by positions."""
    shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer if tensor.dims}
    positions = {port["name"] for port in inputs if decoders.is_position_input(port["name"])}
    for node in model.graph.node:
        if node.op_type in _PASS_THROUGH and node.input and node.input[0] in positions:
            positions.update(node.output[:1])
        for table in _list_tables_read(node, positions):
            if len(shape := shapes.get(table, [])) > 1:
                where = f"the {shape[0]:,} rows of {printable(table)}, which {node.op_type} reads by position"
                yield TokenLimit(shape[0], where)


def _list_tables_read(node: onnx.NodeProto, positions: set[str]) -> list[str]:
    if node.op_type == "Gather" and len(node.input) > 1 and node.input[1] in positions:
        return [node.input[0]] if traversal.read_attribute(node, "axis", 0) == 0 else []
    domain = "" if node.domain == "ai.onnx" else node.domain
    return [node.input[at] for at in _ROTATION_TABLES.get((domain, node.op_type), ()) if at < len(node.input)]
