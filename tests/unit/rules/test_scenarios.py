"""Scenarios: read from texts and mappings into one text, told in words, apart in blocks; old spellings are the same."""

from typing import Any

import pytest

from farm.contract.cells import CellSpec, Runtime, Workload
from farm.contract.document import Cell
from farm.rules.cells import scenarios
from farm.rules.cells.problems import MatrixProblem
from farm.rules.changes import watching
from farm.rules.matrices import matrix
from farm.rules.planning import planning
from tests.unit.rules.making import make_model
from tests.unit.rules.test_cell_axes import cell
from tests.unit.rules.test_cell_matrices import cells_of


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("single", "single"),
        ({"single": None}, "single"),
        ("load:closed=4", "load:closed=4"),
        ({"load": {"closed": "4"}}, "load:closed=4"),
        ("load:closed=1", "single"),
        ("sustained:10", "sustained:10"),
        ("sustained: 0.5", "sustained:0.5"),
        ({"sustained": 10}, "sustained:10"),
    ],
)
def test_a_scenario_has_one_text_however_it_is_written(written: object, text: str) -> None:
    assert scenarios.read(written) == text
    assert scenarios.read(text) == text


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("singel", "Unknown scenario 'singel': did you mean 'single'?"),
        (7, "scenario has 7: write a name such as single"),
        ({"single": {}, "load": {}}, "scenario has {'single'"),
        ("single:fast=1", "The scenario single has no options"),
        ("load", "The scenario load needs its streams: write `load:closed=4`."),
        ({"load": 4}, "The scenario load has 4: write its options"),
        ("load:closd=4", "Unknown option of load 'closd': did you mean 'closed'?"),
        ("load:closed", "The scenario 'load:closed' has 'closed': write each option once, as name=value."),
        ("load:closed=4:closed=5", "has 'closed=5': write each option once"),
        ("load:closed=65", "closed of load is '65': write a whole number from 1 to 64."),
        ("load:closed=four", "closed of load is 'four'"),
        ({"load": {"closed": True}}, "closed of load is True"),
        ("sustained", "sustained is {}: write minutes from 0.05 to 30, such as 10."),
        ("sustained:31", "sustained is '31': write minutes"),
        ({"sustained": True}, "sustained is True: write minutes"),
        ({"sustained": "long"}, "sustained is 'long': write minutes"),
    ],
)
def test_what_is_no_scenario_is_refused_in_one_sentence(written: object, words: str) -> None:
    with pytest.raises(MatrixProblem) as refused:
        scenarios.read(written)
    assert words in str(refused.value)
    with pytest.raises(MatrixProblem):
        matrix.parse({"runtime": "1.31.1", "scenario": [written]})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("single", "single"),
        ("load:closed=4", "closed loop of 4"),
        ("sustained:0.5", "sustained 0.5 min"),
        ("of a later release", "of a later release"),
    ],
)
def test_a_scenario_is_told_in_words(text: str, words: str) -> None:
    assert scenarios.label(text) == words


def spec(**work: Any) -> CellSpec:
    runtime = Runtime(distribution="onnxruntime", version="1.31.1")
    return CellSpec(artifact_sha256="0" * 64, runtime=runtime, workload=Workload(**work))


def test_streams_are_a_closed_loop_and_the_same_cell_however_they_are_spelled() -> None:
    (old,) = cells_of({"runtime": "1.31.1", "concurrency": 4})
    (new,) = cells_of({"runtime": "1.31.1", "scenario": "load:closed=4"})
    assert old == new
    assert scenarios.of(new).text == scenarios.told(new.workload) == "load:closed=4"
    assert (scenarios.as_order(new), scenarios.is_plain(new)) == ({"kind": "load"}, False)
    assert (scenarios.as_order(spec()), scenarios.is_plain(spec())) == ({"kind": "single"}, True)


def test_streams_are_said_once() -> None:
    for declared in (
        {"concurrency": [1, 2], "scenario": "load:closed=4"},
        {"scenario": "load:closed=4", "include": [{"concurrency": 2}]},
    ):
        with pytest.raises(MatrixProblem, match="leave one of the two out"):
            matrix.parse(declared)
    assert matrix.parse({"concurrency": [1, 2], "scenario": "sustained:1"})


def test_minutes_beside_the_axes_are_a_scenario_and_not_said_twice() -> None:
    (old,) = cells_of({"runtime": "1.31.1", "sustained": 10})
    (new,) = cells_of({"runtime": "1.31.1", "scenario": [{"sustained": 10}]})
    assert old == new
    with pytest.raises(MatrixProblem, match="sustained is a scenario"):
        matrix.parse({"sustained": 10, "scenario": "single"})


def test_a_document_of_before_says_what_its_block_worked_on_for() -> None:
    assert scenarios.told(Workload(), sustained_s=600.0) == "sustained:10"
    assert scenarios.told(Workload()) == "single"


def test_single_changes_no_digest_and_no_message() -> None:
    assert spec(scenario="single").digest == spec().digest
    assert "scenario" not in spec().model_dump_json()
    assert CellSpec.model_validate_json(spec(scenario="sustained:1").model_dump_json()) == spec(scenario="sustained:1")


def test_cells_of_different_scenarios_stand_in_blocks_of_their_own_and_are_never_compared() -> None:
    declared = matrix.parse({"runtime": ["1.29.0", "1.31.1"], "scenario": ["single", "load:closed=2", "sustained:1"]})
    plan = planning.plan(declared, make_model())
    kinds = [{scenarios.of(arm.spec).kind for arm in block.arms} for block in plan.blocks]
    assert kinds == [{"single", "load"}, {"sustained"}]
    assert [block.sustained_s for block in plan.blocks] == [0.0, 60.0]
    # one release with more streams is compared as it always was
    assert {one.axis for one in plan.blocks[0].comparisons} == {"runtime", "concurrency"}
    assert {one.axis for one in plan.blocks[1].comparisons} == {"runtime"}


def test_a_series_is_that_of_before_where_nothing_new_is_said() -> None:
    def series(**changes: Any) -> str:
        return watching.series_of(Cell.model_validate(cell().model_dump() | changes))

    assert series() == series(scenario="single")
    assert series(concurrency=4) == series(concurrency=4, scenario="load:closed=4")
    assert series() != series(scenario="sustained:10")
