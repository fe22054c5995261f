"""A plan before it is started: blocks, minutes, what each comparison will see, and what will not run."""

from collections.abc import Mapping

from farm.rules.cells.axes import OWN_AXES
from farm.rules.planning.blocks import TWIN
from farm.rules.planning.plans import Arm, Plan, PlannedBlock, PlannedComparison, RefusedPoint
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, counted, written
from farm.rules.wording import numbers

# axes whose values say nothing without their name
_NAMED = {"batch", "opset", *(axis.name for axis in OWN_AXES)}


def summary(plan: Plan) -> str:
    """Cells, blocks and time in one sentence."""
    if not plan.blocks:
        return "Nothing of this matrix can run."
    parts = [numbers.counted(plan.cells, "cell"), f"in {numbers.counted(len(plan.blocks), 'block')}"]
    refused = f"; {numbers.counted(len(plan.refused), 'point')} refused" if plan.refused else ""
    excluded = f"; {plan.excluded} excluded" if plan.excluded else ""
    return f"{' '.join(parts)}, about {numbers.duration(60 * plan.minutes)} on one node{refused}{excluded}."


def waiting(points: int, *, is_begun: bool) -> str:
    """What the page says while a large plan is made."""
    size = numbers.counted(points, "point")
    return f"Planning {size}; the plan appears here in a moment." if is_begun else f"{size} wait to be planned."


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
        if block.wish is not None and any(comparison.axis != TWIN for comparison in block.comparisons):
            texts.setdefault(block.wish.text, []).append(block.id)
    return [text if len(texts) == 1 else f"{numbers.listed(ids)}: {text}" for text, ids in texts.items()]


def blocks(plan: Plan, nodes: Mapping[str, str]) -> Table:
    """A row for each block. `nodes`: names by id."""
    columns: tuple[Column[PlannedBlock], ...] = (
        Column("Block", lambda block: Entry(block.id)),
        Number("cells", lambda block: counted(len({arm.cell for arm in block.arms}))),
        Column("Nodes that may take it", lambda block: Entry(_names(block, nodes))),
        Number("rounds", _rounds),
        Number("comparisons", lambda block: counted(len(_own(block)))),
        Number("smallest change seen", _smallest, "what a comparison calls slower or faster about 95 times in 100"),
        Number("minutes", lambda block: written(block.minutes)),
    )
    return Table.of("blocks", "Cells of one block are measured side by side on one node", columns, plan.blocks)


def _names(block: PlannedBlock, nodes: Mapping[str, str]) -> str:
    return numbers.listed([nodes.get(node, node) for node in block.nodes]) or "none now"


def _rounds(block: PlannedBlock) -> Entry:
    least = "" if block.min_rounds == block.max_rounds else f"{block.min_rounds}–"
    return Entry(f"{least}{block.max_rounds}", block.max_rounds)


def _own(block: PlannedBlock) -> list[PlannedComparison]:
    return [comparison for comparison in block.comparisons if comparison.axis != TWIN]


def _smallest(block: PlannedBlock) -> Entry:
    seen = [one.smallest_detectable for one in _own(block) if one.smallest_detectable is not None]
    return Entry(numbers.share(min(seen)) if seen else "nothing to compare", min(seen, default=None))


def refused(plan: Plan) -> Table:
    """The points that will not run, with the rule and the way out."""
    columns: tuple[Column[RefusedPoint], ...] = (
        Column("Point", lambda point: Entry(_labels(point.labels))),
        Prose("Why, and the way out", lambda point: Entry(point.reason.text)),
    )
    return Table.of("refused", "Points that will not run", columns, plan.refused)


def cells(plan: Plan) -> Table:
    """Every cell that will be measured, once."""
    arms: dict[str, tuple[Arm, int]] = {}
    for place, block in enumerate(plan.blocks, start=1):
        for arm in block.arms:
            if arm.twin_of is None:
                arms.setdefault(arm.cell, (arm, place))
    columns: tuple[Column[tuple[Arm, int]], ...] = (
        Column("Cell", lambda each: Entry(_labels(each[0].labels))),
        Number("Block", lambda each: counted(each[1])),
    )
    return Table.of("plan-cells", "Cells", columns, arms.values())


def _labels(labels: Mapping[str, str]) -> str:
    return " · ".join(f"{axis} {value}" if axis in _NAMED else value for axis, value in labels.items())
