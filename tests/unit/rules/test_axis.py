"""Kinds of axes: what a new entry of the table gets without saying more."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from farm.contract.document_cells import Cell
from farm.rules.cells import axes
from farm.rules.cells.axis import NO_DEFAULT, Axis, MatrixAxis, declare_from_field
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.values import format_value

PATTERN = Axis(
    "memory-pattern", "Memory pattern", default=True, declared=declare_from_field("memory-pattern", "session")
)


def declared(axis: Axis) -> MatrixAxis:
    assert axis.declared is not None
    return axis.declared


def with_field(**fields: Any) -> Cell:
    return cast(Cell, SimpleNamespace(**fields))


@pytest.mark.parametrize(("written", "read"), [(True, True), (False, False), ("true", True), ("false", False)])
def test_a_flag_is_read_from_files_and_from_the_command_line(written: object, read: bool) -> None:
    assert declared(PATTERN).read(written) is read
    assert declared(PATTERN).read(format_value(read)) is read


@pytest.mark.parametrize("written", [1, "yes", None, [True], "True"])
def test_what_is_no_flag_is_refused(written: object) -> None:
    with pytest.raises(MatrixProblem, match=r"memory-pattern is .*: write true or false"):
        declared(PATTERN).read(written)


def test_a_flag_reads_as_on_and_off_with_its_heading() -> None:
    off, on = with_field(memory_pattern=False), with_field(memory_pattern=True)
    assert (PATTERN.short(off), PATTERN.label(off)) == ("off", "memory pattern off")
    assert (PATTERN.short(on), PATTERN.is_default(on), PATTERN.is_default(off)) == ("on", True, False)
    assert sorted([on, off], key=PATTERN.sort_key) == [off, on]


def test_a_name_of_two_words_is_a_field_with_an_underscore() -> None:
    assert (declared(PATTERN).field, PATTERN.fields) == ("memory_pattern", ("memory_pattern",))
    spec = SimpleNamespace(session=SimpleNamespace(memory_pattern=False))
    assert declared(PATTERN).value_in(cast(Any, spec)) is False


def test_kinds_know_examples_of_their_values() -> None:
    kinds = (declare_from_field("threads", "session"), declare_from_field("optimization", "session"), declared(PATTERN))
    assert [axis.example for axis in kinds] == ["1, 2", "disable, basic, extended, all", "true, false"]


def test_an_axis_without_a_default_always_says_its_value() -> None:
    axis = Axis("n", "N", declared=declare_from_field("threads", "session"))
    assert axis.default is NO_DEFAULT
    assert not axis.is_default(with_field(n=1))
    assert axis.short(with_field(n=None)) == ""


@pytest.mark.parametrize("order", [tuple(axes.MATRIX_AXES), axes.SPLIT_ORDER, axes.ASKED_ORDER])
def test_every_axis_of_a_matrix_has_one_place_in_each_order(order: tuple[str, ...]) -> None:
    # models are measured side by side, and stand in no matrix
    assert sorted(set(order) - {"model"}) == sorted(axis.name for axis in axes.AXES if axis.declared)
    assert len(order) == len(set(order))


def test_an_axis_that_an_order_does_not_name_stands_before_its_last_ones() -> None:
    known = tuple(axis.name for axis in axes.AXES if axis.declared)
    first, last = known[:3], known[-2:]
    assert axes.order_axes(first, last) == (*first, *known[3:-2], *last)
