"""Grouping: nothing lost, nothing too large, what is compared stays together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.contract.blocks import MAX_ARMS
from farm.rules.matrices import matrix
from farm.rules.matrices.points import expand
from farm.rules.planning import blocks, planner
from farm.rules.runtimes import releases
from tests.unit.rules.making import make_model

RELEASES = releases.ONNXRUNTIME[9:33]


def grouped(plain, capacity=MAX_ARMS):
    points = expand(matrix.parse(plain)).points
    return points, blocks.group_into_blocks(points, positions=lambda point: dict(point.positions), capacity=capacity)


def test_no_cells_make_no_blocks():
    assert blocks.group_into_blocks([], positions=dict, capacity=4) == []


def test_what_fits_one_block_is_one_block():
    points, found = grouped({"runtime": RELEASES[:4], "batch": [1, 2, 4, 8]})
    assert [len(block) for block in found] == [16]
    assert {id(point) for point in found[0]} == {id(point) for point in points}


def test_releases_stay_together_when_batches_must_part():
    _, found = grouped({"runtime": RELEASES[:4], "batch": [1, 2, 4, 8, 16, 32]})
    for block in found:
        batches = {point.values["batch"] for point in block}
        for batch in batches:
            releases = [point for point in block if point.values["batch"] == batch]
            assert len(releases) in (1, 4)


def test_the_first_cell_is_repeated_in_every_further_block():
    points, found = grouped({"batch": list(range(1, 41))})
    assert len(found) == 3
    assert all(block[0] is points[0] for block in found)


def test_many_releases_are_split_with_their_own_baseline_in_each_block():
    _, found = grouped({"runtime": RELEASES, "batch": [1, 8]})
    for block in found:
        for point in block:
            same_batch = [other for other in block if other.values["batch"] == point.values["batch"]]
            is_repeated = point is block[0]
            assert is_repeated or any(other.positions["runtime"] == 0 for other in same_batch)


def test_comparisons_name_the_one_axis_in_which_two_arms_differ():
    plan = planner.plan(matrix.parse({"include": [{"batch": 1}, {"batch": 2}, {"threads": 2}]}), make_model())
    (block,) = plan.blocks
    # the third point sets another axis: it differs from the others in two
    assert [(c.baseline, c.candidate, c.axis) for c in block.comparisons] == [(1, 2, "batch")]


def test_the_room_in_a_block_follows_from_the_seconds_of_an_arm():
    assert blocks.count_fitting_arms(10.0, limit=16) == 16
    assert blocks.count_fitting_arms(100.0, limit=16) == 6
    assert blocks.count_fitting_arms(9999.0, limit=16) == 2


axis_sizes = st.fixed_dictionaries(
    {},
    optional={
        "batch": st.integers(1, 7),
        "threads": st.integers(1, 5),
        "concurrency": st.integers(1, 3),
        "runtime": st.integers(1, 24),
    },
)


@given(axis_sizes, st.integers(2, MAX_ARMS))
def test_every_cell_is_in_a_block_and_no_block_is_too_large(sizes, capacity):
    plain = {
        axis: [RELEASES[n] for n in range(size)] if axis == "runtime" else list(range(1, size + 1))
        for axis, size in sizes.items()
    }
    points, found = grouped({**plain, "budget": "quick"}, capacity)
    assert {id(point) for block in found for point in block} == {id(point) for point in points}
    assert all(len(block) <= capacity for block in found)
    assert all(len({id(point) for point in block}) == len(block) for block in found)
    # a cell is repeated only as the baseline of a block, or of its own family there
    repeats = sum(len(block) for block in found) - len(points)
    assert repeats <= len(found) - 1 + sum(len(block) for block in found) // capacity


@pytest.mark.parametrize("capacity", [2, 3, 5, 16])
def test_equal_releases_in_a_long_row_are_all_measured(capacity):
    points, found = grouped({"runtime": ["1.31.1"] * 20}, capacity)
    assert {id(point) for block in found for point in block} == {id(point) for point in points}
