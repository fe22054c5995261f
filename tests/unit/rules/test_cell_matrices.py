"""Matrices that pages offer to copy: read back, they hold the very same cells and no others."""

import random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.reading.copies import write_matrix
from farm.contract.cells import CellSpec
from farm.rules.cells.matrices import build_matrix
from farm.rules.matrices import matrix
from farm.rules.matrices.matrix_text import write_text
from farm.rules.planning import planner
from tests.unit.rules.making import make_model

SESSIONS = (
    "default",
    {"name": "still", "spinning": False},
    {"name": "odd: # names", "execution-mode": "parallel", "inter-op-threads": 3, "config": {"a.b": "no", "c": "1.20"}},
    {"name": "bare", "memory-pattern": False, "arena": False, "disabled-optimizers": ["ConstantFolding", "x: y"]},
)
PRECISIONS = (
    "fp32",
    "fp16",
    {"precision": "int8-dynamic", "options": {"per-channel": True, "exclude-nodes": ["/a/b c", "it's", "no"]}},
    {"precision": "int8-qdq", "options": {"calibration": "entropy", "activation": "int8"}},
)
AXES: dict[str, tuple[Any, ...]] = {
    "opset": ("as-is", 15, "max-of-runtime"),
    "runtime": ("1.29.0", "1.31.1"),
    "provider": ("cpu", {"name": "openvino", "options": {"device_type": "CPU", "num_streams": "2"}}),
    "batch": (1, 8),
    "shapes": ({}, {"sequence": 64}),
    "precision": PRECISIONS,
    "threads": (1, 4),
    "session": SESSIONS,
    "optimization": ("all", "basic"),
    "hardware": ("cpu", "x86+avx512", "node:bench-1"),
    "concurrency": (1, 4),
    "scenario": ("single", {"sustained": 10}),
}


def cells_of(declared: Any, *, seed: int = 7) -> list[CellSpec]:
    """The cells of a matrix, those that a plan refuses too: a copy of them is of them."""
    plan = planner.plan(matrix.parse(declared), make_model(), seed=seed)
    assert plan.problem is None, plan.problem
    return [arm.spec for block in plan.blocks for arm in block.arms] + [point.spec for point in plan.refused]


def digests(cells: list[CellSpec]) -> set[str]:
    return {cell.digest for cell in cells}


def copied(cells: list[CellSpec], *, name: str = "") -> str:
    return write_matrix([(cell, name) for cell in cells])


@pytest.mark.parametrize(("axis", "value"), [(axis, value) for axis, values in AXES.items() for value in values])
def test_the_matrix_of_one_cell_reads_back_to_the_very_same_cell(axis: str, value: Any) -> None:
    cells = cells_of({"runtime": "1.31.1", axis: [value]})
    assert len(cells) == 1
    assert digests(cells_of(copied(cells))) == digests(cells)


@settings(max_examples=25, deadline=None)
@given(
    wide=st.sets(st.sampled_from(sorted(AXES)), max_size=3),
    places=st.integers(0, 2**30),
    kept=st.lists(st.integers(0, 7), min_size=1, max_size=4),
)
def test_the_matrix_of_any_cells_reads_back_to_them_and_to_no_others(wide: set[str], places: int, kept: list[int]):
    """`wide`: axes with two values, the others have one; `places`: which; `kept`: which cells of the product."""
    dice = random.Random(places)
    every = cells_of({axis: dice.sample(values, 2 if axis in wide else 1) for axis, values in AXES.items()})
    some = [every[number % len(every)] for number in kept]
    assert digests(cells_of(copied(some))) == digests(some)


def test_cells_that_make_a_product_are_written_as_axes() -> None:
    cells = cells_of({"runtime": ["1.29.0", "1.31.1"], "batch": [1, 8]})
    plain = yaml.safe_load(copied(cells))["matrix"]
    assert plain == {
        "runtime": ["onnxruntime==1.29.0", "onnxruntime==1.31.1"],
        "provider": ["CPUExecutionProvider"],
        "batch": [1, 8],
        "precision": ["fp32"],
        "threads": [1],
    }
    assert "include" in build_matrix(cells[:3])


def test_a_session_set_keeps_its_name_unless_another_one_has_it() -> None:
    cells = cells_of({"session": [SESSIONS[1], SESSIONS[3]]})
    one = yaml.safe_load(copied(cells[:1], name="still"))["matrix"]["session"]
    assert one == [{"name": "still", "spinning": False}]
    both = yaml.safe_load(copied(cells, name="still"))["matrix"]["session"]
    assert [session["name"] for session in both] == ["still", "session-1"]
    assert yaml.safe_load(copied(cells[:1], name="default"))["matrix"]["session"][0]["name"] == "session-1"


def test_no_cells_are_no_matrix() -> None:
    assert write_matrix([]) == ""


def test_copied_cells_are_fed_and_judged_as_in_their_runs_and_where_two_differ_as_in_the_first() -> None:
    first = matrix.parse({"runtime": "1.31.1", "tolerance": {"y": {"atol": 1e-6}}, "inputs": {"x": "0..9"}})
    second = matrix.parse({"runtime": "1.31.1", "tolerance": {"y": 0.5, "z": 0.25}})
    text = write_matrix([(cells_of({"runtime": "1.31.1"})[0], "")], matrices=[first.as_plain(), {}, second.as_plain()])
    read = matrix.parse(text)
    assert read.tolerances == {**second.tolerances, **first.tolerances}
    assert read.inputs == first.inputs


def test_a_value_that_stands_twice_in_a_matrix_is_written_twice() -> None:
    shared = {"name": "still", "spinning": False}
    text = write_text({"runtime": ["1.31.1"], "include": [{"session": shared}, {"session": shared}]})
    assert "&" not in text
    assert matrix.parse(text).include[0] == matrix.parse(text).include[1]
