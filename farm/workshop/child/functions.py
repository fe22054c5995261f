"""Limits the number of a model's nodes, as stored and with its functions expanded. Runs in the child only."""

from itertools import islice

import onnx

from farm.workshop.child import traversal
from farm.workshop.problems import Problem

_MAX_NODES = 1_000_000
_MAX_DEPTH = 64


def check_node_count(model: onnx.ModelProto) -> None:
    """Check that the model has at most _MAX_NODES nodes; counting ends there. Raises Problem too_many_nodes.

    Sixteen megabytes hold eight million empty nodes, which would take more than a minute to count.
    """
    if next(islice(traversal.iterate_nodes(model), _MAX_NODES, None), None) is not None:
        raise Problem("too_many_nodes", f"The model has more than {_MAX_NODES:,} nodes, the limit: make it smaller.")


def check_expanded_size(model: onnx.ModelProto) -> None:
    """Check that the model has at most _MAX_NODES nodes once its functions are written out.

    A few nested functions can stand for billions of nodes. Raises Problem function_bomb, also for functions that are
    nested deeper than _MAX_DEPTH.
    """
    bodies = {(function.domain, function.name): function for function in model.functions}
    sizes: dict[tuple[str, str], int] = {}
    total = sum(
        _count_expanded_nodes(node, bodies, sizes, depth=0)
        for node in traversal.iterate_nodes(model, with_functions=False)
    )
    if total > _MAX_NODES:
        nodes = f"{total:,}" if total < 10**12 else f"more than 10^{len(str(total)) - 1}"
        text = (
            f"The model's functions stand for {nodes} nodes when written out, over the limit of "
            f"{_MAX_NODES:,}: export it without nested functions."
        )
        raise Problem("function_bomb", text)


def _count_expanded_nodes(
    node: onnx.NodeProto,
    bodies: dict[tuple[str, str], onnx.FunctionProto],
    sizes: dict[tuple[str, str], int],
    *,
    depth: int,
) -> int:
    key = (node.domain, node.op_type)
    if key not in bodies:
        return 1
    if depth > _MAX_DEPTH:
        text = f"The model's functions call each other more than {_MAX_DEPTH} deep: export it without nested functions."
        raise Problem("function_bomb", text)
    if key not in sizes:
        sizes[key] = sum(
            _count_expanded_nodes(inner, bodies, sizes, depth=depth + 1)
            for inner in traversal.iterate_nodes_in(bodies[key].node)
        )
    return sizes[key]
