"""Plans the blocks that measure a matrix on a fleet, and says why points cannot run. It starts nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Self

from farm.base.grouping import group_by
from farm.contract.blocks import MAX_ARMS
from farm.contract.cells import Budget, CellSpec
from farm.contract.reasons import ReasonCode
from farm.rules.cells import scenarios
from farm.rules.comparing import power
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import Point, expand
from farm.rules.planning import blocks, estimates
from farm.rules.planning.estimates import ROUNDS
from farm.rules.planning.null_pairs import NullPairs
from farm.rules.planning.plans import Arm, NodeOffer, Plan, PlannedBlock, PlannedComparison, RefusedPoint
from farm.rules.planning.resolution import Digests, Request, ResolvedPoint, Resolver
from farm.rules.planning.ways_out import WayOutFinder
from farm.rules.planning.wishes import BlockConditions, make_wish
from farm.rules.planning.workload_refusals import find_unknown_outputs
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.observed_loads import merge_observed_loads
from farm.rules.runtimes.releases import NOTHING_MORE, Known
from farm.rules.wording.numbers import counted, duration, percent

__all__ = ["ModelFacts", "NodeOffer", "Plan", "PlannedBlock", "plan"]

# s, the standard deviation of ln(new / old) over rounds, assumed of a node without an A/A history
ASSUMED_NOISE = 0.015
DEFAULT_MARGIN = 0.02


def plan(
    matrix: Matrix,
    model: ModelFacts | Sequence[ModelFacts],
    fleet: Sequence[NodeOffer] | None = None,
    *,
    seed: int = 0,
    known: Known = NOTHING_MORE,
    machine: NodeOffer | None = None,
    with_null_pair: bool = False,
    idle_reasons: Sequence[str] = (),
) -> Plan:
    """Plan the blocks that measure the matrix, and list the points that cannot run with their reasons.

    Several models are measured in the same blocks and compared along the axis `model`, with the first as the baseline.
    `fleet` are the nodes; None means that `machine` measures by itself. `idle_reasons` say for an empty fleet why each
    online node measures nothing. `known` is what the package index knows about releases. `with_null_pair` adds an A/A
    twin of the baseline to one in eight blocks of a node, and to each block on its first day, but never to blocks that
    have one already or that compare nothing, as by the budget `glance`.
    """
    models = [model] if isinstance(model, ModelFacts) else model
    first, *others = models
    observed = merge_observed_loads(node.loads for node in (fleet or (machine,)) if node is not None)
    if matrix.pre and known.newest_pre is not None:
        known = known.model_copy(update={"newest": known.newest_pre})
    request = Request(
        model=first,
        fleet=fleet,
        seed=seed,
        known=known,
        machine=machine,
        allowed=matrix.allowed,
        inputs=matrix.inputs,
        unknown_outputs=find_unknown_outputs(matrix.tolerances, models),
        observed=observed,
        idle_reasons=idle_reasons,
    )
    expansion = expand(matrix)
    requests = [request, *(replace(request, model=other) for other in others)]
    cells: list[ResolvedPoint] = []
    for place, model_request in enumerate(requests):
        model_cells = _resolve_points(expansion.points, model_request, first_number=len(cells) + 1)
        cells += [_place_on_axis(cell, model_request.model, place) for cell in model_cells] if others else model_cells
    runnable = [cell for cell in cells if cell.reason is None]
    planned = _plan_blocks(runnable, matrix, request, with_null_pair=with_null_pair)
    sources = [(model_request, point) for model_request in requests for point in expansion.points]
    refused = _list_refused(matrix, cells, sources)
    return Plan(
        cells=len(runnable),
        budget=matrix.budget,
        fail_fast=matrix.fail_fast,
        max_parallel=matrix.max_parallel,
        blocks=tuple(planned),
        refused=refused,
        excluded=expansion.excluded,
        minutes=sum(block.minutes for block in planned),
        problem=_find_problem(planned, refused),
    )


def _list_refused(
    matrix: Matrix, cells: Sequence[ResolvedPoint], sources: Sequence[tuple[Request, Point]]
) -> tuple[RefusedPoint, ...]:
    """List the points that cannot run, each with its reason and way out; `sources` has the point of each cell."""
    ways = WayOutFinder(
        matrix, [(cell, point) for cell, (_, point) in zip(cells, sources, strict=True) if cell.reason is None]
    )
    return tuple(
        RefusedPoint(
            id=cell.name,
            positions=cell.positions,
            labels=cell.labels,
            spec=cell.spec,
            reason=cell.reason,
            way_out=ways.find(cell, fit_point_to_model(point, request.model), request),
        )
        for cell, (request, point) in zip(cells, sources, strict=True)
        if cell.reason is not None
    )


def fit_point_to_model(point: Point, model: ModelFacts) -> Point:
    """Return the point with its scenario completed for this model, such as with a default prompt length."""
    text = point.values.get("scenario")
    if not isinstance(text, str):
        return point
    fitted = scenarios.parse(text).fit_to_model(model, is_batched="batch" in point.values).text
    return point if fitted == text else Point({**point.values, "scenario": fitted}, point.positions)


def _resolve_points(points: Sequence[Point], request: Request, *, first_number: int) -> list[ResolvedPoint]:
    resolver = Resolver(request)
    return [
        resolver.resolve(fit_point_to_model(point, request.model), name=f"c{number}")
        for number, point in enumerate(points, start=first_number)
    ]


def _place_on_axis(cell: ResolvedPoint, model: ModelFacts, place: int) -> ResolvedPoint:
    """Add the axis `model` to the positions and labels of a cell, and its model to the digests."""
    return cell._replace(
        positions={**cell.positions, "model": place},
        labels={**cell.labels, "model": model.name},
        digests=(*cell.digests, model.bundle_sha256),
    )


def _plan_blocks(
    cells: Sequence[ResolvedPoint], matrix: Matrix, request: Request, *, with_null_pair: bool
) -> list[PlannedBlock]:
    planned: list[PlannedBlock] = []
    placed: set[str] = set()
    pairs = NullPairs(request.fleet)
    # one launch of an arm is compared with nothing
    with_null_pair = with_null_pair and matrix.budget is not Budget.GLANCE
    for members in _group_side_by_side(cells):
        common = _CommonNodes.of(members, matrix, request)
        nodes, max_arms = common.nodes, common.max_arms
        # an arm is reserved for the twin, but a matrix that just fits in a block is split for it on the first day only
        reserved = int(with_null_pair and (pairs.is_first_day(nodes) or len(members) > max_arms))
        for cells_of_block in _group_cells(members, matrix, request.model, max_arms=max_arms - reserved):
            number = len(planned) + 1
            arms = _make_arms(cells_of_block, block=number, placed=placed)
            has_pair = any(arm.twin_of is not None for arm in arms)
            if with_null_pair and not has_pair and pairs.is_due(nodes) and len(arms) < max_arms:
                twin = {"arm": len(arms), "id": f"{arms[0].id}.{blocks.TWIN}", "twin_of": 0}
                arms = [*arms, arms[0].model_copy(update=twin)]
                cells_of_block, has_pair = [*cells_of_block, cells_of_block[0]], True
            pairs.record_block(nodes, has_pair=has_pair)
            planned.append(_plan_block(arms, cells_of_block, matrix, common, number=number))
    return planned


@dataclass(frozen=True, slots=True)
class _CommonNodes:
    """The nodes that may take all of some cells, and the limits that they share; no nodes without a fleet."""

    model: ModelFacts
    nodes: Sequence[NodeOffer]
    max_arms: int
    noise: float
    is_noise_assumed: bool
    margin: float
    margins: dict[str, float]
    smallest_detectable: float

    @classmethod
    def of(cls, cells: Sequence[ResolvedPoint], matrix: Matrix, request: Request) -> Self:
        common_ids = _find_common_nodes(cells) or ()
        nodes = [node for node in request.fleet or () if node.id in common_ids]
        noises = [node.noise for node in nodes if node.noise is not None]
        is_assumed = len(noises) < len(nodes) or not nodes
        noise = max([*noises, ASSUMED_NOISE] if is_assumed else noises)
        margin = max((node.margin for node in nodes), default=DEFAULT_MARGIN)
        return cls(
            model=request.model,
            nodes=nodes,
            max_arms=min((node.max_arms for node in nodes), default=MAX_ARMS),
            noise=noise,
            is_noise_assumed=is_assumed,
            margin=margin,
            margins=_merge_margins([node.margins for node in nodes]),
            smallest_detectable=smallest_detectable(matrix.budget, noise=noise, margin=margin),
        )


def _merge_margins(margins: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return for each metric the widest margin of these nodes."""
    widest: dict[str, float] = {}
    for node_margins in margins:
        widest |= {name: max(margin, widest.get(name, 0.0)) for name, margin in node_margins.items()}
    return widest


def _group_side_by_side(cells: Sequence[ResolvedPoint]) -> list[list[ResolvedPoint]]:
    """Group the cells that may share a block: those that one node takes, and whose scenarios are of one family."""
    return [
        cells_of_family
        for group in _group_by_hardware(cells)
        for cells_of_family in group_by(group, lambda cell: scenarios.of_cell(cell.spec).family).values()
    ]


def _group_by_hardware(cells: Sequence[ResolvedPoint]) -> list[list[ResolvedPoint]]:
    """Group cells by the hardware that the matrix declares.

    Where no node takes all cells of a group, it is divided by the nodes that take each cell.
    """
    groups: list[list[ResolvedPoint]] = []
    for group in group_by(cells, lambda cell: cell.spec.hardware if cell.is_hardware_declared else "").values():
        has_common_node = _find_common_nodes(group) != frozenset()
        groups += [group] if has_common_node else group_by(group, lambda cell: cell.nodes).values()
    return groups


def _find_common_nodes(cells: Sequence[ResolvedPoint]) -> frozenset[str] | None:
    """Find the ids of the nodes that take every cell; None where no fleet was asked."""
    different = {cell.nodes for cell in cells if cell.nodes is not None}
    return frozenset.intersection(*different) if different else None


def _group_cells(
    cells: Sequence[ResolvedPoint], matrix: Matrix, model: ModelFacts, *, max_arms: int
) -> list[list[ResolvedPoint]]:
    """Divide the cells into blocks with as many arms as fit into MAX_BLOCK_S."""
    arm_s = estimates.estimate_arm_s(matrix.budget, model.latency_ms, is_tracing=matrix.is_tracing_rounds)
    specs = {(cell.spec.workload.scenario, cell.spec.workload.concurrency): cell.spec for cell in cells}.values()
    sustained_s = max(scenarios.of_cell(spec).sustained_s for spec in specs)
    extra_s = ROUNDS[matrix.budget].usual * max(_sum_extra_launch_s([spec], matrix, model) for spec in specs)
    capacity = blocks.count_fitting_arms(arm_s + sustained_s + extra_s, limit=max_arms)
    return blocks.group_into_blocks(cells, positions=lambda cell: cell.positions, capacity=capacity)


def _make_arms(cells: Sequence[ResolvedPoint], *, block: int, placed: set[str]) -> list[Arm]:
    """Make the arms of a block, and add their cells to `placed`.

    A cell that an earlier block placed gets the block's number into its id.
    """
    arms: list[Arm] = []
    first_arms: dict[Digests, int] = {}
    for number, cell in enumerate(cells):
        arms.append(
            Arm(
                arm=number,
                id=f"{cell.name}.b{block}" if cell.name in placed else cell.name,
                cell=cell.name,
                positions=cell.positions,
                labels=cell.labels,
                spec=cell.spec,
                twin_of=first_arms.get(cell.digests),
                trial=cell.trial,
            )
        )
        first_arms.setdefault(cell.digests, number)
        placed.add(cell.name)
    return arms


def _plan_block(
    arms: list[Arm], cells: Sequence[ResolvedPoint], matrix: Matrix, common: _CommonNodes, *, number: int
) -> PlannedBlock:
    """Plan one block; `cells` are those of the arms, in their order."""
    budget, latency_ms, tracing = matrix.budget, common.model.latency_ms, matrix.is_tracing_rounds
    conditions = BlockConditions(noise=common.noise, margin=common.margin, arms=len(arms), latency_ms=latency_ms)
    specs = [arm.spec for arm in arms]
    loads = [scenarios.of_cell(spec) for spec in specs]
    search_s = max(estimates.estimate_search_s(load, latency_ms) for load in loads)
    program_s = estimates.sum_engine_setup_s(specs)
    once_s = program_s + search_s
    round_s = estimates.sum_engine_launch_s(specs) + _sum_extra_launch_s(specs, matrix, common.model)
    # the scenarios of a block are of one family, so that the longest stands for all
    sustained_s = max(load.sustained_s for load in loads)
    scenarios_s = sustained_s * len({cell.digests for cell in cells}) + once_s + ROUNDS[budget].usual * round_s
    return PlannedBlock(
        id=f"b{number}",
        arms=tuple(arms),
        comparisons=tuple(
            PlannedComparison(
                baseline=first, candidate=second, axis=axis, smallest_detectable=common.smallest_detectable
            )
            for first, second, axis in (() if budget is Budget.GLANCE else blocks.list_comparisons(arms))
        ),
        tags=_list_tags(arms),
        nodes=tuple(node.id for node in common.nodes),
        budget=budget,
        min_rounds=ROUNDS[budget].minimum,
        max_rounds=ROUNDS[budget].maximum,
        margin=common.margin,
        margins=common.margins,
        noise=common.noise,
        is_noise_assumed=common.is_noise_assumed,
        minutes=(len(arms) * estimates.estimate_arm_s(budget, latency_ms, is_tracing=tracing) + scenarios_s) / 60.0,
        runner_timeout_s=estimates.runner_timeout_s(
            budget, latency_ms, longer_s=program_s + max(load.max_launch_s(latency_ms) for load in loads)
        ),
        block_timeout_s=estimates.block_timeout_s(
            budget, latency_ms, arms=len(arms), longer_s=scenarios_s, is_tracing=tracing
        ),
        once_s=len(arms) * estimates.estimate_setup_s(latency_ms) + once_s,
        round_s=len(arms) * estimates.estimate_sample_s(budget, latency_ms, is_tracing=tracing) + round_s,
        is_tracing_rounds=tracing,
        sustained_s=sustained_s,
        tolerances=dict(matrix.tolerances),
        wish=make_wish(matrix.wish, budget, conditions) if matrix.wish is not None else None,
    )


def _sum_extra_launch_s(specs: Sequence[CellSpec], matrix: Matrix, model: ModelFacts) -> float:
    timed_s = ROUNDS[matrix.budget].shortest_s
    return sum(scenarios.of_cell(spec).extra_launch_s(model.latency_ms, timed_s=timed_s) for spec in specs)


def smallest_detectable(budget: Budget, *, noise: float, margin: float, rounds: int | None = None) -> float:
    """Return the smallest change, as a fraction, that `rounds` can show; by default the budget's maximum of rounds.

    `noise` is the standard deviation of single rounds.
    """
    budget_rounds = ROUNDS[budget]
    pairs = (budget_rounds.maximum if rounds is None else rounds) // budget_rounds.per_pair
    return power.smallest_detectable(noise / sqrt(budget_rounds.per_pair), pairs, margin)


def describe_plan(plan: Plan) -> str:
    """Say in one sentence how many comparisons a plan makes, how long it takes and which changes it can show.

    Empty if it compares nothing.
    """
    blocks = [block for block in plan.blocks if block.comparisons]
    if not blocks:
        return ""
    expected_s = 60.0 * sum(block.minutes for block in plan.blocks)
    longest_s = max(
        expected_s, sum((block.once_s or 0.0) + block.max_rounds * (block.round_s or 0.0) for block in plan.blocks)
    )
    detectable = max(
        smallest_detectable(block.budget, noise=block.noise, margin=block.margin, rounds=block.max_rounds)
        for block in blocks
    )
    noise = "the noise assumed of it" if any(block.is_noise_assumed for block in blocks) else "its known noise"
    return (
        f"{counted(sum(len(block.comparisons) for block in blocks), 'comparison')} in about {duration(expected_s)}, "
        f"{duration(longest_s)} at most; planned to show changes from {percent(detectable)} on, with {noise}."
    )


def _list_tags(arms: Sequence[Arm]) -> tuple[str, ...]:
    """List every tag that some arm asks for, with `cpu` last, since every node has it.

    Alternatives (`a|b`) and nodes asked for by name are left out: the block's `nodes` stands for them.
    """
    hardware = [arm.spec.hardware for arm in arms if "|" not in arm.spec.hardware and ":" not in arm.spec.hardware]
    tags = {tag for tags in hardware for tag in tags.split("+")}
    return tuple(sorted(tags, key=lambda tag: (tag == "cpu", tag)))


def _find_problem(planned: Sequence[PlannedBlock], refused: Sequence[RefusedPoint]) -> str | None:
    """Return the reason why the matrix as a whole is a mistake: an unknown release, or no node that takes any cell."""
    codes = [ReasonCode.UNKNOWN_RUNTIME] if planned else [ReasonCode.UNKNOWN_RUNTIME, ReasonCode.NO_NODE]
    texts = (point.reason.text for code in codes for point in refused if point.reason.code == code)
    return next(texts, None)
