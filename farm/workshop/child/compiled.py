"""Recognises code that a provider compiled into a model (ONNX Runtime's EPContext nodes). Runs in the child only."""

from typing import TypedDict

import onnx

from farm.workshop.child import traversal
from farm.workshop.problems import printable

# the node's type in ONNX Runtime
OPERATOR, DOMAIN = "EPContext", "com.microsoft"
# how many providers, SDKs and devices are listed at most, each
_MAX_TEXTS = 8


class Compiled(TypedDict):
    """The fields of a `plans.CompiledFacts`."""

    by: list[str]
    sdk: str
    hardware: str
    problem: str


def read_compiled(model: onnx.ModelProto) -> Compiled | None:
    """Read which provider compiled code in the model, with which SDK and for which hardware; None if there is none."""
    nodes = [node for node in traversal.iterate_nodes(model) if (node.op_type, node.domain) == (OPERATOR, DOMAIN)]
    if not nodes:
        return None
    providers = _list_attribute_texts(nodes, "source")
    return {
        "by": providers,
        "sdk": ", ".join(_list_attribute_texts(nodes, "ep_sdk_version")),
        "hardware": ", ".join(_list_attribute_texts(nodes, "hardware_architecture")),
        "problem": _explain_problem(nodes, providers),
    }


def _list_attribute_texts(nodes: list[onnx.NodeProto], name: str) -> list[str]:
    # the different values of an attribute, sorted
    texts = {printable(traversal.read_attribute(node, name, b"").decode("utf-8", "replace")) for node in nodes}
    return sorted(texts - {""})[:_MAX_TEXTS]


def _explain_problem(nodes: list[onnx.NodeProto], providers: list[str]) -> str:
    """Say in one sentence why no node can run the compiled code; empty if a node with its provider can."""
    if any(attribute.name == "embed_mode" and attribute.i != 1 for node in nodes for attribute in node.attribute):
        return (
            "The compiled code lies in a file beside the model, whose place only the model names: compile it with "
            "`ep.context_embed_mode=1`, which puts the code into the model."
        )
    if not providers:
        return "The model carries compiled code (EPContext) that does not say for which provider: compile it again."
    return ""
