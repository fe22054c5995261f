"""Code that a provider compiled and that a model carries: ONNX Runtime's nodes EPContext. Runs in the child only."""

from collections.abc import Iterator
from typing import TypedDict

import onnx

from farm.workshop.child import traversal
from farm.workshop.problems import printable

# what ONNX Runtime itself calls them
OPERATOR, DOMAIN = "EPContext", "com.microsoft"
# of the kinds of text that are kept
_MOST = 8


class Compiled(TypedDict):
    """The fields of a `plans.CompiledFacts`."""

    by: list[str]
    sdk: str
    hardware: str
    problem: str


def read_compiled(model: onnx.ModelProto) -> Compiled | None:
    """Read which provider compiled code in the model, with which SDK and for which hardware; None: no such code."""
    nodes = [node for node in traversal.iterate_nodes(model) if (node.op_type, node.domain) == (OPERATOR, DOMAIN)]
    if not nodes:
        return None
    by = sorted(set(_texts(nodes, "source")))[:_MOST]
    return {
        "by": by,
        "sdk": ", ".join(sorted(set(_texts(nodes, "ep_sdk_version")))[:_MOST]),
        "hardware": ", ".join(sorted(set(_texts(nodes, "hardware_architecture")))[:_MOST]),
        "problem": _problem(nodes, by),
    }


def _texts(nodes: list[onnx.NodeProto], name: str) -> Iterator[str]:
    """Read the text attribute of this name from every node that has one."""
    for node in nodes:
        for attribute in node.attribute:
            if attribute.name == name and attribute.s:
                yield printable(attribute.s.decode("utf-8", "replace"))


def _problem(nodes: list[onnx.NodeProto], by: list[str]) -> str:
    """Say in one sentence why no node can run the code; empty where one with its provider can."""
    if any(attribute.name == "embed_mode" and attribute.i != 1 for node in nodes for attribute in node.attribute):
        return (
            "The compiled code lies in a file beside the model, whose place only the model names: compile it with "
            "`ep.context_embed_mode=1`, which puts the code into the model."
        )
    if not by:
        return "The model carries compiled code (EPContext) that does not say for which provider: compile it again."
    return ""
