"""An axis that a cell has as a field of its own needs its entry in the table, and is everywhere by itself."""

import inspect
import json
import shlex
from typing import Any

import pytest

from dashboard.reading import facts, watches
from dashboard.reading.copies import write_matrix
from dashboard.views import new_run
from farm.contract.cells import CellSpec
from farm.contract.document_cells import Cell
from farm.rules.cells.axes import BY_NAME, FIELD_AXES, MatrixAxis
from farm.rules.cells.commands import repeat_command
from farm.rules.cells.identity import document_fields
from farm.rules.cells.values import format_value, to_plain
from farm.rules.findings import cell_pairs
from farm.rules.matrices import matrix
from onnxfarm.commands.bench import bench
from tests.unit.rules.test_cell_axes import OTHERS, cell, other
from tests.unit.rules.test_cell_matrices import cells_of, copied, digests
from worker.runner.order import Order

every_own_axis = pytest.mark.parametrize("axis", FIELD_AXES, ids=[axis.name for axis in FIELD_AXES])


def plain(axis: MatrixAxis) -> Any:
    """Another value than the default, as a matrix has it."""
    return OTHERS[axis.name][0][axis.field]


def spec_with(axis: MatrixAxis) -> CellSpec:
    (spec,) = cells_of({"runtime": "1.31.1", axis.name: [plain(axis)]})
    return spec


@every_own_axis
def test_a_matrix_gives_it_to_the_cell_which_has_another_digest_by_it(axis: MatrixAxis) -> None:
    spec = spec_with(axis)
    assert axis.value_in(spec) == plain(axis)
    assert digests([spec]).isdisjoint(digests(cells_of({"runtime": "1.31.1"})))
    assert CellSpec.model_validate_json(spec.model_dump_json()).digest == spec.digest


@every_own_axis
def test_a_matrix_reads_back_what_it_writes_under_the_key_of_its_schema(axis: MatrixAxis) -> None:
    declared = matrix.parse({axis.name: [plain(axis)]})
    assert matrix.parse(json.dumps(declared.as_plain())) == declared
    assert matrix.parse({axis.field: format_value(plain(axis))}) == declared
    assert axis.name in matrix.json_schema()["properties"]["matrix"]["properties"]
    excluded = matrix.parse(
        {axis.name: [plain(axis)], "batch": [1, 2], "exclude": [{axis.field: plain(axis), "batch": 2}]}
    )
    assert axis.name in excluded.exclude[0]


@every_own_axis
def test_copied_matrices_and_the_repeat_command_say_it(axis: MatrixAxis) -> None:
    spec = spec_with(axis)
    assert digests(cells_of(copied([spec]))) == digests([spec])
    assert f"{axis.name}:" in write_matrix([(spec, "")])
    words = shlex.split(repeat_command(spec, "m.onnx"))
    assert words[words.index(f"--{axis.name}") + 1] == format_value(plain(axis))


@every_own_axis
def test_bench_has_an_option_for_it(axis: MatrixAxis) -> None:
    assert axis.field in inspect.signature(bench).parameters


@every_own_axis
def test_documents_say_it_and_pages_show_it(axis: MatrixAxis) -> None:
    known = cell().model_dump(mode="json") | document_fields(spec_with(axis), opset=17, session="default")
    written = json.loads(Cell.model_validate(known).model_dump_json())
    assert written[axis.field] == plain(axis)
    read = Cell.model_validate(written)
    assert BY_NAME[axis.name].short(read) in {fact.text for fact in facts.list_cell_facts(read)}
    assert cell_pairs.series_digest(read) != cell_pairs.series_digest(cell())


@every_own_axis
def test_the_form_of_a_matrix_has_a_field_for_it(axis: MatrixAxis) -> None:
    form = new_run.make_form(json.dumps({axis.name: [plain(axis)]}))
    (field,) = [one for one in form.fields if one.name == axis.name]
    assert (field.value, field.is_text) == (format_value(plain(axis)), True)
    assert format_value(plain(axis)) in watches.describe_matrix({axis.name: [to_plain(plain(axis))]})


@every_own_axis
def test_the_runner_takes_it_in_its_order(axis: MatrixAxis) -> None:
    spec = spec_with(axis)
    order = {"version": 1, "kind": "check", "model": "m", "inputs": "i", "provider": spec.provider}
    read = Order.from_json({**order, "session": spec.session.model_dump(mode="json")})
    if axis.part == "session":
        assert getattr(read.session, axis.field) == plain(axis)


def test_a_session_set_is_named_in_rules_of_its_own_axis_alone() -> None:
    read = matrix.parse(
        {
            "provider": ["cpu"],
            "session": [{"name": "cpu", "arena": False}],
            "exclude": [{"session": "cpu"}, {"provider": "cpu"}],
        }
    )
    assert [type(value).__name__ for rule in read.exclude for value in rule.values()] == [
        "SessionSet",
        "ProviderChoice",
    ]


def test_two_cells_that_differ_in_it_are_told_apart() -> None:
    for axis in FIELD_AXES:
        assert BY_NAME[axis.name].label(cell()) != BY_NAME[axis.name].label(other(BY_NAME[axis.name]))
