"""Why two compared cells have no verdict: the sign in its place, and the reason beside their figures."""

from dashboard import axes
from farm.contract.document_cells import Cell
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import Sign


def explain_within_block(base: Cell, other: Cell) -> tuple[Sign, str]:
    """Of cells that one block measured without judging them as a pair: it judges those that differ along one axis."""
    changed = [axis.heading.lower() for axis in axes.varying_axes([base, other])]
    if len(changed) < 2:
        return Sign("≠", "not compared", "quiet"), "their block compared no such pair"
    all_of_them = "both" if len(changed) == 2 else "all"
    why = f"{all_of_them} changed: {numbers.listed(changed, most=len(changed))}"
    return Sign("≠", "several changes", "quiet"), why


def explain_across_blocks(base: Cell, other: Cell, *, is_one_machine: bool) -> tuple[Sign, str]:
    """Of cells of two blocks."""
    nodes = f"{base.node or 'no node'} and {other.node or 'no node'}"
    if base.node == other.node:
        why = "not measured side by side: the machine may have changed between the two"
    elif is_one_machine:
        why = f"{nodes} are nodes of one machine, which measured one after the other"
    else:
        return Sign("≠", "different hardware", "quiet"), f"different hardware: {nodes}"
    return Sign("≠", "not side by side", "quiet"), why
