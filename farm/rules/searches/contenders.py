"""The settings of a space that can race, and the blocks of a race, in which every two settings are compared."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from farm.contract.document_cells import Cell
from farm.contract.document_find import Goal, LeftSetting
from farm.rules.cells import label
from farm.rules.cells.identity import document_fields
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import expand
from farm.rules.planning.plans import Arm, Plan, PlannedBlock, PlannedComparison
from farm.rules.runtimes import providers
from farm.rules.searches.race import Contender
from farm.rules.wording.numbers import listed

# what all pairs of a block are compared along: settings may differ in several axes
AXIS = "setting"
OF_PROCESSOR = "Processor time is known of one thread on the CPU alone."
OTHER_NODES = "It runs on other nodes than the first setting. To race on each of them, name the hardware."
SHOWN_REASONS = 3


def split_contenders(plan: Plan, space: Matrix, goal: Goal = "latency") -> tuple[list[Contender], list[LeftSetting]]:
    """Split a planned space into the settings that can race, in the order of the space, and the others with the reason
    why each cannot. Of settings that make the same cell the first races for all.

    Settings that other nodes would measure than the first one's cannot race.
    """
    points = expand(space).points
    places = {_make_key(point.positions): place for place, point in enumerate(points)}
    arms = {places[_make_key(arm.positions)]: arm for block in plan.blocks for arm in block.arms}
    nodes = {places[_make_key(arm.positions)]: block.nodes for block in plan.blocks for arm in block.arms}
    cells = {place: _make_cell(arm) for place, arm in arms.items()}
    varying = label.varying_axes(cells.values())
    race_nodes: tuple[str, ...] | None = None
    contenders: dict[str, Contender] = {}
    refused = [
        Contender("", points[places[_make_key(refusal.positions)]].values, ", ".join(refusal.labels.values())).leave(
            "refused", refusal.reason.text
        )
        for refusal in plan.refused
    ]
    for place, cell in sorted(cells.items()):
        spec, name = arms[place].spec, label.describe_cell(cell, varying) or label.label_along(cell, varying)
        contender = Contender(cell.digest, {**points[place].values, "runtime": spec.runtime}, name)
        if goal == "processor-time" and (spec.session.threads > 1 or spec.provider != providers.CPU.name):
            refused.append(contender.leave("refused", OF_PROCESSOR))
            continue
        race_nodes = nodes[place] if race_nodes is None else race_nodes
        if nodes[place] != race_nodes:
            refused.append(contender.leave("refused", OTHER_NODES))
        else:
            contenders.setdefault(cell.digest, contender)
    return [*contenders.values()], refused


def _make_key(positions: Any) -> frozenset[tuple[str, int]]:
    return frozenset(positions.items())


def _make_cell(arm: Arm) -> Cell:
    """Make the cell of an arm as a document has it, without any results."""
    fields = document_fields(arm.spec, opset=None, session=arm.labels.get("session", "default"))
    known = {"id": arm.spec.digest, "model_sha256": arm.spec.artifact_sha256, "status": "done"}
    return Cell.model_validate(fields | known)


def explain_no_race(contenders: Sequence[Contender], refused: Sequence[LeftSetting]) -> str:
    """Say in a sentence why these settings cannot race; empty for two or more, all of single inferences."""
    scenarios = {str(contender.settings.get("scenario", "single")) for contender in contenders} - {"single"}
    if scenarios:
        return f"The space has the scenario {min(scenarios)}, but single inferences race: leave `scenario` out of it."
    reasons = listed(list(dict.fromkeys(left.text for left in refused)), most=SHOWN_REASONS)
    if not contenders:
        return f"No setting of the space can run here: {reasons}"
    if len(contenders) > 1:
        return ""
    why = f" ({len(refused)} cannot run: {reasons})" if refused else ""
    return (
        f"The space has one setting that can run, {contenders[0].label}, so that there is nothing to find{why}: "
        "give more values with --over, or measure it with `onnxfarm bench`."
    )


def compare_every_pair(block: PlannedBlock, *, rounds: int | None, left_s: float) -> PlannedBlock:
    """Return the block with a comparison of every two arms and at most `rounds` rounds; one round compares nothing.

    `rounds` is None for the final block, which has as many rounds as fit into `left_s` seconds, between the block's
    fewest and most.
    """
    pairs = combinations([arm.arm for arm in block.arms], 2) if rounds != 1 else ()
    compared = tuple(
        PlannedComparison(baseline=baseline, candidate=candidate, axis=AXIS) for baseline, candidate in pairs
    )
    max_rounds = rounds
    if max_rounds is None:
        possible = (left_s - (block.once_s or 0.0)) / block.round_s if block.round_s else block.max_rounds
        max_rounds = max(block.min_rounds, min(block.max_rounds, int(possible)))
    changes = {"comparisons": compared, "max_rounds": max_rounds, "min_rounds": min(block.min_rounds, max_rounds)}
    return block.model_copy(update=changes)


def fits_in(plan: Plan, left_s: float) -> bool:
    """Whether the plan is a single block whose fewest rounds end within `left_s` seconds."""
    blocks = plan.blocks
    return len(blocks) == 1 and (blocks[0].once_s or 0.0) + blocks[0].min_rounds * (blocks[0].round_s or 0.0) <= left_s
