"""The settings of a planned space that can race, and the changes that make a planned block a block of a race."""

from collections.abc import Mapping, Sequence
from itertools import combinations

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

# the axis named in each comparison of a block, because settings may differ in several axes of the matrix
AXIS = "setting"
OF_PROCESSOR = "Processor time is known of one thread on the CPU alone."
OTHER_NODES = "It runs on other nodes than the first setting. To race on each of them, name the hardware."
SHOWN_REASONS = 3


def split_contenders(plan: Plan, space: Matrix, goal: Goal = "latency") -> tuple[list[Contender], list[LeftSetting]]:
    """Split the settings of a space by its plan into those that can race and those that are refused.

    Those that can race are in the order of the space. The refused ones have the reason in their text; those that the
    plan refused come first.

    Settings with the same cell are one contender, the first of them. All contenders run on the nodes of the first one;
    settings that other nodes would measure are refused. For the goal `processor-time` so are settings of several
    threads or of another provider than the CPU.
    """
    values_of = {_make_key(point.positions): point.values for point in expand(space).points}
    arms = {_make_key(arm.positions): arm for block in plan.blocks for arm in block.arms}
    nodes = {_make_key(arm.positions): block.nodes for block in plan.blocks for arm in block.arms}
    cells = {key: _make_cell(arm) for key, arm in arms.items()}
    varying = label.varying_axes(cells.values())

    refused = [
        Contender("", values_of[_make_key(refusal.positions)], ", ".join(refusal.labels.values())).as_dropped(
            "refused", refusal.reason.text
        )
        for refusal in plan.refused
    ]

    race_nodes: tuple[str, ...] | None = None
    contenders: dict[str, Contender] = {}
    # the keys of values_of are in the order of the space
    for key in (key for key in values_of if key in cells):
        cell, spec = cells[key], arms[key].spec
        name = label.describe_cell(cell, varying) or label.label_along(cell, varying)
        contender = Contender(cell.digest, {**values_of[key], "runtime": spec.runtime}, name)
        if goal == "processor-time" and (spec.session.threads > 1 or spec.provider != providers.CPU.name):
            refused.append(contender.as_dropped("refused", OF_PROCESSOR))
            continue
        if race_nodes is None:
            race_nodes = nodes[key]
        if nodes[key] != race_nodes:
            refused.append(contender.as_dropped("refused", OTHER_NODES))
        else:
            contenders.setdefault(cell.digest, contender)
    return [*contenders.values()], refused


def _make_key(positions: Mapping[str, int]) -> frozenset[tuple[str, int]]:
    return frozenset(positions.items())


def _make_cell(arm: Arm) -> Cell:
    """Make the cell that a document would have for an arm, without any results."""
    fields = document_fields(arm.spec, opset=None, session=arm.labels.get("session", "default"))
    known = {"id": arm.spec.digest, "model_sha256": arm.spec.artifact_sha256, "status": "done"}
    return Cell.model_validate(fields | known)


def explain_no_race(contenders: Sequence[Contender], refused: Sequence[LeftSetting]) -> str:
    """Say in a sentence why these settings cannot race; empty where they can.

    A race takes two or more settings, all with the scenario `single`.
    """
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
    """Return the block with at most `rounds` rounds and a comparison of every two arms, or none for a single round.

    The minimum of rounds is lowered to that limit. `rounds` is None for the final block, which has as many rounds as
    fit into the `left_s` seconds that remain, between the block's own minimum and maximum.
    """
    max_rounds = rounds
    if max_rounds is None:
        possible = (left_s - (block.once_s or 0.0)) / block.round_s if block.round_s else block.max_rounds
        max_rounds = max(block.min_rounds, min(block.max_rounds, int(possible)))
    arms = [arm.arm for arm in block.arms] if rounds != 1 else []
    compared = tuple(
        PlannedComparison(baseline=baseline, candidate=candidate, axis=AXIS)
        for baseline, candidate in combinations(arms, 2)
    )
    changes = {"comparisons": compared, "max_rounds": max_rounds, "min_rounds": min(block.min_rounds, max_rounds)}
    return block.model_copy(update=changes)


def fits_in(plan: Plan, left_s: float) -> bool:
    """Whether the plan is a single block whose minimum of rounds ends within the `left_s` seconds that remain."""
    blocks = plan.blocks
    needed_s = sum((block.once_s or 0.0) + block.min_rounds * (block.round_s or 0.0) for block in blocks)
    return len(blocks) == 1 and needed_s <= left_s
