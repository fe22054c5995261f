"""What the points of a plan share is worked out once: nothing of it may be another point's."""

import json
from itertools import combinations, product
from random import Random

import pytest

from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix
from farm.rules.matrices.points import expand
from farm.rules.planning import blocks, planner
from farm.rules.planning.nodes import can_measure
from farm.rules.planning.resolution import Request, Resolver
from tests.unit.rules.drawn_plans import draw_fleet, draw_matrix, draw_model, draw_node

SEEDS = range(250)


def drawn(seed):
    """A request, its matrix, and the dice that drew them; None for a matrix that is refused."""
    dice = Random(seed)
    plain, model, fleet = draw_matrix(dice), draw_model(dice), draw_fleet(dice)
    machine = draw_node(dice, 9) if fleet is None else None
    try:
        read = matrix.parse(plain)
    except MatrixProblem:
        return None
    return Request(model, fleet, seed, machine=machine, allowed=read.allowed, inputs=read.inputs), read


@pytest.mark.parametrize("seeds", [SEEDS[start : start + 50] for start in SEEDS[::50]])
def test_a_point_is_the_same_cell_and_refused_for_the_same_reason_alone_as_among_all_others(seeds):
    for request, read in filter(None, map(drawn, seeds)):
        together = Resolver(request)
        for point in expand(read).points:
            settled = planner.fit_point_to_model(point, request.model)
            found = together.resolve(settled, name="c1")
            assert found == Resolver(request).resolve(settled, name="c1")
            assert found.labels == settled.labels
            if found.reason is None and request.fleet is not None:
                assert found.nodes == {node.id for node in request.fleet if can_measure(node, found.spec)}


@pytest.mark.parametrize("seeds", [SEEDS[start : start + 50] for start in SEEDS[::50]])
def test_cells_are_twins_where_the_digests_of_their_specs_are_equal(seeds):
    for request, read in filter(None, map(drawn, seeds)):
        resolver = Resolver(request)
        cells = [resolver.resolve(point, name="c1") for point in expand(read).points]
        for first, second in combinations(cells, 2):
            assert (first.digests == second.digests) is (first.spec.digest == second.spec.digest)


def test_arms_are_compared_where_they_differ_in_one_axis_or_in_none():
    dice, found = Random(1), 0
    for seed in SEEDS:
        case = drawn(seed)
        if case is None:
            continue
        request, read = case
        plan = planner.plan(read, request.model, request.fleet, machine=request.machine, with_null_pair=bool(seed % 2))
        for block in plan.blocks:
            arms = list(block.arms)
            dice.shuffle(arms)
            arms = [arm.model_copy(update={"arm": number, "twin_of": None}) for number, arm in enumerate(arms)]
            pairs = blocks.list_comparisons(arms)
            assert {frozenset(pair[:2]): pair for pair in pairs} == {
                frozenset((first.arm, second.arm)): pair
                for first, second in combinations(arms, 2)
                if (pair := compared(first, second)) is not None
            }
            assert len(pairs) == len({frozenset(pair[:2]) for pair in pairs})
            found += len(pairs)
    assert found > 500


def compared(first, second):
    """(baseline, candidate, axis), as docs/matrix.md says it."""
    axes = first.positions.keys() | second.positions.keys()
    differing = [axis for axis in axes if first.positions.get(axis, -1) != second.positions.get(axis, -1)]
    if not differing:
        return first.arm, second.arm, blocks.TWIN
    early, late = sorted((first, second), key=lambda arm: arm.positions.get(differing[0], -1))
    return None if differing[1:] else (early.arm, late.arm, blocks.SHOWN_AXES.get(differing[0], differing[0]))


def test_a_matrix_has_the_points_that_going_through_it_entry_by_entry_gives():
    for seed in SEEDS:
        case = drawn(seed)
        if case is None:
            continue
        expansion = expand(case[1])
        expected, excluded = walked(case[1])
        assert [written(point.values) for point in expansion.points] == [written(values) for values in expected]
        assert expansion.excluded == excluded


def walked(read):
    """The values of each point in order, and how many were excluded: the product, exclude, then include."""
    names = list(read.axes)
    points = (
        []
        if not names and read.include
        else [dict(zip(names, values, strict=True)) for values in product(*read.axes.values())]
    )
    kept = [
        point
        for point in points
        if not any(all(point[axis] == value for axis, value in entry.items()) for entry in read.exclude)
    ]
    declared, alone = [dict(point) for point in kept], []
    for entry in read.include:
        own = {axis: value for axis, value in entry.items() if axis in names}
        fitting = [place for place, point in enumerate(declared) if all(point[axis] == own[axis] for axis in own)]
        for place in fitting:
            kept[place].update({axis: value for axis, value in entry.items() if axis not in names})
        if not fitting:
            alone.append(dict(entry))
    return [*kept, *alone], len(points) - len(declared)


def written(values):
    return json.dumps({axis: repr(value) for axis, value in values.items()}, sort_keys=True)
