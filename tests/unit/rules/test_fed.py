"""What a cell was fed: told in the document, and carried by the command that repeats it."""

import json
import shlex
from typing import Any

from farm.contract.cells import Workload
from farm.contract.document_cells import Cell
from farm.rules.reporting.documents import assemble
from farm.rules.reporting.records import BlockRecord, RunRecord
from farm.rules.runtimes.models import ModelFacts, ModelInput
from tests.unit.rules.making import make_model, make_rounds, only_refusal, plan_of

DETECTOR = {
    "batch": "batch",
    "dims": {"height": None, "width": None},
    "inputs": (ModelInput(name="images", dtype="float32", shape=("batch", 3, "height", "width"), fill="normal"),),
    "sizes": {"batch": 1, "height": 320, "width": 320},
}
SPEECH = {
    "batch": 1,
    "dims": {"tokens": None},
    "inputs": (
        ModelInput(name="ids", dtype="int64", shape=(1, "tokens"), fill="0..177"),
        ModelInput(name="speed", dtype="float32", shape=(1,), fill="1"),
    ),
    "sizes": {"tokens": 48},
}


def cell_of(facts: dict[str, Any], **options: Any) -> Cell:
    model = make_model(**facts)
    plan = plan_of({"runtime": "1.31.1", **options}, model=model)
    assert not plan.refused, plan.refused[0].reason.text
    record = BlockRecord(plan.blocks[0], make_rounds(4, {0: 1.0}))
    return assemble(RunRecord(model=model, blocks=[record])).cells[0]


def words_of(cell: Cell) -> list[str]:
    return shlex.split(cell.repeat_command)


def test_a_cell_says_the_sizes_that_it_was_measured_at_when_nobody_chose_them() -> None:
    cell = cell_of(DETECTOR)
    assert cell.shapes == {"height": 320, "width": 320}
    (fed,) = cell.inputs
    assert (fed.name, fed.dtype, fed.shape) == ("images", "float32", [1, 3, 320, 320])
    assert fed.made_by == "random, standard normal, seed 0"


def test_the_command_that_repeats_a_cell_carries_its_sizes_and_inputs() -> None:
    assert "--shape height=320 --shape width=320" in " ".join(words_of(cell_of(DETECTOR)))
    words = " ".join(words_of(cell_of(SPEECH)))
    assert "--shape tokens=48 --input ids=0..177 --input speed=1" in words


def test_a_size_and_an_input_that_were_asked_for_replace_the_chosen_ones() -> None:
    cell = cell_of(SPEECH, shapes=[{"tokens": 7}])
    assert [one.shape for one in cell.inputs] == [[1, 7], [1]]
    assert [one.fill for one in cell.inputs] == ["0..177", "1"]


def test_sizes_of_given_inputs_are_said_and_others_are_refused() -> None:
    given = {**DETECTOR, "inputs_sha256": "c" * 64, "inputs_batch": 2, "sizes": {"batch": 2, "height": 64, "width": 96}}
    cell = cell_of(given)
    assert [(one.shape, one.made_by) for one in cell.inputs] == [([2, 3, 64, 96], "given with the model")]
    assert "--shape" not in words_of(cell)
    assert "--inputs" in words_of(cell)
    # a refused cell is told with the inputs that it is refused for
    refused = plan_of({"runtime": "1.31.1", "batch": "1"}, model=make_model(**given)).refused
    (cell,) = assemble(RunRecord(model=make_model(**given), refused=refused)).cells
    assert cell.inputs[0].shape == [2, 3, 64, 96]
    refusal = only_refusal(plan_of({"runtime": "1.31.1", "shapes": [{"height": 65}]}, model=make_model(**given)))
    assert refusal.text == "The given inputs have height 64: 65 needs other inputs, or none."


def test_an_input_that_the_model_lacks_or_cannot_hold_is_refused_in_words() -> None:
    model = make_model(**SPEECH)
    for inputs, said in (
        ({"id": "1"}, "has no input 'id' (the nearest is 'ids')"),
        ({"ids": "0.5"}, "'ids' takes int64 and was to be 0.5: 0.5 is not a whole number."),
        ({"speed": "size:words"}, "cannot be the size of 'words'"),
    ):
        refusal = only_refusal(plan_with(model, {"inputs": inputs}))
        assert said in refusal.text


def test_a_tolerance_of_an_output_that_the_model_lacks_is_refused_in_words() -> None:
    asked = {"tolerance": {"logits": {"atol": 1e-7}}}
    text = only_refusal(plan_with(make_model(**SPEECH, outputs=("y", "state")), asked)).text
    assert text == "encoder has no output 'logits' for `tolerance`: it has y, state."
    many = make_model(**SPEECH, outputs=tuple(f"y{number}" for number in range(9)))
    assert only_refusal(plan_with(many, asked)).text.endswith("y6, y7, ….")
    assert not plan_with(make_model(**SPEECH, outputs=("logits",)), asked).refused
    assert not plan_with(make_model(**SPEECH), asked).refused, "inspected before outputs were kept"
    both = [make_model(**SPEECH, outputs=(name,)) for name in ("y", "logits")]
    assert not plan_with(both, asked).refused, "the other of two models has it"


def plan_with(model: ModelFacts | list[ModelFacts], settings: dict[str, Any]) -> Any:
    from farm.rules.matrices import matrix
    from farm.rules.planning import planner

    return planner.plan(matrix.parse({"runtime": ["1.31.1"], **settings}), model)


def test_a_model_that_was_looked_into_before_inputs_were_keeps_its_cells() -> None:
    cell = cell_of({"batch": "batch", "dims": {"height": None}})
    assert (cell.inputs, cell.shapes) == ([], {})
    assert "inputs" not in Workload(batch=1).model_dump(mode="json")


def test_a_model_that_ran_with_nothing_is_refused_in_the_words_of_what_was_tried() -> None:
    model = make_model(**{**SPEECH, "inputs_problem": "The model ran in none of 20 tries."})
    refusal = only_refusal(plan_of({"runtime": "1.31.1"}, model=model))
    assert (refusal.code, refusal.text) == ("inference_failed", "The model ran in none of 20 tries.")


def test_whoever_says_sizes_or_inputs_may_know_better_than_what_was_tried() -> None:
    model = make_model(**{**SPEECH, "inputs_problem": "The model ran in none of 20 tries."})
    assert not plan_of({"runtime": "1.31.1", "shapes": [{"tokens": 9}]}, model=model).refused
    assert not plan_with(model, {"inputs": {"speed": "2"}}).refused
    given = model.model_copy(update={"inputs_sha256": "c" * 64})
    assert not plan_of({"runtime": "1.31.1"}, model=given).refused


def test_a_name_that_no_option_can_carry_stands_in_the_matrix_of_the_command() -> None:
    name = "ids; rm -rf ~"
    inputs = (ModelInput(name=name, dtype="int64", shape=(1, "tokens"), fill="0..177"),)
    words = words_of(cell_of({**SPEECH, "inputs": inputs}))
    assert "--input" not in words
    assert json.loads(words[words.index("--matrix") + 1])["inputs"] == {name: "0..177"}


def test_a_size_that_is_left_open_says_no_inputs_rather_than_wrong_ones() -> None:
    assert cell_of({**SPEECH, "sizes": {}}).inputs == []


def test_how_an_input_is_made_cannot_be_said_of_given_ones() -> None:
    given = make_model(**{**SPEECH, "inputs_sha256": "c" * 64})
    refusal = only_refusal(plan_with(given, {"inputs": {"speed": "2"}}))
    assert refusal.text == "The input 'speed' is among the given ones: leave `inputs` out of the matrix, or give none."
