"""A plan before it is started: blocks, minutes, what each comparison will see, and what will not run."""

from collections.abc import Mapping

from dashboard import numbers
from dashboard.tables import Entry, Head, Table
from farm.rules.cells.axes import OWN_AXES
from farm.rules.planning.blocks import TWIN
from farm.rules.planning.plans import Plan, PlannedBlock

BLOCK_HEADS = (
    Head("Block"),
    Head("cells", is_number=True),
    Head("Nodes that may take it"),
    Head("rounds", is_number=True),
    Head("comparisons", is_number=True),
    Head("smallest change seen", is_number=True, note="what a comparison calls slower or faster about 95 times in 100"),
    Head("minutes", is_number=True),
)
REFUSED_HEADS = (Head("Point"), Head("Why, and the way out", is_text=True))
# axes whose values say nothing without their name
_NAMED = {"batch", "opset", *(axis.name for axis in OWN_AXES)}
CELL_HEADS = (Head("Cell"), Head("Block", is_number=True))


def summary(plan: Plan) -> str:
    """Cells, blocks and time in one sentence."""
    if not plan.blocks:
        return "Nothing of this matrix can run."
    parts = [numbers.count(plan.cells, "cell"), f"in {numbers.count(len(plan.blocks), 'block')}"]
    refused = f"; {numbers.count(len(plan.refused), 'point')} refused" if plan.refused else ""
    excluded = f"; {plan.excluded} excluded" if plan.excluded else ""
    return f"{' '.join(parts)}, about {numbers.duration(60 * plan.minutes)} on one node{refused}{excluded}."


def warnings(plan: Plan) -> list[str]:
    """What the plan had to assume."""
    if not any(block.is_noise_assumed for block in plan.blocks):
        return []
    assumed = max(block.noise for block in plan.blocks)
    return [
        f"The smallest changes assume that identical launches differ by {numbers.share(assumed)}: the nodes have not "
        "measured an A/A pair yet."
    ]


def wishes(plan: Plan) -> list[str]:
    """What the wished change costs in each block; the same sentence of several blocks once."""
    texts: dict[str, list[str]] = {}
    for block in plan.blocks:
        if block.wish is not None and any(one.axis != TWIN for one in block.comparisons):
            texts.setdefault(block.wish.text, []).append(block.id)
    return [text if len(texts) == 1 else f"{numbers.listed(ids)}: {text}" for text, ids in texts.items()]


def blocks(plan: Plan, nodes: Mapping[str, str]) -> Table:
    """A row for each block. `nodes`: names by id."""
    rows = [_block(block, nodes) for block in plan.blocks]
    return Table("blocks", "Cells of one block are measured side by side on one node", BLOCK_HEADS, rows)


def _block(block: PlannedBlock, nodes: Mapping[str, str]) -> tuple[Entry, ...]:
    own = [one for one in block.comparisons if one.axis != TWIN]
    seen = [one.smallest_detectable for one in own if one.smallest_detectable is not None]
    arms = len({arm.cell for arm in block.arms})
    rounds = str(block.min_rounds) if block.min_rounds == block.max_rounds else f"{block.min_rounds}–{block.max_rounds}"
    return (
        Entry(block.id),
        Entry(str(arms), arms),
        Entry(numbers.listed([nodes.get(node, node) for node in block.nodes]) or "none now"),
        Entry(rounds, block.max_rounds),
        Entry(str(len(own)), len(own)),
        Entry(numbers.share(min(seen)) if seen else "nothing to compare", min(seen, default=None)),
        Entry(numbers.plain(block.minutes), block.minutes),
    )


def refused(plan: Plan) -> Table:
    """The points that will not run, with the rule and the way out."""
    rows = [(Entry(_labels(point.labels)), Entry(point.reason.text)) for point in plan.refused]
    return Table("refused", "Points that will not run", REFUSED_HEADS, rows)


def cells(plan: Plan) -> Table:
    """Every cell that will be measured, once."""
    found: dict[str, tuple[Entry, ...]] = {}
    for place, block in enumerate(plan.blocks, start=1):
        for arm in block.arms:
            if arm.twin_of is None:
                found.setdefault(arm.cell, (Entry(_labels(arm.labels)), Entry(str(place), place)))
    return Table("plan-cells", "Cells", CELL_HEADS, list(found.values()))


def _labels(labels: Mapping[str, str]) -> str:
    return " · ".join(f"{axis} {value}" if axis in _NAMED else value for axis, value in labels.items())
