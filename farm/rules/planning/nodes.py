"""Which nodes of a fleet can measure a cell, and the reason where none can."""

from collections.abc import Sequence

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.cells import threads
from farm.rules.planning.plans import NodeOffer
from farm.rules.runtimes import engines, providers
from farm.rules.runtimes.nearest import describe_nearest_word


def can_measure(node: NodeOffer, spec: CellSpec) -> bool:
    """Whether the node can run the cell and has a core for each of its threads, as far as its cores are known."""
    return can_run(node, spec) and (node.cores is None or threads.needed_cores(spec) <= node.cores)


def can_run(node: NodeOffer, spec: CellSpec) -> bool:
    """Whether the node has the hardware, has proven the provider and may install the distribution.

    Its cores are not checked. A browser runs only what is made for browsers, and no other node runs that.
    """
    provider = providers.provider_of(spec.provider)
    is_proven = provider is providers.CPU or provider.name in node.providers
    is_allowed = not node.distributions or spec.runtime.distribution in node.distributions
    return (
        is_proven
        and is_allowed
        and node.is_browser == engines.engine_of(spec.runtime).is_browser
        and has_hardware(node, spec.hardware)
    )


def has_hardware(node: NodeOffer, hardware: str) -> bool:
    """Whether the node fits a value of the axis `hardware`.

    The value is a tag, `a+b` for nodes with both tags, `a|b` for nodes with either, `node:NAME` or `node:NUMBER`.
    """
    if hardware.startswith("node:"):
        wanted = hardware.removeprefix("node:")
        # no node is named by digits alone, so that a number is always a node's number
        return wanted == (node.id if wanted.isdecimal() else node.name)
    if "|" in hardware:
        return any(tag in node.tags for tag in hardware.split("|"))
    return all(tag in node.tags for tag in hardware.split("+"))


def explain_no_node(spec: CellSpec, fleet: Sequence[NodeOffer], idle_reasons: Sequence[str] = ()) -> Reason:
    """Return the reason why no node of the fleet takes the cell: the hardware, the provider or the distribution.

    Where the fleet is empty, `idle_reasons` says of each node that is online why it measures nothing for this team.
    """
    # the node that `hardware: node:NAME` names
    named = spec.hardware.removeprefix("node:") if spec.hardware.startswith("node:") else ""
    tags = sorted({tag for node in fleet for tag in node.tags})
    if not fleet:
        advice = f": {'; '.join(idle_reasons)}. Add" if idle_reasons else " yet: have one lent to it, or add"
        text = f"No node measures for this team{advice} a node, and plan again."
    elif not tags:
        text = "The nodes that are online have not proven their hardware yet: plan again once they have."
    elif any(has_hardware(node, spec.hardware) for node in fleet):
        able = f"Node {named} does not run" if named else f"No node with the hardware {spec.hardware!r} runs"
        text = (
            f"{able} {spec.provider} on {spec.runtime.distribution}: "
            "add a node whose probe shows it executing, or leave this provider out."
        )
    elif named:
        names = [f"node:{node.name or node.id}" for node in fleet]
        text = f"No node is named {named!r}{describe_nearest_word(spec.hardware, names)}."
    else:
        text = (
            f"No node carries the hardware {spec.hardware!r}{describe_nearest_word(spec.hardware, tags)}: "
            f"the fleet has {', '.join(tags)}. Add such a node, or change `hardware` or `provider`."
        )
        if (simulator := providers.provider_of(spec.provider).simulated_tag) in tags:
            text += f" `hardware: [{simulator}]` takes a simulator, for placement and parity alone."
    return Reason(code=ReasonCode.NO_NODE, text=text)
